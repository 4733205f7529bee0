"""How the coordinator of a cooperative consumer falls out of its group, without a broker."""

import asyncio
import contextlib
import copy
import gc
import inspect
import logging
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import kafka.errors
import pytest
from aiokafka import TopicPartition, errors
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from aiokafka.structs import OffsetAndMetadata
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafka_assignors import StickyAssignor
from kafka_assignors._assignors._membership.certainty import Certainty
from kafka_assignors.aio import _coordinator, _partitions, strategies
from kafka_assignors.aio._coordinator import (
    _SENT_IN,
    FENCED_INSTANCE_ID,
    JOINING,
    CooperativeCoordinator,
    EagerCoordinator,
    FencedInstanceIdError,
    UnknownPartitionsError,
    revoked_meanwhile,
)
from kafka_assignors.aio._partitions import LastingState
from kafka_assignors.aio._strategies import lead_beside_the_loop
from kafka_assignors.testing._groups.clients import described
from kafka_assignors.testing._groups.clients.aio import ObservedAiokafkaConsumer

SUBSCRIPTION = ConsumerProtocolSubscription(topics=["t"], version=0).encode()
A, B = (TopicPartition("t", number) for number in range(2))


class Listener(ConsumerRebalanceListener):
    """Notes what it hears, and does something then."""

    def __init__(self) -> None:
        self.lost: list[set[TopicPartition]] = []
        self.revoked: list[set[TopicPartition]] = []
        self.assigned: list[set[TopicPartition]] = []
        self.does: Callable[[], Any] = lambda: None
        self.does_when_revoked: Callable[[], Any] = lambda: None
        self.does_when_assigned: Callable[[], Any] = lambda: None

    def on_partitions_assigned(self, assigned: Any) -> Any:
        self.assigned.append(assigned)
        return self.does_when_assigned()

    def on_partitions_revoked(self, revoked: Any) -> Any:
        self.revoked.append(revoked)
        return self.does_when_revoked()

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self.lost.append(lost)
        await self.does()


def committed(request: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, number): offset
        for topic, partitions in request._topics
        for number, offset, _ in partitions
    }


def answered(request: Any, error: int = 0) -> Any:
    """The answer to a commit."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for one in committed(request):
        topics.setdefault(one.topic, []).append((one.partition, error))
    return SimpleNamespace(topics=list(topics.items()))


def assignment(*partitions: TopicPartition) -> bytes:
    """What a SyncGroup gives, as bytes."""
    of_topics: dict[str, list[int]] = {}
    for one in partitions:
        of_topics.setdefault(one.topic, []).append(one.partition)
    raw: bytes = ConsumerProtocolMemberAssignment(0, list(of_topics.items()), b"").encode()
    return raw


class Client:
    """An AIOKafkaClient whose broker answers as a test says: an answer, or what makes it of a request.

    Unless it says something, joins are refused for now, and all else is well.
    """

    def __init__(self) -> None:
        self.cluster = SimpleNamespace(
            add_listener=lambda _: None,
            partitions_for_topic=lambda _: {0, 1},
            topics=lambda _: {"t"},
            brokers=list,
            _partitions={"t": {0: None, 1: None}},
        )
        self.answers: dict[str, Any] = {
            "JoinGroupRequest": LOADING,
            "HeartbeatRequest": OK,
            "LeaveGroupRequest": OK,
            "OffsetCommitRequest": answered,
        }
        self.sent: list[Any] = []
        self._conns: Any = defaultdict(lambda: SimpleNamespace(_request_timeout=40, close=lambda: None))

    def set_topics(self, topics: Any) -> None:
        """Do nothing."""

    async def _maybe_wait_metadata(self) -> None:
        """Have it."""

    async def ready(self, node: int, *, group: int) -> bool:
        del node, group
        return True

    async def send(self, node: int, request: Any, *, group: int) -> Any:
        del node, group
        self.sent.append(request)
        await asyncio.sleep(0)
        answer = self.answers[type(request).__name__]
        answer = answer(request) if callable(answer) else answer
        return await answer if inspect.isawaitable(answer) else answer

    def of(self, kind: type[Any]) -> list[Any]:
        """The requests of a kind that were sent."""
        return [one for one in self.sent if isinstance(one, kind)]

    @property
    def committed(self) -> list[dict[TopicPartition, int]]:
        """The offsets of each commit that was sent."""
        return [committed(one) for one in self.of(OffsetCommitRequest)]


OK, LOADING, FENCED, UNKNOWN = (
    SimpleNamespace(error_code=code)
    for code in (
        0,
        errors.GroupLoadInProgressError.errno,
        FENCED_INSTANCE_ID,
        errors.UnknownMemberIdError.errno,
    )
)
OFFSETS = {A: OffsetAndMetadata(7, ""), B: OffsetAndMetadata(9, "")}
OF_A = {A: OFFSETS[A]}
STRATEGY = SimpleNamespace(name="s", metadata=lambda _: b"", on_assignment=lambda _: None)


class Held:
    """An answer, or what makes it of a request, that comes when the test lets it come."""

    def __init__(self, answer: Any) -> None:
        self.asked, self.lets = asyncio.Event(), asyncio.Event()
        self._answer = answer

    async def __call__(self, request: Any) -> Any:
        self.asked.set()
        await self.lets.wait()
        return self._answer(request) if callable(self._answer) else self._answer


def refused(error: type[errors.KafkaError]) -> Any:
    """The answer to a commit of A."""
    return SimpleNamespace(topics=[(A.topic, [(A.partition, error.errno)])])


def follows_in(generation: int, **otherwise: Any) -> SimpleNamespace:
    """The answer to JoinGroup of a member that does not lead, unless it does."""
    fields = {"error_code": 0, "member_id": "m", "generation_id": generation, "group_protocol": "s"}
    return SimpleNamespace(**{**fields, "leader_id": "another", "members": [], **otherwise})


LEADS = follows_in(6, group_protocol="sticky", leader_id="m", members=[("m", None, SUBSCRIPTION)])


def joins(coordinator: GroupCoordinator, generation: int, given: Any, **others: Any) -> None:
    """The broker lets the member into a generation and gives it an assignment: bytes, or what answers."""
    if isinstance(given, bytes):
        given = SimpleNamespace(error_code=0, member_assignment=given)
    answers = {"JoinGroupRequest": follows_in(generation), "SyncGroupRequest": given, "HeartbeatRequest": OK}
    coordinator._client.answers |= answers | others


def delivers(coordinator: CooperativeCoordinator) -> Any:
    """Its assignment, of which it delivers A and B."""
    lasting: Any = coordinator._lasting
    lasting.release({A, B})
    coordinator._confirm(time.monotonic())
    assert paused(lasting) == []
    return lasting


def paused(lasting: Any) -> list[TopicPartition]:
    return sorted(one for one in lasting.tps if lasting.state_value(one).paused)


async def rejoin(coordinator: GroupCoordinator) -> bool:
    return bool(await coordinator._do_rejoin_group(coordinator._subscription.subscription))


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
async def coordinator(request: pytest.FixtureRequest, listener: Listener) -> AsyncIterator[GroupCoordinator]:
    """Of a member in generation 5 that has A and B; its tasks are ended after the test."""
    kind: Any = getattr(request, "param", CooperativeCoordinator)
    state = LastingState() if kind is CooperativeCoordinator else SubscriptionState()
    client = Client()
    state.register_fetch_waiters(set())  # as a fetcher does
    state.subscribe({"t"}, listener=listener)
    state.assign_from_subscribed({A, B})
    fetcher = SimpleNamespace(_records={}, _notify=lambda _: None, _wait_consume_future=None)
    first = [fetcher] if kind is CooperativeCoordinator else []
    made: Any = kind(*first, client, state, enable_auto_commit=False)
    made._coordination_task.cancel()
    made.generation, made.member_id, made.coordinator_id = 5, "m", 0
    made._assignors, made._retry_backoff_ms = [STRATEGY], 1
    made._rejoin_needed_fut = asyncio.get_running_loop().create_future()
    if first:
        made._certainty.synced(time.monotonic())
    yield made
    if first:
        made._stop_listening()
    await made._stop_heartbeat_task()
    await made._stop_commit_offsets_refresh_task()


each_kind = pytest.mark.parametrize("coordinator", [EagerCoordinator, CooperativeCoordinator], indirect=True)
eager_only = pytest.mark.parametrize("coordinator", [EagerCoordinator], indirect=True)


async def test_a_commit_refused_while_lost_is_told_makes_nothing_lost_once_more(
    coordinator: CooperativeCoordinator, listener: Listener
) -> None:
    async def commit_that_is_refused() -> None:
        coordinator.reset_generation()

    listener.does = commit_that_is_refused
    coordinator.reset_generation()
    await coordinator._give_up_what_was_lost()
    coordinator._subscription.assign_from_subscribed({A})
    await coordinator._give_up_what_was_lost()
    assert listener.lost == [{A, B}]
    assert coordinator._owned == {A}


@pytest.mark.parametrize("with_the_coordination", [False, True])
async def test_a_listener_may_be_cancelled_by_itself_and_with_the_coordination(
    coordinator: CooperativeCoordinator, listener: Listener, with_the_coordination: bool
) -> None:
    async def is_cancelled() -> None:
        if with_the_coordination:
            telling.cancel()
            await asyncio.sleep(3600)
        raise asyncio.CancelledError

    listener.does = is_cancelled
    telling = asyncio.create_task(coordinator._tell("on_partitions_lost", {A}))
    with pytest.raises(asyncio.CancelledError) if with_the_coordination else contextlib.nullcontext():
        await telling
    assert listener.lost == [{A}]


@pytest.mark.parametrize("error", [errors.IllegalGenerationError, errors.UnknownMemberIdError])
@eager_only
async def test_a_commit_that_a_join_overtook_throws_an_eager_consumer_out_of_nothing(
    coordinator: EagerCoordinator, error: Any
) -> None:
    def join_and_refuse(_: Any) -> Any:
        coordinator.generation = 6
        return refused(error)

    coordinator._client.answers["OffsetCommitRequest"] = join_and_refuse
    with pytest.raises(errors.CommitFailedError):
        await coordinator.commit_offsets(None, OF_A)
    assert (coordinator.generation, coordinator.member_id) == (6, "m")
    assert not coordinator._rejoin_needed_fut.done()
    # One that no join came between does.
    coordinator._client.answers["OffsetCommitRequest"] = refused(error)
    with pytest.raises(errors.CommitFailedError):
        await coordinator.commit_offsets(None, OF_A)
    assert (coordinator.generation, coordinator.member_id) == (-1, "")
    assert coordinator._rejoin_needed_fut.done()


@dataclass
class Clock:
    """A clock that a test turns; the event loop has its own."""

    now: float = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (_coordinator, _partitions):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.mark.parametrize("error", [0, errors.RebalanceInProgressError.errno])
async def test_doubt_counts_from_when_the_last_heartbeat_that_was_answered_was_sent(
    coordinator: CooperativeCoordinator, error: int, clock: Clock
) -> None:
    def answer_4_s_later(_: Any) -> Any:
        clock.now += 4
        return SimpleNamespace(error_code=error)

    lasting: Any = coordinator._lasting
    coordinator._client.answers["HeartbeatRequest"] = answer_4_s_later
    assert lasting.doubted is not None
    coordinator._confirm(clock.now - 10)  # in a session that may have ended
    assert lasting.doubted is not None
    await coordinator._do_heartbeat()
    assert lasting.doubted is None
    clock.now += 5.9  # 9.9 s after it was sent
    assert lasting.doubted is None
    clock.now += 0.1
    assert lasting.doubted is not None
    # Frozen for a session while the answer was on its way: it is too old to prove anything.
    clock.now -= 4
    coordinator._certainty = Certainty(4.0, coordinator._rebalance_timeout_ms / 1000)
    coordinator._certainty.synced(clock.now)
    await coordinator._do_heartbeat()
    assert lasting.doubted is not None


async def test_a_new_member_delivers_when_the_heartbeat_is_answered_that_follows_its_sync_at_once(
    coordinator: CooperativeCoordinator,
) -> None:
    """SyncGroup's answer renews no session if the group was stable already."""
    heartbeat = Held(OK)
    coordinator._heartbeat_interval_ms = 3_600_000
    joins(coordinator, 6, assignment(A, B), HeartbeatRequest=heartbeat)
    lasting: Any = coordinator._lasting
    assert await rejoin(coordinator)
    await asyncio.wait_for(heartbeat.asked.wait(), 20)
    doubt = lasting.doubted
    assert not doubt.done()
    heartbeat.lets.set()
    await asyncio.wait_for(doubt, 20)
    assert lasting.doubted is None


