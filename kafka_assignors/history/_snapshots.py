"""A group's records as snapshots: each of a classic group is one, those of KIP-848 add up."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from kafka_assignors._common.escaping import get_logger
from kafka_assignors._groups.classic import classic_snapshot
from kafka_assignors._groups.kip848 import Kip848Group
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot, keep_claims, keep_owned
from kafka_assignors._wire.offsets_topic import GroupMetadata, Record, RecordError, decode_record

_log = get_logger(__name__)

_Taken = TypeVar("_Taken")


class SnapshotReader:
    """Makes snapshots of one group's records as they come; `rejected` is how many could not be read.

    The coordinator writes all that follows from one request at once. So what records of one time add up to is
    known when a later one comes, or by `flush`.
    """

    def __init__(self, topic_names: Mapping[str, str] | None = None) -> None:
        self.rejected = 0
        self._kip848 = Kip848Group(topic_names or {})
        self._last: ArchivedRecord | None = None
        self._classic: Snapshot | None = None
        self._told: Snapshot | None = None

    def add(self, record: ArchivedRecord) -> Iterator[Snapshot]:
        """Take the next record, if it is a later one; gives snapshots of those before, mostly one or none."""
        last = self._last
        if last is not None and (record.partition, record.offset) <= (last.partition, last.offset):
            return
        decoded: Record | None = None
        if record.snapshot is None:
            try:
                decoded = decode_record(record.key, record.value)
            except RecordError:
                self.rejected += 1
                return
        again = self._classic is not None and (decoded is None or isinstance(decoded, GroupMetadata))
        if again or (last is not None and last.time_us != record.time_us):
            self._kip848.give_up(record.time_us)
            yield from self.flush()
        self._last = record
        if decoded is None:
            self._classic = record.snapshot
        elif isinstance(decoded, GroupMetadata):
            self._classic = (
                _gone(record, decoded.group_id, 0 if self._told is None else self._told.generation)
                if decoded.value is None
                else classic_snapshot(record, decoded.group_id, decoded.value)
            )
        else:
            self._kip848.add(record, decoded)

    def learn(self, topic_names: Mapping[str, str]) -> None:
        """Take more names of topics."""
        self._kip848.learn(topic_names)

    def flush(self) -> Iterator[Snapshot]:
        """What the records up to now add up to, if that was not returned yet."""
        modern = self._kip848.snapshot()
        classic, self._classic = self._classic, None
        # A group that changes its protocol is deleted as what it was in the same moment.
        found = [one for one in (classic, modern) if one is not None]
        for snapshot in [one for one in found if one.members] or found[-1:]:
            last, self._told = self._told, snapshot
            if last is not None:
                self._told = keep_claims(last, snapshot)
                keep_owned(last, self._told)
            yield self._told


def follow(
    records: Iterable[ArchivedRecord], reader: SnapshotReader, take: Callable[[Snapshot], _Taken]
) -> Iterator[_Taken]:
    """What a function makes of the snapshots of a group.

    A record on which either fails is logged and counts as rejected: no group may end the job for all.
    """
    for record in chain(records, (None,)):
        found: list[_Taken] = []
        try:
            snapshots = [*(reader.flush() if record is None else reader.add(record))]
            found += map(take, snapshots)
        except Exception:  # noqa: BLE001 - whatever it is
            place = "the end" if record is None else f"{record.partition}-{record.offset}"
            _log.exception("cannot read the record at %s, or the one before", place)
            reader.rejected += 1
        yield from found


def _gone(record: ArchivedRecord, group: str, generation: int) -> Snapshot:
    """A group that was deleted, or that was empty for long: it begins anew, with generation 1."""
    return Snapshot(
        group=group,
        generation=generation,
        time_us=record.time_us,
        partition=record.partition,
        offset=record.offset,
        leader_epoch=record.leader_epoch,
    )
