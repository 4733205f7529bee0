"""kafka-python's consumers with a cooperative assignor of ours read on while their group rebalances."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import (
    CooperativeStickyAssignor as StockCooperativeSticky,
)
from kafka.errors import (
    FencedInstanceIdError,
    IllegalStateError,
    RebalanceInProgressError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import (
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.structs import OffsetAndMetadata

from integration_tests.support.reading_consumer import (
    SECONDS,
    Application,
    ReadingConsumer,
    application,
)
from integration_tests.support.waiting import Gate, wait_for
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._assignors._relied_on import new_future
from kafka_assignors.testing import Cluster, Load, create_topic, delete_topic

PARTITIONS = 6
STOCK: dict[str, Any] = {"assignor": StockCooperativeSticky}
"""kafka-python's own."""


@pytest.fixture
def group(kafka_cluster: Cluster, topic: str) -> Iterator[Application]:
    with application(kafka_cluster, topic) as made:
        yield made


@pytest.fixture
def load(kafka_cluster: Cluster, topic: str) -> Iterator[Load]:
    with Load(kafka_cluster, topic, rate=300) as running:
        yield running


def two(group: Application, **settings: Any) -> list[ReadingConsumer]:
    """The leader and another one, which share the topic."""
    return group.started({"a": 3, "b": 3}, **settings)


def both_halted(group: Application, **settings: Any) -> list[ReadingConsumer]:
    """The same, of which none polls by itself."""
    members = two(group, **settings)
    for one in members:
        one.halt()
    return members


class Held:
    """Holds back a consumer's requests of some kinds, or their answers, until they are released."""

    def __init__(self, one: ReadingConsumer, *kinds: type, answers: bool = True) -> None:
        self._coordinator = one.coordinator
        manager = one.coordinator._manager
        self._manager = getattr(manager, "_manager", manager)  # before its first join it is the client's
        self._send = self._manager.send
        self._kinds, self._answers = kinds, answers
        self._held: list[Callable[[], object]] = []
        self._manager.send = self._sends

    def __len__(self) -> int:
        return len(self._held)

    def _sends(self, request: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(request, self._kinds):
            return self._send(request, *args, **options)
        answer = new_future(self._coordinator)
        sent = self._send(request, *args, **options) if self._answers else None
        self._held.append(lambda: (sent or self._send(request, *args, **options)).chain(answer))
        return answer

    def release(self) -> None:
        self._manager.send = self._send
        for one in self._held:
            self._manager.call_soon(one)


# Records


@pytest.mark.usefixtures("load")
def test_nothing_of_a_revoked_partition_comes_after_its_listener_which_can_read_its_position(
    group: Application,
) -> None:
    members = two(group)
    for one in members:
        one.reads_on(one.held)
        one.calls.clear()
        one.looks_at_positions = True
    group.consumer("c").go()
    group.settled({"a": 2, "b": 2, "c": 2})
    for one in members:
        one.looks_at_positions = False
        one.reads_on(one.held)
        (revoked,) = [call for call in one.calls if call.method == "revoked" and call.partitions]
        assert len(revoked.partitions) == 1
        assert not revoked.partitions & one.held
        for partition in revoked.partitions:
            assert revoked.read[partition] == len(one.read[partition])
            assert revoked.positions[partition] == one.read[partition][-1] + 1


# Commits


def test_commits_succeed_while_others_are_waited_for_and_while_the_leader_plans(group: Application) -> None:
    gate = Gate()
    leader, other = both_halted(group, assignor=lambda: CooperativeStickyAssignor(planner=gate.planner))
    other.begin_join()
    one = min(other.held)
    other.commit(one, 1)
    assert other.phase == "JOINING"
    assert other.consumer.committed(one) == 1
    generation = other.generation.generation_id
    gate.shut()
    leader.go()
    wait_for("a new generation", lambda: other.phase == "SYNCING", SECONDS)
    assert other.generation.generation_id == generation + 1
    answers: list[Any] = []
    future = other.consumer.commit_async(offsets_of(one, 2), callback=lambda *it: answers.append(it))
    syncs = threading.Thread(target=other.commit, args=(one, 3))
    syncs.start()
    wait_for("both to wait", lambda: len(other.coordinator._flow.commits) == 2, SECONDS)
    assert not future.is_done
    assert other.consumer.committed(one) == 1
    gate.open()
    syncs.join()
    assert future.succeeded()
    assert other.consumer.committed(one) == 3
    other.poll(0)  # which calls back
    assert [offsets for offsets, error in answers if not isinstance(error, Exception)] == [offsets_of(one, 2)]


def offsets_of(one: TopicPartition, offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {one: OffsetAndMetadata(offset, "", -1)}


@pytest.mark.usefixtures("load")
def test_no_commit_fails_in_twenty_rebalances(group: Application) -> None:
    members = [group.consumer(name, heartbeat_interval_ms=300).go(50, commits=True) for name in "abc"]
    group.settled({"a": 2, "b": 2, "c": 2})
    for turn in range(20):
        before = members[0].generation.generation_id
        members[turn % 3].coordinator.request_rejoin()
        wait_for("a rebalance", partial(is_newer, members, before), SECONDS)
    group.settled({"a": 2, "b": 2, "c": 2})
    assert [one.errors for one in members] == [[], [], []]
    assert [call.method for one in members for call in one.calls if call.method == "lost"] == []


def is_newer(members: list[ReadingConsumer], generation: int) -> bool:
    return min(int(one.generation.generation_id) for one in members) > generation


@pytest.mark.usefixtures("load")
def test_with_auto_commit_no_record_is_read_twice_or_lost_as_members_come_and_go(
    group: Application, load: Load
) -> None:
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 600_000}  # at revocations only
    two(group, **settings)
    for name in "cde":
        new = group.consumer(name, **settings).go()
        group.settled({"a": 2, "b": 2, name: 2})
        new.reads_on(new.held)
        new.close()
        group.settled({"a": 3, "b": 3})
    load.stop()
    produced = load.produced

    def read() -> bool:
        counts = [one.count() for one in group.consumers]
        return all(sum(count.get(one, 0) for count in counts) >= number for one, number in produced.items())

    wait_for("all records", read, SECONDS)
    assert group.read_twice() == {}


# Topics that come and go


@pytest.mark.usefixtures("load")
def test_a_deleted_topic_is_revoked_after_one_commit_that_the_broker_refuses(
    kafka_cluster: Cluster, topic: str
) -> None:
    """kafka-python would send it again for a third of the session, and deliver nothing meanwhile."""
    goes = create_topic(kafka_cluster, 2)
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 600_000}  # at revocations only
    with application(kafka_cluster, topic, goes, **settings) as group:
        with Load(kafka_cluster, goes, rate=100):
            (one,) = group.started({"a": PARTITIONS + 2})
            one.reads_on(one.held)
        codes: list[int] = []
        handle = one.coordinator._handle_offset_commit_response

        def handles(offsets: Any, send_time: float, response: Any) -> None:
            codes.extend(code for _, partitions in response.topics for _, code in partitions)
            handle(offsets, send_time, response)

        one.coordinator._handle_offset_commit_response = handles
        delete_topic(kafka_cluster, goes)
        group.settled({"a": PARTITIONS})
        one.reads_on(one.held)
        assert codes == [UnknownTopicOrPartitionError.errno] * 2
        assert group.read_twice() == {}