@pytest.mark.parametrize("error", [errors.RebalanceInProgressError, errors.IllegalGenerationError])
async def test_heartbeats_go_on_while_a_join_is_on_and_throw_nobody_out(
    coordinator: CooperativeCoordinator, error: Any, clock: Clock
) -> None:
    beats, join = asyncio.Queue[int](), Held(LOADING)

    def beat(request: Any) -> Any:
        beats.put_nowait(request._generation_id)
        return SimpleNamespace(error_code=error.errno)

    coordinator._heartbeat_interval_ms = 1
    coordinator._client.answers |= {"HeartbeatRequest": beat, "JoinGroupRequest": join}
    lasting: Any = coordinator._lasting
    coordinator._confirm(clock.now)
    clock.now += 9
    joining = asyncio.create_task(rejoin(coordinator))
    assert [await beats.get(), await beats.get()] == [5, 5]
    clock.now += 9
    # The coordinator has made the next generation already if it does not know this one.
    assert (lasting.doubted is None) == (error is errors.RebalanceInProgressError)
    assert (coordinator.joining, coordinator.generation, lasting.lost) == (True, 5, False)
    assert not coordinator._rejoin_needed_fut.done()
    join.lets.set()
    assert not await joining


@each_kind
async def test_a_heartbeat_of_a_join_that_failed_since_throws_nobody_out(
    coordinator: EagerCoordinator,
) -> None:
    """The group has the next generation, and the answer to JoinGroup was lost."""
    beat, join = Held(SimpleNamespace(error_code=errors.IllegalGenerationError.errno)), Held(LOADING)
    coordinator._client.answers |= {"HeartbeatRequest": beat, "JoinGroupRequest": join}
    attempt = asyncio.create_task(rejoin(coordinator))
    await join.asked.wait()
    heartbeat = asyncio.create_task(coordinator._do_heartbeat())
    await beat.asked.wait()
    join.lets.set()
    assert not await attempt
    beat.lets.set()
    await heartbeat
    assert (coordinator.generation, coordinator.member_id) == (5, "m")
    # Nor is it known by that to be a member: sent now, the same answer ends its membership.
    await coordinator._do_heartbeat()
    assert (coordinator.generation, coordinator.member_id) == (-1, "")


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_commit_that_is_tried_again_is_of_what_stayed_only_and_an_event_for_each_part(
    coordinator: CooperativeCoordinator, comes_back: bool
) -> None:
    events, client = observed(coordinator), coordinator._client

    def commit(request: Any) -> Any:
        if len(client.sent) > 1:
            return answered(request)
        coordinator._subscription.assign_from_subscribed({A})
        if comes_back:
            coordinator._subscription.assign_from_subscribed({A, B})
        return answered(request, errors.GroupLoadInProgressError.errno)

    client.answers["OffsetCommitRequest"] = commit
    with pytest.raises(errors.CommitFailedError, match="revoked meanwhile, so not committed: t-1"):
        await coordinator.commit_offsets(coordinator._lasting, OFFSETS)
    assert client.committed == [{A: 7, B: 9}, {A: 7}]
    said = {"generation": 5, "member_id": "m"}
    assert events[-2:] == [
        ("committed", {**said, "positions": [("t", 0, 7)]}),
        ("commit_failed", {**said, "positions": [("t", 1, 9)], "text": described(revoked_meanwhile([B]))}),
    ]


