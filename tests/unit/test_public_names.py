"""What the packages say they offer."""

import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "kafka_assignors",
        "kafka_assignors.coordinator",
        "kafka_assignors.history",
        "kafka_assignors.placement",
        "kafka_assignors._wire.offsets_topic",
        "kafka_assignors.testing",
    ],
)
def test_public_names_are_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__all__ == sorted(module.__all__)
    assert [public for public in module.__all__ if not hasattr(module, public)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'kafka_assignors.testing' has no attribute 'nonsense'"):
        importlib.import_module("kafka_assignors.testing").nonsense  # noqa: B018 - to look it up is the test
