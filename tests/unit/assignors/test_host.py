"""What an assignor changes in its consumer: one method of the coordinator, and only the one that it knows."""

import gc
import weakref
from typing import Any

import pytest
from kafka.coordinator.consumer import ConsumerCoordinator

from kafka_assignors._assignors._host import KafkaPythonHost


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


def test_it_is_not_kept_alive_by_that() -> None:
    coordinator = object.__new__(ConsumerCoordinator)
    KafkaPythonHost(coordinator).show_members_first(lambda _: None)
    alive = weakref.ref(coordinator)
    gc.disable()
    try:
        del coordinator
        assert alive() is None
    finally:
        gc.enable()
