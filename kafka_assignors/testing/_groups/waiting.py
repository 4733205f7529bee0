"""What a group is waited for, and the error of one that did not become it."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from kafka import TopicPartition

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.waiting import listed
from kafka_assignors._timelines import losses
from kafka_assignors._timelines.causes import error_of
from kafka_assignors._timelines.events import Consumed, Processed, format_partitions, name_of
from kafka_assignors._timelines.pauses import why_paused
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.testing._groups.logs import summary
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._groups.stability import BrokersView

_EVENTS_SHOWN = 30
_IDLE_SECONDS = 2.0


class GroupNotStableError(KafkaAssignorsError, TimeoutError):
    """A group did not become what was waited for; the message says who held it up and how."""

    __module__ = (
        "kafka_assignors.testing"  # where users know it from: pytest's summary has it before the message
    )


def describe_group(
    headline: str,
    wrong: Sequence[str],
    *,
    members: Collection[Member],
    view: BrokersView,
    timeline: Timeline,
    since: float,
) -> str:
    """What members, coordinator and timeline say of a group, below what is wrong with it."""
    reasons = why_paused(timeline, since, timeline.end)
    names = names_of_ids(members)
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


def names_of_ids(members: Iterable[Member]) -> dict[str, str]:
    """Member id -> the name of the member that had it last."""
    return {member.member_id: member.name for member in members}


class Unhandled:
    """Which of the records that were produced nobody is done with."""

    def __init__(self, produced: Mapping[TopicPartition, int]) -> None:
        self.missing: Mapping[TopicPartition, Sequence[int]] = {}
        self.word = ""
        self._produced = produced
        self._began = time.monotonic()
        self._judge_at = self._began + _IDLE_SECONDS

    def none_left(self, timeline: Timeline) -> bool:
        """Whether somebody is done with each of them."""
        self.word = "{} ({})".format(*losses.what_counts(timeline))
        self.missing = timeline.missing(self._produced)
        return not self.missing

    def are_lost(self, timeline: Timeline) -> bool:
        """Whether none of them will come any more: they were committed past, and nobody is at work.

        An application may commit records before it has processed them, and yet process them. So it has three
        times as long as any record took, and `_IDLE_SECONDS` at least.
        """
        now = time.monotonic()
        if now < self._judge_at or self.none_left(timeline):
            return False
        self._judge_at = now + _IDLE_SECONDS / 2
        handled_at = max([self._began, *(one.time for one in timeline.of(Consumed, Processed))])
        patience = max(_IDLE_SECONDS, 3 * losses.longest_processing(timeline))
        return now > handled_at + patience and losses.are_committed_past(timeline, self.missing)

    def described(self, timeline: Timeline) -> list[str]:
        """How many are missing of each partition, and who had them."""
        missing = timeline.missing(self._produced)
        return [*losses.why_missing(timeline, missing, self._produced, " missing")]


def how_ended(timeline: Timeline, ended: Sequence[str]) -> list[str]:
    """That members ended by themselves, and at which records, if applications say what they processed."""
    in_turn = losses.ended_in_turn(timeline, ended)
    text = []
    for (partition, offset), deaths in in_turn.items():
        each = ", then ".join(f"{member} {timeline.at(time)}" for time, member in deaths)
        failed = losses.failed_at_last(timeline, deaths[0][1])
        why = (
            f"each one's poll raised at it, the first one's {error_of(failed)}"
            if failed
            else "each had polled it, and had not processed it"
        )
        text.append(f"{name_of(partition)} offset {offset} ended {each}: {why}")
    named = {member for deaths in in_turn.values() for _, member in deaths}
    return text + [_how_one_ended(timeline, member) for member in ended if member not in named]


def _how_one_ended(timeline: Timeline, member: str) -> str:
    left = sorted(losses.left_undone(timeline, member).items())
    if not left:
        return f"{member} ended by itself"
    at = ", ".join(f"{name_of(partition)} offset {first}" for partition, first in left)
    if failed := losses.failed_at_last(timeline, member):
        return f"{member} ended by itself; its last poll raised {error_of(failed)} at {at}"
    return f"{member} ended by itself; the first that it had polled and not processed: {at}"


def _account(member: Member) -> str:
    last = member.last_event
    heard = "not heard of" if last is None else f"last {time.monotonic() - last.time:.1f} s ago: {last.kind}"
    return f"{member.describe()}; {heard}"
