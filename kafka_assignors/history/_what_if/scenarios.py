"""A course as it would have been if members were static.

A scenario is named `as it was` or `static members`.

*Who is the same.* A static member goes by its instance id. With `static members` each member gets one. It is
its client id, if members of that client id were never in the group together. Else it is client id and host,
if that is so of these. Else the member stays as it was. A member that was lost and is replaced is still in
the group until its session is over. So one that leaves within its own session timeout after the other came
does not count as together with it.

*When a member went.* Records show when a group rebalanced without a member, not why. A static member does not
leave when it stops, so it went its session timeout earlier. Of others the time is not known, and taken to be
when the rebalance began.

*What comes of it.* The timeout is the member's own. Of members without one, as those of KIP-848, it is the
brokers' default of 45 s.

- A static member that is back before the timeout is over was never gone: no rebalance.
- One that is not: the rebalance comes when the timeout is over, and takes as long as the one that it stands
  for.
- A rebalance is left out if it only was about such members. What had another cause (a changed subscription,
  new partitions) stays.
- As long as a member is away and the group does not know, its partitions have no owner. That is the price of
  static members; it is counted as well for static members in what happened.

What is not seen in records cannot be replayed: absences that were over before the session was. Nor can it be
that a classic group which rebalances while a static member is away waits for it, up to its rebalance timeout.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors._groups import saving

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors.history._what_if.course import Course, CourseStep, Participant

_STATIC: Final = "static members"
_DEFAULT_SESSION_MS: Final = 45_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What shall be otherwise.

    Attributes:
        static: Whether all members that can be distinguished are static members.
    """

    static: bool = False

    @classmethod
    def of(cls, name: str) -> Scenario:
        """The scenario of a name.

        Raises:
            ValueError: There is none of this name.
        """
        text = name.strip()
        if text not in {saving.AS_IT_WAS, _STATIC}:
            raise ValueError(f"there is no scenario {name!r}; choose {saving.AS_IT_WAS!r} or {_STATIC!r}")
        return cls(static=text == _STATIC)

    @property
    def name(self) -> str:
        """Its name."""
        return _STATIC if self.static else saving.AS_IT_WAS

    def apply(self, course: Course) -> Course:
        """The course as it would have been; as it was, with the absences of static members."""
        return _Retold(course, self).course()


AS_IT_WAS: Final = Scenario()
"""What happened."""


class _Stay(NamedTuple):
    """From when to when a member is in the group, as the group knows it; microseconds."""

    start: int
    end: int | None


class _Away(NamedTuple):
    """From when to when a member is away without the group knowing; microseconds."""

    start: int
    end: int


class _Retold:
    """A course on the way to another."""

    def __init__(self, course: Course, scenario: Scenario) -> None:
        self._told = course
        self._scenario = scenario
        self._times: list[int] = []
        for step in course.steps:
            # A member that came with one step and went with the next must have come before it went, even if
            # both are of one moment.
            self._times.append(max([step.began_us, *(time + 1 for time in self._times[-1:])]))
        self._names = _client_names(course, self._times) if scenario.static else {}
        name_of = self._names.get
        self._named = [
            [name_of(member.identity, member.identity) for member in step.members] for step in course.steps
        ]

    def course(self) -> Course:
        """The other course."""
        stays, aways, late = self._stays()
        steps = self._steps(stays, late)
        # Owners are told by the numbers of these: who was there only amid a rebalance keeps his.
        identities = tuple(dict.fromkeys((*self._told.identities, *stays)))
        numbers = {identity: number for number, identity in enumerate(identities)}
        away = _by_step(steps, aways, self._told.until_us)
        with_away = [
            replace(step, away=tuple((numbers[identity], seconds) for identity, seconds in away[place]))
            for place, step in enumerate(steps)
        ]
        return replace(
            self._told,
            identities=identities,
            steps=tuple(with_away),
            away=tuple((numbers[identity], seconds) for identity, seconds in away[len(steps)]),
        )

    def _stays(self) -> tuple[dict[str, list[_Stay]], dict[str, list[_Away]], dict[int, CourseStep]]:
        """When each member is in the group, and when it is away; rebalances at times that had none."""
        last: dict[str, Participant] = {}
        stays: dict[str, list[_Stay]] = {}
        aways: dict[str, list[_Away]] = {}
        late: dict[int, CourseStep] = {}
        found = _stays_of(self._named, self._times)
        for names, step in zip(self._named, self._told.steps, strict=True):
            last.update(zip(names, step.members, strict=True))
        step_at = dict(zip(self._times, self._told.steps, strict=True))
        for name, was in found.items():
            stays[name], aways[name] = [], []
            start = None
            for stay, following in zip(was, [*was[1:], None], strict=True):
                start = stay.start if start is None else start
                if stay.end is None or not self._is_static(last[name]):
                    stays[name].append(_Stay(start, stay.end))
                    start = None
                    continue
                went, noticed = _noticed(last[name], stay, stay.end)
                if following is not None and following.start < noticed:
                    aways[name].append(_Away(went, following.start))
                    continue
                stays[name].append(_Stay(start, noticed))
                aways[name].append(_Away(went, noticed))
                start = None
                if noticed not in step_at and noticed <= self._told.until_us:
                    late[noticed] = step_at[stay.end]
        return stays, aways, late

    def _is_static(self, member: Participant) -> bool:
        return member.instance_id is not None or member.identity in self._names

    def _steps(self, stays: Mapping[str, list[_Stay]], late: Mapping[int, CourseStep]) -> list[CourseStep]:
        events = [
            (time, 0, step, names)
            for time, step, names in zip(self._times, self._told.steps, self._named, strict=True)
        ]
        events += [(time, 1, step, []) for time, step in late.items()]
        events.sort(key=lambda event: event[:2])
        starts = sorted((stay.start, name) for name, each in stays.items() for stay in each)
        ends = sorted(
            (stay.end, name) for name, each in stays.items() for stay in each if stay.end is not None
        )
        present: set[str] = set()
        latest: dict[str, Participant] = {}
        steps: list[CourseStep] = []
        before: CourseStep | None = None
        sizes: tuple[int, ...] = ()
        for number, (time, is_late, told, names) in enumerate(events):
            while ends and ends[0][0] <= time:
                present.discard(ends.pop(0)[1])
            while starts and starts[0][0] <= time:
                present.add(starts.pop(0)[1])
            other_cause = False
            if not is_late:
                other_cause = before is not None and _identities(before) == _identities(told)
                before, sizes = told, told.sizes
                for name, member in zip(names, told.members, strict=True):
                    if name not in latest or latest[name].member_id != member.member_id:
                        latest[name] = member if name == member.identity else member._replace(identity=name)
                    elif latest[name].topics != member.topics or latest[name].rack != member.rack:
                        latest[name] = latest[name]._replace(topics=member.topics, rack=member.rack)
            members = tuple(latest[name] for name in sorted(present))
            if steps and not other_cause and _alike(steps[-1].members, members) and steps[-1].sizes == sizes:
                continue
            steps.append(
                replace(
                    told,
                    rebalance=-number if is_late else told.rebalance,
                    members=members,
                    began_us=time,
                    ended_us=time + told.ended_us - told.began_us,
                    sizes=sizes,
                    owners=told.owners if self._scenario == AS_IT_WAS else None,
                )
            )
        return steps


