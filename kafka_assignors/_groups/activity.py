"""How restless a group was: its rebalances counted, and its members that come and go."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.times import moment
from kafka_assignors._groups.reasons import ReasonCounter
from kafka_assignors._groups.rebalances import Rebalance, Span, SpanFinder, rebalance_of
from kafka_assignors._groups.snapshots import Snapshot
from kafka_assignors._groups.topics import TopicsSeen

FLAPPING_TIMES: Final = 3
"""So often a member comes and goes within `FLAPPING_US` to be called flapping."""
FLAPPING_US: Final = 3_600_000_000
"""An hour."""

_DAY_US: Final = 86_400_000_000


class MemberTraffic(NamedTuple):
    """Members of one name, an instance id or a client id, that came and went.

    A static member that came back counts as both. `here` is how many there were then, or before if those were
    more.
    """

    time_us: int
    name: str
    came: int
    went: int
    here: int


@dataclass(slots=True, kw_only=True)
class Activity:
    """What a group was like, from its first record to its last.

    `members` were there at the end, `seen` at any time. `returned` is how many static members came back
    without a rebalance. `least_moved` is the fewest moves that reach the best balance, where that is known.
    `longest_seconds` is of one rebalance.
    """

    since_us: int
    until_us: int
    members: int = 0
    seen: set[str] = field(default_factory=set)
    returned: int = 0
    traffic: list[MemberTraffic] = field(default_factory=list)
    rebalances: int = 0
    moved: int = 0
    least_moved: int = 0
    needless: int = 0
    unowned_seconds: float = 0.0
    longest_seconds: float = 0.0
    reasons: ReasonCounter = field(default_factory=ReasonCounter)

    def add(self, last: Snapshot | None, snapshot: Snapshot) -> None:
        self.until_us = snapshot.time_us
        self.members = len(snapshot.members)
        self.seen.update(snapshot.by_identity)
        if last is not None:
            self.traffic += _traffic(last, snapshot)

    def count(self, rebalance: Rebalance) -> None:
        """Take a rebalance; of a quiet one only who came back and the time without owners count."""
        self.unowned_seconds += rebalance.unowned_seconds
        if rebalance.quiet:
            self.returned += rebalance.returned
            return
        self.reasons.add(rebalance.reasons, rebalance.ended)
        self.rebalances += 1
        self.moved += rebalance.moved
        self.least_moved += rebalance.least_moved or 0
        self.needless += rebalance.needless
        self.longest_seconds = max(self.longest_seconds, rebalance.seconds)

    @property
    def per_day(self) -> float | None:
        """Rebalances a day; None of a history of less than a day."""
        days = (self.until_us - self.since_us) / _DAY_US
        return self.rebalances / days if days >= 1 else None

    @property
    def flapping(self) -> list[str]:
        """Names of members that came and went three times within an hour.

        If several members share a client id, as often for each of the most that there were at once.
        """
        named: dict[str, list[MemberTraffic]] = {}
        for one in self.traffic:
            named.setdefault(one.name, []).append(one)
        return sorted(name for name, traffic in named.items() if _flaps(traffic))

    def row(self, group: str) -> dict[str, Any]:
        return {
            **fields_of(self, "per_day", "flapping", without=("since_us", "until_us", "seen", "traffic")),
            "group": group,
            "since": moment(self.since_us),
            "until": moment(self.until_us),
            "seen_members": len(self.seen),
            "reasons": sorted(self.reasons.kinds.items()),
        }


class GroupFollower:
    """Follows a group: its rebalances, and how restless it was.

    Of topics that were not seen only those partitions count that have an owner before or after. Rebalances
    have their moves only if these are wanted.
    """

    def __init__(self, topics: TopicsSeen, *, moves: bool = True) -> None:
        self.activity: Activity | None = None
        self._topics = topics
        self._moves = moves
        self._spans = SpanFinder()
        self._last: Snapshot | None = None

    def add(self, snapshot: Snapshot) -> list[Rebalance]:
        """Take the next snapshot; gives the rebalances that are over with it, quiet ones among them."""
        if self.activity is None:
            self.activity = Activity(since_us=snapshot.time_us, until_us=snapshot.time_us)
        self.activity.add(self._last, snapshot)
        self._last = snapshot
        return self._counted(self.activity, self._spans.add(snapshot))

    def finish(self) -> list[Rebalance]:
        """What is left of a rebalance that did not come to its end."""
        return [] if self.activity is None else self._counted(self.activity, self._spans.finish())

    def _counted(self, activity: Activity, spans: Iterable[Span]) -> list[Rebalance]:
        found = [rebalance_of(span, self._topics, moves=self._moves) for span in spans]
        for one in found:
            activity.count(one)
        return found


def _traffic(last: Snapshot, snapshot: Snapshot) -> Iterator[MemberTraffic]:
    old, new = last.by_member_id, snapshot.by_member_id
    if old.keys() == new.keys():
        return
    came = Counter(new[one].instance_id or new[one].client_id for one in new.keys() - old.keys())
    went = Counter(old[one].instance_id or old[one].client_id for one in old.keys() - new.keys())
    before, after = Counter(last.names), Counter(snapshot.names)
    for name in sorted({*came, *went}):
        yield MemberTraffic(snapshot.time_us, name, came[name], went[name], max(before[name], after[name]))


def _flaps(traffic: list[MemberTraffic]) -> bool:
    wanted = FLAPPING_TIMES * max(one.here for one in traffic)
    came = went = first = 0
    for one in traffic:
        came, went = came + one.came, went + one.went
        while one.time_us - traffic[first].time_us > FLAPPING_US:
            came, went = came - traffic[first].came, went - traffic[first].went
            first += 1
        if min(came, went) >= wanted:
            return True
    return False
