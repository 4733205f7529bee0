"""The course of a group: its rebalances one after the other, who was in it then, and how long each took.

What a rebalance is, `SpanFinder` says, for all commands; what happened in it, `_groups` counts. What is
replayed is who was in the group, not what its assignor made of it. So a rebalance of a classic group has a
step for each membership, and one of KIP-848 one step: what it came to. The first step is no rebalance: it
only says who was there when the history begins.

If a clock was set back, times continue from where they were: how long it was until then is unknown, and
counts as no time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_assignors._groups import reasons
from kafka_assignors._groups.best import find_wanted
from kafka_assignors._groups.moved import count_moved, owners_that_differ
from kafka_assignors._groups.rebalances import Span, SpanFinder
from kafka_assignors._groups.snapshots import KIP848, Partitions, Snapshot, SnapshotMember, make_member
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history._what_if.commits import Commits

_CLAIMS: Final = SnapshotMember._fields.index("claims")
_NO_CLAIMS: Final[Mapping[str, tuple[int, ...]]] = {}


def bare(member: SnapshotMember, assignment: Partitions = frozenset()) -> SnapshotMember:
    """The member without its claims, and with another assignment."""
    # By position, in a third of the time: of each snapshot one is made of each member.
    return make_member((*member[:_CLAIMS], _NO_CLAIMS, assignment, *member[_CLAIMS + 2 :]))


class CourseStep(NamedTuple):
    """A membership of a rebalance, or where the history begins; times are on a clock that is never set back.

    Steps of one rebalance have its number; 0 is where the history begins, or the group is otherwise than it
    was left. Members are without what they had. All had joined at `began_us`, and a hand-over to the same
    members was over at `ended_us`.
    """

    rebalance: int
    members: tuple[SnapshotMember, ...]
    partitions: Partitions
    began_us: int
    ended_us: int

    def has_members_of(self, other: "CourseStep") -> bool:
        """Whether the same members subscribe to the same topics."""
        return self.members == other.members or [_subscriber(one) for one in self.members] == [
            _subscriber(one) for one in other.members
        ]


def _subscriber(member: SnapshotMember) -> tuple[str, frozenset[str], str | None]:
    return member.identity, member.topics, member.rack


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRebalance:
    """What came of one rebalance, in what happened or in a replay.

    It has failed if the assignor raised, or left partitions out. Of what happened it has what each member was
    `assigned`, if there are commits.
    """

    ended_us: int
    members: int
    moved: int
    imbalance: int
    failed: bool
    assigned: tuple[Partitions, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A group's rebalances in order, as they are replayed, and as they were (`happened`).

    There are no steps if no assignor of consumers could assign the group, or nobody was ever in it. If all
    partitions had an owner at first, it `began_well`. Dynamic members that came back with what they had are
    `lost`. `avoided` is when rebalances ended that a scenario leaves out.
    """

    group: str
    steps: tuple[CourseStep, ...]
    happened: tuple[CountedRebalance, ...] = ()
    began_well: bool = True
    until_us: int = 0
    lost: frozenset[str] = frozenset()
    avoided: tuple[int, ...] = ()
    commits: Commits = field(default_factory=Commits)


