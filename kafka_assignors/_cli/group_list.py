"""All groups of a cluster, the worst first, from the command line."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.group_parts import fitted, lag_cell
from kafka_assignors._cli.output import Answer, count
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors.coordinator._fleet import read_fleet, summary_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kafka_assignors._cli.arguments import ClusterClient
    from kafka_assignors.coordinator._fleet import FleetGroup

ERRORS: Final = Errors(wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError))


def list_all(
    *, client: ClusterClient, groups: Sequence[str], observe: float, max_lag: int | None, check: bool
) -> Answer:
    """All groups; with `check` the status 1 if one of them has an error or a warning.

    That the state or the lag of a group is not known is a warning.

    Args:
        client: The cluster.
        groups: Patterns of ids; all groups if there are none.
        observe: For how many seconds to look at groups that are in a rebalance.
        max_lag: The lag from which on it is an error.
        check: Whether an error or a warning makes the status 1.
    """
    with open_admin(client) as admin:
        found = read_fleet(admin, wanted=matching(groups), observe=observe, max_lag=max_lag)
    wrong = any(problem.severity != "note" for group in found for problem in group.problems)
    return Answer(
        lambda: [summary_to_json(group) for group in found], _lines(found), 1 if check and wrong else 0
    )


def matching(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether an id matches one of the patterns; each does if there are none."""
    return lambda group_id: not patterns or any(fnmatchcase(group_id, pattern) for pattern in patterns)


def _lines(groups: Sequence[FleetGroup]) -> Iterator[str]:
    errors, warnings = (
        sum(any(problem.severity == severity for problem in group.problems) for group in groups)
        for severity in ("error", "warning")
    )
    lag = sum(group.lag.total for group in groups if group.lag is not None)
    unknown = sum(group.lag_known is False for group in groups)
    more = f"; that of {count(unknown, 'group')} is not known, or not all of it" if unknown else ""
    yield (
        f"{count(len(groups), 'group')}, {errors:,} with errors, {warnings:,} with warnings; lag:"
        f" {count(lag, 'record')}{more}"
    )
    if groups:
        yield ""
        yield from fitted(
            {
                "group": [group.group_id for group in groups],
                "type": [group.kind for group in groups],
                "state": [group.state for group in groups],
                "members": ["?" if group.members is None else f"{group.members:,}" for group in groups],
                "lag": [
                    "?" if group.lag is None and group.lag_known is False else lag_cell(group.lag)
                    for group in groups
                ],
                "problem": [_worst(group) for group in groups],
            },
            left={"group", "type", "state", "problem"},
            cut=("problem", "group"),
        )


def _worst(group: FleetGroup) -> str:
    """Its worst problem, and how many more there are; a note is none."""
    wrong = [problem for problem in group.problems if problem.severity != "note"]
    if not wrong:
        return ""
    more = f" (+{len(wrong) - 1})" if len(wrong) > 1 else ""
    return f"{wrong[0].severity}{more}: {wrong[0].text}"
