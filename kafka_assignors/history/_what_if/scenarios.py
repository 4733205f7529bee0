"""A course as it was, or as it would have been if members were static.

docs/history.md says under "What if?" who is the same member, and what comes of it. Besides:

- A member that was lost and is replaced is still in the group until its session is over. So one that leaves
  within its own session timeout after the other came does not count as together with it.
- The timeout of members without one, as those of KIP-848, is the brokers' default of 45 s.
- A rebalance is left out if it only was about members that were never gone. What had another cause (a changed
  subscription, new partitions) stays.
- Absences that were over before the session was are in no record. Nor is it replayed that a classic group
  which rebalances while a static member is away waits for it, up to its rebalance timeout.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from kafka_assignors._groups.saving import AS_IT_WAS
from kafka_assignors._groups.snapshots import Partitions, SnapshotMember
from kafka_assignors.history._what_if.course import Course, CourseStep

STATIC: Final = "static members"
_DEFAULT_SESSION_MS: Final = 45_000

_Named = dict[str, SnapshotMember]
"""The members of a step by their names."""
_Stay = tuple[int, int | None]
"""From when to when a member is in the group; microseconds."""


def scenario_of(name: str) -> Callable[[Course], Course]:
    """What makes a course as it would have been; a ValueError if there is none of this name."""
    if name not in _SCENARIOS:
        raise ValueError(f"there is no scenario {name!r}; choose {AS_IT_WAS!r} or {STATIC!r}")
    return _SCENARIOS[name]


def _with_static_members(course: Course) -> Course:
    times = _times(course)
    names = _client_names(course, times)
    if not names:
        return course
    named = _rename(course, names)
    absent, missed = _absences(named, times, {*names.values()}, course.until_us)
    step_at = dict(zip(times, course.steps, strict=True))
    late = [(over, step_at[gone]) for over, gone in missed]
    moments: dict[int, tuple[CourseStep, _Named | None]] = {over: (step, None) for over, step in late}
    moments |= {time: (step, here) for (time, step), here in zip(step_at.items(), named, strict=True)}
    steps = _steps(moments, absent)
    stayed = {step.rebalance for step in (*steps, *(step for _, step in late))}
    avoided = [one.ended_us for number, one in enumerate(course.happened, 1) if number not in stayed]
    return replace(course, steps=tuple(steps), avoided=tuple(avoided))


_SCENARIOS: Final = {AS_IT_WAS: lambda course: course, STATIC: _with_static_members}


def _times(course: Course) -> list[int]:
    """When each step begins. A member that came with one step and went with the next came before it went."""
    times: list[int] = []
    for step in course.steps:
        times.append(max([step.began_us, *(time + 1 for time in times[-1:])]))
    return times


def _client_names(course: Course, times: list[int]) -> dict[str, str]:
    """The names of members without an instance id, by identity, as far as they can be told apart."""
    stays = _stays_of(([member.identity for member in step.members] for step in course.steps), times)
    members = {member.identity: member for step in course.steps for member in step.members}
    names: dict[str, str] = {}
    unnamed = [one for one in members.values() if one.instance_id is None and one.identity not in course.lost]
    for by_host in (False, True):
        called: defaultdict[str, list[SnapshotMember]] = defaultdict(list)
        for member in unnamed:
            called[f"client {member.client_id}{f' at {member.host}' if by_host else ''}"].append(member)
        for name, alike in called.items():
            if _one_by_one(alike, stays, course.until_us):
                names.update({member.identity: name for member in alike})
        unnamed = [member for member in unnamed if member.identity not in names]
    return names


def _one_by_one(members: Iterable[SnapshotMember], stays: Mapping[str, list[_Stay]], until: int) -> bool:
    """Whether none of these came while another was there, but for what its session made of it."""
    times = sorted(
        (start, until if end is None else end, _session_us(member))
        for member in members
        for start, end in stays[member.identity]
    )
    there: list[tuple[int, int, int]] = []
    for came in times:
        there = [other for other in there if other[1] > came[0]]
        if any(other[0] == came[0] or other[1] - came[0] > other[2] for other in there):
            return False
        there.append(came)
    return True


def _stays_of(named: Iterable[Iterable[str]], times: Iterable[int]) -> dict[str, list[_Stay]]:
    """When each member was in the group, by the names of those in each step."""
    stays: defaultdict[str, list[_Stay]] = defaultdict(list)
    present: set[str] = set()
    for time, names in zip(times, named, strict=True):
        now = set(names)
        for name in present - now:
            stays[name][-1] = stays[name][-1][0], time
        for name in now - present:
            stays[name].append((time, None))
        present = now
    return dict(stays)


def _rename(course: Course, names: Mapping[str, str]) -> list[_Named]:
    """The members of each step by name; what a member is called is its member id, too."""
    made: dict[int, SnapshotMember] = {}  # by the id of a member that stays as it is for many steps

    def called(member: SnapshotMember) -> SnapshotMember:
        if id(member) not in made:
            name = names.get(member.identity)
            made[id(member)] = member if name is None else member._replace(member_id=name)
        return made[id(member)]

    return [{one.identity: one for one in map(called, step.members)} for step in course.steps]


def _absences(
    named: Sequence[_Named], times: Sequence[int], static: set[str], until: int
) -> tuple[dict[int, dict[str, int]], list[tuple[int, int]]]:
    """Until when members that are static now are away unknown to the group, by when they went.

    Also when members are missed, and when these went.
    """
    members = {name: member for step in named for name, member in step.items()}
    absent: defaultdict[int, dict[str, int]] = defaultdict(dict)
    missed: list[tuple[int, int]] = []
    for name, stays in _stays_of(named, times).items():
        for (_, gone), (back, _) in zip(stays, [*stays[1:], (None, None)], strict=True):
            if gone is None or name not in static:
                continue
            over = gone + _session_us(members[name])
            if back is not None and back < over:
                absent[gone][name] = back
            elif back is not None or over <= until:
                absent[gone][name] = over
                missed.append((over, gone))
    return absent, missed


def _steps(
    moments: Mapping[int, tuple[CourseStep, _Named | None]], absent: Mapping[int, Mapping[str, int]]
) -> list[CourseStep]:
    """The steps if absent members stay until they are missed; those without another cause are left out."""
    seen: _Named = {}
    here: _Named = {}
    before: set[str] = set()
    away: dict[str, int] = {}  # until when
    steps: list[CourseStep] = []
    partitions: Partitions = frozenset()
    for number, (time, (step, members)) in enumerate(sorted(moments.items(), key=itemgetter(0))):
        has_other_cause = False
        if members is not None:
            identities = {one.identity for one in step.members}
            has_other_cause, before = identities == before, identities
            here, partitions = members, step.partitions
            seen |= here
            away |= absent.get(time, {})
        away = {name: end for name, end in away.items() if end > time}
        made = CourseStep(
            rebalance=step.rebalance if members is not None else -number,
            members=tuple([seen[name] for name in sorted({*here, *away})]),
            partitions=partitions,
            began_us=time,
            ended_us=time + step.ended_us - step.began_us,
        )
        is_new = not (steps and partitions == steps[-1].partitions and made.has_members_of(steps[-1]))
        if has_other_cause or is_new:
            steps.append(made)
    return steps


def _session_us(member: SnapshotMember) -> int:
    told = member.session_timeout_ms
    return 1000 * (told if told >= 0 else _DEFAULT_SESSION_MS)
