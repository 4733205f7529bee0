"""Strategies for aiokafka: what is refused, and what is not aiokafka's way."""

import pytest
from kafka.errors import KafkaConfigurationError

from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors.aio import strategies


def test_strategies_are_made_of_classes_and_instances_in_their_order() -> None:
    weighted = StickyAssignor(weight=3)
    made = strategies(CooperativeStickyAssignor, weighted, RangeAssignor)
    assert [one.name for one in made] == ["cooperative-sticky", "sticky", "range"]
    assert made[1].assignor is weighted
    assert repr(made[1]) == "<StickyAssignor for aiokafka>"


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"two assignors of one name \(sticky\)"):
        strategies(StickyAssignor, RangeAssignor, StickyAssignor(rack="a"))


def test_what_is_no_assignor_is_refused() -> None:
    with pytest.raises(TypeError, match="takes assignors of kafka_assignors, not 'range'"):
        strategies("range")  # type: ignore[arg-type]


def test_strategies_are_for_aiokafkas_consumer_only() -> None:
    (one,) = strategies(RangeAssignor)
    with pytest.raises(RuntimeError, match="called by aiokafka's consumer only"):
        one.metadata({"t"})
    with pytest.raises(RuntimeError, match=r"see kafka_assignors\.lead"):
        one.assign(None, {})
