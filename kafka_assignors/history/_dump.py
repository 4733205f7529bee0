r"""Dumps of the offsets topic into an archive: what Kafka's own console consumer prints.

`BytesDeserializer` prints a byte that is no letter, digit or sign of ASCII as \xNN, and the backslash, too.
So a tab separates fields, a line is a record, and nothing of a record is lost. See docs/history.md.
"""

import gzip
import hashlib
import re
import zlib
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import gt
from pathlib import Path
from typing import Any, Final

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.times import LAST_MS
from kafka_assignors._wire.offsets_topic.record import decode_record
from kafka_assignors._wire.offsets_topic.records import UnknownRecord
from kafka_assignors._wire.offsets_topic.wire import RecordError
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._counts import NO_TYPE, Counts
from kafka_assignors.history._source import to_rows
from kafka_assignors.history._store.log import ConflictError
from kafka_assignors.history._store.writing import run_task

_LINE: Final = re.compile(
    rb"(?:CreateTime|LogAppendTime):(\d{1,15})\tPartition:(\d{1,10})\tOffset:(\d{1,19})"
    rb"\t((?:[ -\[\]-~]|\\x[0-9A-F]{2})*)\t((?:[ -\[\]-~]|\\x[0-9A-F]{2})*)\n"
)
_GREATEST: Final = (LAST_MS, 2**31 - 1, 2**63 - 1)  # of a record's time, partition and offset
_LONGEST: Final = 2**26  # bytes of a line: of a record of 16 MiB, each byte printed as four
_AT_ONCE: Final = 2**22  # bytes of lines
_SHOWN: Final = 80  # bytes of a line that is wrong


class WrongDumpError(KafkaAssignorsError, ValueError):
    """A dump cannot be read; the message names the file and the line."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        source: What the dump's records are called in the archive: by its content.
        counts: How many records it added, by type.
        known: How many of the kept records the archive had already.
        rejected: How many of the added records cannot be decoded; the table `rejected` says why.
    """

    source: str
    counts: Counts
    known: int
    rejected: int

    def to_json(self) -> dict[str, Any]:
        """For machines: the counts beside the others."""
        return {**fields_of(self, without=["counts"]), **self.counts.to_json()}


def import_dump(path: Path | str, archive: Archive) -> Imported:
    """Add a dump's records to an archive, but for those that it has (by partition and offset).

    Args:
        path: A file of what kafka-console-consumer prints with the options of docs/history.md; also .gz.
        archive: The archive.

    Raises:
        WrongDumpError: It cannot be read, or has a line that is no record.
        StoreError: The archive cannot be written.
    """
    dump = Path(path)
    source = f"dump-{_digest(dump)}"
    while True:
        there = archive.offsets_of(archive.files())
        reading = _Reading(dump, {(number, one) for number, some in there.items() for one in some.tolist()})
        counts = Counts()
        if archive.has(source):
            deque(reading.batches(), maxlen=0)
            break
        with suppress(ConflictError):
            counts = archive.append(partial(run_task, reading.batches()), source, {source: 1})
            break
        archive.refresh()  # a capture has added some of these, perhaps
    known = len(reading.seen) - counts.kept.total()
    return Imported(source=source, counts=counts, known=known, rejected=reading.rejected)


@dataclass
class _Reading:
    """Reads a dump once, without the records that are known by partition and offset."""

    dump: Path
    known: set[tuple[int, int]]
    seen: set[tuple[int, int]] = field(default_factory=set)  # of what archives keep
    rejected: int = 0

    def batches(self) -> Iterator[Any]:
        """Rows of ARCHIVE."""
        waiting: defaultdict[int, list[Any]] = defaultdict(list)
        size = 0
        for message, length in self._lines():
            waiting[message.partition()].append(message)
            size += length
            if size >= _AT_ONCE:
                yield from self._rows(waiting)
                size = 0
        yield from self._rows(waiting)

    def _rows(self, waiting: defaultdict[int, list[Any]]) -> Iterator[Any]:
        for partition, messages in waiting.items():
            rows = to_rows(messages, partition)
            yield rows.filter([self._is_new(row) for row in rows.to_pylist()])
        waiting.clear()

    def _is_new(self, row: dict[str, Any]) -> bool:
        """Whether a row is to be added; a count of records always is."""
        if row["key"] is None and row["type"] != NO_TYPE:
            return True
        place = row["partition"], row["offset"]
        is_new = place not in self.known and place not in self.seen
        self.seen.add(place)
        self.rejected += is_new and not _is_decoded(row["key"], row["value"])
        return is_new

    def _lines(self) -> Iterator[tuple[Any, int]]:
        """Each line as a message of the client, and how long it is."""
        number = 0
        try:
            with gzip.open(self.dump) if self.dump.suffix == ".gz" else self.dump.open("rb") as stream:
                while text := stream.readline(_LONGEST):
                    number += 1
                    yield _read_line(text), len(text)
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise WrongDumpError(f"cannot read {self.dump}, line {number}: {error}") from error


def _read_line(text: bytes) -> Message:
    found = _LINE.fullmatch(text)
    numbers = [] if found is None else [*map(int, found.groups()[:3])]
    if found is None or any(map(gt, numbers, _GREATEST)):
        raise ValueError(
            f"{text[:_SHOWN].decode(errors='replace')!r} is no record as kafka-console-consumer prints it"
            " with the options that docs/history.md names"
        )
    time_ms, partition, offset = numbers
    return Message(
        partition=partition,
        offset=offset,
        timestamp=(TIMESTAMP_CREATE_TIME, time_ms),
        leader_epoch=-1,  # it is not printed
        key=_bytes(found[4]),
        value=_bytes(found[5]),
    )


def _bytes(printed: bytes) -> bytes | None:
    """The bytes that are printed so; none for null, which no key or value of a record of groups is."""
    return None if printed == b"null" else printed.decode("unicode_escape").encode("latin-1")


def _is_decoded(key: bytes | None, value: bytes | None) -> bool:
    with suppress(RecordError):
        return not isinstance(decode_record(key, value), UnknownRecord)
    return False


def _digest(dump: Path) -> str:
    """Of a dump's content, which its source in the archive is called by."""
    try:
        with dump.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:12]
    except OSError as error:
        raise WrongDumpError(f"cannot read {dump}: {error.strerror}") from error
