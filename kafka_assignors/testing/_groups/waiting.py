"""The error of a group that did not become what was waited for, and what it says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.waiting import listed
from kafka_assignors._timelines.events import format_partitions, name_of
from kafka_assignors._timelines.losses import ended_in_turn, left_undone
from kafka_assignors._timelines.pauses import why_paused
from kafka_assignors.testing._groups.logs import summary

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_assignors._timelines.timeline import Timeline
    from kafka_assignors.testing._groups.member import Member
    from kafka_assignors.testing._groups.stability import BrokersView

__tracebackhide__ = True

_EVENTS_SHOWN = 30


class GroupNotStableError(KafkaAssignorsError, TimeoutError):
    """A group did not become what was waited for; the message says who held it up and how."""


def describe_group(
    headline: str,
    wrong: Sequence[str],
    *,
    members: Collection[Member],
    view: BrokersView,
    names: Mapping[str, str],
    timeline: Timeline,
    since: float,
) -> str:
    """What members, coordinator and timeline say of a group, below what is wrong with it.

    Args:
        headline: The first line.
        wrong: What is wrong.
        members: All members, also those that ended.
        view: The coordinator's word.
        names: Member id -> the name of the member that had it last.
        timeline: What happened.
        since: From when on the group was waited for, on the clock of the events.
    """
    reasons = why_paused(timeline, since, timeline.end)
    return "\n".join(
        [
            listed(headline, wrong),
            *(["what took the time:", *(f"  {reason}" for reason in reasons)] if reasons else []),
            "members, by their own word:",
            *(f"  {member.name}: {_account(member)}" for member in members),
            f"coordinator: {view.state} {view.protocol} {view.error}".rstrip(),
            *(
                f"  {names.get(member_id, member_id)}: {format_partitions(assignment)}"
                for member_id, assignment in sorted(view.assignments.items())
            ),
            "last events:",
            timeline.describe(last=_EVENTS_SHOWN),
            *(
                f"log of {member.name}:\n{summary(member.log())}"
                for member in members
                if member.ended_by_itself
            ),
        ]
    )


def how_ended(timeline: Timeline, ended: Sequence[str]) -> list[str]:
    """That members ended by themselves, and at which records, if applications say what they have processed.

    Args:
        timeline: What happened.
        ended: Their names.
    """
    in_turn = ended_in_turn(timeline, ended)
    said = []
    for (partition, offset), deaths in in_turn.items():
        each = ", then ".join(f"{member} at {time - timeline.begin:.3f} s" for time, member in deaths)
        said.append(
            f"{name_of(partition)} offset {offset} ended {each}: each had polled it, and had not processed it"
        )
    told = {member for deaths in in_turn.values() for _, member in deaths}
    return said + [_how_one_ended(timeline, member) for member in ended if member not in told]


def _how_one_ended(timeline: Timeline, member: str) -> str:
    left = sorted(left_undone(timeline, member).items())
    if not left:
        return f"{member} ended by itself"
    at = ", ".join(f"{name_of(partition)} offset {first}" for partition, first in left)
    return f"{member} ended by itself; the first that it had polled and not processed: {at}"


def _account(member: Member) -> str:
    last = member.last_event
    heard = "not heard of" if last is None else f"last {time.monotonic() - last.time:.1f} s ago: {last.kind}"
    return f"{member.describe()}; {heard}"