def observed(coordinator: EagerCoordinator) -> list[tuple[str, Any]]:
    """The events of a coordinator's consumer from now on."""
    events: list[tuple[str, Any]] = []
    calls = ("getmany", "getone", "seek", "seek_to_beginning", "seek_to_end", "subscribe")
    consumer = SimpleNamespace(
        **dict.fromkeys(calls),
        _group_instance_id=None,
        _session_timeout_ms=10_000,
        _max_poll_interval_ms=10_000,
        _auto_offset_reset="earliest",
        _partition_assignment_strategy=[],
        _coordinator=coordinator,
        _subscription=SimpleNamespace(subscribed_pattern=None, subscription=None),
    )
    ObservedAiokafkaConsumer(consumer, lambda kind, **fields: events.append((kind, fields)))
    events.clear()
    return events


async def test_who_is_in_no_generation_commits_nothing(coordinator: CooperativeCoordinator) -> None:
    """A broker would take it from nobody, if the group is empty."""
    coordinator.generation = -1
    with pytest.raises(errors.CommitFailedError):
        await coordinator.commit_offsets(coordinator._lasting, OF_A)
    assert coordinator._client.sent == []


async def cancelled_commit(coordinator: CooperativeCoordinator, error: int = 0) -> Held:
    """Begin a commit and cancel it; the answer of the broker."""
    commit = coordinator._client.answers["OffsetCommitRequest"] = Held(lambda one: answered(one, error))
    committing = asyncio.create_task(coordinator.commit_offsets(coordinator._lasting, OF_A))
    await commit.asked.wait()
    committing.cancel()
    await asyncio.wait([committing])
    assert committing.cancelled()
    return commit


async def test_a_commit_that_is_cancelled_is_waited_for_before_partitions_are_revoked(
    coordinator: CooperativeCoordinator,
) -> None:
    commit = await cancelled_commit(coordinator)
    revoking = asyncio.create_task(coordinator._revoke({A}))
    await asyncio.sleep(0.01)
    assert not revoking.done()
    commit.lets.set()
    await revoking
    assert coordinator._committing == set()


async def test_a_commit_that_is_cancelled_and_then_refused_is_no_exception_that_nobody_heard(
    coordinator: CooperativeCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "aiokafka")  # a record would keep the error, and so the task
    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    (await cancelled_commit(coordinator, errors.IllegalGenerationError.errno)).lets.set()
    await asyncio.wait(coordinator._committing)
    for _turn in range(10):  # until its task has ended
        await asyncio.sleep(0)
    gc.collect()  # a task that is collected reports what nobody heard
    assert unheard == []


@pytest.mark.parametrize("generation", [-1, 5])
@each_kind
async def test_a_join_is_not_waited_for_when_the_consumer_is_stopped(
    coordinator: EagerCoordinator, generation: int
) -> None:
    join = Held(LOADING)
    coordinator.generation = generation
    coordinator._client.answers["JoinGroupRequest"] = join
    joining = asyncio.create_task(rejoin(coordinator))
    coordinator._coordination_task = joining
    await join.asked.wait()
    await asyncio.wait_for(coordinator.close(), 5)
    assert joining.done()
    (left,) = coordinator._client.of(LeaveGroupRequest)
    assert left._member_id == "m"


@pytest.mark.parametrize("ends", ["_joined", "coordinator_dead"])
@each_kind
async def test_the_connection_of_joins_is_closed_with_a_join_and_with_its_coordinator(
    coordinator: EagerCoordinator, ends: str
) -> None:
    """It would be idle until the next join: a firewall drops it, and that join waits for long."""
    closed: list[int] = []
    connections: Any = coordinator._client._conns
    for group in (1, JOINING):
        connections[0, group] = SimpleNamespace(close=lambda group=group: closed.append(group))
    getattr(coordinator, ends)()
    assert closed == [JOINING]
    assert [*connections] == [(0, 1)]


@each_kind
async def test_a_leader_that_stops_while_it_plans_sends_no_plan(coordinator: EagerCoordinator) -> None:
    coordinator._client.answers["SyncGroupRequest"] = lambda _: asyncio.sleep(3600)
    coordinator._closing.set_result(None)
    with pytest.raises(errors.KafkaError, match="not waited for: the consumer is stopped"):
        await coordinator._send_req(SyncGroupRequest("g", 5, "m", None, []))
    assert coordinator._client.sent == []


@each_kind
async def test_a_leader_whose_plan_failed_sends_no_more_heartbeats(coordinator: EagerCoordinator) -> None:
    class Failing(StickyAssignor):
        def assign(self, *_: Any, **__: Any) -> Any:
            assert coordinator._heartbeat_task is not None
            raise ZeroDivisionError

    coordinator._assignors = strategies(Failing)
    with pytest.raises(ZeroDivisionError):
        await coordinator._perform_assignment(LEADS)
    assert coordinator._heartbeat_task is None


async def test_a_leader_plans_though_the_loops_own_threads_are_busy(coordinator: EagerCoordinator) -> None:
    done = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, done.wait)
    coordinator._assignors = strategies(StickyAssignor)
    try:
        planned = await asyncio.wait_for(coordinator._perform_assignment(LEADS), 20)
    finally:
        done.set()
        await busy
    assert planned.keys() == {"m"}


async def test_who_falls_out_while_a_listener_runs_is_given_nothing_and_loses_what_it_had(
    coordinator: CooperativeCoordinator, listener: Listener
) -> None:
    coordinator.generation = 6
    listener.does_when_revoked = coordinator.reset_generation
    new = TopicPartition("t", 7)
    await coordinator._on_join_complete(6, "m", "s", assignment(A, new))
    await coordinator._give_up_what_was_lost()
    assert (listener.revoked, listener.assigned, listener.lost) == ([{B}], [], [{A}])
    assert coordinator._owned == frozenset()


async def test_unsubscribed_topics_are_not_delivered_and_are_revoked_before_the_next_join(
    coordinator: CooperativeCoordinator, listener: Listener
) -> None:
    state, lasting = coordinator._subscription, delivers(coordinator)
    join = coordinator._client.answers["JoinGroupRequest"] = Held(LOADING)
    first = asyncio.create_task(rejoin(coordinator))
    await join.asked.wait()
    state.subscribe({"u"}, listener=listener)
    assert paused(lasting) == [A, B]
    state.subscribe({"t", "u"}, listener=listener)
    assert paused(lasting) == []
    state.subscribe({"u"}, listener=listener)
    join.lets.set()
    assert not await first
    assert listener.revoked == []
    assert not await rejoin(coordinator)
    assert listener.revoked == [{A, B}]


