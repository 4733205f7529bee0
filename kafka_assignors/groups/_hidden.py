"""Topics that the user may not describe: they are not missing, but what is known of them is not all."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.groups import find_hidden
from kafka_assignors._groups.problems import find_topic_problems, in_order

_Group = TypeVar("_Group")
"""A result with `account` and `problems`."""


def name_hidden(admin: Admin, topics: Collection[str], groups: Iterable[_Group]) -> list[_Group]:
    """The same groups; topics of theirs that are hidden from the user count as hidden, not as missing."""
    listed: list[Any] = [*groups]
    absent = [set() if one.account is None else one.account.subscribed - {*topics} for one in listed]
    hidden = find_hidden(admin, set().union(*absent))
    for number, (group, its) in enumerate(zip(listed, absent, strict=True)):
        if its & hidden:
            others = [one for one in group.problems if one.kind != "missing topic"]
            problems = in_order([*others, *find_topic_problems(its - hidden, its & hidden)])
            listed[number] = replace(group, problems=problems)
    return listed
