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
from operator import itemgetter
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
        times = _times(course)
        names = _client_names(course, times) if self.static else {}
        named = [[names.get(one.identity, one.identity) for one in step.members] for step in course.steps]
        presence = _presence(course, times, named, renamed=names)
        steps = _steps(course, times, named, presence)
        if self.static:
            steps = [replace(step, owners=None) for step in steps]
        # Owners go by the numbers of these: who was there only amid a rebalance keeps its own.
        identities = tuple(dict.fromkeys((*course.identities, *presence.stays)))
        numbers = {identity: number for number, identity in enumerate(identities)}
        found = _by_step(steps, presence.aways, course.until_us)
        *away, after = (
            tuple((numbers[name], seconds) for name, seconds in found[place])
            for place in range(len(steps) + 1)
        )
        return replace(
            course,
            identities=identities,
            steps=tuple(replace(step, away=its) for step, its in zip(steps, away, strict=True)),
            away=after,
        )


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


@dataclass(frozen=True, slots=True)
class _Presence:
    """When members are in a group, as the group knows it.

    Attributes:
        stays: By name.
        aways: By name, when a member is away and the group does not know.
        late: Rebalances at times that had none, and for which step each stands.
    """

    stays: dict[str, list[_Stay]]
    aways: dict[str, list[_Away]]
    late: dict[int, CourseStep]


def _times(course: Course) -> list[int]:
    """When each step begins. A member that came with one step and went with the next came before it went."""
    times: list[int] = []
    for step in course.steps:
        times.append(max([step.began_us, *(time + 1 for time in times[-1:])]))
    return times


def _presence(
    course: Course, times: list[int], named: list[list[str]], renamed: Mapping[str, str]
) -> _Presence:
    """When each member is in the group, if those with an instance id or another name are static."""
    found = _Presence({}, {}, {})
    last: dict[str, Participant] = {}
    for names, step in zip(named, course.steps, strict=True):
        last.update(zip(names, step.members, strict=True))
    step_at = dict(zip(times, course.steps, strict=True))
    for name, was in _stays_of(named, times).items():
        member = last[name]
        is_static = member.instance_id is not None or member.identity in renamed
        stays, aways = found.stays.setdefault(name, []), found.aways.setdefault(name, [])
        start = None
        for stay, following in zip(was, [*was[1:], None], strict=True):
            start = stay.start if start is None else start
            if stay.end is None or not is_static:
                stays.append(_Stay(start, stay.end))
                start = None
                continue
            went, noticed = _noticed(member, stay, stay.end)
            if following is not None and following.start < noticed:
                aways.append(_Away(went, following.start))
                continue
            stays.append(_Stay(start, noticed))
            aways.append(_Away(went, noticed))
            start = None
            if noticed not in step_at and noticed <= course.until_us:
                found.late[noticed] = step_at[stay.end]
    return found


def _steps(course: Course, times: list[int], named: list[list[str]], presence: _Presence) -> list[CourseStep]:
    """The steps of a course with other members; those are left out that were only about who is not away."""
    moments: list[tuple[int, bool, CourseStep, list[str]]] = [
        (time, False, step, names) for time, step, names in zip(times, course.steps, named, strict=True)
    ]
    moments += [(time, True, step, []) for time, step in presence.late.items()]
    moments.sort(key=itemgetter(0, 1))
    every = [(stay, name) for name, stays in presence.stays.items() for stay in stays]
    changes = sorted(
        [(stay.start, True, name) for stay, name in every]
        + [(stay.end, False, name) for stay, name in every if stay.end is not None],
        reverse=True,
    )
    present: set[str] = set()
    latest: dict[str, Participant] = {}
    steps: list[CourseStep] = []
    before: CourseStep | None = None
    sizes: tuple[int, ...] = ()
    for number, (time, is_late, step, names) in enumerate(moments):
        while changes and changes[-1][0] <= time:
            _, comes, name = changes.pop()
            (present.add if comes else present.discard)(name)
        other_cause = False
        if not is_late:
            other_cause = before is not None and _identities(before) == _identities(step)
            before, sizes = step, step.sizes
            for name, member in zip(names, step.members, strict=True):
                if name not in latest or latest[name][1:] != member[1:]:
                    latest[name] = member._replace(identity=name)
        members = tuple(latest[name] for name in sorted(present))
        if steps and not other_cause and _alike(steps[-1].members, members) and steps[-1].sizes == sizes:
            continue
        steps.append(
            replace(
                step,
                rebalance=-number if is_late else step.rebalance,
                members=members,
                began_us=time,
                ended_us=time + step.ended_us - step.began_us,
                sizes=sizes,
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
