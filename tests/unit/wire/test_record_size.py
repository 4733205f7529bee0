"""The leader's warning before the group's record is too large for the coordinator."""

import logging

import pytest

from kafka_assignors import RangeAssignor
from kafka_assignors._assignors._adapter import RECORD_LIMIT
from kafka_assignors._assignors._messages import make_subscription, sizes_of, subscriptions
from tests.support.by_hand import cluster_of, joined


def members(user_data: int) -> list[object]:
    """Two members with so many bytes of user data each."""
    subscription = make_subscription(["t"], owned={}, generation=1, rack=None, user_data=bytes(user_data))
    return [joined("client-a", subscription), joined("client-b", subscription)]


@pytest.mark.parametrize(
    ("topics", "owned", "rack", "user_data"),
    [
        ([], {}, None, None),
        (["t", "topic-2"], {}, None, b"1234"),
        (["t"], {"t": [0, 1, 2], "other": [5]}, None, b""),
    ],
)
def test_the_size_of_a_subscription_is_told_from_what_is_in_it(
    topics: list[str], owned: dict[str, list[int]], rack: str | None, user_data: bytes | None
) -> None:
    subscription = make_subscription(topics, owned=owned, generation=3, rack=rack, user_data=user_data)
    (size,) = sizes_of(subscriptions([joined("m", subscription).metadata])).tolist()
    assert size == pytest.approx(len(subscription.encode()), abs=4)


def test_a_record_near_the_brokers_limit_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        RangeAssignor().assign(cluster_of({"t": [0, 1]}), members(RECORD_LIMIT // 3 + 100))
    (warning,) = caplog.messages
    assert warning.startswith("The group's record has about 699")
    assert "Raise max.message.bytes of __consumer_offsets" in warning


def test_a_record_with_room_to_spare_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        RangeAssignor().assign(cluster_of({"t": [0, 1]}), members(RECORD_LIMIT // 3 - 1000))
    assert not caplog.messages
