"""What an assignor changes in its coordinator: joins that are completed, members that are shown first.

That joins are completed is seen in integration_tests/.
"""

import asyncio
import gc
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import Generation
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import KafkaError, NotCoordinatorError, RebalanceInProgressError, UnknownMemberIdError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import MemberState, OffsetAndMetadata

from kafka_assignors._assignors import _joins as joins
from kafka_assignors._assignors._host import KafkaPythonHost


def made(kind: type[ConsumerCoordinator] = ConsumerCoordinator) -> Any:
    """A coordinator of this release, with what it has as soon as it is made."""
    coordinator: Any = object.__new__(kind)
    for name in ("_generation", "_rebalance_protocol", "config", "rejoining", "state"):
        setattr(coordinator, name, None)
    coordinator._subscription = SubscriptionState()
    return coordinator


def test_the_coordinator_of_this_release_is_changed_once() -> None:
    coordinator = made()
    joins.complete(coordinator)
    changed = coordinator._do_join_and_sync_async
    joins.complete(coordinator)
    assert coordinator._do_join_and_sync_async is changed
    assert made()._do_join_and_sync_async.__func__ is ConsumerCoordinator._do_join_and_sync_async


@pytest.mark.parametrize(
    "change", [joins.complete, lambda one: KafkaPythonHost(one).show_members_first(lambda _: None)]
)
def test_a_changed_coordinator_is_not_kept_alive_by_that(change: Callable[[Any], Any]) -> None:
    coordinator = made()
    change(coordinator)
    alive = weakref.ref(coordinator)
    gc.disable()
    try:
        del coordinator
        assert alive() is None
    finally:
        gc.enable()


class WithAnotherOfItsOwn:
    """What another library has changed already."""

    def __init__(self) -> None:
        self._perform_assignment = lambda *given: given


def test_a_coordinator_that_another_library_has_changed_is_left_as_it_is() -> None:
    coordinator: Any = WithAnotherOfItsOwn()
    before = dict(vars(coordinator))
    KafkaPythonHost(coordinator).show_members_first(lambda _: None)
    assert vars(coordinator) == before


def test_the_coordinator_of_this_release_shows_its_members_once_and_goes_on_as_before() -> None:
    coordinator = object.__new__(ConsumerCoordinator)
    coordinator._assignors = {}
    looks: list[Any] = []
    for _ in range(2):
        KafkaPythonHost(coordinator).show_members_first(looks.append)
    with pytest.raises(ValueError, match="Invalid assignment protocol: range"):
        coordinator._perform_assignment("leader", "range", ["a member"])
    assert looks == [["a member"]]


