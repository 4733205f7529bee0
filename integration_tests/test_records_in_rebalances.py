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
)
from kafka.protocol.consumer import (
    HeartbeatRequest,
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
from kafka_assignors.testing import Cluster, Load, create_topic, grow_topic

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
def test_partitions_that_stay_are_read_and_committed_while_one_member_is_slow_to_join(
    group: Application,
) -> None:
    leader, slow = both_halted(group)
    leader.read.clear()  # the second to join has read again what the first one read alone
    slow.read.clear()
    leader.go()
    new = group.consumer("c").go()
    wait_for("the leader to join", lambda: leader.phase == "JOINING", SECONDS)
    before, calls = leader.held, len(leader.calls)
    leader.reads_on(before)
    leader.halt()
    while leader.poll() == 0:
        pass
    leader.consumer.commit()
    assert (leader.phase, leader.held, leader.calls[calls:]) == ("JOINING", before, [])
    group.resumed({"a": 2, "b": 2, "c": 2})
    assert [call.method for call in leader.calls[calls:]][:1] == ["revoked"]
    assert new.errors == leader.errors == slow.errors == []
    assert group.read_twice().keys() <= new.held  # from the last commit on, as nobody committed these


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


def test_a_long_poll_on_an_idle_topic_takes_its_assignment_at_once(group: Application) -> None:
    members = two(group)
    for one in members:
        one.halt()
        one.go(60_000)
    new = group.consumer("c").go(60_000)
    group.settled({"a": 2, "b": 2, "c": 2})
    for one in (*members, new):
        assert sum(one.count().values()) == 0  # so these are the first polls still
        one._stopping.set()
    with Load(group.access, group.topics[0], rate=100):
        for one in (*members, new):
            one.halt()


@pytest.mark.usefixtures("load")
def test_an_iteration_continues_through_a_rebalance(group: Application) -> None:
    one = group.consumer("a", consumer_timeout_ms=500)
    ended = threading.Event()

    def iterate() -> None:
        while not ended.is_set():
            for record in one.consumer:
                one.read[TopicPartition(record.topic, record.partition)].append(record.offset)
                if ended.is_set():
                    break

    thread = threading.Thread(target=iterate)
    thread.start()
    try:
        wait_for("all partitions", lambda: len(one.held) == PARTITIONS, SECONDS)
        slow = group.consumer("b")

        def joins() -> bool:
            slow.poll(0)
            return one.phase == "JOINING" or len(one.held) == 3

        wait_for("it to join again", joins, SECONDS)
        before = one.count()

        def read_on() -> list[TopicPartition]:
            return [part for part, number in one.count().items() if number >= before.get(part, 0) + 20]

        # What moves may be revoked by now: the other one's join continues without a poll.
        wait_for("what stays to be read on", lambda: len(read_on()) >= 3, SECONDS)
        slow.go()
        group.settled({"a": 3, "b": 3})
        one.reads_on(one.held)
    finally:
        ended.set()
        thread.join()


@pytest.mark.usefixtures("load")
def test_pauses_seeks_and_positions_work_while_a_join_waits(group: Application) -> None:
    _, other = both_halted(group)
    paused, sought, free = sorted(other.held)
    while not (other.read[paused] and other.read[sought] and other.read[free]):
        other.poll()
    other.begin_join()
    other.consumer.pause(paused)
    other.consumer.seek(sought, 0)
    at = {one: other.consumer.position(one) for one in (paused, sought)}
    assert at[sought] == 0
    before = other.count()
    while other.count()[sought] == before[sought] or other.count()[free] == before[free]:
        other.poll()
    assert other.read[sought][before[sought]] == 0
    assert (other.count()[paused], other.phase) == (before[paused], "JOINING")
    group.resumed({"a": 3, "b": 3})
    assert other.consumer.paused() == {paused}
    assert other.consumer.position(paused) == at[paused]


def test_patterns_new_topics_and_growing_ones_are_followed(
    kafka_cluster: Cluster, topic_factory: Callable[..., str]
) -> None:
    first = topic_factory(4)
    with application(kafka_cluster) as group, Load(kafka_cluster, first, rate=200):
        group.started({"a": 2, "b": 2}, pattern=f"^{first}.*")
        create_topic(kafka_cluster, 4, name=f"{first}-2")
        group.settled({"a": 4, "b": 4})
        grow_topic(kafka_cluster, first, 6)
        group.settled({"a": 5, "b": 5})
        for one in group.consumers:
            one.reads_on([partition for partition in one.held if partition.topic == first])
            assert one.errors == []


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


# Membership


def test_the_second_round_begins_without_the_next_regular_heartbeat(group: Application) -> None:
    """Heartbeats of 20 s: a round that waited for one would not end within the first of them."""
    slow = {"heartbeat_interval_ms": 20_000, "session_timeout_ms": 60_000}
    group.started({"a": 6}, **slow)
    group.consumer("b", **slow).go()
    leader = group.consumers[0]
    leader.coordinator.request_rejoin()  # it would hear of the newcomer with the next heartbeat
    began = time.monotonic()
    group.settled({"a": 3, "b": 3})
    assert time.monotonic() - began < 20


@pytest.mark.usefixtures("load")
def test_a_new_member_reads_when_a_heartbeat_is_answered_which_is_sent_at_once(group: Application) -> None:
    """SyncGroup's answer renews no session if the group was stable already."""
    one = group.consumer("a", heartbeat_interval_ms=20_000, session_timeout_ms=60_000)
    answers = Held(one, HeartbeatRequest)
    began = time.monotonic()
    while len(answers) == 0:
        one.poll()
    assert time.monotonic() - began < 20
    assert (one.phase, len(one.held), one.poll(500)) == ("STABLE", PARTITIONS, 0)
    answers.release()
    one.go()
    one.reads_on(one.held)


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
def test_an_application_that_stops_in_a_join_is_expelled_by_its_poll_interval(
    leads: bool, group: Application
) -> None:
    """Beside it another one that has stopped, for which its JoinGroup waits; a third reads on."""
    settings = {"max_poll_interval_ms": 6000, "heartbeat_interval_ms": 500}
    leader, second, third = group.started({"a": 2, "b": 2, "c": 2}, **settings)
    stops, other = (leader, second) if leads else (second, leader)
    other.halt()
    stops.begin_join()
    held, stays = stops.held, third.held
    wait_for("the third to have all", lambda: len(third.held) == PARTITIONS, SECONDS)
    assert not any(one.method == "lost" for one in third.calls)
    assert not any(call.partitions & stays for call in third.calls if call.method == "revoked")
    before = stops.count()
    stops.poll(0)
    assert (stops.calls[-1].method, stops.calls[-1].partitions) == ("lost", held)
    assert {one: stops.count().get(one) for one in held} == {one: before.get(one) for one in held}
    group.resumed({"a": 2, "b": 2, "c": 2})


def test_the_connection_of_joins_is_closed_when_an_assignment_is_taken(group: Application) -> None:
    """It would be idle until the next join: a firewall drops it, and that join waits for long."""
    members = two(group)
    for one in members:
        connections = {str(node) for node in [*one.coordinator._manager._conns]}
        assert [name for name in connections if name.endswith("-joins")] == []
        assert str(one.coordinator.coordinator_id) in connections


def test_a_consumer_leaves_at_once_while_its_join_waits(group: Application) -> None:
    leader, other = both_halted(group)
    other.begin_join()
    member = other.generation.member_id
    other.close(timeout_ms=60_000)  # behind the JoinGroup it would wait for the leader, which does not poll
    assert member not in group.listed
    leader.go()
    group.settled({leader.name: 6})


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
