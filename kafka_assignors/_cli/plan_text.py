"""How a plan looks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import fitted
from kafka_assignors._cli.output import count, filled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors.groups._plan import PlannedGroup

SMALL: Final = 40
"""Up to how many partitions a plan is shown in full without being asked for."""

NOTES_SHOWN: Final = 10
"""How many notes are shown; all of them are in the JSON."""

_LONGEST_NAME: Final = 28
_GAP: Final = "  "
_CUT: Final = "..."


def lines(outcome: PlannedGroup, *, assignments: bool, width: int) -> Iterator[str]:
    """What there is to say about a plan, in lines of at most this width where names allow it."""
    plan, notes = outcome.plan, outcome.notes
    yield from _table(outcome, width)
    yield ""
    for line in _totals(outcome):
        yield from filled(line, "", _GAP, width)
    in_full = assignments or plan.group.size <= SMALL
    if in_full:
        yield ""
        yield "who gets what (+ is new to the member):"
        yield from _assignments(outcome, width)
    if outcome.cooperative:
        yield ""
        yield from _rounds(outcome, width, in_full=in_full)
    if outcome.certificate is not None:
        yield ""
        for line in str(outcome.certificate).splitlines():
            yield from filled(line, "", " " * (3 + len(line) - len(line.lstrip())), width)
    if notes:
        yield ""
        for note in notes[:NOTES_SHOWN]:
            yield from filled(f"note: {note}", "", _GAP, width)
        if len(notes) > NOTES_SHOWN:
            yield f"and {len(notes) - NOTES_SHOWN} more notes: see --json"


def _totals(outcome: PlannedGroup) -> Iterator[str]:
    plan, group, loads = outcome.plan, outcome.plan.group, outcome.active_loads
    standbys = f" ({count(outcome.standbys, 'standby')})" if outcome.standbys else ""
    weighted = " a unit of weight" if (group.weights > 1).any() else ""
    yield (
        f"{count(group.size, 'partition')} of {count(len(group.topics), 'topic')}, "
        f"{count(len(group.members), 'member')}{standbys}: loads {loads.min()} to {loads.max()}, "
        f"imbalance {outcome.imbalance:g}{weighted}"
    )
    what = "the least possible" if outcome.optimal else "in an optimal plan"
    least = "" if outcome.least_moves is None else f" ({what}: {outcome.least_moves})"
    free = f", {outcome.free} had no owner" if outcome.free else ""
    yield f"{plan.moves} of {count(group.size - outcome.free, 'owned partition')} move{least}{free}"
    certified = f", certified in {outcome.certificate_ms:.1f} ms" if outcome.certificate else ""
    yield f"planned by {outcome.strategy} in {outcome.plan_ms:.1f} ms{certified}"


def _table(outcome: PlannedGroup, width: int) -> Iterator[str]:
    """A row for each member; how much is said of whom partitions come from and go to is a matter of width."""
    shares = outcome.shares
    weighted = any(share.member.weight > 1 for share in shares)
    racks = any(share.in_rack is not None for share in shares)
    priorities = {share.member.priority for share in shares}
    columns = {
        "priority": [str(share.member.priority) for share in shares] if len(priorities) > 1 else [],
        "weight": [str(share.member.weight) for share in shares] if weighted else [],
        "load": [str(share.load) for share in shares],
        "kept": [str(share.kept) for share in shares],
        "in rack": [str(share.in_rack) for share in shares] if racks else [],
    }
    widths = [max(map(len, (name, *cells))) for name, cells in columns.items() if cells]
    room = width - sum(widths) - len(_GAP) * (len(widths) + 2)
    names = _names(outcome, min(_LONGEST_NAME, room - 2 * len("1000 from 100")))
    room = (room - max(map(len, ("member", *names.values())))) // 2
    gained = [_gained(share.free, share.gained, names, room) for share in shares]
    given_up = [_given_up(share.given_up, names, room) for share in shares]
    yield from fitted(
        {"member": [*names.values()], **columns, "gained": gained, "given up": given_up},
        left={"member", "gained", "given up"},
    )


def _gained(free: int, gained: Mapping[str, int], names: Mapping[str, str], room: int) -> str:
    unowned = [f"{free} free"] if free else []
    parts = unowned + [f"{count} from {names[member]}" for member, count in gained.items()]
    summary = ", ".join([*unowned, f"from {len(gained)}"])
    return _fitting(parts, free + sum(gained.values()), summary, room)


def _given_up(given_up: Mapping[str, int], names: Mapping[str, str], room: int) -> str:
    parts = [f"{count} to {names[member]}" for member, count in given_up.items()]
    return _fitting(parts, sum(given_up.values()), f"to {len(parts)}", room)


def _fitting(parts: Sequence[str], total: int, summary: str, room: int) -> str:
    """All the parts of a total if there is room for them, else in how many there are."""
    if not parts:
        return "-"
    full = ", ".join(parts)
    for text in (full if len(parts) == 1 else f"{total}: {full}", f"{total}: {summary} members"):
        if len(text) <= room:
            return text
    return f"{total} {summary}"


def _assignments(outcome: PlannedGroup, width: int) -> Iterator[str]:
    group, owner = outcome.plan.group, outcome.plan.owner
    new = {group.name_of(partition) for partition in (owner != group.owner).nonzero()[0].tolist()}
    names = _names(outcome)
    longest = max(map(len, names.values()))
    for number, name in enumerate(names.values()):
        topics = [
            " ".join([topic, *(f"+{i}" if (topic, i) in new else str(i) for i in ids)])
            for topic, ids in outcome.plan.of(number).items()
        ]
        yield from _entry(name, "; ".join(topics) or "-", longest, width)


def _rounds(outcome: PlannedGroup, width: int, *, in_full: bool) -> Iterator[str]:
    one, second = outcome.first_round, outcome.active_loads
    if not one.let_go:
        yield "cooperative: one round is enough, as nothing has to be revoked"
        return
    late = sum(len(ids) for topics in one.awaited.values() for ids in topics.values())
    names = _names(outcome)
    longest = max(len(names[member]) for member in (*one.let_go, *one.awaited))
    standbys = outcome.plan.group.standbys
    first = [load for load, stands_by in zip(one.loads.values(), standbys, strict=True) if not stands_by]
    yield (f"cooperative, round 1: {count(late, 'partition')} revoked; loads {min(first)} to {max(first)}")
    for member, topics in one.let_go.items():
        yield from _entry(names[member], f"revokes {_listed(topics, in_full=in_full)}", longest, width)
    yield f"cooperative, round 2: given away; loads {second.min()} to {second.max()}"
    for member, topics in one.awaited.items():
        yield from _entry(names[member], f"gets {_listed(topics, in_full=in_full)}", longest, width)


def _listed(topics: Mapping[str, Sequence[int]], *, in_full: bool) -> str:
    if not in_full:
        return count(sum(map(len, topics.values())), "partition")
    return "; ".join(f"{topic} {' '.join(map(str, ids))}" for topic, ids in topics.items())


def _entry(name: str, text: str, longest: int, width: int) -> Iterator[str]:
    """A line of a list of members, with what does not fit below."""
    yield from filled(f"{_GAP}{name.ljust(longest)}{_GAP}{text}", "", " " * (longest + 4), width)


def _names(outcome: PlannedGroup, longest: int = _LONGEST_NAME) -> dict[str, str]:
    """A name to show for each member: as short as asked for if they still differ.

    The ids that clients make up differ at the beginning, before a long random part, or in that, at the end.
    """
    ids = [member.member_id for member in outcome.plan.group.members]
    kept = max(longest - len(_CUT), 1)
    for end in (kept // 2, 0, kept):
        names = {name: _shortened(name, kept - end, end, longest) for name in ids}
        if len(set(names.values())) == len(ids):
            return names
    return dict(zip(ids, ids, strict=True))


def _shortened(name: str, begin: int, end: int, longest: int) -> str:
    return name if len(name) <= longest else f"{name[:begin]}{_CUT}{name[len(name) - end :]}"
