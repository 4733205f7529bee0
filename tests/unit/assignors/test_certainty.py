"""Until when a member's partitions are its own, and how soon it sends heartbeats."""

import math

import pytest

from kafka_assignors._assignors._membership.certainty import Certainty, sooner_than

NEVER = -math.inf
SYNC, KNOWN, WAITED, JOIN = "sync", "known", "waited for", "join"
"""What was answered: SyncGroup; a heartbeat, with no error or with one that a rebalance is on; JoinGroup."""


@pytest.mark.parametrize(
    ("answers", "until", "known_until"),
    [
        pytest.param([], NEVER, NEVER, id="none"),
        pytest.param([(SYNC, 100)], NEVER, 106, id="its assignment"),
        pytest.param([(SYNC, 100), (KNOWN, 100)], 106, 106, id="a heartbeat"),
        pytest.param([(SYNC, 100), (KNOWN, 100), (KNOWN, 99)], 106, 106, id="one that comes late"),
        pytest.param([(KNOWN, 99)], NEVER, 105, id="without an assignment"),
        pytest.param([(SYNC, 100), (KNOWN, 150)], 156, 156, id="long ago it synced"),
        pytest.param([(SYNC, 100), (WAITED, 105), (KNOWN, 103)], 110, 111, id="also while waited for"),
        pytest.param([(SYNC, 100), (WAITED, 103), (WAITED, 106)], 110, 112, id="waited for until expelled"),
        # Its JoinGroup is there, and its SyncGroup may be waited for.
        pytest.param([(SYNC, 100), (WAITED, 119), (JOIN, 0), (KNOWN, 120)], 110, 126, id="it joined"),
        pytest.param([(SYNC, 100), (JOIN, 0), (SYNC, 121), (KNOWN, 122)], 128, 128, id="it synced again"),
    ],
)
def test_partitions_are_its_own_for_a_session_from_when_a_request_was_sent_while_nobody_waits_for_it(
    answers: list[tuple[str, float]], until: float, known_until: float
) -> None:
    certainty = Certainty(6.0, 10.0)
    for answer, sent in answers:
        if answer == JOIN:
            certainty.joined()
        elif answer == SYNC:
            certainty.synced(sent)
        else:
            certainty.confirm(sent, awaited=answer == WAITED)
    assert (certainty.until, certainty.known_until) == (until, known_until)


def test_a_member_that_may_be_expelled_for_not_having_joined_is_known_for_no_longer() -> None:
    certainty = Certainty(6.0, 4.0)
    certainty.synced(100.0)
    assert certainty.known_until == 104.0


@pytest.mark.parametrize(
    ("interval", "delays"),
    [(3.0, [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6]), (0.3, [0, 0.05, 0.1, 0.2]), (0.05, [0]), (0.01, [0])],
)
def test_heartbeats_after_a_rebalance_begin_at_once_and_come_ever_later_until_the_regular_ones_are_as_good(
    interval: float, delays: list[float]
) -> None:
    assert [*sooner_than(interval)] == pytest.approx(delays)