@pytest.mark.usefixtures("load")
def test_a_wider_pattern_revokes_nothing_that_it_has(kafka_cluster: Cluster, topic: str) -> None:
    with application(kafka_cluster, topic) as group:
        one = group.consumer("a")
        one.consumer.unsubscribe()
        one.consumer.subscribe(pattern=f"^{topic}$", listener=one)
        one.go()
        group.settled({"a": PARTITIONS})
        one.reads_on(one.held)
        one.halt()
        one.calls.clear()
        new = create_topic(kafka_cluster, 2, name=f"{topic}-new")
        one.consumer.subscribe(pattern=f"^{topic}(-new)?$", listener=one)
        one.go()
        group.settled({"a": PARTITIONS + 2})
        one.reads_on([held for held in one.held if held.topic == topic])
        changes = [(call.method, {held.topic for held in call.partitions}) for call in one.calls]
        assert [change for change in changes if change[1]] == [("assigned", {new})]
        assert group.read_twice() == {}


# Membership


def test_the_answer_to_a_leave_does_not_end_a_newer_membership(group: Application) -> None:
    leader, other = both_halted(group)
    leader.go()
    leave = Held(other, LeaveGroupRequest)
    other.coordinator._manager.call_soon(other.coordinator.maybe_leave_group_async)
    wait_for("it to leave", lambda: len(leave), SECONDS)
    other.coordinator.request_rejoin()
    for _ in range(10):
        other.poll(50)
    assert other.phase == "OUT"
    leave.release()
    group.resumed({"a": 3, "b": 3})
    assert group.listed == {one.generation.member_id for one in (leader, other)}


def test_a_member_that_cannot_reach_its_coordinator_reads_on_until_its_session_may_be_over(
    disturbed_brokers: Cluster,
) -> None:
    topic = create_topic(disturbed_brokers, PARTITIONS, replication=3)
    settings = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500}
    network = disturbed_brokers.network
    with application(network.access, topic, **settings) as group, Load(disturbed_brokers, topic, rate=300):
        _, other = both_halted(group)
        coordinator = int(str(other.coordinator.coordinator_id).removeprefix("coordinator-"))
        elsewhere = [
            one
            for one in sorted(other.held)
            if other.coordinator._cluster.leader_for_partition(one) != coordinator
        ]
        while not all(other.read[one] for one in elsewhere):  # it has positions, which its coordinator gives
            other.poll()
        other.begin_join()
        before = other.count()
        certainty = other.coordinator._flow.certainty
        with network.half_open(client=other.name, broker=coordinator):
            last = 0.0

            def is_uncertain() -> bool:
                nonlocal last
                now = time.monotonic()
                if other.poll(20):
                    last = now
                return now > float(certainty.until) + 1

            wait_for("the session to be over", is_uncertain, SECONDS)
            assert last <= certainty.until
            assert elsewhere
            assert all(other.count()[one] > before[one] for one in elsewhere)
        group.resumed({"a": 3, "b": 3})
        assert group.consumers[0].errors == group.consumers[1].errors == []


