"""For how long a leader lets a higher priority wait, by a clock that is turned by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import CooperativeStickyAssignor, Group, Member
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._assignors._membership.standbys import Standbys
from kafka_assignors._common.words import by_topic
from kafka_assignors._model.claims import Extra
from kafka_assignors._wire.user_data import encode_generation
from tests.support.by_hand import HandHost, Led
from tests.support.wire import partition_list, subscription


@dataclass
class Rounds(Led):
    """A group whose members have `t`, and revoke what they are not given."""

    assignor: Any = field(default_factory=lambda: CooperativeStickyAssignor(return_after=60))
    topics: Mapping[str, range] = field(default_factory=lambda: {"t": range(4)})
    owned: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def __call__(self, now: float, *members: str, skipped: int = 0) -> dict[str, list[int]]:
        """Lead a round at a moment; a member's name begins with its priority, and a static one's with "i"."""
        before = self.host.generation or -1  # there is no generation 0
        self.host.seconds = now
        self.owned = {name: self.owned.get(name, {}) for name in members}
        said = [
            (
                name,
                name.lstrip("0123456789-") if "i" in name else None,
                subscription(
                    3,
                    [*self.topics],
                    owned=partition_list([*self.owned[name].items()]),
                    generation=before if self.owned[name] else -1,
                    user_data=encode_generation(before, 1, Extra(int(name.rstrip("abcdefghi")))),
                ),
            )
            for name in members
        ]
        self.lead(self.host.generation + 1 + skipped, self.topics, said)
        self.owned = {name: by_topic(raw.partitions()) for name, raw in self.raw.items()}
        return {
            name: sorted(number for ids in had.values() for number in ids) for name, had in self.owned.items()
        }

    @property
    def later(self) -> list[float]:
        return [seconds for seconds, _ in self.host.later]


@pytest.fixture
def led() -> Rounds:
    return Rounds()


ALL = [0, 1, 2, 3]


def test_a_member_waits_from_when_the_leader_saw_it_first_and_then_takes_over(led: Rounds) -> None:
    assert led(100, "0a") == {"0a": ALL}
    assert led(110, "0a", "1b") == {"0a": ALL, "1b": []}
    assert led.later == [60]
    assert led(150, "0a", "0c", "1b") == {"0a": [0, 1], "0c": [], "1b": []}
    assert led.later[0] == 20
    rejoins = led.host.rejoins
    led.host.later[1:] = []
    led.wait()
    assert led.host.rejoins == rejoins + 1
    assert led(170, "0a", "0c", "1b") == {"0a": [], "0c": [], "1b": [2, 3]}
    assert led(171, "0a", "0c", "1b") == {"0a": [], "0c": [], "1b": ALL}
    assert led.later == []


def test_one_that_was_away_for_a_generation_waits_from_the_beginning(led: Rounds) -> None:
    led(0, "0a")
    led(10, "0a", "1b")
    led(30, "0a")
    assert led(65, "0a", "1b") == {"0a": ALL, "1b": []}
    assert led.later == [60]


def test_of_generations_that_another_led_a_leader_knows_nothing(led: Rounds) -> None:
    led(0, "0a")
    led(10, "0a", "1b")
    assert led(75, "0a", "1b", skipped=1) == {"0a": ALL, "1b": []}
    assert led.later == [60]


def test_with_nobody_active_the_highest_priority_begins_at_once(led: Rounds) -> None:
    assert led(0, "0a", "1b", "2c") == {"0a": [], "1b": [], "2c": ALL}
    assert led.later == []
    assert led(1, "0a", "1b") == {"0a": [], "1b": ALL}
    assert led.later == []


def test_a_topic_without_an_owner_goes_to_the_active_too(led: Rounds) -> None:
    led(0, "0a")
    led(10, "0a", "1b")
    led.topics = {"t": range(4), "u": range(2)}
    led(20, "0a", "1b")
    assert led.owned == {"0a": {"t": ALL, "u": [0, 1]}, "1b": {}}
    members = [Member(member_id=name, topics=frozenset("tu"), priority=name == "b") for name in "ab"]
    other = Member(member_id="c", topics=frozenset("t"), claims={"t": [0]})
    settled = Standbys().settle(Group.of({"t": [0], "u": [0]}, [*members, other]), HandHost(), 60)
    assert settled.subscribers == ((0, 2), (0,))


def test_a_rebalance_that_others_begin_counts_the_wait_on_and_cancels_the_timer(led: Rounds) -> None:
    led(0, "0a")
    led(10, "0a", "1b")
    led.host.generation += 1  # it has joined again, and leads no more
    rejoins = led.host.rejoins
    led.wait()
    assert led.host.rejoins == rejoins


@pytest.mark.parametrize(
    ("note", "later"),
    [
        (b"waits" + bytes([0, 0, 0, 30]), [30 + 16]),
        (b"waits" + bytes([255, 0, 0, 0]), [0]),
        (b"waits", []),
        (b"waits" + bytes([0, 0, 0, 30]) + b"more", [30 + 16]),
        (b"other" + bytes([0, 0, 0, 30]), []),
        (None, []),
    ],
)
def test_a_member_goes_by_a_note_that_it_can_read_and_leaves_time_to_the_leader(
    note: bytes | None, later: list[float]
) -> None:
    follower = Rounds()
    follower.host.generation = 3
    with calls(follower.host):
        follower.assignor.metadata({"t"})
        follower.assignor.on_assignment(ConsumerProtocolAssignment(1, [], note), 3)
    assert follower.later == later
