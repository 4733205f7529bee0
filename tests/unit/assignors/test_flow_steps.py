"""The steps of kafka-python's coordinator that reads on while it joins, one by one, without a group."""

import asyncio
import contextlib
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, TopicPartition
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import Generation
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import (
    CommitFailedError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    TooManyInFlightRequests,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kafka.future import Future
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import CoordinatorType
from kafka.structs import MemberState, OffsetAndMetadata

from kafka_assignors._assignors import _flow, _flow_member, _flow_state
from kafka_assignors._assignors._flow import FlowingCoordinator, install
from kafka_assignors._assignors._flow_member import _OvertakenError
from kafka_assignors._assignors._flow_state import FlowState, JoinsApart
from kafka_assignors._assignors._joins import REFUSED, complete, partitions_in
from kafka_assignors._assignors._membership.certainty import Certainty
from kafka_assignors._assignors._membership.phases import Event, Phase
from kafka_assignors._assignors._relied_on import Part

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


# When it is changed


class OfAnApplication(ConsumerCoordinator):
    """A coordinator that an application has made its own."""


def unconnected(kind: type[ConsumerCoordinator] = ConsumerCoordinator) -> Any:
    """A cooperative consumer's coordinator, as far as `install` looks at it."""
    coordinator: Any = object.__new__(kind)
    coordinator._rebalance_protocol = RebalanceProtocol.COOPERATIVE
    coordinator.config = {
        "group_id": "orders",
        "group_instance_id": None,
        "session_timeout_ms": 9000,
        "max_poll_interval_ms": 60_000,
    }
    coordinator._manager = SimpleNamespace(of="the client")
    coordinator._offset_fetch_futures = {}
    return coordinator


@pytest.fixture
def relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The release has all that is relied on."""
    monkeypatch.setattr(Part, "is_in", lambda *_: True)


@pytest.mark.usefixtures("relied_on")
@pytest.mark.parametrize("kind", [ConsumerCoordinator, OfAnApplication])
def test_the_coordinator_of_a_cooperative_consumer_is_changed_once(kind: type[ConsumerCoordinator]) -> None:
    coordinator = unconnected(kind)
    assert install(coordinator)
    changed, flow = type(coordinator), coordinator._flow
    assert isinstance(coordinator, FlowingCoordinator)
    assert isinstance(coordinator, kind)
    assert changed.__name__ == ("FlowingCoordinator" if kind is ConsumerCoordinator else kind.__name__)
    assert install(coordinator)
    assert type(coordinator) is changed
    assert coordinator._flow is flow
    assert coordinator._manager.of == "the client"
    flow.certainty.synced(100.0)
    flow.certainty.confirm(100.0)
    flow.certainty.confirm(200.0, awaited=True)
    assert flow.certainty.until == 160.0
    assert flow.certainty.known_until == 209.0


@pytest.mark.usefixtures("relied_on")
def test_an_eager_consumer_and_one_whose_joins_are_completed_are_left_as_they_are() -> None:
    eager, completed = unconnected(), unconnected()
    eager._rebalance_protocol = RebalanceProtocol.EAGER
    complete(completed)
    for coordinator in (eager, completed):
        assert not install(coordinator)
        assert type(coordinator) is ConsumerCoordinator


# What the consumer asks


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A coordinator whose steps are those of a test; `did` has what it did."""
    monkeypatch.setattr(Part, "is_in", lambda *_: True)
    coordinator = unconnected()
    install(coordinator)
    did: list[str] = []
    coordinator.did = did
    coordinator._subscription = SubscriptionState()
    coordinator._subscription.subscribe(["t"])
    coordinator._generation, coordinator.rejoin_needed = Generation(7, "m1", "cooperative-sticky"), False
    coordinator._join_task, coordinator.coordinator_id = None, "0"
    coordinator._flow.phase = Phase.STABLE
    coordinator._flow.certainty.until = math.inf
    for name in ("_invoke_completed_offset_commit_callbacks", "poll_heartbeat"):
        setattr(coordinator, name, lambda name=name: did.append(name))
    coordinator._maybe_auto_commit_offsets_async = lambda: did.append("auto-commit")
    coordinator.need_rejoin = lambda: coordinator.rejoin_needed
    coordinator.coordinator_unknown = lambda: coordinator.coordinator_id is None
    coordinator.heartbeat = SimpleNamespace(poll=lambda: did.append("polls"), last_send=1.0, last_receive=1.0)
    coordinator.stepped = True

    def run(step: Any, timeout_ms: float) -> bool:
        assert timeout_ms <= 50
        did.append(step.__name__)
        if isinstance(coordinator.stepped, Exception):
            raise coordinator.stepped
        return bool(coordinator.stepped)

    coordinator._net = SimpleNamespace(run=run)
    return coordinator


BEFORE, STEP = "_invoke_completed_offset_commit_callbacks", ["polls", "_step"]
AFTER = ["poll_heartbeat", "auto-commit"]


@pytest.mark.parametrize(
    ("change", "stepped", "did", "polled"),
    [
        pytest.param({}, True, [BEFORE, *AFTER], True, id="nothing to do"),
        pytest.param({"rejoin_needed": True}, True, [BEFORE, *STEP, *AFTER], True, id="has to join"),
        pytest.param({"_join_task": "a join"}, True, [BEFORE, *STEP, *AFTER], True, id="joins"),
        pytest.param({"coordinator_id": None}, True, [BEFORE, *STEP, *AFTER], True, id="coordinator unknown"),
        pytest.param({"until": 0.0}, True, [BEFORE, *STEP, *AFTER], True, id="not certain"),
        pytest.param({"phase": Phase.OUT}, True, [BEFORE, *STEP, *AFTER], True, id="out"),
        pytest.param({"rejoin_needed": True}, False, [BEFORE, *STEP], False, id="nothing to deliver"),
        pytest.param({"rejoin_needed": True}, KafkaTimeoutError(), [BEFORE, *STEP], False, id="time is over"),
    ],
)
def test_a_poll_takes_a_step_if_there_is_one_to_take(
    asked: Any, *, change: dict[str, Any], stepped: Any, did: list[str], polled: bool
) -> None:
    put(asked, change)
    asked.stepped = stepped
    assert asked.poll(timeout_ms=50) is polled
    assert asked.did == did


def put(coordinator: Any, change: dict[str, Any]) -> None:
    for name, value in change.items():
        if name == "until":
            coordinator._flow.certainty.until = value
        elif name in {"phase", "listens_until", "changed"}:
            setattr(coordinator._flow, name, value)
        else:
            setattr(coordinator, name, value)


def test_what_a_commits_callback_raises_comes_out_of_the_poll(asked: Any) -> None:
    def raises() -> None:
        raise FencedInstanceIdError

    asked._invoke_completed_offset_commit_callbacks = raises
    with pytest.raises(FencedInstanceIdError):
        asked.poll(timeout_ms=50)
    assert asked.did == []


@pytest.mark.parametrize("group_id", [None, "orders"])
def test_without_a_group_or_with_partitions_of_its_own_choice_it_is_kafka_pythons(
    asked: Any, monkeypatch: pytest.MonkeyPatch, group_id: str | None
) -> None:
    if group_id is not None:
        asked._subscription.unsubscribe()
        asked._subscription.assign_from_user([T0])
    asked.config["group_id"] = group_id
    for name, answer in (("poll", True), ("time_to_next_poll", 7.5)):
        monkeypatch.setattr(ConsumerCoordinator, name, lambda *_, answer=answer: answer)
    asked.rejoin_needed = True
    assert asked.poll(timeout_ms=50) is True
    assert asked.did == []
    if group_id is not None:
        assert asked.time_to_next_poll() == 7.5


def waiting(since: float, phase: Phase = Phase.JOINING) -> dict[str, Any]:
    return {"rejoin_needed": True, "phase": phase, "changed": since}


@pytest.mark.parametrize(
    ("change", "usual", "seconds"),
    [
        pytest.param({}, 2.5, 2.5, id="nothing to do"),
        pytest.param({"rejoin_needed": True, "changed": 0.0}, 2.5, 0.05, id="has to join"),
        pytest.param(waiting(99.9), 2.5, 0.05, id="joins"),
        pytest.param(waiting(97.0), 2.5, 0.3, id="joins, for 3 s"),
        pytest.param(waiting(97.0, Phase.SYNCING), 2.5, 0.3, id="syncs, for 3 s"),
        pytest.param(waiting(0.0), 2.5, 0.5, id="joins, for long"),
        pytest.param(waiting(0.0), 0.3, 0.3, id="joins, and a commit is due"),
        pytest.param(waiting(0.0), 0.01, 0.05, id="joins, and a commit is due at once"),
        pytest.param(waiting(0.0) | {"until": 100.2}, 2.5, 0.2, id="joins until it is not certain"),
        pytest.param(waiting(0.0) | {"until": 99.0}, 2.5, 0.05, id="joins and is not certain"),
        pytest.param(waiting(0.0, Phase.ASSIGNED), 2.5, 0.05, id="has an assignment to take"),
        pytest.param({"until": 101.5}, 2.5, 1.5, id="until it is not certain"),
        pytest.param({"listens_until": 100.1}, 2.5, 0.05, id="listens"),
        pytest.param({"listens_until": 100.1}, 0.01, 0.01, id="listens, and something is due"),
        pytest.param({"listens_until": 100.0}, 2.5, 2.5, id="has listened"),
        pytest.param({"heartbeat": SimpleNamespace(last_send=2.0, last_receive=1.0)}, 2.5, 0.05, id="waits"),
    ],
)
def test_a_poll_is_over_soon_while_a_join_may_end_or_a_heartbeat_is_to_be_answered(
    asked: Any, monkeypatch: pytest.MonkeyPatch, *, change: dict[str, Any], usual: float, seconds: float
) -> None:
    monkeypatch.setattr(_flow, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(ConsumerCoordinator, "time_to_next_poll", lambda _: usual)
    put(asked, change)
    assert asked.time_to_next_poll() == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("until", "asked_ms", "waits_ms"),
    [(104.0, 5000, 2000), (104.0, 500, 500), (99.0, 500, 0), (104.0, None, None)],
)
def test_committed_offsets_are_waited_for_only_while_the_rest_is_certain(
    asked: Any, monkeypatch: pytest.MonkeyPatch, until: float, asked_ms: float | None, waits_ms: float | None
) -> None:
    waits: list[float | None] = []

    def refresh(_: object, limit: float | None) -> bool:
        waits.append(limit)
        return True

    monkeypatch.setattr(_flow, "time", SimpleNamespace(monotonic=lambda: 100.0))
    monkeypatch.setattr(ConsumerCoordinator, "refresh_committed_offsets_if_needed", refresh)
    asked._flow.certainty.until = until
    assert asked.refresh_committed_offsets_if_needed(asked_ms) is True
    asked._subscription.unsubscribe()
    asked._subscription.assign_from_user([T0])
    asked.refresh_committed_offsets_if_needed(asked_ms)
    assert waits == [waits_ms, asked_ms]


# Step by step


def sleeps_of(coordinator: Any) -> list[float]:
    """What a coordinator sleeps, in seconds, from now on."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    coordinator._net.sleep = sleep
    return slept


@pytest.mark.parametrize(
    ("not_before", "delivers", "left", "slept", "begins"),
    [
        pytest.param(99.0, False, 1.0, [], True, id="it is time"),
        pytest.param(100.5, True, 1.0, [], False, id="records first"),
        pytest.param(100.5, False, 1.0, [0.5], True, id="waits"),
        pytest.param(100.5, False, 0.5, [0.5], True, id="waits to the end of the poll"),
        pytest.param(100.5, False, 0.2, [0.2], False, id="for longer than the poll"),
        pytest.param(100.5, False, None, [0.5], True, id="a poll without end"),
    ],
)
def test_a_join_waits_for_its_time_only_if_there_is_nothing_to_deliver(
    asked: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    not_before: float,
    delivers: bool,
    left: float | None,
    slept: list[float],
    begins: bool,
) -> None:
    monkeypatch.setattr(_flow, "time", SimpleNamespace(monotonic=lambda: 100.0))
    asked._subscription.assign_from_subscribed([T0] if delivers else [])
    asked._flow.not_before, seen = not_before, sleeps_of(asked)
    timer = SimpleNamespace(timeout_ms=None if left is None else 1000 * left)
    assert asyncio.run(asked._may_begin(timer)) is begins
    assert seen == slept


@pytest.mark.parametrize(
    ("phase", "beats"), [(Phase.OUT, False), (Phase.STABLE, True), (Phase.RETRYING, True)]
)
def test_a_join_begins_with_heartbeats_of_who_is_a_member(asked: Any, phase: Phase, beats: bool) -> None:
    begun: list[Any] = []
    asked._flow.phase, asked._is_leader, asked._heartbeat_enabled = phase, True, not beats
    asked._subscription._group_subscription = {"t", "of others"}
    asked._maybe_start_heartbeat_loop = lambda: begun.append("heartbeats")
    asked._heartbeat_wakeup = SimpleNamespace(notify=lambda: begun.append("woken"))

    def call_soon(step: Any) -> str:
        begun.append(step.__name__)
        return "a join"

    asked._manager._manager = SimpleNamespace(call_soon=call_soon)
    asked._begin_join()
    assert begun == ["heartbeats", "woken", "_join"]
    assert asked._join_task == "a join"
    assert asked._is_leader is False
    assert asked._subscription.group_subscription() == {"t"}
    assert asked._heartbeat_enabled is beats


MEMBER, NEXT = (Generation(number, "m1", "cooperative-sticky") for number in (7, 8))
ANOTHER = Generation(7, "m2", "cooperative-sticky")


@pytest.mark.parametrize(
    ("code", "becomes", "phase", "until", "known_until", "error"),
    [
        pytest.param(0, MEMBER, Phase.STABLE, 109.0, 109.0, None, id="known"),
        pytest.param(27, MEMBER, Phase.STABLE, 101.0, 109.0, RebalanceInProgressError, id="waited for"),
        pytest.param(27, MEMBER, Phase.JOINING, 101.0, 109.0, None, id="it joins already"),
        pytest.param(27, MEMBER, Phase.SYNCING, 101.0, 109.0, None, id="of the rebalance before"),
        pytest.param(22, MEMBER, Phase.RETRYING, 50.0, 50.0, None, id="moved on"),
        pytest.param(22, MEMBER, Phase.STABLE, 50.0, 50.0, IllegalGenerationError, id="fell behind"),
        pytest.param(25, MEMBER, Phase.STABLE, 50.0, 50.0, UnknownMemberIdError, id="expelled"),
        pytest.param(0, NEXT, Phase.STABLE, 109.0, 109.0, None, id="older"),
        pytest.param(22, NEXT, Phase.STABLE, 50.0, 50.0, None, id="overtaken"),
        pytest.param(0, ANOTHER, Phase.STABLE, 50.0, 50.0, None, id="of another"),
        pytest.param(25, ANOTHER, Phase.STABLE, 50.0, 50.0, None, id="of no more"),
    ],
)
def test_the_answer_to_a_heartbeat_counts_by_its_code_its_phase_and_in_which_generation_it_was_sent(
    asked: Any,
    *,
    code: int,
    becomes: Generation,
    phase: Phase,
    until: float,
    known_until: float,
    error: type[KafkaError] | None,
) -> None:
    flow = asked._flow
    asked._generation, asked.heartbeat.last_send = MEMBER, 100.0
    flow.certainty = Certainty(9.0, 60.0)
    flow.certainty.synced(41.0)
    flow.certainty.confirm(41.0)
    sent: list[Any] = []

    async def send(request: Any, node_id: Any) -> Any:
        who = (request.group_id, request.generation_id, request.member_id, request.group_instance_id)
        sent.append((*who, node_id))
        asked._generation, flow.phase = becomes, phase
        return SimpleNamespace(error_code=code)

    asked._manager = SimpleNamespace(send=send)
    asked.config["group_instance_id"] = "i1"
    asked._sensors = None
    flow.phase = Phase.STABLE
    asked.reset_generation = lambda member_id="": asked.did.append(f"resets to {member_id!r}")
    if error is None:
        asyncio.run(asked._send_heartbeat_request())
    else:
        with pytest.raises(error):
            asyncio.run(asked._send_heartbeat_request())
    assert sent == [("orders", 7, "m1", "i1", "0")]
    assert (flow.certainty.until, flow.certainty.known_until) == (until, known_until)


def test_no_heartbeat_is_sent_to_nobody(asked: Any) -> None:
    asked.coordinator_id = None
    with pytest.raises(CoordinatorNotAvailableError):
        asyncio.run(asked._send_heartbeat_request())


def test_a_heartbeat_that_could_not_be_sent_gives_up_the_coordinator(asked: Any) -> None:
    failed: list[Any] = []

    async def send(*_: Any, **__: Any) -> Any:
        raise KafkaConnectionError

    asked._manager = SimpleNamespace(send=send)
    asked._failed_request = lambda node, request, error: failed.append((node, type(request), type(error)))
    with pytest.raises(KafkaConnectionError):
        asyncio.run(asked._send_heartbeat_request())
    assert failed == [("0", HeartbeatRequest, KafkaConnectionError)]


def test_an_answer_to_sync_group_makes_a_member_stable_only_while_it_is_one(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConsumerCoordinator, "_process_sync_group_response", lambda *_: b"plan")
    monkeypatch.setattr(_flow_member, "time", SimpleNamespace(monotonic=lambda: 100.0))
    woken: list[str] = []
    asked._lock = contextlib.nullcontext()
    asked._heartbeat_wakeup = SimpleNamespace(notify=lambda: woken.append("yes"))
    for phase, state in ((Phase.OUT, MemberState.UNJOINED), (Phase.SYNCING, MemberState.STABLE)):
        asked._flow.phase, asked.state, asked._heartbeat_enabled = phase, MemberState.UNJOINED, False
        asked.heartbeat.last_reset, asked.heartbeat.heartbeat_failed = 1.0, True
        assert asked._process_sync_group_response("response", 90.0) == b"plan"
        stable = state is MemberState.STABLE
        assert (asked.state, asked._heartbeat_enabled) == (state, stable)
        assert asked.heartbeat.last_reset == (100.0 if stable else 1.0)
        assert asked.heartbeat.heartbeat_failed is not stable
        assert woken == ["yes"] * stable
    assert asked._flow.certainty.known_until == 99.0


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize(
    ("code", "phase", "error", "resets"),
    [
        pytest.param(0, Phase.STABLE, None, False, id="stored"),
        pytest.param(22, Phase.STABLE, _OvertakenError, False, id="overtaken"),
        pytest.param(25, Phase.STABLE, CommitFailedError, True, id="expelled"),
        pytest.param(25, Phase.OUT, CommitFailedError, False, id="out already"),
        pytest.param(82, Phase.STABLE, FencedInstanceIdError, True, id="fenced"),
    ],
)
def test_a_commit_that_somebody_sent_by_kafka_pythons_own_method_is_of_the_past(
    asked: Any,
    *,
    code: int,
    phase: Phase,
    error: type[KafkaError] | None,
    resets: bool,
    by_hand: bool,
) -> None:
    """Its answer may have been overtaken, as nobody knows in which generation it was sent."""
    asked._flow.phase, asked._consumer_sensors = phase, None
    resets_to: list[str] = []
    asked.reset_generation = lambda member_id="": resets_to.append(member_id)
    if by_hand:  # no membership has a part in that
        asked._subscription.unsubscribe()
        asked._subscription.assign_from_user([T0])
        error, resets = {22: CommitFailedError, 25: CommitFailedError}.get(code, error), code in {22, 25, 82}
    response = SimpleNamespace(topics=[("t", [(0, code)])])
    offsets = {T0: OffsetAndMetadata(7, "", -1)}
    if error is None:
        asked._handle_offset_commit_response(offsets, 0.0, response)
    else:
        with pytest.raises(error) as caught:
            asked._handle_offset_commit_response(offsets, 0.0, response)
        assert type(caught.value) is error
    assert (resets_to != []) is resets


@pytest.mark.parametrize(
    ("codes", "revoked", "error"),
    [
        pytest.param([0, 3], {T1}, CommitFailedError, id="of a topic that is gone"),
        pytest.param([3, 3], {T1}, UnknownTopicOrPartitionError, id="and of one that is kept"),
        pytest.param([15, 3], {T1}, CoordinatorNotAvailableError, id="beside another error"),
    ],
)
def test_a_commit_to_a_deleted_topic_is_not_sent_again_while_it_is_revoked(
    asked: Any, codes: list[int], revoked: set[TopicPartition], error: type[KafkaError]
) -> None:
    asked._consumer_sensors, asked.coordinator_dead = None, lambda _: None
    asked._subscription.assign_from_subscribed([T0, T1])
    asked._subscription.seek(T0, 7)
    asked._subscription.seek(T1, 7)
    asked._subscription.mark_pending_revocation(revoked)
    response = SimpleNamespace(topics=[("t", [*enumerate(codes)])])
    offsets = {one: OffsetAndMetadata(7, "", -1) for one in (T0, T1)}
    with pytest.raises(error) as caught:
        asked._handle_offset_commit_response(offsets, 0.0, response)
    assert type(caught.value) is error


def test_more_commits_than_can_be_answered_in_time_are_refused(asked: Any) -> None:
    asked._net.create_future = Future
    asked._flow.commits = waiting = [SimpleNamespace(done=Future()) for _ in range(100)]
    with pytest.raises(TooManyInFlightRequests, match="100 commits wait for their answers: ask for fewer"):
        asyncio.run(asked._send_offset_commit_request({T0: OffsetAndMetadata(7, "", -1)}))
    assert asked._flow.commits == waiting


def test_a_poll_that_ends_while_an_earlier_one_still_steps_takes_the_join_from_it(asked: Any) -> None:
    """As a signal's handler that raises leaves the earlier one's step in the I/O thread."""
    asked.rejoin_needed, asked._join_task = True, SimpleNamespace(is_done=False)

    async def wait_for(task: Any, timeout_ms: float) -> None:
        del timeout_ms
        task.is_done, asked._join_task, asked.rejoin_needed = True, None, False

    asked._manager._manager = SimpleNamespace(wait_for=wait_for)
    assert asyncio.run(asked._step(5000))


@pytest.mark.parametrize("closing", [False, True])
def test_a_dead_coordinators_joins_are_ended_but_not_while_the_consumer_closes(
    asked: Any, monkeypatch: pytest.MonkeyPatch, *, closing: bool
) -> None:
    monkeypatch.setattr(ConsumerCoordinator, "coordinator_dead", lambda *_: None)
    called: list[Any] = []
    asked._heartbeat_closed = closing
    asked._manager._manager = SimpleNamespace(call_soon=called.append)
    asked.coordinator_dead("it is gone")
    assert called == [asked._manager.close_joins] * (not closing)


def test_a_join_looks_for_its_coordinator_and_for_topics_of_a_pattern_first(asked: Any) -> None:
    done: list[Any] = []

    async def ready(timeout_ms: float) -> None:
        done.append(("coordinator", timeout_ms))

    async def wait_for(future: Any, timeout_ms: float) -> None:
        done.append((future, timeout_ms))

    async def join() -> bytes:
        done.append("joins")
        return b"plan"

    asked.ensure_coordinator_ready_async, asked._do_join_and_sync_async = ready, join
    asked._manager._manager = SimpleNamespace(wait_for=wait_for)
    asked._cluster = SimpleNamespace(request_update=lambda: "topics")
    asked.config["request_timeout_ms"] = 300
    assert asyncio.run(asked._join()) == b"plan"
    assert done == [("coordinator", 9000), "joins"]
    done.clear()
    asked._subscription.unsubscribe()
    asked._subscription.subscribe(pattern="t.*")
    assert asyncio.run(asked._join()) == b"plan"
    assert done == [("coordinator", 9000), ("topics", 300), "joins"]


# What is given up


class Told(ConsumerRebalanceListener):
    """What a listener hears, beside what else is done; `does` may change the subscription, or raise."""

    def __init__(self, did: list[Any]) -> None:
        self._did = did
        self.does: Callable[[], None] = lambda: None

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._did.append(("revoked", revoked))
        self.does()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._did.append(("assigned", assigned))


@pytest.fixture
def holding(asked: Any) -> Any:
    """A coordinator that has T0, T1 and U0, and commits before it revokes."""
    asked.listener = Told(asked.did)
    asked._subscription.subscribe(["t", "u"], listener=asked.listener)
    asked._subscription.assign_from_subscribed([T0, T1, U0])

    async def invoke(name: str, partitions: set[TopicPartition]) -> None:
        getattr(asked.listener, name)(partitions)

    async def commit(revoked: Any) -> None:
        pending = {one for one in (T0, T1, U0) if not asked._subscription.is_fetchable(one)}
        assert {*revoked} <= pending
        asked.did.append(("committed", {*revoked}))

    asked._invoke_rebalance_listener_async, asked._commit_before_revoking = invoke, commit
    for one in (T0, T1, U0):
        asked._subscription.seek(one, 7)
    return asked


def test_topics_that_go_while_a_listener_works_go_with_the_rest(holding: Any) -> None:
    def narrow() -> None:
        holding._subscription.subscription = {"t"}

    assert asyncio.run(holding._revoke(set())) is None
    assert holding.did == []
    holding.listener.does = narrow
    assert asyncio.run(holding._revoke({T0})) is None
    assert holding.did == [
        ("committed", {T0}),
        ("revoked", {T0}),
        ("committed", {U0}),
        ("revoked", {U0}),
    ]
    assert holding._subscription.assigned_partitions() == {T1}
    holding._subscription.listener = holding._subscription.rebalance_listener = None
    assert asyncio.run(holding._revoke({T1})) is None  # without a listener
    assert holding._subscription.assigned_partitions() == set()


@pytest.mark.parametrize(
    ("held", "topics", "generation", "gives_up"),
    [
        pytest.param([T0], ["t"], MEMBER, False, id="keeps all"),
        pytest.param([T0], ["t"], Generation.NO_GENERATION, True, id="fell out"),
        pytest.param([], ["t"], Generation.NO_GENERATION, False, id="has nothing"),
    ],
)
def test_what_must_not_be_held_is_given_up_before_a_join(
    asked: Any, *, held: list[TopicPartition], topics: list[str], generation: Generation, gives_up: bool
) -> None:
    given_up: list[Any] = []

    async def prepare(generation: int, member_id: str, timeout_ms: float) -> None:
        given_up.append((generation, member_id, timeout_ms))

    asked._on_join_prepare_async = prepare
    asked._subscription.assign_from_subscribed(held)
    asked._subscription.subscription, asked._generation = {*topics}, generation
    asyncio.run(asked._give_up())
    assert given_up == [(generation.generation_id, generation.member_id, 3000)] * gives_up


@pytest.mark.parametrize("raises", [False, True])
def test_topics_that_it_left_are_revoked_before_a_join(holding: Any, *, raises: bool) -> None:
    holding._subscription.subscription = {"t"}
    if raises:
        holding.listener.does = lambda: 1 / 0
    with pytest.raises(KafkaError, match="callback throws") if raises else contextlib.nullcontext():
        asyncio.run(holding._give_up())
    assert holding.did == [("committed", {U0}), ("revoked", {U0})]
    assert holding._subscription.assigned_partitions() == {T0, T1}


def test_topics_of_a_new_pattern_are_known_before_any_is_given_up(holding: Any) -> None:
    async def wait_for(future: Any, timeout_ms: float) -> None:
        assert (future, timeout_ms) == ("topics", 300)
        holding._subscription.subscription = {"t"}

    holding._manager._manager = SimpleNamespace(wait_for=wait_for)
    holding._cluster = SimpleNamespace(request_update=lambda: "topics")
    holding.config["request_timeout_ms"] = 300
    holding._subscription.unsubscribe()
    holding._subscription.subscribe(pattern="t.*", listener=holding.listener)
    holding._subscription.subscription = {"t", "u"}
    holding._subscription.assign_from_subscribed([T0, T1, U0])
    holding._subscription.subscribe(pattern="t.*", listener=holding.listener)
    assert holding._subscription.subscription == set()
    asyncio.run(holding._give_up())
    assert holding.did == [("committed", {U0}), ("revoked", {U0})]


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_commits_on_their_way_are_answered_before_what_was_consumed_is_committed(
    asked: Any, caplog: pytest.LogCaptureFixture, *, auto: bool, fails: bool
) -> None:
    did: list[Any] = []

    async def wait_for(future: Any, timeout_ms: float) -> None:
        did.append((future, timeout_ms))

    async def commit(offsets: Any, timeout_ms: float) -> None:
        did.append(({one: offset.offset for one, offset in offsets.items()}, timeout_ms))
        if fails:
            raise KafkaTimeoutError

    asked.config["enable_auto_commit"] = auto
    asked._manager._manager, asked._commit_offsets_sync_async = SimpleNamespace(wait_for=wait_for), commit
    asked._subscription.assign_from_subscribed([T0, T1])
    asked._subscription.seek(T0, 7)
    asked._flow.commits = [SimpleNamespace(done="an earlier one"), SimpleNamespace(done="the last")]
    asyncio.run(asked._commit_before_revoking({T0, T1}))
    assert did == [("the last", 3000), ({T0: 7}, 3000)][: 1 + auto]
    assert ("Committing before partitions are revoked failed" in caplog.text) is (auto and fails)


@pytest.mark.parametrize("raises", [False, True])
def test_who_unsubscribes_commits_and_revokes_all(asked: Any, *, raises: bool) -> None:
    def run(step: Any, *given: Any) -> None:
        assert not asked._subscription.is_fetchable(T0)
        asked.did.append((step.__name__, *given))
        if raises and not given:  # what the listener raised
            raise KafkaError

    asked._net = SimpleNamespace(run=run)
    asked._subscription.assign_from_subscribed([T0])
    asked._subscription.seek(T0, 7)
    asked.maybe_auto_commit_offsets_now()
    assert asked.did == [("_commit_before_revoking", {T0}), ("_on_close_prepare_async",)]
    assert asked.rejoin_needed
    assert asked._flow.asked_again


def test_who_has_chosen_partitions_by_hand_is_left_to_kafka_python_as_it_unsubscribes(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ConsumerCoordinator, "maybe_auto_commit_offsets_now", lambda one: one.did.append("its")
    )
    asked._subscription.unsubscribe()
    asked._subscription.assign_from_user([T0])
    asked.maybe_auto_commit_offsets_now()
    assert asked.did == ["its"]
    assert not asked.rejoin_needed


# The end of a join


@pytest.fixture
def joined(holding: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose join has ended in generation 8; `did` has what became of its assignment."""
    did = holding.did

    async def complete(self: Any, generation: int, member_id: str, protocol: str, given: bytes) -> None:
        del self
        did.append(("taken", generation, member_id, protocol))
        with contextlib.suppress(ValueError):  # of topics that are not subscribed to
            holding._subscription.assign_from_subscribed(sorted(partitions_in(given) or ()))

    monkeypatch.setattr(ConsumerCoordinator, "_on_join_complete_async", complete)
    holding._manager.close_joins = lambda: did.append("joins closed")
    holding._listen = lambda: did.append("listens")
    holding._generation, holding._flow.phase = NEXT, Phase.ASSIGNED
    holding._manager.apart = False
    return holding


TAKEN_IN_8 = ("taken", 8, "m1", "cooperative-sticky")
LEAVES_OUT = [("committed", {U0}), ("revoked", {U0})]


def encoded(*given: tuple[str, list[int]]) -> bytes:
    raw: bytes = ConsumerProtocolAssignment(0, list(given), b"").encode()
    return raw


WITHOUT_U0 = encoded(("t", [0, 1]))


def take(coordinator: Any, given: bytes = WITHOUT_U0) -> None:
    asyncio.run(coordinator._on_join_complete_async(8, "m1", "cooperative-sticky", given))


@pytest.mark.parametrize(
    ("given", "given_up", "rejoins", "refused"),
    [
        pytest.param(WITHOUT_U0, LEAVES_OUT, True, None, id="leaves some out"),
        pytest.param(encoded(("t", [0, 1, 2]), ("u", [0])), [], False, None, id="keeps all"),
        pytest.param(encoded(("v", [0])), [], False, 8, id="of other topics"),
        pytest.param(b"\0", [], False, None, id="cannot be read"),
    ],
)
def test_what_an_assignment_leaves_out_is_revoked_first_and_then_joined_for(
    joined: Any, *, given: bytes, given_up: list[Any], rejoins: bool, refused: int | None
) -> None:
    joined._offset_fetch_futures[frozenset([T0])] = "an answer that nobody waited for"
    take(joined, given)
    assert joined._offset_fetch_futures == {}
    assert joined.did == ["joins closed", *given_up, TAKEN_IN_8, "listens"]
    assert (joined._flow.phase, joined._manager.apart) == (Phase.STABLE, True)
    assert joined.rejoin_needed is rejoins
    assert vars(joined).get(REFUSED) == refused


def test_what_the_listener_of_what_is_revoked_raises_comes_when_the_assignment_is_taken(joined: Any) -> None:
    joined.listener.does = lambda: 1 / 0
    with pytest.raises(KafkaError, match="User rebalance callback throws an error") as caught:
        take(joined)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert joined.did[-2:] == [TAKEN_IN_8, "listens"]
    assert joined.rejoin_needed


def test_it_listens_though_the_taking_raises(joined: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ConsumerCoordinator, "_on_join_complete_async", fails)
    with pytest.raises(ZeroDivisionError):
        take(joined)
    assert joined.did[-1] == "listens"
    assert joined.rejoin_needed


# Connections of joins


class Manager:
    """kafka-python's, as far as `JoinsApart` asks it; `sent` is what went to which node."""

    def __init__(self, *, known: bool = True) -> None:
        self.sent: list[tuple[str, Any, Any]] = []
        self.closed: list[Any] = []
        self.cluster = SimpleNamespace(
            broker_metadata=lambda _: SimpleNamespace(host="kafka-1", port=9092) if known else None,
            add_coordinator=self._add,
        )
        self._conns: dict[Any, Any] = {}
        self.added: list[Any] = []

    def _add(self, node: Any, kind: Any, key: str, *, synthesize_node_id: bool) -> Any:
        self.added.append(
            (node.error_code, node.node_id, node.host, node.port, kind, key, synthesize_node_id)
        )
        return node.node_id

    def send(self, request: Any, node_id: Any, request_timeout_ms: Any) -> None:
        self.sent.append((type(request).__name__, node_id, request_timeout_ms))
        self._conns[node_id] = SimpleNamespace(close=lambda: self.closed.append(node_id))


REQUESTS = (JoinGroupRequest(), SyncGroupRequest(), HeartbeatRequest())
NAMES = tuple(type(one).__name__ for one in REQUESTS)


def test_joins_have_a_connection_of_their_own_which_is_closed_with_them() -> None:
    manager, flow = Manager(), FlowState(Certainty(9.0, 60.0))
    apart = JoinsApart(manager, flow, "orders")
    apart.close_joins()
    for request in REQUESTS:
        apart.send(request, 7, 500)
    assert manager.sent == list(zip(NAMES, ("7-joins", "7-joins", 7), (500,) * 3, strict=True))
    assert {*manager.added} == {
        (0, "7-joins", "kafka-1", 9092, CoordinatorType.GROUP, "orders (joins)", False)
    }
    assert flow.phase is Phase.ENTERING
    apart.close_joins()
    apart.close_joins()
    assert manager.closed == ["7-joins"]
    assert apart.sent is manager.sent


@pytest.mark.parametrize(("apart", "known"), [(False, True), (True, False)], ids=["fails", "unknown broker"])
def test_joins_go_where_all_goes_if_there_is_no_second_connection_to_be_had(apart: bool, known: bool) -> None:
    manager, flow = Manager(known=known), FlowState(Certainty(9.0, 60.0))
    joins = JoinsApart(manager, flow, "orders")
    joins.apart = apart
    for request in REQUESTS:
        joins.send(request, 7)
    assert manager.sent == [(name, 7, None) for name in NAMES]
    assert flow.phase is Phase.ENTERING


def test_a_members_state_has_the_time_at_which_its_phase_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = FlowState(Certainty(9.0, 60.0))
    for now, event, phase, changed in (
        (7.0, Event.JOIN_SENT, Phase.ENTERING, 7.0),
        (8.0, Event.TAKEN, Phase.ENTERING, 7.0),  # is said of a join that is over
        (9.0, Event.JOIN_ANSWERED, Phase.SYNCING, 9.0),
    ):
        monkeypatch.setattr(_flow_state, "time", SimpleNamespace(monotonic=lambda now=now: now))
        flow.on(event)
        assert (flow.phase, flow.changed) == (phase, changed)


def test_what_waits_for_the_end_of_a_join_goes_on_with_whatever_ends_it() -> None:
    for end in (Event.SYNC_ANSWERED, Event.FAILED, Event.FELL_OUT, Event.JOIN_SENT):
        flow, future = FlowState(Certainty(9.0, 60.0)), Future()
        flow.phase = Phase.STABLE
        with pytest.raises(StopIteration):
            flow.no_join(Future()).send(None)  # there is none
        flow.on(Event.JOIN_SENT)
        waiting = flow.no_join(future)
        assert waiting.send(None) is future
        flow.on(Event.TAKEN)  # is said of a join that is over
        flow.on(Event.JOIN_ANSWERED)
        assert not future.is_done
        flow.on(end)
        assert future.succeeded()
        waiting.close()


# Heartbeats after a rebalance


@pytest.mark.parametrize(
    ("over", "beats"),
    [
        pytest.param({}, 2, id="all is well"),
        pytest.param({"_generation": NEXT}, 0, id="another generation"),
        pytest.param({"phase": Phase.JOINING}, 0, id="it joins"),
        pytest.param({"rejoin_needed": True}, 0, id="it is to join"),
        pytest.param({"_heartbeat_closed": True}, 0, id="it closes"),
        pytest.param({"poll_is_late": True}, 0, id="its application does not poll"),
        pytest.param({"coordinator_id": None}, 0, id="no coordinator"),
    ],
)
def test_who_listens_is_done_when_there_is_nothing_to_hear(
    asked: Any, *, over: dict[str, Any], beats: int
) -> None:
    sent: list[str] = []

    async def beat() -> None:
        sent.append("heartbeat")

    generation, slept = asked._generation, sleeps_of(asked)
    asked._heartbeat_closed, asked._do_heartbeat = False, beat
    asked.heartbeat.poll_timeout_expired = lambda: over.get("poll_is_late", False)
    put(asked, over)
    asyncio.run(asked._send_heartbeats_after(generation, [0.0, 0.05]))
    assert len(sent) == beats
    assert slept == [0.0, 0.05][: max(1, beats)]


# When a join has ended


@pytest.mark.parametrize(
    ("over", "joins"),
    [
        pytest.param({}, True, id="all is well"),
        pytest.param({"phase": Phase.OUT}, False, id="out"),
        pytest.param({"_heartbeat_closed": True}, False, id="it closes"),
        pytest.param({"poll_is_late": True}, False, id="its application does not poll"),
        pytest.param({"coordinator_id": None}, False, id="no coordinator"),
        pytest.param({"held": [U0]}, False, id="topics that it left"),
    ],
)
def test_another_round_is_joined_without_a_poll_by_who_has_nothing_to_give_up(
    asked: Any, *, over: dict[str, Any], joins: bool
) -> None:
    asked._heartbeat_closed = False
    asked.heartbeat.poll_timeout_expired = lambda: over.get("poll_is_late", False)
    asked._subscription.subscribe(["t", "u"])
    asked._subscription.assign_from_subscribed(over.get("held", [T0]))
    asked._subscription.subscription = {"t"}
    put(asked, {name: value for name, value in over.items() if name not in {"held", "poll_is_late"}})
    assert asked._joins_unseen is joins