class Overtaken(ConsumerCoordinator):
    """Whose joins come to these generations, and only the last one to its assignment."""

    generations: Iterator[Generation]
    committed: Mapping[TopicPartition, OffsetAndMetadata]

    async def _do_join_and_sync_async(self) -> bytes:
        self.state = MemberState.REBALANCING
        self._generation = next(self.generations)
        if self._generation != LAST:
            raise RebalanceInProgressError
        return ASSIGNED

    async def _send_offset_fetch_request(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        if self.committed == REFUSED:
            raise NotCoordinatorError
        return {one: self.committed[one] for one in partitions if one in self.committed}


ORDERS = TopicPartition("orders", 0)
ASSIGNED: bytes = ConsumerProtocolAssignment(0, [("orders", [0])], b"").encode()
TAKEN, MISSED, LAST = (Generation(number, "m1", "range") for number in (7, 8, 9))
COMMITTED = {ORDERS: OffsetAndMetadata(148, "", -1)}
REFUSED = {ORDERS: OffsetAndMetadata(-1, "", -1)}
EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE


@pytest.mark.parametrize(
    ("protocol", "taken", "joins_to", "committed", "position"),
    [
        pytest.param(EAGER, TAKEN, [MISSED, LAST], COMMITTED, 148, id="overtaken"),
        pytest.param(EAGER, TAKEN, [LAST], COMMITTED, 148, id="a generation without it"),
        pytest.param(EAGER, MISSED, [LAST], COMMITTED, 144, id="nothing missed"),
        pytest.param(EAGER, MISSED, [MISSED, LAST], COMMITTED, 144, id="asked twice"),
        pytest.param(EAGER, Generation(8, "m0", "range"), [LAST], COMMITTED, 148, id="expelled"),
        pytest.param(EAGER, TAKEN, [LAST], {}, 144, id="nothing committed"),
        pytest.param(EAGER, TAKEN, [LAST], REFUSED, 144, id="commits that cannot be read"),
        pytest.param(COOPERATIVE, TAKEN, [LAST], COMMITTED, 144, id="cooperative"),
    ],
)
def test_an_eager_consumer_that_missed_a_generation_goes_on_at_the_commits(
    *,
    protocol: RebalanceProtocol,
    taken: Generation,
    joins_to: list[Generation],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    position: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another member may have had its partitions in that generation, and have read on."""
    coordinator = made(Overtaken)
    coordinator._rebalance_protocol, coordinator.state = protocol, MemberState.STABLE
    coordinator._generation, coordinator.generations = taken, iter(joins_to)
    coordinator.committed = committed
    subscription = coordinator._subscription
    subscription.subscribe(["orders"])
    subscription.assign_from_subscribed([ORDERS])
    subscription.seek(ORDERS, 144)
    subscription.pause(ORDERS)
    joins.complete(coordinator)
    for _ in joins_to[1:]:
        with pytest.raises(RebalanceInProgressError):
            asyncio.run(coordinator._do_join_and_sync_async())
    assert asyncio.run(coordinator._do_join_and_sync_async()) == ASSIGNED
    subscription.assign_from_subscribed([ORDERS])
    assert subscription.position(ORDERS).offset == position
    assert subscription.is_paused(ORDERS)
    assert ("Records may come twice" in caplog.text) is (committed == REFUSED)


class Clock:
    """The time of a consumer."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Polled(ConsumerCoordinator):
    """A consumer whose joins end at once, and that is asked poll by poll; `heartbeats` are their answers."""

    joined = 0
    assignment = ASSIGNED
    heartbeats: list[type[KafkaError] | None]
    fetched: list[set[TopicPartition]]
    meanwhile: Callable[[], None]

    async def _do_join_and_sync_async(self) -> bytes:
        self.joined += 1
        self.state = MemberState.REBALANCING
        self._generation = Generation(self.joined, "m1", "range")
        return self.assignment

    async def _send_heartbeat_request(self) -> None:
        answer = self.heartbeats.pop(0)
        if answer is not None:
            raise answer

    async def _send_offset_fetch_request(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        self.fetched.append({*partitions})
        self.meanwhile()
        return {one: OffsetAndMetadata(148, "", -1) for one in partitions}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(joins, "time", clock)
    return clock


@pytest.fixture
def polled(clock: Clock) -> Any:  # noqa: ARG001 - its time
    """One that subscribes to `orders`, and has taken nothing yet."""
    coordinator = made(Polled)
    coordinator.config = {"session_timeout_ms": 9000, "max_poll_interval_ms": 300_000}
    coordinator._generation, coordinator.state = Generation.NO_GENERATION, MemberState.UNJOINED
    coordinator._rebalance_protocol, coordinator.rejoining = EAGER, True
    coordinator.heartbeats, coordinator.fetched, coordinator.meanwhile = [], [], lambda: None
    coordinator._subscription.subscribe(["orders"])
    joins.complete(coordinator)
    return coordinator


def poll(coordinator: Any) -> Any:
    return asyncio.run(coordinator._do_join_and_sync_async())


@pytest.mark.parametrize("limits", [(9000, 300_000), (300_000, 9000)], ids=["session", "polls"])
@pytest.mark.parametrize(
    ("seconds", "answer", "asked", "joined"),
    [
        pytest.param(5.999, None, 0, 1, id="fresh"),
        pytest.param(6.0, None, 1, 1, id="known"),
        pytest.param(60, RebalanceInProgressError, 1, 1, id="others wait for it"),
        pytest.param(6.0, UnknownMemberIdError, 1, 2, id="expelled"),
    ],
)
def test_a_join_that_ended_between_two_polls_is_taken_while_the_coordinator_knows_the_member(
    polled: Any,
    clock: Clock,
    *,
    limits: tuple[int, int],
    seconds: float,
    answer: type[KafkaError] | None,
    asked: int,
    joined: int,
) -> None:
    polled.config = dict(zip(("session_timeout_ms", "max_poll_interval_ms"), limits, strict=True))
    polled.heartbeats = [answer]
    poll(polled)
    clock.now = seconds
    assert poll(polled) == ASSIGNED
    assert (1 - len(polled.heartbeats), polled.joined) == (asked, joined)
    assert joins.REFUSED not in vars(polled)
    # As long again without another question, if the poll was over before it had taken it.
    clock.now = seconds + 5.9 if asked else seconds
    poll(polled)
    assert (1 - len(polled.heartbeats), polled.joined) == (asked, joined)


def test_what_was_taken_or_belongs_to_another_membership_is_not_taken_again(polled: Any) -> None:
    poll(polled)
    polled.state = MemberState.STABLE
    poll(polled)
    assert polled.joined == 2
    polled._generation = Generation.NO_GENERATION
    polled._subscription.subscribe(["events"])
    poll(polled)
    assert polled.joined == 3
    assert joins.REFUSED not in vars(polled)


def test_an_assignment_that_was_refused_is_noted_and_what_follows_it_begins_at_the_commits(
    polled: Any, clock: Clock
) -> None:
    subscription = polled._subscription
    subscription.subscribe(["events"])
    polled.state, polled._generation = MemberState.STABLE, Generation(0, "m1", "range")
    poll(polled)
    assert polled.fetched == []
    assert joins.REFUSED not in vars(polled)
    polled.heartbeats, clock.now = [UnknownMemberIdError], 6.0
    poll(polled)
    assert vars(polled)[joins.REFUSED] == 1
    assert polled.fetched == [set()]


@pytest.mark.parametrize(
    ("protocol", "rejoining", "held", "topics", "generation", "prepares"),
    [
        pytest.param(COOPERATIVE, True, [0], ["orders"], LAST, False, id="keeps all"),
        pytest.param(COOPERATIVE, True, [0], ["orders"], Generation.NO_GENERATION, True, id="expelled"),
        pytest.param(COOPERATIVE, True, [0], ["events"], LAST, True, id="topics that it left"),
        pytest.param(COOPERATIVE, False, [0], ["events"], LAST, False, id="before the join"),
        pytest.param(COOPERATIVE, True, [], ["events"], LAST, False, id="holds nothing"),
        pytest.param(COOPERATIVE, True, [], ["orders"], Generation.NO_GENERATION, False, id="is new"),
        pytest.param(EAGER, True, [0], ["events"], LAST, False, id="eager"),
    ],
)
def test_a_cooperative_consumer_gives_up_what_it_must_not_hold_before_the_next_join(
    polled: Any,
    *,
    protocol: RebalanceProtocol,
    rejoining: bool,
    held: list[int],
    topics: list[str],
    generation: Generation,
    prepares: bool,
) -> None:
    polled._rebalance_protocol, polled.rejoining, polled._generation = protocol, rejoining, generation
    polled._subscription.assign_from_subscribed([TopicPartition("orders", one) for one in held])
    polled._subscription.subscription = {*topics}
    if prepares:
        with pytest.raises(RebalanceInProgressError):
            poll(polled)
        assert not polled.rejoining
        assert polled.joined == 0
    else:
        poll(polled)
        assert polled.rejoining is rejoining
        assert polled.joined == 1


def test_what_is_given_up_while_commits_are_asked_for_is_moved_nowhere(polled: Any) -> None:
    subscription = polled._subscription
    subscription.assign_from_subscribed([ORDERS])
    polled.meanwhile = lambda: subscription.assign_from_subscribed([])
    assert poll(polled) == ASSIGNED
    assert polled.fetched == [{ORDERS}]
    assert subscription.assigned_partitions() == set()


def test_who_subscribes_to_nothing_subscribes_to_no_topic_of_what_it_has() -> None:
    coordinator = made()
    assert coordinator._subscription.subscription is None
    assert not joins.subscribes(coordinator, {ORDERS})
    assert joins.subscribes(coordinator, ())


@pytest.mark.parametrize("junk", [b"", b"\0", b"\0\0\xff\xff\xff\xfe"])
def test_an_eager_consumer_leaves_an_assignment_that_cannot_be_read_to_kafka_python(
    polled: Any, clock: Clock, junk: bytes
) -> None:
    polled.assignment = junk
    assert poll(polled) == junk
    assert polled.fetched == [set()]
    # Nor is it in the way of the next join.
    polled.heartbeats, clock.now = [UnknownMemberIdError], 6.0
    poll(polled)
    assert joins.REFUSED not in vars(polled)
