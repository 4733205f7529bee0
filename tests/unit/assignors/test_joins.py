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
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import MemberState

from kafka_assignors._assignors import _joins as joins
from kafka_assignors._assignors._host import KafkaPythonHost

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """Whose next joins come to a generation, and not to its assignment: another rebalance has begun."""

    overtaken = 0

    async def _do_join_and_sync_async(self) -> bytes:
        self.state = MemberState.REBALANCING
        if self.overtaken:
            self.overtaken -= 1
            raise RebalanceInProgressError
        return b"assignment"


@pytest.mark.parametrize(
    ("protocol", "overtaken", "position"),
    [
        pytest.param(RebalanceProtocol.EAGER, 0, 144, id="eager"),
        pytest.param(RebalanceProtocol.EAGER, 1, None, id="eager, overtaken"),
        pytest.param(RebalanceProtocol.COOPERATIVE, 1, 144, id="cooperative, overtaken"),
    ],
)
def test_an_eager_consumer_that_missed_a_generation_goes_on_at_the_commits(
    protocol: RebalanceProtocol, overtaken: int, position: int | None
) -> None:
    """Another member may have had its partitions in that generation, and have read on."""
    coordinator, orders = made(Overtaken), TopicPartition("orders", 0)
    coordinator._rebalance_protocol, coordinator.state = protocol, MemberState.STABLE
    coordinator.overtaken = overtaken
    subscription = coordinator._subscription
    subscription.subscribe(["orders"])
    subscription.assign_from_subscribed([orders])
    subscription.seek(orders, 144)
    joins.complete(coordinator)
    for _ in range(overtaken):
        with pytest.raises(RebalanceInProgressError):
            asyncio.run(coordinator._do_join_and_sync_async())
    assert asyncio.run(coordinator._do_join_and_sync_async()) == b"assignment"
    subscription.assign_from_subscribed([orders])
    found = subscription.position(orders)
    assert (found and found.offset) == position
    assert subscription.missing_fetch_positions() == ({orders} if position is None else set())