async def test_a_listener_that_changes_the_subscription_is_given_nothing_of_what_it_left(
    coordinator: CooperativeCoordinator, listener: Listener
) -> None:
    def subscribe() -> None:
        coordinator._subscription.subscribe({"u"}, listener=listener)

    coordinator._subscription.subscribe({"t", "u"}, listener=listener)
    listener.does_when_revoked = subscribe
    new = [TopicPartition(topic, 7) for topic in "tu"]
    await coordinator._on_join_complete(5, "m", "s", assignment(A, *new))
    assert (listener.revoked, listener.assigned) == ([{B}], [{new[1]}])
    # What it had, and subscribes to no longer, the next join takes from it.
    listener.does_when_revoked = lambda: None
    assert not await rejoin(coordinator)
    assert listener.revoked == [{B}, {A}]


UNREADABLE = "has a leader whose assignment cannot be read: {!r}"


@each_kind
@pytest.mark.parametrize(
    ("strategy", "given", "what"),
    [
        pytest.param("other", None, "chose 'other', which is no strategy of this consumer", id="strategy"),
        pytest.param("s", b"", UNREADABLE, id="nothing"),
        pytest.param("s", b"\0", UNREADABLE, id="cut off"),
        pytest.param("s", bytes(2) + b"\xff" * 8, UNREADABLE, id="null"),
        pytest.param(
            "s", bytes(5) + b"\1\0\1t" + b"\xff" * 4 + bytes(4), UNREADABLE, id="no list of partitions"
        ),
        pytest.param("s", bytes(5) + b"\1\0\1\xff" + bytes(8), UNREADABLE, id="no text"),
        pytest.param("s", bytes(2) + b"\x7f\xff\xff\xff", UNREADABLE, id="two thousand million"),
    ],
)
async def test_an_assignment_that_cannot_be_taken_is_an_error_and_it_joins_again(
    coordinator: EagerCoordinator, strategy: str, given: bytes | None, what: str
) -> None:
    with pytest.raises(errors.KafkaError) as caught:
        await coordinator._on_join_complete(5, "m", strategy, assignment(A) if given is None else given)
    said = f"group aiokafka-default-group {what.format(given)} (generation 5)"
    assert str(caught.value) == f"KafkaError: {said}"
    assert coordinator._rejoin_needed_fut.done()
    # Who does not hear it, as it does not poll, is expelled.
    assert coordinator._heartbeat_task is None
    assert coordinator._subscription.assigned_partitions() == {A, B}


async def test_an_assignment_of_another_generation_than_its_own_is_not_taken(
    coordinator: CooperativeCoordinator,
) -> None:
    coordinator._subscription.assign_from_subscribed(set())
    await coordinator._on_join_complete(4, "m", "s", assignment(A))
    assert coordinator._owned == frozenset()


async def test_a_commit_waits_while_the_leader_plans_and_is_sent_in_the_next_generation(
    coordinator: CooperativeCoordinator,
) -> None:
    client = coordinator._client
    sync = Held(SimpleNamespace(error_code=0, member_assignment=assignment(A, B)))
    joins(coordinator, 6, sync)
    joining = asyncio.create_task(rejoin(coordinator))
    await sync.asked.wait()
    committing = asyncio.create_task(coordinator.commit_offsets(coordinator._lasting, OF_A))
    for _turn in range(100):
        await asyncio.sleep(0)
    assert client.committed == []
    sync.lets.set()
    assert await joining
    await committing
    assert client.committed == [{A: 7}]
    (sent,) = client.of(OffsetCommitRequest)
    assert sent._consumer_group_generation_id == 6


@each_kind
async def test_a_join_may_take_as_long_as_a_rebalance_and_one_that_fails_gives_up_its_coordinator(
    coordinator: EagerCoordinator,
) -> None:
    async def join(_: Any) -> Any:
        times.append(coordinator._client._conns[0, JOINING]._request_timeout)
        raise errors.RequestTimedOutError

    times: list[float] = []
    coordinator._rebalance_timeout_ms = 60_000
    coordinator._client.answers["JoinGroupRequest"] = join
    assert not await rejoin(coordinator)
    assert (times, coordinator.coordinator_id) == ([65.0], None)
    assert not await rejoin(coordinator)  # for want of a coordinator
    assert len(times) == 1


@each_kind
@pytest.mark.parametrize(
    ("instance", "known_as", "again"),
    [
        pytest.param("one", "", True, id="static, comes back"),
        pytest.param("one", "m", False, id="static, in the group"),
        pytest.param(None, "", False, id="dynamic"),
    ],
)
async def test_a_static_member_that_comes_back_to_topics_it_left_joins_again_once(
    coordinator: EagerCoordinator, instance: str | None, known_as: str, again: bool
) -> None:
    given = assignment(A, TopicPartition("u", 0))
    coordinator._subscription.assign_from_subscribed({A})
    coordinator._group_instance_id, coordinator.member_id = instance, known_as
    joins(coordinator, 5, given)
    for joins_again in (again, False):  # the coordinator knows it by its member id then
        assert await rejoin(coordinator)
        assert coordinator._subscription.assigned_partitions() == {A}
        assert coordinator._rejoin_needed_fut.done() == joins_again


async def test_autocommit_goes_on_while_a_join_is_on(coordinator: CooperativeCoordinator) -> None:
    commits, join = asyncio.Queue[dict[TopicPartition, int]](), Held(LOADING)

    def commit(request: Any) -> Any:
        commits.put_nowait(committed(request))
        return answered(request)

    coordinator._enable_auto_commit, coordinator._auto_commit_interval_ms = True, 1
    coordinator._next_autocommit_deadline = 0
    coordinator._client.answers |= {"OffsetCommitRequest": commit, "JoinGroupRequest": join}
    state = coordinator._subscription
    state.seek(A, 7)
    joining = asyncio.create_task(rejoin(coordinator))
    assert await asyncio.wait_for(commits.get(), 20) == {A: 7}
    state.seek(A, 8)
    while (offsets := await asyncio.wait_for(commits.get(), 20)) == {A: 7}:
        pass
    assert offsets == {A: 8}
    assert coordinator.joining
    join.lets.set()
    assert not await joining


@each_kind
async def test_a_consumer_that_is_stopped_without_a_coordinator_commits_nothing_and_ends(
    coordinator: EagerCoordinator,
) -> None:
    coordinator.coordinator_dead()
    coordinator._closing.set_result(None)
    given = coordinator._subscription.subscription.assignment
    with pytest.raises(errors.KafkaError, match="the coordinator is away, and the consumer is stopped"):
        await asyncio.wait_for(coordinator.commit_offsets(given, OF_A), 5)


C = TopicPartition("gone", 0)
OF_A_AND_GONE = {A: OFFSETS[A], C: OFFSETS[B]}


def with_a_topic_that_is_gone(coordinator: EagerCoordinator) -> Any:
    """The assignment of what autocommits, of two topics, of which the broker knows one."""

    def commit(request: Any) -> Any:
        answer = answered(request)
        gone = errors.UnknownTopicOrPartitionError.errno
        return SimpleNamespace(
            topics=[
                (topic, [(number, gone if topic == C.topic else error) for number, error in partitions])
                for topic, partitions in answer.topics
            ]
        )

    state = coordinator._subscription
    state.subscribe({A.topic, C.topic}, listener=state.listener)
    state.assign_from_subscribed({A, C})
    state.seek(A, 7)
    state.seek(C, 9)
    coordinator._enable_auto_commit = True
    coordinator._client.answers["OffsetCommitRequest"] = commit
    return state.subscription.assignment