class CourseBuilder:
    """Takes a group's snapshots in their order, and makes its course; `commits` takes its commits."""

    def __init__(self, group: str, topics: TopicsSeen) -> None:
        self.commits = Commits()
        self._group = group
        self._topics = topics
        self._spans = SpanFinder(reasons=False)
        self._last: Snapshot | None = None
        self._steps: list[CourseStep] = []
        self._open: list[CourseStep] = []  # of the rebalance that may yet go on
        self._happened: list[CountedRebalance] = []
        self._began_well = True
        self._assignable = True
        self._behind_us = 0  # what clocks were set back by
        self._members: dict[str, SnapshotMember] = {}
        self._partitions: Partitions = frozenset()
        self._gone: dict[tuple[str, str], SnapshotMember] = {}  # the last of each client id and host
        self._lost: set[str] = set()

    def add(self, snapshot: Snapshot) -> None:
        """Take a snapshot. The course is empty if no assignor of consumers could assign any of them."""
        self._assignable &= snapshot.assignable
        if not self._assignable:
            return
        step = self._step(snapshot)
        self._note_lost(self._last or snapshot, snapshot)
        self._last = snapshot
        if not self._steps:
            nothing = Snapshot(group=self._group, generation=0, time_us=0)
            there = self._existing(nothing, snapshot)
            self._began_well = there <= snapshot.owned
            self._steps.append(step._replace(partitions=there))
        ended = False
        for span in self._spans.add(snapshot):
            if span.end is snapshot:
                ended = True
                self._open.append(step)
            self._end(span)
        if self._spans.is_open:
            self._open.append(step)
        elif not ended and not self._steps[-1].has_members_of(step):
            self._steps.append(step._replace(partitions=self._existing(snapshot, snapshot)))

    def build(self) -> Course:
        """Make the course of the snapshots; no more can be taken then."""
        for span in self._spans.finish():
            self._end(span)
        if not self._assignable or not any(step.members for step in self._steps):
            return Course(group=self._group, steps=(), commits=self.commits)
        return Course(
            group=self._group,
            steps=tuple(self._steps),
            happened=tuple(self._happened),
            began_well=self._began_well,
            until_us=0 if self._last is None else self._last.time_us + self._behind_us,
            lost=frozenset(self._lost),
            commits=self.commits,
        )

    def _note_lost(self, last: Snapshot, snapshot: Snapshot) -> None:
        """Note members that came back with what they had: as processes they are the same."""
        old, new = last.by_member_id, snapshot.by_member_id
        if old.keys() == new.keys():
            return
        self._gone |= {
            (one.client_id, one.host): bare(one, one.assignment)  # what it claims are a batch's columns
            for who, one in old.items()
            if who not in new
        }
        for who, member in new.items():
            gone = None if who in old else self._gone.get((member.client_id, member.host))
            if gone is not None and reasons.remembers(member, gone):
                self._lost.add(gone.identity)

    def _step(self, snapshot: Snapshot) -> CourseStep:
        last = self._last or snapshot
        self._behind_us += max(0, last.time_us - snapshot.time_us)
        self.commits.behind_us = self._behind_us
        return CourseStep(
            rebalance=0,
            members=tuple([self._bare(member) for member in snapshot.members]),
            partitions=frozenset(),
            began_us=reasons.began_us(last, snapshot) + self._behind_us,
            ended_us=snapshot.time_us + self._behind_us,
        )

    def _bare(self, member: SnapshotMember) -> SnapshotMember:
        """The member without what it has, as the same object for as long as it stays the same."""
        made = bare(member)
        known = self._members.get(member.member_id)
        if known != made:
            known = self._members[member.member_id] = made
        return known

    def _existing(self, before: Snapshot, end: Snapshot) -> Partitions:
        """The partitions that there are after a rebalance: those that there were, and what came since."""
        found = find_wanted(before, end, self._topics)
        # Members subscribe to it, somebody had some of it, and nobody has now.
        deleted = (end.topics & before.owned_topics) - end.owned_topics
        if deleted or not found <= self._partitions:
            self._partitions = frozenset(found).union(
                one for one in self._partitions if one[0] not in deleted
            )
        return self._partitions

    def _end(self, span: Span) -> None:
        """Make steps of the memberships of a rebalance, and count it."""
        opened, self._open = self._open, []
        if span.quiet:
            return
        number, there = len(self._happened) + 1, self._existing(span.before, span.end)
        modern = KIP848 in (span.before.protocol_type, span.end.protocol_type)
        steps: list[CourseStep] = []
        for one in opened:
            step = one._replace(rebalance=number, partitions=there)
            if steps and modern:
                steps[-1] = step._replace(began_us=steps[-1].began_us)
            elif steps and steps[-1].has_members_of(step):
                steps[-1] = steps[-1]._replace(ended_us=step.ended_us)
            else:
                steps.append(step)
        self._steps += steps
        missing = {one for one in there - span.end.owned if one[0] in span.end.topics}
        loads = [len(member.assignment) for member in span.end.members]
        self._happened.append(
            CountedRebalance(
                ended_us=steps[-1].ended_us,
                members=len(loads),
                moved=count_moved(*owners_that_differ(span.before, span.end)),
                imbalance=max(loads, default=0) - min(loads, default=0),
                # What is on its way to another member, and was overtaken by the next change, is no failure.
                failed=not missing <= span.end.given_up,
                assigned=tuple([one.assignment for one in span.end.members]) if self.commits else (),
            )
        )