# Beside kafka-python's own


def test_kafka_pythons_own_refuses_commits_while_a_join_waits(group: Application) -> None:
    _, other = both_halted(group, **STOCK)
    other.coordinator.request_rejoin()
    other.poll(0)
    with pytest.raises(RebalanceInProgressError):
        other.commit(min(other.held), 1)
    group.resumed({"a": 3, "b": 3})


@pytest.mark.usefixtures("load")
def test_kafka_pythons_own_has_no_position_of_what_is_revoked(group: Application) -> None:
    (alone,) = group.started({"a": 6}, **STOCK)
    alone.reads_on(alone.held)
    alone.looks_at_positions = True
    group.consumer("b", **STOCK).go()
    wait_for("its listener to fail", lambda: alone.errors, SECONDS)
    alone.looks_at_positions = False
    assert isinstance(alone.errors[0].__cause__, IllegalStateError)


def taken_over(group: Application, **how: Any) -> ReadingConsumer:
    """A static member whose instance id another consumer has by now, and that has heard of it."""
    heard: list[Exception] = []
    settings = {"group_instance_id": "i", "heartbeat_interval_ms": 100, **how}
    (first,) = group.started({"a": 6}, **settings)
    handle = first.coordinator._handle_heartbeat_response

    def handled(*answer: Any) -> None:
        try:
            handle(*answer)
        except FencedInstanceIdError as error:
            heard.append(error)
            raise

    first.coordinator._handle_heartbeat_response = handled
    group.consumer("b", **settings).go()
    group.settled({"b": 6})
    wait_for("the first to hear of it", lambda: heard, SECONDS)
    return first


@pytest.mark.usefixtures("load")
def test_who_is_fenced_loses_its_partitions_hears_so_and_takes_nothing_back(group: Application) -> None:
    first = taken_over(group)
    wait_for("errors", lambda: len(first.errors) > 5, SECONDS)
    assert {type(error) for error in first.errors} == {FencedInstanceIdError}
    assert (first.calls[-1].method, len(first.calls[-1].partitions), first.held) == ("lost", 6, frozenset())
    second = group.consumers[1]
    assert (len(second.held), second.errors) == (6, [])
    # As a coordinator that went back to a former state of the group: nobody has the instance id any more.
    member = second.generation.member_id
    second.close()
    group.expel(member)
    group.settled({"a": 6})
    first.reads_on(first.held)


@pytest.mark.parametrize("assignor", [StockCooperativeSticky, RangeAssignor])
def test_kafka_pythons_own_owns_on_when_it_is_fenced(assignor: Any, group: Application) -> None:
    # Most often it reads on, too. At times its lookup of the coordinator never ends, and it reads nothing.
    first = taken_over(group, assignor=assignor)
    enough = first.polls + 3
    wait_for("further polls", lambda: first.polls >= enough or first.errors, SECONDS)
    assert (len(first.held), first.calls[-1].method) == (6, "assigned")
    assert {type(error) for error in first.errors} <= {FencedInstanceIdError}  # if it joins again


@pytest.mark.usefixtures("load")
def test_an_eager_consumer_that_missed_a_generation_goes_on_at_the_commits(group: Application) -> None:
    """Another has read on in one of its partitions by then. kafka-python would go on where it was before."""
    settings = {"assignor": RangeAssignor, "heartbeat_interval_ms": 300}
    c = group.consumer("c", **settings).go(commits=True)
    group.settled({"c": 6})  # and leads from now on: without a leader's SyncGroup nobody gets anything
    a, b = (group.consumer(name, **settings).go(commits=True) for name in "ab")
    group.settled({"a": 2, "b": 2, "c": 2})
    moves = TopicPartition(group.topics[0], 3)
    b.reads_on([moves])
    answers = Held(b, SyncGroupRequest, answers=False)
    a.close()
    wait_for("b to have joined", lambda: len(answers), SECONDS)
    c.reads_on([moves])
    group.consumer("a", **settings).go(commits=True)
    wait_for("the next rebalance", lambda: c.coordinator.rejoining, SECONDS)
    answers.release()
    group.settled({"a": 2, "b": 2, "c": 2})
    b.reads_on([moves])
    assert moves not in group.read_twice()