@each_kind
async def test_neither_a_join_nor_stop_waits_for_a_topic_that_was_deleted(
    coordinator: EagerCoordinator, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    given, client = with_a_topic_that_is_gone(coordinator), coordinator._client
    await asyncio.wait_for(coordinator._on_join_prepare(given), 5)
    assert client.committed == [{A: 7, C: 9}]
    if isinstance(coordinator, CooperativeCoordinator):
        await asyncio.wait_for(coordinator._revoke({C}), 5)
        assert committed(client.sent.pop()) == {C: 9}
        assert listener.revoked == [{C}]
        coordinator._subscription.assign_from_subscribed({A, C})
        coordinator._subscription.seek(C, 9)
    with pytest.raises(UnknownPartitionsError):  # which aiokafka logs as it stops
        await asyncio.wait_for(coordinator._maybe_do_last_autocommit(given), 5)
    assert client.committed == [{A: 7, C: 9}] * 2
    assert "the broker does not know these, so not committed: gone-0" in caplog.text


@each_kind
async def test_autocommit_tries_a_topic_that_was_deleted_at_each_interval_and_raises_nothing(
    coordinator: EagerCoordinator,
) -> None:
    given = with_a_topic_that_is_gone(coordinator)
    coordinator._auto_commit_interval_ms, coordinator._next_autocommit_deadline = 60_000, 0
    assert await coordinator._maybe_do_autocommit(given) == 60
    assert 59 < await coordinator._maybe_do_autocommit(given) <= 60
    assert coordinator._client.committed == [{A: 7, C: 9}]


@each_kind
async def test_a_commit_for_a_topic_that_is_gone_stores_the_rest_and_names_it_after_a_while(
    coordinator: EagerCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_coordinator, "NEWS", 0.05)
    coordinator._retry_backoff_ms = 10
    given = with_a_topic_that_is_gone(coordinator)
    with pytest.raises(errors.CommitFailedError) as caught:
        await asyncio.wait_for(coordinator.commit_offsets(given, OF_A_AND_GONE), 5)
    assert (
        str(caught.value)
        == "UnknownPartitionsError: the broker does not know these, so not committed: gone-0;"
        " create the topic, or leave it out of the subscription"
    )
    assert str(copy.copy(caught.value)) == str(caught.value)  # as aiokafka raises it in a poll
    # What is stored is sent once: it may be committed further meanwhile.
    sent = coordinator._client.committed
    assert 2 <= len(sent) <= 6 + 1  # a pause before each try
    assert sent == [{A: 7, C: 9}, *[{C: 9}] * (len(sent) - 1)]


@each_kind
async def test_a_commit_for_a_topic_that_is_new_succeeds_when_the_broker_knows_it(
    coordinator: EagerCoordinator,
) -> None:
    given, client = with_a_topic_that_is_gone(coordinator), coordinator._client
    unknown = client.answers["OffsetCommitRequest"]

    def commit(request: Any) -> Any:
        return unknown(request) if len(client.sent) < 3 else answered(request)

    client.answers["OffsetCommitRequest"] = commit
    await asyncio.wait_for(coordinator.commit_offsets(given, OF_A_AND_GONE), 5)
    assert client.committed == [{A: 7, C: 9}, {C: 9}, {C: 9}]


@each_kind
async def test_a_commit_names_what_was_revoked_and_what_the_broker_does_not_know_with_an_event_of_each(
    coordinator: EagerCoordinator,
) -> None:
    given = with_a_topic_that_is_gone(coordinator)
    events = observed(coordinator)
    revokes = isinstance(coordinator, CooperativeCoordinator)
    asked = dict.fromkeys((A, B, C) if revokes else (A, C), OFFSETS[A])
    with pytest.raises(errors.CommitFailedError) as caught:
        await asyncio.wait_for(coordinator._commit(given, asked), 5)
    if revokes:
        assert "revoked meanwhile, so not committed: t-1" in str(caught.value)
    unknown = caught.value.__cause__ if revokes else caught.value
    assert isinstance(unknown, UnknownPartitionsError)
    said = {"generation": 5, "member_id": "m"}
    assert events[:2] == [
        ("committed", {**said, "positions": [("t", 0, 7)]}),
        ("commit_failed", {**said, "positions": [("gone", 0, 7)], "text": described(unknown)}),
    ]


@each_kind
async def test_other_errors_of_a_commit_come_before_partitions_that_are_unknown(
    coordinator: EagerCoordinator,
) -> None:
    gone, fallen = errors.UnknownTopicOrPartitionError.errno, errors.UnknownMemberIdError.errno
    given = with_a_topic_that_is_gone(coordinator)
    answer = SimpleNamespace(topics=[(C.topic, [(0, gone)]), (A.topic, [(0, fallen)])])
    coordinator._client.answers["OffsetCommitRequest"] = answer
    with pytest.raises(errors.CommitFailedError) as caught:
        await asyncio.wait_for(coordinator.commit_offsets(given, OF_A_AND_GONE), 5)
    assert not isinstance(caught.value, UnknownPartitionsError)
    assert coordinator.generation == -1


@pytest.mark.parametrize(
    "coordinator", [GroupCoordinator, EagerCoordinator, CooperativeCoordinator], indirect=True
)
@pytest.mark.parametrize("grows", [True, False])
async def test_a_leader_joins_again_for_partitions_that_came_while_it_planned(
    coordinator: EagerCoordinator, grows: bool
) -> None:
    planning, planned_on = threading.Event(), threading.Event()
    cluster = coordinator._client.cluster
    there = {A.partition: None, B.partition: None}
    cluster._partitions = {"t": there}
    cluster.partitions_for_topic = lambda _: {*there}

    class Slow(StickyAssignor):
        def assign(self, *given: Any, **more: Any) -> Any:
            planning.set()
            assert planned_on.wait(20)
            return super().assign(*given, **more)

    def synced(request: Any) -> Any:
        ((_, given),) = request._group_assignment
        return SimpleNamespace(error_code=0, member_assignment=given)

    coordinator._assignors = strategies(Slow)
    coordinator._client.answers |= {"JoinGroupRequest": LEADS, "SyncGroupRequest": synced}
    joining = asyncio.create_task(rejoin(coordinator))
    assert await asyncio.to_thread(planning.wait, 20)
    if grows:
        there[2] = None
    coordinator._handle_metadata_update(cluster)
    planned_on.set()
    assert await joining
    assert coordinator._subscription.assigned_partitions() == {A, B}
    assert coordinator._rejoin_needed_fut.done() == grows


@pytest.mark.parametrize("request_name", ["JoinGroupRequest", "SyncGroupRequest"])
async def test_who_is_fenced_in_a_join_loses_all_before_it_hears_the_error(
    coordinator: CooperativeCoordinator, listener: Listener, request_name: str
) -> None:
    async def look() -> None:
        assert paused(lasting) == [A, B]

    lasting = delivers(coordinator)
    listener.does = look
    coordinator._group_instance_id = "one"
    coordinator._client.answers |= {"JoinGroupRequest": follows_in(6), request_name: FENCED}
    for _ in range(2):  # the application may poll on
        with pytest.raises(FencedInstanceIdError, match="give each consumer a group_instance_id"):
            await rejoin(coordinator)
        assert listener.lost == [{A, B}]
        assert (coordinator._owned, coordinator.generation) == (frozenset(), -1)
    # It does not take the instance id back.
    assert [one._member_id for one in coordinator._client.of(JoinGroupRequest)] == ["m", "m"]


async def test_who_fell_out_before_it_unsubscribed_commits_what_is_assigned_by_hand(
    coordinator: CooperativeCoordinator,
) -> None:
    coordinator.reset_generation()
    lost = coordinator._lasting
    coordinator._subscription.unsubscribe()
    coordinator._subscription.assign_from_user([A])
    given = coordinator._subscription.subscription.assignment
    await coordinator.commit_offsets(given, OF_A)
    assert coordinator._client.committed == [{A: 7}]
    # Nor does it commit for what it had in the group.
    with pytest.raises(errors.CommitFailedError):
        await coordinator.commit_offsets(lost, {A: OffsetAndMetadata(8, "")})
    assert len(coordinator._client.sent) == 1


async def test_a_commit_that_is_tried_again_after_unsubscribing_is_not_sent_by_no_member(
    coordinator: CooperativeCoordinator,
) -> None:
    def leave_and_refuse(request: Any) -> Any:
        if len(coordinator._client.sent) > 1:  # the group is empty
            return answered(request)
        coordinator._subscription.unsubscribe()
        coordinator.reset_generation()  # as aiokafka does when it has left
        return answered(request, errors.GroupLoadInProgressError.errno)

    coordinator._client.answers["OffsetCommitRequest"] = leave_and_refuse
    with pytest.raises(errors.CommitFailedError):
        await coordinator.commit_offsets(coordinator._lasting, OF_A)
    assert len(coordinator._client.sent) == 1


class Leaving:
    """A member of generation 5 that has read 7 of A and 9 of B, with auto-commit; what it does as it goes."""

    def __init__(self, coordinator: CooperativeCoordinator, listener: Listener) -> None:
        def commit(request: Any) -> Any:
            self.did.append(("committed", committed(request)))
            return answered(request)

        def leave(_: Any) -> Any:
            self.did.append(("left", None))
            return OK

        async def lost() -> None:
            self.did.append(("lost", listener.lost[-1]))

        self.did: list[tuple[str, Any]] = []
        self.coordinator, self.listener = coordinator, listener
        self.state = coordinator._subscription
        coordinator._enable_auto_commit = True
        coordinator._client.answers |= {"OffsetCommitRequest": commit, "LeaveGroupRequest": leave}
        for one, offset in ((A, 7), (B, 9)):
            self.state.seek(one, offset)
        listener.does = lost
        listener.does_when_revoked = lambda: self.did.append(("revoked", listener.revoked[-1]))

    def unsubscribe(self) -> asyncio.Task[None]:
        """As AIOKafkaConsumer's."""
        self.state.unsubscribe()
        return self.coordinator.maybe_leave_group()


@pytest.fixture
def leaving(coordinator: CooperativeCoordinator, listener: Listener) -> Leaving:
    return Leaving(coordinator, listener)


GIVEN_UP = [("committed", {A: 7, B: 9}), ("revoked", {A, B}), ("left", None)]


@pytest.mark.parametrize("goes", ["unsubscribes", "stops"])
@pytest.mark.parametrize(
    ("was", "did"),
    [
        ("dynamic", GIVEN_UP),
        ("static", GIVEN_UP[:2]),
        ("without auto-commit", GIVEN_UP[1:]),
        ("fallen out", [("lost", {A, B})]),
    ],
)
async def test_who_goes_commits_and_its_listener_hears_it_before_it_leaves(
    leaving: Leaving, was: str, did: list[Any], goes: str
) -> None:
    """Also if its coordination was cancelled, as here. A static member only stops."""
    coordinator = leaving.coordinator
    coordinator._group_instance_id = "one" if was == "static" else None
    coordinator._enable_auto_commit = was != "without auto-commit"
    if was == "fallen out":
        coordinator.reset_generation()
    await (leaving.unsubscribe() if goes == "unsubscribes" else coordinator.close())
    assert leaving.did == did


async def test_who_stops_waits_for_what_it_unsubscribed(leaving: Leaving) -> None:
    left = leaving.unsubscribe()
    assert leaving.state.assigned_partitions() == set()
    assigned = leaving.state.wait_for_assignment()
    await leaving.coordinator.close()
    assert leaving.did == GIVEN_UP
    assert left.done()
    assert not assigned.done()  # aiokafka's fetcher waits for it


async def test_what_is_revoked_is_neither_delivered_nor_forgotten_before_its_listener_is_done(
    leaving: Leaving,
) -> None:
    lasting, seen = delivers(leaving.coordinator), list[Any]()
    records = leaving.coordinator._fetcher._records
    records |= {A: 1, B: 2}
    assigned = leaving.state.wait_for_assignment()
    leaving.listener.does_when_revoked = lambda: seen.extend((paused(lasting), {*lasting.tps}))
    await leaving.coordinator._revoke({A})
    assert seen == [[A], {A, B}]
    assert leaving.did == [("committed", {A: 7})]
    assert (lasting.tps, records, assigned.done()) == ({B}, {B: 2}, True)


@pytest.mark.parametrize("listens", [True, False])
async def test_a_listener_without_a_word_for_what_is_lost_hears_that_it_is_revoked_and_none_is_no_error(
    coordinator: CooperativeCoordinator, listens: bool
) -> None:
    class Plain(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Any) -> None: ...

        def on_partitions_revoked(self, revoked: Any) -> None:
            heard.append(revoked)

    heard: list[Any] = []
    coordinator._subscription.subscribe({"t"}, listener=Plain() if listens else None)
    coordinator._subscription.assign_from_subscribed({A, B})
    await coordinator._revoke({A})
    assert coordinator._owned == {B}
    coordinator.reset_generation()
    await coordinator._give_up_what_was_lost()
    assert coordinator._owned == frozenset()
    assert heard == [{A}, {B}] * listens


async def test_topics_that_are_left_are_committed_and_revoked_before_the_next_join(leaving: Leaving) -> None:
    leaving.state.subscribe({"u"}, listener=leaving.listener)
    assert not await rejoin(leaving.coordinator)
    assert leaving.did == GIVEN_UP[:2]


async def test_the_next_join_waits_for_what_was_unsubscribed(leaving: Leaving) -> None:
    def join(request: Any) -> Any:
        leaving.did.append(("joins", request._member_id))
        return LOADING

    coordinator, following = leaving.coordinator, Listener()
    coordinator._client.answers["JoinGroupRequest"] = join
    leaving.unsubscribe()
    leaving.state.subscribe({"t"}, listener=following)
    assert not await rejoin(coordinator)
    assert leaving.did == [*GIVEN_UP, ("joins", "")]
    joins(coordinator, 6, assignment(A))
    assert await rejoin(coordinator)
    coordinator._confirm(time.monotonic())
    assert ({*coordinator._owned}, following.assigned) == ({A}, [{A}])
    assert not coordinator._subscription.lasting.state_value(A).paused


async def test_heartbeats_go_on_while_the_listener_of_what_was_unsubscribed_works(leaving: Leaving) -> None:
    beaten, coordinator = asyncio.Event(), leaving.coordinator

    def beat(_: Any) -> Any:
        beaten.set()
        return OK

    coordinator._client.answers["HeartbeatRequest"] = beat
    coordinator._heartbeat_interval_ms = 1
    leaving.listener.does_when_revoked = lambda: asyncio.wait_for(beaten.wait(), 20)
    await leaving.unsubscribe()
    assert beaten.is_set()
    assert leaving.did[-1] == ("left", None)


@pytest.mark.parametrize("subscribes", [False, True])
async def test_a_listener_that_unsubscribes_hears_of_each_partition_once_and_is_given_nothing(
    leaving: Leaving, subscribes: bool
) -> None:
    def unsubscribe() -> None:
        leaving.listener.does_when_revoked = lambda: None
        leaving.unsubscribe()
        if subscribes:
            leaving.state.subscribe({"t"}, listener=leaving.listener)

    leaving.listener.does_when_revoked = unsubscribe
    await leaving.coordinator._on_join_complete(5, "m", "s", assignment(A, TopicPartition("t", 7)))
    assert leaving.coordinator._leaving is not None
    await leaving.coordinator._leaving
    assert (leaving.listener.revoked, leaving.listener.assigned) == ([{B}, {A}], [])
    assert leaving.state.assigned_partitions() == set()


async def test_a_listener_that_unsubscribes_before_a_join_ends_that(leaving: Leaving) -> None:
    leaving.state.subscribe({"u"}, listener=leaving.listener)
    leaving.listener.does_when_revoked = lambda: leaving.unsubscribe() and None
    assert not await rejoin(leaving.coordinator)
    assert leaving.coordinator._leaving is not None
    await leaving.coordinator._leaving
    assert leaving.coordinator._client.of(JoinGroupRequest) == []


async def test_what_was_lost_before_unsubscribing_is_not_told_to_the_next_listener(leaving: Leaving) -> None:
    leaving.coordinator.reset_generation()
    left, following = leaving.unsubscribe(), Listener()
    leaving.state.subscribe({"t"}, listener=following)
    await left
    leaving.state.assign_from_subscribed({A})
    await leaving.coordinator._give_up_what_was_lost()
    assert (following.lost, leaving.listener.lost) == ([], [{A, B}])
    assert leaving.coordinator._owned == {A}


@each_kind
@pytest.mark.parametrize("instance", ["one", None])
async def test_heartbeats_end_when_all_is_unsubscribed(
    coordinator: EagerCoordinator, instance: str | None
) -> None:
    async def found(*_: Any) -> int:
        return 0

    client: Any = coordinator._client
    client.coordinator_lookup = found
    client.answers["HeartbeatRequest"] = lambda beat: OK if beat._generation_id == 5 else UNKNOWN
    coordinator._heartbeat_interval_ms, coordinator._group_instance_id = 1, instance
    coordinator._start_heartbeat_task()
    heartbeats = coordinator._heartbeat_task
    assert heartbeats is not None
    coordination = asyncio.create_task(coordinator._coordination_routine())
    await asyncio.sleep(0)
    coordinator._subscription.unsubscribe()
    await coordinator.maybe_leave_group()
    await asyncio.wait([heartbeats], timeout=5)
    assert heartbeats.done()
    assert len([one for one in client.sent if getattr(one, "_generation_id", 5) != 5]) <= 1
    # Nor does the coordination turn without a pause beside what has ended.
    coordinator._subscription.assign_from_user([A])
    turns, look = 0, coordinator.ensure_coordinator_known

    async def counted() -> None:
        nonlocal turns
        turns += 1
        await look()

    coordinator.ensure_coordinator_known = counted
    for _turn in range(1000):
        await asyncio.sleep(0)
    assert turns <= 2
    coordinator._closing.set_result(None)
    await coordination


@each_kind
async def test_a_static_member_that_fell_out_joins_with_its_former_id_once(
    coordinator: EagerCoordinator,
) -> None:
    coordinator._group_instance_id = "one"
    coordinator._client.answers["JoinGroupRequest"] = UNKNOWN
    for _by in range(2):  # a heartbeat hears it, and a commit
        coordinator.reset_generation()
    assert (coordinator.member_id, coordinator.generation) == ("", -1)
    for _join in range(2):
        assert not await rejoin(coordinator)
    assert [one._member_id for one in coordinator._client.sent] == ["m", ""]


async def test_who_leaves_delivers_and_commits_nothing_while_leave_group_is_on_its_way(
    coordinator: CooperativeCoordinator, listener: Listener
) -> None:
    leave = coordinator._client.answers["LeaveGroupRequest"] = Held(OK)
    lasting = delivers(coordinator)
    task = asyncio.create_task(coordinator._maybe_leave_group())
    await leave.asked.wait()
    assert paused(lasting) == [A, B]
    with pytest.raises(errors.CommitFailedError):
        await coordinator.commit_offsets(lasting, OF_A)
    leave.lets.set()
    await task
    assert coordinator.generation == -1
    await coordinator._give_up_what_was_lost()
    assert listener.lost == [{A, B}]


async def test_who_leaves_while_a_listener_runs_is_delivered_nothing_of_what_is_new(
    coordinator: CooperativeCoordinator, listener: Listener
) -> None:
    coordinator.generation = 6
    coordinator._client.answers["LeaveGroupRequest"] = lambda _: asyncio.sleep(3600)
    leaving: list[asyncio.Task[None]] = []
    new = TopicPartition("t", 7)

    def leave() -> Any:
        leaving.append(asyncio.create_task(coordinator._maybe_leave_group()))
        return asyncio.sleep(0)

    listener.does_when_assigned = leave
    await coordinator._on_join_complete(6, "m", "s", assignment(A, B, new))
    lasting: Any = coordinator._lasting
    coordinator._confirm(time.monotonic())
    assert lasting.state_value(new).paused
    leaving[0].cancel()
    await asyncio.wait(leaving)


async def test_doubt_begins_when_a_member_that_has_not_joined_may_be_expelled(
    coordinator: CooperativeCoordinator, clock: Clock
) -> None:
    async def beat(error: int = errors.RebalanceInProgressError.errno) -> None:
        answer = SimpleNamespace(error_code=error)
        coordinator._client.answers["HeartbeatRequest"] = answer
        await coordinator._do_heartbeat()

    lasting: Any = coordinator._lasting
    coordinator._certainty = Certainty(10.0, 12.0)
    coordinator._certainty.synced(clock.now)
    join = coordinator._client.answers["JoinGroupRequest"] = Held(LOADING)
    await beat(0)
    for later in (3, 3, 3, 2.9):  # it has not joined, as its listener takes its time
        clock.now += later
        assert lasting.doubted is None
        await beat()
    clock.now += 0.1
    assert lasting.doubted is not None
    await beat()
    assert lasting.doubted is not None
    # It asks to join. The request may be lost on a connection of which nobody hears that it is cut.
    asking = asyncio.create_task(rejoin(coordinator))
    await join.asked.wait()
    await beat()
    assert lasting.doubted is not None
    join.lets.set()
    assert not await asking


# What only a look at the code says, and a broker would show


@pytest.mark.parametrize("error", [None, errors.KafkaError("broken")])
@pytest.mark.parametrize("name", ["_heartbeat_task", "_commit_refresh_task"])
async def test_a_task_that_is_stopped_is_waited_for_and_what_it_raises_in_its_end_is_raised(
    coordinator: CooperativeCoordinator, name: str, error: errors.KafkaError | None
) -> None:
    ended = asyncio.Event()

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()
            if error is not None:
                raise error

    stops = {
        "_heartbeat_task": coordinator._stop_heartbeat_task,
        "_commit_refresh_task": coordinator._stop_commit_offsets_refresh_task,
    }[name]
    setattr(coordinator, name, asyncio.create_task(works()))
    await asyncio.sleep(0)
    with pytest.raises(errors.KafkaError, match="broken") if error else contextlib.nullcontext():
        await stops()
    assert ended.is_set()
    assert getattr(coordinator, name) is None
    await stops()  # there is none


@each_kind
@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("ended", ["by this error", "cancelled"])
async def test_heartbeats_begin_anew_when_their_own_error_was_heard_of_and_not_while_the_consumer_stops(
    coordinator: EagerCoordinator, closing: bool, ended: str
) -> None:
    error = errors.GroupAuthorizationFailedError("group")
    task: Any = asyncio.get_running_loop().create_future()
    if ended == "cancelled":
        task.cancel()
    else:
        task.set_exception(error)
        task.exception()
    coordinator._heartbeat_task = task
    if closing:
        coordinator._closing.set_result(None)
    pushing = asyncio.create_task(coordinator._push_error_to_user(error))
    await asyncio.sleep(0)
    assert coordinator._heartbeat_task is task or closing
    if not coordinator._error_consumed_fut.done():
        coordinator._error_consumed_fut.set_result(None)  # as a poll does, which raises it
    await pushing
    assert (coordinator._heartbeat_task is task) == (ended == "cancelled")
    assert (coordinator._heartbeat_task is None) == (ended != "cancelled" and closing)
    coordinator._heartbeat_task = None if ended == "cancelled" else coordinator._heartbeat_task


@each_kind
async def test_heartbeats_that_end_without_an_error_are_forgotten_and_others_are_not(
    coordinator: EagerCoordinator,
) -> None:
    ended, failed, cancelled = (asyncio.get_running_loop().create_future() for _ in range(3))
    ended.set_result(None)
    failed.set_exception(errors.KafkaError())
    cancelled.cancel()
    cases: list[Any] = [(ended, ended, None), (cancelled, cancelled, None)]
    for task, now, left in [*cases, (failed, failed, failed), (ended, failed, failed)]:
        coordinator._heartbeat_task = now
        coordinator._heartbeats_ended(task)
        assert coordinator._heartbeat_task is left
    failed.exception()
    coordinator._heartbeat_task = None


def test_the_code_of_a_fenced_instance_is_kafkas() -> None:
    assert kafka.errors.FencedInstanceIdError.errno == FENCED_INSTANCE_ID


async def test_a_leader_of_the_last_generation_forgets_its_groups_topics_before_the_next_join(
    coordinator: CooperativeCoordinator,
) -> None:
    leader: Any = coordinator
    leader._group_subscription = {"t", "of others"}
    coordinator._enable_auto_commit = True
    await coordinator._on_join_prepare(None)  # it has joined, and was given nothing yet
    assert leader._group_subscription is None


@each_kind
async def test_what_was_sent_says_no_more_of_what_is_done_after_it(coordinator: EagerCoordinator) -> None:
    await coordinator._do_heartbeat()
    assert _SENT_IN.get() is None
    coordinator.generation = -1
    with coordinator._sending():  # by who is in no generation, as with partitions of its own choice
        coordinator.request_rejoin()
    assert not coordinator._rejoin_needed_fut.done()


async def test_who_closes_while_it_listens_sends_no_more_heartbeats(
    coordinator: CooperativeCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    listens: Any = asyncio.create_task(asyncio.sleep(60))

    async def close(_: object) -> None:
        closed.append(coordinator._listening is None)
        coordinator._listening = listens  # a rebalance ended meanwhile

    monkeypatch.setattr(GroupCoordinator, "close", close)
    coordinator._listening = asyncio.create_task(asyncio.sleep(60))
    await coordinator.close()
    assert closed == [True]
    await asyncio.wait([listens])
    assert listens.cancelled()


async def test_a_heartbeat_may_be_answered_before_anything_is_assigned(
    coordinator: CooperativeCoordinator,
) -> None:
    coordinator._subscription = LastingState()
    assert await coordinator._do_heartbeat()
    assert coordinator._certainty.until > time.monotonic()


@pytest.mark.parametrize(
    ("generation", "lost", "error", "again"),
    [
        pytest.param(5, False, errors.RebalanceInProgressError(), True, id="overtaken"),
        pytest.param(-1, False, errors.RebalanceInProgressError(), False, id="in no generation"),
        pytest.param(5, True, errors.RebalanceInProgressError(), False, id="fell out"),
        pytest.param(5, False, errors.RequestTimedOutError(), False, id="another error"),
    ],
)
async def test_a_commit_is_sent_again_by_who_is_still_a_member(
    coordinator: CooperativeCoordinator, *, generation: int, lost: bool, error: errors.KafkaError, again: bool
) -> None:
    coordinator.generation = generation
    coordinator._subscription.lasting.lost = lost
    assert coordinator.sends_again(error) is again


async def test_a_commit_before_the_new_generation_does_not_wait_for_the_end_of_the_join(
    coordinator: CooperativeCoordinator,
) -> None:
    coordinator.joining = True
    coordinator._not_joining.clear()
    await asyncio.wait_for(coordinator.commit_offsets(coordinator._lasting, OF_A), 5)


@pytest.mark.parametrize("over", ["another generation", "a join", "asked to join", "nothing"])
async def test_who_listens_is_done_when_a_rebalance_begins(
    coordinator: CooperativeCoordinator, over: str
) -> None:
    coordinator._heartbeat_interval_ms = 40  # one, and at once
    coordinator.joining = over == "a join"
    if over == "asked to join":
        coordinator._rejoin_needed_fut.set_result(None)
    await coordinator._listen(4 if over == "another generation" else 5)
    assert len(coordinator._client.sent) == (over == "nothing")


async def test_commits_are_waited_for_no_longer_than_a_third_of_a_session_before_partitions_go(
    coordinator: CooperativeCoordinator,
) -> None:
    commit = await cancelled_commit(coordinator)
    coordinator._session_timeout_ms = 30
    await asyncio.wait_for(coordinator._revoke({A}), 5)
    assert coordinator._owned == {B}
    commit.lets.set()
    await asyncio.wait(coordinator._committing)


@pytest.mark.parametrize(
    ("generation", "others", "beats"), [(5, False, True), (5, True, False), (-1, False, False)]
)
async def test_a_join_sends_heartbeats_of_who_is_a_member_and_sends_none_otherwise(
    coordinator: CooperativeCoordinator, *, generation: int, others: bool, beats: bool
) -> None:
    coordinator._heartbeat_interval_ms, coordinator.generation = 1, generation
    coordinator._heartbeat_task = asyncio.create_task(asyncio.sleep(60)) if others else None
    async with _coordinator._beside(coordinator._beat()):
        await asyncio.sleep(0.05)
    assert bool(coordinator._client.sent) is beats


@pytest.mark.parametrize(("join", "sync", "assigned"), [(0, 0, True), (0, 27, False), (79, 27, True)])
async def test_only_answers_without_an_error_say_that_a_member_has_its_assignment(
    coordinator: CooperativeCoordinator, *, join: int, sync: int, assigned: bool
) -> None:
    """It had one: of JoinGroup's generation it has none until SyncGroup is answered."""
    joins(coordinator, 6, assignment(A))
    coordinator._client.answers |= {
        "JoinGroupRequest": follows_in(6, error_code=join),
        "SyncGroupRequest": SimpleNamespace(error_code=sync, member_assignment=b""),
    }
    for request in (
        JoinGroupRequest("g", 1, 1, "m", None, "consumer", [("s", b"")]),
        SyncGroupRequest("g", 6, "m", None, []),
    ):
        await coordinator._send_req(request)
    assert coordinator._certainty._has_assignment is assigned


@each_kind
async def test_a_coordinator_of_ours_plans_beside_the_loop_by_itself(coordinator: EagerCoordinator) -> None:
    lead_beside_the_loop(coordinator)
    assert "_perform_assignment" not in vars(coordinator)
