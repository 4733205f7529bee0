"""The layouts of the consumer protocol (KIP-429), one message at a time: the plain reference.

    string           int16 length + bytes, -1 for null
    partition list   int32 topics, each: string, int32 n, n x int32
    subscription     int16 version, int32 topics, each: string; int32 length + user data, -1 for null;
                     from v1 partition list; from v2 int32 generation; from v3 string
    assignment       int16 version, partition list, int32 length + user data, -1 for null

All integers are big-endian. The bytes come from other members, so reading trusts nothing. Every count is
checked against the bytes that are there before anything is made of it. `codec` reads many messages at once.
"""

import reprlib
import struct
from typing import Final, NamedTuple

import numpy as np

from kafka_assignors._common.errors import KafkaAssignorsError

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")

OWNED_SINCE: Final = 1
GENERATION_SINCE: Final = 2
RACK_SINCE: Final = 3
"""The versions of subscriptions from which on they have owned partitions, a generation and a rack."""

LONGEST_TEXT: Final = 2**15 - 1
"""Bytes that a string of Kafka's has at most."""

_SHOWN: Final = 60
"""Characters of another member's text that an error has at most: it is logged."""


def encode_string(text: str) -> bytes:
    """Write a string. Raises ValueError if it has more than 32,767 bytes."""
    raw = text.encode()
    if len(raw) > LONGEST_TEXT:
        raise ValueError(
            f"a string of {len(raw)} bytes is too long: Kafka's have no more than {LONGEST_TEXT}"
        )
    return INT16.pack(len(raw)) + raw


class UnreadableError(KafkaAssignorsError, ValueError):
    """The bytes are not what they should be."""


class SubscriptionFields(NamedTuple):
    """What counts in a ConsumerProtocolSubscription; see `Reader.subscription`.

    `owned` are the bytes of its partition list, which may yet be found unreadable. `fault` is what stands in
    it that Kafka never writes, and does not count.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: bytes = b""
    generation: int | None = None
    rack: str | None = None
    fault: str | None = None


class AssignmentFields(NamedTuple):
    """What stands in a ConsumerProtocolAssignment."""

    version: int
    partitions: list[tuple[str, list[int]]]
    user_data: bytes | None


class Reader:
    """Reads bytes from the front, and never past the end.

    Each method's `what` is what it reads, for the error. Every method raises UnreadableError for what cannot
    be.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.offset

    def take(self, size: int, what: str) -> bytes:
        if size < 0:
            raise UnreadableError(f"{what} is negative ({size})")
        taken = self.data[self.offset : self.offset + size]
        if len(taken) < size:
            raise UnreadableError(f"{what} needs {size} bytes, {len(taken)} are left")
        self.offset += size
        return taken

    def int16(self, what: str) -> int:
        return self.number(INT16, what)

    def int32(self, what: str) -> int:
        return self.number(INT32, what)

    def number(self, kind: struct.Struct, what: str) -> int:
        """The next number of some kind."""
        try:
            number: int = kind.unpack_from(self.data, self.offset)[0]
        except struct.error:
            self.take(kind.size, what)  # which says how many bytes are missing
            raise
        self.offset += kind.size
        return number

    def length(self, what: str) -> int:
        """The length of bytes or of an array; -1 for null."""
        return self.int32(what)

    def count_or_null(self, least: int, what: str) -> int | None:
        """A number of things that take at least so many bytes each, so that an absurd one fails at once."""
        count = self.length(f"the number of {what}")
        if count == -1:
            return None
        if count < 0 or count * least > self.left:
            raise UnreadableError(f"{count} {what} do not fit into {self.left} bytes")
        return count

    def count(self, least: int, what: str) -> int:
        """The same of an array that cannot be null."""
        count = self.count_or_null(least, what)
        if count is None:
            raise UnreadableError(f"the array of {what} is null")
        return count

    def version(self) -> int:
        """The version that a message begins with."""
        version = self.int16("the version")
        if version < 0:
            raise UnreadableError(f"there is no version {version}")
        return version

    def string(self, what: str) -> str | None:
        """A string; None for null."""
        size = self.int16(f"the length of {what}")
        if size == -1:
            return None
        raw = self.take(size, what)
        try:
            return raw.decode()
        except UnicodeDecodeError as fault:
            raise UnreadableError(f"{what} {reprlib.repr(raw)} is not UTF-8") from fault

    def text(self, what: str) -> str:
        """A string that cannot be null."""
        text = self.string(what)
        if text is None:
            raise UnreadableError(f"{what} is null")
        return text

    def blob_or_null(self, what: str) -> bytes | None:
        """Bytes; None for null."""
        size = self.length(f"the length of {what}")
        return None if size == -1 else self.take(size, what)

    def partition_list(self) -> list[tuple[str, list[int]]]:
        listed = []
        for _ in range(self.count(6, "topics")):
            name = self.text("a topic's name")
            shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"  # errors are logged
            count = self.count(4, f"partitions of {shown}")
            ids = self.take(count * 4, f"the partitions of {shown}")
            listed.append((name, np.frombuffer(ids, dtype=">i4").tolist()))
        return listed

    def raw_partition_list(self) -> bytes:
        """The bytes of a partition list, whose names are not looked at; null lists pass for empty ones."""
        start = self.offset
        for _ in range(self.count_or_null(6, "topics") or 0):
            self.take(self.int16("the length of a topic's name"), "a topic's name")
            self.take((self.count_or_null(4, "partitions") or 0) * 4, "the partitions")
        return self.data[start : self.offset]

    def subscription(self) -> SubscriptionFields:
        """A ConsumerProtocolSubscription; what versions after 3 append is not read.

        A member is served by its topics, whatever follows them: a field behind them that cannot be read
        counts as not there, with all that follow it. A null among the topics does not count.
        """
        version = self.version()
        topics = [self.string("a topic's name") for _ in range(self.count(2, "topics"))]
        read = SubscriptionFields(version, tuple([name for name in topics if name is not None]))
        try:
            read = read._replace(user_data=self.blob_or_null("the user data"))
            if version >= OWNED_SINCE:
                read = read._replace(owned=self.raw_partition_list())
            if version >= GENERATION_SINCE:
                read = read._replace(generation=self.int32("the generation"))
            if version >= RACK_SINCE:
                read = read._replace(rack=self.string("the rack"))
        except UnreadableError as error:
            return read._replace(fault=str(error))
        return read._replace(fault="a topic's name is null" if None in topics else None)

    def assignment(self) -> AssignmentFields:
        """A ConsumerProtocolAssignment; what newer versions append is not read."""
        return AssignmentFields(self.version(), self.partition_list(), self.blob_or_null("the user data"))
