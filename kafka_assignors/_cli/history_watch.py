"""`kafka-assignors history watch GROUP`: the rebalances of a live group as they happen."""

from __future__ import annotations

import json
import sys
from collections import Counter
from glob import escape
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import generations, lag_cell, lag_lines, wrapped
from kafka_assignors._cli.output import count, joined, show
from kafka_assignors._common.escaping import escaped
from kafka_assignors._common.words import first_of
from kafka_assignors.groups import list_groups
from kafka_assignors.history import watch_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kafka_assignors._groups.moved import OwnerMove
    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors.groups import Cluster
    from kafka_assignors.groups._status import GroupStatus

MOVES_SHOWN: Final = 8
"""How many members that gave to others are listed with what they gave."""

_IDS_SHOWN: Final = 12


def watch(cluster: Cluster, group: str, *, as_json: bool) -> None:
    """Watch a group until Ctrl-C, which is how it ends."""
    try:
        with cluster:

            def look() -> GroupStatus | None:
                return next(iter(list_groups(cluster, [escape(group)], observe=0)), None)

            def begin() -> None:
                now = look()
                missing = "" if now is not None else ", which does not exist yet"
                print(f"watching {escaped(group)}{missing}; Ctrl-C ends it", file=sys.stderr, flush=True)
                if now is not None and not as_json:
                    members = "? members" if now.members is None else count(now.members, "member")
                    show(joined([f"now: {now.state}, {members}", *now_lines(now)]))

            show_rebalances(watch_group(cluster, group, ready=begin), as_json=as_json, look=look)
    except KeyboardInterrupt:
        pass


def show_rebalances(
    rebalances: Iterable[Rebalance], *, as_json: bool, look: Callable[[], GroupStatus | None] = lambda: None
) -> None:
    """Print each as it comes, with what the group is like then, until nobody reads; as JSON one on a line.

    `look` says what the group is like now; None if it is gone.
    """
    for rebalance in rebalances:
        now = look()
        if as_json:
            lag = None if now is None or now.lag is None else now.lag.to_json()
            status = {"lag": lag, "unowned": None if now is None else now.unowned}
            text = json.dumps({**rebalance.row(), "quiet": rebalance.quiet, **status}, default=str)
        else:
            text = joined([*watched_lines(rebalance), *([] if now is None else now_lines(now))])
        if not show(text):
            return


def watched_lines(rebalance: Rebalance) -> Iterator[str]:
    ended = rebalance.ended.strftime("%Y-%m-%d %H:%M:%S UTC")
    if rebalance.quiet:
        why = "; ".join(reason.text for reason in rebalance.reasons)
        yield f"{ended}  generation {rebalance.generation} continues: {why}"
        return
    strategy = f" by {rebalance.strategy}" if rebalance.strategy else ""
    yield f"{ended}  {generations(rebalance)}{strategy}, in {rebalance.seconds:.1f} s"
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
    if rebalance.members and (rebalance.moves or rebalance.least_moved):
        needless = "" if rebalance.least_moved is None else f", {rebalance.needless} of them needless"
        yield f"  {rebalance.moved} of {count(rebalance.partitions, 'partition')} moved{needless}"
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
        said.append(f"at least {rebalance.unowned_seconds:.1f} partition-seconds without an owner")
    return "; ".join(said)
