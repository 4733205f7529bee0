"""Consumer groups for a sample report: a day of simulated lives, and the same with other assignors.

Between what happens to a group, hours pass at once: a `Day` adds them to the simulator's time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kafka import TopicPartition

from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, RoundRobinAssignor, StickyAssignor
from kafka_assignors._groups.classic import classic_snapshot
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.reasons import Change, ReasonCounter, find_changes
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.saving import WhatIf
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._timelines.best import best_plan
from kafka_assignors.coordinator import MemberSettings, Simulation
from kafka_assignors.history._metrics import GroupSummary
from kafka_assignors.history._report.drawing import ReportedGroup, draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kafka_assignors._assignors import Assignor
    from kafka_assignors._wire.offsets_topic import GroupMetadataValue

MIDNIGHT: Final = datetime(2026, 11, 20, tzinfo=UTC)
ASSIGNORS: Final[Sequence[type[Assignor]]] = (
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    CooperativeStickyAssignor,
)
_STEP: Final = 0.05
_SETTLED: Final = 20.0


class Day:
    """A group's day: what is done to it, and the rebalances and records that follow.

    Args:
        group: The group.
        topics: Topic -> how many partitions.
        assignor: All its consumers' assignor.
        static: Whether its consumers are static members.
    """

    def __init__(
        self,
        group: str,
        topics: Mapping[str, int],
        assignor: Callable[[], Assignor],
        *,
        static: bool = False,
    ) -> None:
        self.group = group
        self.static = static
        self.rebalances: list[Rebalance] = []
        self.snapshots: list[Snapshot] = []
        self._values: list[GroupMetadataValue] = []
        self._later = 0.0
        self._simulation = Simulation(
            topics,
            [assignor],
            seed=len(group),
            member=MemberSettings(session_timeout_ms=10_000, poll_ms=4000),
        )
        self._partitions = {(topic, number) for topic, count in topics.items() for number in range(count)}
        self._hosts: dict[str, str] = {}

    def at(self, hours: float) -> None:
        """Let the time come, in hours since midnight; nothing if it is over."""
        self._simulation.run(_SETTLED)
        self._later = max(self._later, 3600 * hours - self._simulation.now)

    def join(self, *names: str) -> None:
        """Start consumers, all at the same time."""

        def start() -> None:
            for name in names:
                self._simulation.join(name, instance_id=name if self.static else None)

        self._settle(start)

    def restart(self, name: str, *, away: float = 5.0, crash: bool = False) -> None:
        """Stop a consumer, and start it again after some seconds."""
        current = self._current(name)
        old = self._simulation.members[current]
        session = old.settings.session_timeout_ms / 1000
        stop = old.crash if crash else old.leave
        if away >= session or not (crash or self.static):
            began = self._simulation.now
            self._settle(stop)
            self._simulation.run(max(away - (self._simulation.now - began), 0.0))
            stop = _nothing
        base, _, count = current.partition(".")

        def again() -> None:
            stop()
            if stop is not _nothing:
                self._simulation.run(away)
            self._simulation.join(f"{base}.{int(count or 1) + 1}", instance_id=old.instance_id)

        self._settle(again)

    def leave(self, name: str) -> None:
        """Stop a consumer for good; a static one is gone after its session timeout."""
        self._settle(self._simulation.members[self._current(name)].leave)

    def _current(self, name: str) -> str:
        return next(one for one in reversed(self._simulation.members) if one.partition(".")[0] == name)

    def _settle(self, action: Callable[[], object]) -> None:
        """Do something, and follow the group until it is stable; a rebalance if there was one."""
        simulation = self._simulation
        began, generation = simulation.now, simulation.group.generation
        before = self.snapshots[-1] if self.snapshots else None
        known = len(self._values)
        causes = len(simulation.group.causes)
        action()
        simulation.run(_STEP)
        while True:
            self._look()
            if simulation.group.state in {"Stable", "Empty"} and self._is_settled():
                break
            simulation.run(_STEP)
        if simulation.group.generation == generation:
            return
        caused = [cause.time_ms / 1000 for cause in simulation.group.causes[causes:]]
        self._add_rebalance(before, known, began, min(caused, default=began))

    def _is_settled(self) -> bool:
        running = [one for one in self._simulation.members.values() if one.running]
        ids = {one.member_id for one in running}
        return ids == {*self._simulation.group.member_ids} and all(one.stable for one in running)

    def _look(self) -> None:
        """Write a record if the group is another than in the last."""
        group = self._simulation.group
        if group.state not in {"Stable", "Empty"}:
            return
        value = group.record()
        newest = self._values[-1] if self._values else None
        ids = {member.member_id for member in value.members}
        if newest is not None and (newest.generation, {one.member_id for one in newest.members}) == (
            value.generation,
            ids,
        ):
            return
        members = tuple(
            replace(
                member,
                client_id=(name := member.client_id.partition(".")[0]),
                client_host=self._hosts.setdefault(name, f"/10.0.{len(self.group)}.{len(self._hosts) + 11}"),
            )
            for member in value.members
        )
        skipped_ms = round(1000 * (MIDNIGHT.timestamp() + self._later))
        value = replace(
            value, members=members, current_state_timestamp=value.current_state_timestamp + skipped_ms
        )
        time_us = round(1e6 * (MIDNIGHT.timestamp() + self._now))
        record = ArchivedRecord(b"", None, 0, len(self._values), time_us, 0)
        self._values.append(value)
        self.snapshots.append(classic_snapshot(record, self.group, value))

    @property
    def unowned_seconds(self) -> float:
        """Partition-seconds without an owner in all, also while a static consumer was away."""
        return sum(gap.seconds for gap in self._simulation.timeline.gaps())

    @property
    def _now(self) -> float:
        return self._simulation.now + self._later

    def _add_rebalance(self, before: Snapshot | None, known: int, began: float, caused: float) -> None:
        after = self.snapshots[-1]
        old = {} if before is None else before.owners
        moves = tuple(
            OwnerMove(
                topic=topic,
                partition=number,
                source=old.get((topic, number)),
                target=after.owners.get((topic, number)),
            )
            for topic, number in sorted(self._partitions)
            if old.get((topic, number)) != after.owners.get((topic, number))
        )
        identities = {one.identity for one in after.members}
        had = {one.identity for one in before.members} if before else set()
        loads = [len(one.assignment) for one in after.members]
        gaps = self._simulation.timeline.gaps()
        now = self._simulation.now
        changes = [
            change
            for first, second in zip(
                self.snapshots[max(known - 1, 0) :], self.snapshots[max(known, 1) :], strict=False
            )
            for change in find_changes(first, second)
        ] or [
            Change(
                kind="member joined",
                member=one.client_id + one.host,
                text=f"{one.client_id}{one.host} joined",
            )
            for one in after.members
        ]
        self.rebalances.append(
            Rebalance(
                group=self.group,
                first_generation=self.snapshots[known].generation,
                generation=after.generation,
                began=MIDNIGHT + timedelta(seconds=caused + self._later),
                ended=MIDNIGHT + timedelta(seconds=now + self._later),
                seconds=now - caused,
                strategy=after.strategy,
                reasons=tuple(changes),
                members=len(after.members),
                joined=len(identities - had),
                gone=len(had - identities),
                returned=0,
                partitions=len(self._partitions),
                moved=sum(move.source is not None and move.target is not None for move in moves),
                least_moved=self._least_moved(before, after),
                imbalance=max(loads, default=0) - min(loads, default=0),
                best_imbalance=None,
                unowned_seconds=sum(gap.seconds for gap in gaps if gap.start >= began),
                moves=moves,
            )
        )

    def _least_moved(self, before: Snapshot | None, after: Snapshot) -> int:
        if before is None or not after.members:
            return 0
        plan = best_plan(
            [TopicPartition(*one) for one in self._partitions],
            {one.identity: one.topics for one in after.members},
            {
                one.identity: frozenset(TopicPartition(*each) for each in one.assignment)
                for one in before.members
            },
        )
        return sum(
            (owner := before.owners.get((topic, number))) is not None and owner != member
            for member, given in plan.assignments().items()
            for topic, numbers in given.items()
            for number in numbers
        )


def _nothing() -> None:
    pass


Script = tuple[str, dict[str, int], type, bool, "Callable[[Day], None]"]


def _billing(day: Day) -> None:
    names = [f"billing-{number}" for number in range(1, 7)]
    day.at(0.2)
    day.join(*names)
    for hour in (6.1, 13.4, 20.7):
        day.at(hour)
        for name in names:
            day.restart(name, away=6)
    for hour in (9.2, 15.8):
        day.at(hour)
        day.restart("billing-4", crash=True, away=12)


def _fraud(day: Day) -> None:
    names = [f"scorer-{number}" for number in range(1, 9)]
    day.at(0.5)
    day.join(*names)
    for hour, name in enumerate(("scorer-9", "scorer-10", "scorer-11", "scorer-12"), 7):
        day.at(hour + 0.3)
        day.join(name)
    day.at(14.1)
    day.restart("scorer-3", crash=True, away=30)
    for hour, name in enumerate(("scorer-9", "scorer-12", "scorer-11", "scorer-10"), 18):
        day.at(hour + 0.2)
        day.leave(name)


def _mail(day: Day) -> None:
    day.at(1)
    day.join("mail-1", "mail-2", "mail-3")
    draws = Random(5)
    hour = 3.0
    while hour < 22:  # noqa: PLR2004 - two hours before midnight
        day.at(hour)
        day.restart("mail-2", crash=True, away=15)
        hour += draws.choice((0.2, 0.25, 0.3, 2.5, 3.5))


def _search(day: Day) -> None:
    day.at(2)
    day.join("indexer-1", "indexer-2", "indexer-3", "indexer-4")
    day.at(11)
    for name in ("indexer-1", "indexer-2", "indexer-3", "indexer-4"):
        day.restart(name, away=4)
    day.at(16)
    day.join("indexer-5")


def _audit(day: Day) -> None:
    day.at(0.1)
    day.join("audit-1", "audit-2")


SCRIPTS: Final[Sequence[Script]] = (
    ("orders-billing", {"orders": 12}, RangeAssignor, False, _billing),
    ("fraud-scoring", {"payments": 48, "refunds": 16}, RoundRobinAssignor, False, _fraud),
    ("mail-sender", {"mails": 9}, StickyAssignor, False, _mail),
    ("search-indexer", {"products": 8, "prices": 8}, CooperativeStickyAssignor, True, _search),
    ("audit-archive", {"audit": 4}, RangeAssignor, False, _audit),
)
"""Group, topics, assignor, whether static, and what happens to it."""


@cache
def sample_report() -> list[ReportedGroup]:
    """A day of five groups, and what other assignors and static membership would have made of it."""
    groups = []
    for group, topics, assignor, static, script in SCRIPTS:
        day = _lived(group, topics, assignor, script, static=static)
        what_if = [_what_if(day, "actual", "as it was")]
        for other in ASSIGNORS:
            for scenario in ("as it was", "static members"):
                lived = _lived(
                    group,
                    topics,
                    other,
                    script,
                    static=static or scenario == "static members",
                )
                if (other, scenario) != (assignor, "as it was"):
                    what_if.append(_what_if(lived, other.name, scenario))
        groups.append(
            ReportedGroup(
                summary=summary_of(group, day.rebalances, day.snapshots),
                what_if=what_if,
                drawing=draw(day.rebalances, day.snapshots),
            )
        )
    return groups


def _lived(
    group: str,
    topics: Mapping[str, int],
    assignor: Callable[[], Assignor],
    script: Callable[[Day], None],
    **settings: Any,
) -> Day:
    day = Day(group, topics, assignor, **settings)
    script(day)
    return day


def summary_of(group: str, rebalances: Sequence[Rebalance], snapshots: Iterable[Snapshot]) -> GroupSummary:
    """A group's row, of a day."""
    reasons = ReasonCounter()
    for one in rebalances:
        reasons.add(one.reasons, one.ended)
    comings = Counter(
        reason.member.partition("/")[0]
        for one in rebalances
        for reason in one.reasons
        if reason.kind == "member joined"
    )
    seen = {member.identity for snapshot in snapshots for member in snapshot.members}
    return GroupSummary(
        group=group,
        since=MIDNIGHT,
        until=MIDNIGHT + timedelta(days=1),
        rebalances=len(rebalances),
        per_day=float(len(rebalances)),
        moved=sum(one.moved for one in rebalances),
        least_moved=sum(one.least_moved or 0 for one in rebalances),
        needless=sum(one.needless for one in rebalances),
        unowned_seconds=sum(one.unowned_seconds for one in rebalances),
        longest_seconds=max((one.seconds for one in rebalances), default=0.0),
        members=rebalances[-1].members if rebalances else 0,
        seen_members=len(seen),
        flapping=[name for name, often in comings.items() if often > 10],  # noqa: PLR2004 - of that day
        returned=0,
        reasons=dict(reasons.kinds),
    )


def _what_if(day: Day, assignor: str, scenario: str) -> WhatIf:
    return WhatIf(
        group=day.group,
        assignor=assignor,
        scenario=scenario,
        rebalances=len(day.rebalances),
        moved=sum(one.moved for one in day.rebalances),
        imbalance=sum(one.imbalance for one in day.rebalances) / max(len(day.rebalances), 1),
        worst_imbalance=max((one.imbalance for one in day.rebalances), default=0),
        failed=0,
    )
