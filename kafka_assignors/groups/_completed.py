"""What is asked about groups last: topics that the user may not describe, and how old records are."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.groups import Leaders, find_hidden
from kafka_assignors._groups.problems import find_lag_seconds_problems, find_topic_problems, in_order
from kafka_assignors.groups._lag_seconds import read_ages

_Group = TypeVar("_Group")
"""A result with `account`, `lag` and `problems`."""


def completed(
    admin: Admin, topics: Leaders, groups: Iterable[_Group], max_lag_seconds: float | None
) -> list[_Group]:
    """The same groups; topics of theirs that are hidden from the user count as hidden, not as missing.

    They have how many seconds they lag unless that is None; more seconds are an error.
    """
    listed: list[Any] = [*groups]
    absent = [set() if one.account is None else one.account.subscribed - topics.keys() for one in listed]
    hidden = find_hidden(admin, set().union(*absent))
    lagging = (one for group in listed if group.lag for one in group.lag.partitions if one.lag)
    positions = set() if max_lag_seconds is None else {one.position for one in lagging}
    ages = read_ages(admin, topics, positions)
    for number, (group, its) in enumerate(zip(listed, absent, strict=True)):
        lag, problems = group.lag, [*group.problems]
        if its & hidden:
            problems = [one for one in problems if one.kind != "missing topic"]
            problems += find_topic_problems(its - hidden, its & hidden)
        if lag is not None and max_lag_seconds is not None:
            lag = lag.dated(ages)
            problems += find_lag_seconds_problems(lag, max_lag_seconds)
        listed[number] = replace(group, lag=lag, problems=in_order(problems))
    return listed
