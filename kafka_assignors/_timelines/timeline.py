"""What happened in a consumer group, worked out from the events that its members reported.

All data here is plain and all functions are pure: a `Timeline` is made from `Event`s, whoever recorded them.
Who owned a partition has two readings, see `kafka_assignors._timelines.ownership`: by "callback",
what members' applications were told, and by "generation", the group's word.

Times are seconds on the clock of the events (`time.monotonic()` where `group` records them).
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from kafka import TopicPartition

from kafka_assignors._timelines import assertions
from kafka_assignors._timelines.assertions import PauseMeasure
from kafka_assignors._timelines.best import Weights
from kafka_assignors._timelines.chart import chart
from kafka_assignors._timelines.events import NO_GENERATION, Event, format_partitions
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.ownership import Gap, Overlap, Ownership, Reading
from kafka_assignors._timelines.rebalances import Move, Rebalance

__all__ = [
    "NO_GENERATION",
    "Event",
    "Gap",
    "Move",
    "Overlap",
    "Ownership",
    "PauseMeasure",
    "Reading",
    "Rebalance",
    "Timeline",
    "Weights",
    "format_partitions",
]


class Timeline(TimelineFacts):
    """All events of a group in the order of time, what follows from them, asserted and drawn.

    Args:
        events: The events of all members, in any order.
        end: When the record ends, for what lasts until then; by default the last event's time.

    Attributes:
        events: The events by time.
        begin: When the first event was.
        end: When the record ends.
        identity: Who each member is to the group: the first member with its static instance id, or itself.
    """

    # Assertions

    def assert_balanced(
        self,
        *,
        at: int | None = None,
        partitions: Collection[TopicPartition] | None = None,
        weights: Weights | None = None,
    ) -> None:
        """The loads are as even as the subscriptions allow, and every partition has one owner.

        Args:
            at: The generation; by default the newest one.
            partitions: The partitions that there are; by default all that anybody had up to that generation,
                of topics that somebody subscribes to.
            weights: How much members take on beside others, by their names (1 for those that are not named).

        Raises:
            AssertionError: They are not, or there is no such generation.
        """
        assertions.assert_balanced(self, at=at, partitions=partitions, weights=weights)

    def assert_sticky(self, *, after: int = NO_GENERATION, weights: Weights | None = None) -> None:
        """No rebalance moved more partitions than the best balance wanted.

        What counts is who had what before, who is there now, and their subscriptions; partitions of members
        that are gone do not move. A rebalance lasts until every partition has an owner, so a cooperative
        hand-over of several generations is one. One that is overtaken by the next is not judged. Racks are
        not looked at; an assignor may move more for their sake.

        Args:
            after: Only rebalances that end in generations above this one.
            weights: As in `assert_balanced`.

        Raises:
            AssertionError: One moved more.
        """
        assertions.assert_sticky(self, after=after, weights=weights)

    def assert_never_owned_twice(self, reading: Reading = "generation") -> None:
        """No partition had two owners at once.

        Args:
            reading: "generation": no generation gave one partition to two members, which an assignor must
                never do. "callback": no two applications had it at the same time, which may happen when a
                member freezes or loses its connection, and then its records come twice.

        Raises:
            AssertionError: One had.
        """
        assertions.assert_never_owned_twice(self, reading)

    def assert_paused_at_most(
        self,
        ms: float,
        *,
        by: PauseMeasure = "ownership",
        since: float | None = None,
        until: float | None = None,
    ) -> None:
        """No partition stood still for longer than so many milliseconds.

        Args:
            ms: The longest pause that is allowed.
            by: "ownership": without an owner, by callback, after its first one; a frozen member goes on
                owning. "records": without records, for partitions that had any: put the group under load.
            since: Where to begin to count, on the clock of the events; by default at each partition's first
                owner or record.
            until: Where to end; by default at the end of the record, and by records at the last one of the
                partition's topic.

        Raises:
            AssertionError: One did.
        """
        assertions.assert_paused_at_most(self, ms, by=by, since=since, until=until)

    def assert_all_consumed(self, produced: Mapping[TopicPartition, int]) -> None:
        """Every record was reported by some member.

        Args:
            produced: Partition -> the number of its records, as `Load.stop` returns it.

        Raises:
            AssertionError: Some were not; the message counts them.
        """
        assertions.assert_all_consumed(self, produced)

    def assert_no_duplicates(self) -> None:
        """No record was reported twice.

        Raises:
            AssertionError: Some were; the message counts them.
        """
        assertions.assert_no_duplicates(self)

    def assert_no_rebalance(self, *, after: int) -> None:
        """No member came to a newer generation, as when a static member restarts in time.

        Args:
            after: The generation that was to be the last, as `wait_stable` returns it.

        Raises:
            AssertionError: One did.
        """
        assertions.assert_no_rebalance(self, after=after)

    # For people

    def chart(
        self,
        width: int = 100,
        *,
        reading: Reading = "callback",
        partitions: Collection[TopicPartition] | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> str:
        """Who had which partition when, as text: a row for each partition, a letter for each member.

        A column shows who had the partition for the longest part of its time; two owners at once are shown
        however short. Above are seconds, generations where the last member came to them, and what was done
        to members.

        Args:
            width: Characters in a line.
            reading: By whose word.
            partitions: Those to show; by default all that had an owner.
            since: Where to begin, on the clock of the events; by default at the first one.
            until: Where to end; by default at the end of the record.
        """
        return chart(self, width=width, reading=reading, partitions=partitions, since=since, until=until)

    def draw(self, path: str | Path, *, reading: Reading = "callback", title: str = "") -> Path:
        """Who had which partition when, as a picture: partitions down, time across, a colour for each member.

        Times are seconds from the first event. A black line is a time without an owner; two owners at once
        share the row in a black frame; grey bands are rebalances, with the generations above, and what was
        done to members above those. Members that are one static instance have one colour.

        Args:
            path: Where to write it; ".png" or ".svg" says as what. Its folder must exist.
            reading: By whose word.
            title: Stands above.

        Returns:
            The path.

        Raises:
            ValueError: The path ends otherwise.
            ImportError: matplotlib is not installed.
        """
        path = Path(path)
        if path.suffix not in {".png", ".svg"}:
            raise ValueError(f"{path}: a timeline is drawn as .png or .svg")
        try:
            from kafka_assignors._timelines.picture import draw  # noqa: PLC0415 - optional, and slow to import
        except ImportError as error:
            raise ImportError(
                f"drawing a timeline needs matplotlib ({error}): pip install 'kafka-assignors[testing]'"
            ) from error
        draw(self, path, reading=reading, title=title)
        return path
