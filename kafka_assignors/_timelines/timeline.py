"""What happened in a consumer group, worked out from the events that its members reported.

All data here is plain and all functions are pure: a `Timeline` is made from recorded `Event`s. Who owned a
partition has two readings, see `kafka_assignors._timelines.ownership`: by "callback", the calls of
applications' listeners, and by "generation", the group's word.

Times are seconds on the clock of the events (`time.monotonic()` where `group` records them).
"""

from collections.abc import Collection
from pathlib import Path

from kafka import TopicPartition

from kafka_assignors._timelines.assertions import TimelineAssertions
from kafka_assignors._timelines.chart import chart
from kafka_assignors._timelines.ownership import Reading


class Timeline(TimelineAssertions):
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

        Times are seconds from the first event. A black line is a time without an owner. Two owners at once
        share the row in a black frame. Grey bands are rebalances, with the generations above, and what was
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
