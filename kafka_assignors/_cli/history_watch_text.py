"""How rebalances look on a terminal as they happen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import lag_cell, lag_lines, wrapped
from kafka_assignors._cli.output import count
from kafka_assignors._common.words import first_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors._groups.moved import OwnerMove
    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors.groups._status import GroupStatus

MOVES_SHOWN: Final = 8
"""How many members that gave to others are listed with what they gave."""

_IDS_SHOWN: Final = 12


def watched_lines(rebalance: Rebalance) -> Iterator[str]:
    """A rebalance: when, why, what moved, and what the group is like now."""
    ended = rebalance.ended.strftime("%Y-%m-%d %H:%M:%S UTC")
    if rebalance.quiet:
        why = "; ".join(reason.text for reason in rebalance.reasons)
        yield f"{ended}  generation {rebalance.generation} continues: {why}"
        return
    generations = (
        f"generation {rebalance.generation}"
        if rebalance.first_generation == rebalance.generation
        else f"generations {rebalance.first_generation} to {rebalance.generation}"
    )
    strategy = f" by {rebalance.strategy}" if rebalance.strategy else ""
    yield f"{ended}  {generations}{strategy}, in {rebalance.seconds:.1f} s"
    yield from wrapped("why: " + "; ".join(reason.text for reason in rebalance.reasons), 2)
    yield from _moved(rebalance)
    yield "  " + _now(rebalance)


def now_lines(group: GroupStatus) -> Iterator[str]:
    """What a group is like now: how far it and each member is behind, and what nobody has."""
    lag, members = group.lag, () if group.account is None else group.account.members
    if lag is None:
        return
    names = {member.member_id: member.name for member in members}
    own = lag.by_member()
    if members:
        behind = (f"{name} {lag_cell(own.get(member_id))}" for member_id, name in names.items())
        yield from wrapped("lag by member: " + ", ".join(behind), 2)
    yield from (f"  {line}" for line in lag_lines(lag, names))
    if group.unowned:
        free = [f"{topic}-{partition}" for topic, partition in group.unowned]
        yield from wrapped(f"nobody has {first_of(free, _IDS_SHOWN)}", 2)


def _moved(rebalance: Rebalance) -> Iterator[str]:
    moved, least = rebalance.moved, rebalance.least_moved
    if rebalance.members and (rebalance.moves or least):
        enough = "" if least is None else f", where {least} had to"
        yield f"  {moved} of {count(rebalance.partitions, 'partition')} moved{enough}"
    paths = Counter((move.source, move.target) for move in rebalance.moves)
    for path, _ in paths.most_common(MOVES_SHOWN):
        given = [move for move in rebalance.moves if (move.source, move.target) == path]
        yield from wrapped(f"{path[0] or 'nobody'} -> {path[1] or 'nobody'}: {_ids(given)}", 4)
    if len(paths) > MOVES_SHOWN:
        yield f"    and between {len(paths) - MOVES_SHOWN} more pairs of members"


def _ids(moves: list[OwnerMove]) -> str:
    topics: dict[str, list[int]] = {}
    for move in moves:
        topics.setdefault(move.topic, []).append(move.partition)
    return ", ".join(f"{topic} {first_of(ids, _IDS_SHOWN, ' ')}" for topic, ids in topics.items())


def _now(rebalance: Rebalance) -> str:
    if not rebalance.members:
        return "no members are left"
    best = rebalance.best_imbalance
    said = [count(rebalance.members, "member")]
    if rebalance.partitions:
        enough = (
            ""
            if best is None
            else " (the best possible)"
            if best == rebalance.imbalance
            else f" ({best} is possible)"
        )
        said.append(f"loads differ by {rebalance.imbalance}{enough}")
    if rebalance.unowned_seconds:
        said.append(f"{rebalance.unowned_seconds:.1f} partition-seconds without an owner")
    return "; ".join(said)
