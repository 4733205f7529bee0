"""The leader's warning before the group's record is too large for the coordinator."""

import pytest

from kafka_assignors import RangeAssignor
from kafka_assignors._assignors._adapter import RECORD_LIMIT
from kafka_assignors._assignors._messages import make_subscription
from tests.support.by_hand import cluster_of, joined


def members(user_data: int) -> list[object]:
    """Two members with so many bytes of user data each."""
    subscription = make_subscription(["t"], owned={}, generation=1, rack=None, user_data=bytes(user_data))
    return [joined("client-a", subscription), joined("client-b", subscription)]


def test_a_record_near_the_brokers_limit_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    RangeAssignor().assign(cluster_of({"t": [0, 1]}), members(RECORD_LIMIT // 3 + 100))
    (warning,) = caplog.messages
    assert warning.startswith("The group's record has about 699")
    assert "Raise max.message.bytes of __consumer_offsets" in warning


def test_a_record_with_room_to_spare_is_not(caplog: pytest.LogCaptureFixture) -> None:
    RangeAssignor().assign(cluster_of({"t": [0, 1]}), members(RECORD_LIMIT // 3 - 1000))
    assert not caplog.messages
