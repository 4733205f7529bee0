"""How many records a group worked off of each partition, by the offsets that it committed.

An archive has commits if they were captured (`history capture --commits`): about one a minute of each
partition. An offset that was set back adds nothing; what is read again after that does.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._wire.offsets_topic import OffsetCommit, RecordError, decode_record
from kafka_assignors.history._schemas import COMMIT_KEY

Records = dict[tuple[str, int], float]  # how many, by topic and partition id

WINDOW_US: Final = 600_000_000  # before a rebalance, over which rates are measured


@dataclass(slots=True)
class _Partition:
    """When a partition was committed, and how many records were worked off since the first commit."""

    offset: int  # that was committed last
    times_us: "array[int]" = field(default_factory=lambda: array("q"))
    done: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, time_us: int, offset: int) -> None:
        # A clock that was set back stands still until it is where it was.
        self.times_us.append(max([time_us, *self.times_us[-1:]]))
        self.done.append(sum(self.done[-1:]) + max(0, offset - self.offset))
        self.offset = offset

    def until(self, time_us: int) -> float:
        """What was worked off up to the last commit before a moment."""
        return self.done[max(0, bisect_right(self.times_us, time_us) - 1)]

    def at(self, time_us: int) -> float:
        """What was worked off up to a moment, evenly between two commits: they can be hours apart."""
        after = bisect_right(self.times_us, time_us)
        if after in {0, len(self.done)}:
            return self.done[max(0, after - 1)]
        (began, ended), (less, more) = self.times_us[after - 1 : after + 1], self.done[after - 1 : after + 1]
        return less + (more - less) * (time_us - began) / (ended - began)

    def rate(self, begin_us: int, end_us: int) -> float | None:
        """Records a second; None if that is unknown: there is but one commit, and not long ago."""
        count, first_us = bisect_right(self.times_us, end_us), self.times_us[0]
        seconds = (end_us - max(begin_us, first_us)) / 1e6
        is_known = count > 1 or (count == 1 and first_us <= begin_us)
        return (self.until(end_us) - self.until(begin_us)) / seconds if is_known and seconds > 0 else None


class Commits:
    """A group's commits, taken out of its records as these are read; so many could not be (`rejected`)."""

    def __init__(self) -> None:
        self.rejected = 0
        self.behind_us = 0  # what clocks were set back by, as the course counts it
        self._of: dict[tuple[str, int], _Partition] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def without(self, records: Iterable[ArchivedRecord]) -> Iterator[ArchivedRecord]:
        """The other records."""
        for record in records:
            if record.key.startswith(COMMIT_KEY):
                self._take(record)
            else:
                yield record

    def _take(self, record: ArchivedRecord) -> None:
        try:
            commit = decode_record(record.key, record.value)
        except RecordError:
            self.rejected += 1
            return
        if isinstance(commit, OffsetCommit) and commit.value is not None:
            offset = commit.value.offset
            partition = self._of.setdefault((commit.topic, commit.partition), _Partition(offset))
            partition.add(record.time_us + self.behind_us, offset)

    @property
    def until_us(self) -> int:
        """When the last one was."""
        return max((one.times_us[-1] for one in self._of.values()), default=0)

    def between(self, begin_us: int, end_us: int) -> Records:
        """How many records of each partition were worked off."""
        return {name: max(0.0, one.at(end_us) - one.at(begin_us)) for name, one in self._of.items()}

    def rates(self, at_us: int) -> Records:
        """Records a second of each partition in the time before a moment, by commits up to that.

        Nothing is known then if the group worked off nothing.
        """
        begin_us = at_us - WINDOW_US
        found = {
            name: rate for name, one in self._of.items() if (rate := one.rate(begin_us, at_us)) is not None
        }
        return found if any(found.values()) else {}