def _noticed(member: Participant, stay: _Stay, gone: int) -> tuple[int, int]:
    """When a static member went, and when the group notices."""
    if member.instance_id is None:
        return gone, gone + _session_us(member)
    return max(stay.start, gone - _session_us(member)), gone


def _stays_of(named: Iterable[Sequence[str]], times: Iterable[int]) -> dict[str, list[_Stay]]:
    """When each member was in the group, by the names of those in each step."""
    stays: defaultdict[str, list[_Stay]] = defaultdict(list)
    present: set[str] = set()
    for time, names in zip(times, named, strict=True):
        now = set(names)
        for name in present - now:
            stays[name][-1] = stays[name][-1]._replace(end=time)
        for name in names:
            if name not in present:
                stays[name].append(_Stay(time, None))
                present.add(name)
        present = now
    return dict(stays)


def _client_names(course: Course, times: list[int]) -> dict[str, str]:
    """The names of members without an instance id, by identity, as far as they can be told apart."""
    stays = _stays_of(([member.identity for member in step.members] for step in course.steps), times)
    members = {member.identity: member for step in course.steps for member in step.members}
    names: dict[str, str] = {}
    unnamed = [member for member in members.values() if member.instance_id is None]
    for by_host in (False, True):
        called: defaultdict[str, list[Participant]] = defaultdict(list)
        for member in unnamed:
            called[f"client {member.client_id}{f' at {member.host}' if by_host else ''}"].append(member)
        for name, alike in called.items():
            if _one_by_one(alike, stays, course.until_us):
                names.update({member.identity: name for member in alike})
        unnamed = [member for member in unnamed if member.identity not in names]
    return names


def _one_by_one(members: Iterable[Participant], stays: Mapping[str, list[_Stay]], until: int) -> bool:
    """Whether none of these came while another was there, but for what its session made of it."""
    times = sorted(
        (stay.start, until if stay.end is None else stay.end, _session_us(member))
        for member in members
        for stay in stays[member.identity]
    )
    there: list[tuple[int, int, int]] = []
    for came in times:
        there = [other for other in there if other[1] > came[0]]
        if any(other[0] == came[0] or other[1] - came[0] > other[2] for other in there):
            return False
        there.append(came)
    return True


def _session_us(member: Participant) -> int:
    told = member.session_timeout_ms
    return 1000 * (told if told >= 0 else _DEFAULT_SESSION_MS)


def _identities(step: CourseStep) -> set[str]:
    return {member.identity for member in step.members}


def _alike(some: tuple[Participant, ...], others: tuple[Participant, ...]) -> bool:
    return len(some) == len(others) and all(
        one is other or (one.identity, one.topics, one.rack) == (other.identity, other.topics, other.rack)
        for one, other in zip(some, others, strict=True)
    )


def _by_step(
    steps: list[CourseStep], aways: Mapping[str, list[_Away]], until: int
) -> defaultdict[int, list[tuple[str, float]]]:
    """The seconds of absences from the end of each step to the beginning of the next, by the next's place."""
    begins = [step.began_us for step in steps]
    found: defaultdict[int, list[tuple[str, float]]] = defaultdict(list)
    for name, absences in aways.items():
        for away in absences:
            place = max(1, bisect_left(begins, away.start))
            while place <= len(steps) and steps[place - 1].ended_us < away.end:
                end = min(away.end, begins[place] if place < len(steps) else until)
                seconds = (end - max(away.start, steps[place - 1].ended_us)) / 1e6
                if seconds > 0:
                    found[place].append((name, seconds))
                place += 1
    return found
