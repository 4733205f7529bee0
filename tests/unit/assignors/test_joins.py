"""What an assignor changes in its coordinator: joins that are completed, members that are shown first.

That joins are completed is seen in integration_tests/.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from kafka import TopicPartition
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import Generation
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import NotCoordinatorError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import MemberState, OffsetAndMetadata

from kafka_assignors._assignors import _joins as joins
from kafka_assignors._assignors._host import KafkaPythonHost

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


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


def ended(coordinator: Any, assignment: bytes) -> Any:
    return joins._EndedJoin(coordinator._generation, assignment, 0.0)


@pytest.mark.parametrize(
    ("topics", "refused"),
    [(["orders"], False), (["orders", "events"], False), (["events"], True), ([], True)],
)
def test_an_assignment_of_other_topics_than_are_subscribed_to_is_refused(
    topics: list[str], refused: bool
) -> None:
    coordinator = made()
    coordinator._generation = object()
    coordinator._subscription = SimpleNamespace(subscription={*topics})
    assignment = ConsumerProtocolAssignment(0, [("orders", [0, 1])], b"").encode()
    assert joins._is_refused(coordinator, ended(coordinator, assignment)) is refused
    another = joins._EndedJoin(object(), assignment, 0.0)
    assert not joins._is_refused(coordinator, another)


@pytest.mark.parametrize("junk", [b"", b"\0", b"\0\0\xff\xff\xff\xfe"])
def test_an_assignment_that_cannot_be_read_is_not_in_the_way_of_the_next_join(junk: bytes) -> None:
    coordinator = made()
    coordinator._generation = object()
    coordinator._subscription = SimpleNamespace(subscription={"orders"})
    assert not joins._is_refused(coordinator, ended(coordinator, junk))


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
    protocol: RebalanceProtocol,
    taken: Generation,
    joins_to: list[Generation],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    position: int,
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
