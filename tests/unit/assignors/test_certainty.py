"""Until when a member's partitions are its own, and how soon it sends heartbeats."""

from __future__ import annotations

import math

import pytest

from kafka_assignors._assignors._membership.certainty import Certainty, sooner_than


def test_nothing_is_certain_before_the_coordinator_has_answered() -> None:
    assert Certainty(6.0, 300.0).until == -math.inf


def test_a_session_counts_from_when_the_request_was_sent() -> None:
    certainty = Certainty(6.0, 300.0)
    certainty.synced(100.0)
    certainty.confirm(100.0)
    assert certainty.until == 106.0
    certainty.confirm(99.0)  # an answer that comes late proves no less than before
    assert certainty.until == 106.0


def test_a_member_is_known_for_a_session_from_each_answer_also_while_it_is_waited_for() -> None:
    certainty = Certainty(6.0, 10.0)
    assert certainty.known_until == -math.inf
    certainty.synced(100.0)
    assert certainty.known_until == 106.0
    certainty.confirm(105.0, awaited=True)
    assert certainty.known_until == 111.0
    certainty.confirm(103.0)
    assert certainty.known_until == 111.0
    brief = Certainty(6.0, 4.0)  # it may be expelled for not having joined
    brief.synced(100.0)
    assert brief.known_until == 104.0


def test_each_heartbeat_of_a_member_that_is_not_waited_for_counts_however_long_ago_it_synced() -> None:
    certainty = Certainty(6.0, 10.0)
    certainty.confirm(99.0)  # without an assignment nobody knows for what the coordinator waits
    assert certainty.until == -math.inf
    certainty.synced(100.0)
    certainty.confirm(150.0)
    assert certainty.until == 156.0


def test_a_member_that_is_waited_for_is_expelled_by_the_rebalance_timeout_in_spite_of_heartbeats() -> None:
    certainty = Certainty(6.0, 10.0)
    certainty.synced(100.0)
    for sent in range(101, 120):
        certainty.confirm(float(sent), awaited=True)
    assert certainty.until == 110.0
    certainty.joined()
    certainty.confirm(120.0)  # its JoinGroup is there, and its SyncGroup may be waited for
    assert certainty.until == 110.0
    certainty.synced(121.0)
    certainty.confirm(122.0)
    assert certainty.until == 128.0


def test_a_member_that_has_synced_is_not_waited_for_before_the_next_rebalance() -> None:
    certainty = Certainty(6.0, 10.0)
    certainty.synced(100.0)
    for sent in (103.0, 106.0):
        certainty.confirm(sent, awaited=True)
    assert certainty.until == 110.0


@pytest.mark.parametrize(
    ("interval", "delays"),
    [(3.0, [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6]), (0.3, [0, 0.05, 0.1, 0.2]), (0.05, [0]), (0.01, [0])],
)
def test_heartbeats_after_a_rebalance_begin_at_once_and_come_ever_later_until_the_regular_ones_are_as_good(
    interval: float, delays: list[float]
) -> None:
    assert [*sooner_than(interval)] == pytest.approx(delays)
