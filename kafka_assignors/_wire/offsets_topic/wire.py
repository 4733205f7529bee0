"""How records of the offsets topic are written: Kafka's message format, read without trusting a byte of it.

    int16 version, then the fields of that version, one behind another

Up to a message's first *flexible* version (KIP-482) lengths are int16 for strings and int32 for bytes and
arrays, -1 for null. From then on all are unsigned varints, one more than the length, 0 for null. Each struct
ends with tagged fields: varint count, each varint tag, varint size, bytes. Readers skip the tags that they do
not know, which is how newer brokers add fields (KIP-915).
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._wire.reader import LONGEST_TEXT, Reader, UnreadableError

_T = TypeVar("_T")

_VARINT_BYTES: Final = 5
_VARINT_LIMIT: Final = 2**32


class RecordError(KafkaAssignorsError, ValueError):
    """The bytes are no record as Kafka writes it.

    Attributes:
        reading: What was being read, as Kafka calls it.
        offset: The byte that reading had come to.
        size: How many bytes there are.
        reason: What is wrong there.
    """

    def __init__(self, reading: str, offset: int, size: int, reason: str) -> None:
        # All of them as `args`: exceptions cross processes by these.
        super().__init__(reading, offset, size, reason)
        self.reading = reading
        self.offset = offset
        self.size = size
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reading}, byte {self.offset} of {self.size}: {self.reason}"


class RecordReader(Reader):
    """Reads a message's fields, of flexible versions as well."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.flexible = False

    def uuid(self, what: str) -> UUID:
        return UUID(bytes=self.take(16, what))

    def unsigned(self, what: str) -> int:
        """An unsigned varint below 2^32."""
        number = 0
        for index in range(_VARINT_BYTES):
            (byte,) = self.take(1, what)
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
                break
        else:
            raise UnreadableError(f"{what} is a varint of more than {_VARINT_BYTES} bytes")
        if number >= _VARINT_LIMIT:
            raise UnreadableError(f"{what} ({number}) takes more than 32 bits")
        return number

    def length(self, what: str) -> int:
        """The length of bytes or of an array; -1 for null."""
        return self.unsigned(what) - 1 if self.flexible else self.int32(what)

    def string(self, what: str) -> str | None:
        """A string; None for null."""
        length = f"the length of {what}"
        size = self.unsigned(length) - 1 if self.flexible else self.int16(length)
        if size == -1:
            return None
        if size > LONGEST_TEXT:
            raise UnreadableError(f"{what} has {size:,} bytes: Kafka's strings have {LONGEST_TEXT:,} at most")
        try:
            return self.take(size, what).decode()
        except UnicodeDecodeError as fault:
            raise UnreadableError(f"{what} is not UTF-8 ({fault.reason})") from fault

    def blob(self, what: str) -> bytes:
        """Bytes that cannot be null."""
        blob = self.blob_or_null(what)
        if blob is None:
            raise UnreadableError(f"{what} is null")
        return blob

    def each(self, least: int, what: str, read: Callable[[], _T]) -> tuple[_T, ...]:
        """An array that cannot be null, of things of so many bytes each at the least."""
        return tuple(read() for _ in range(self.count(least, what)))

    def numbers_or_null(self, number: struct.Struct, what: str) -> tuple[int, ...] | None:
        """An array of numbers; None for null."""
        count = self.count_or_null(number.size, what)
        if count is None:
            return None
        return struct.unpack(f">{count}{number.format[1:]}", self.take(number.size * count, what))

    def tagged(self, known: Mapping[int, Callable[[], Any]]) -> dict[int, Any]:
        """The tagged fields that end a struct, by tag; those that are not known are skipped."""
        found: dict[int, Any] = {}
        for _ in range(self.unsigned("the number of tagged fields")):
            tag = self.unsigned("a tag")
            size = self.unsigned(f"the size of the field with tag {tag}")
            end = self.offset + size
            if tag in known:
                found[tag] = known[tag]()
                if self.offset != end:
                    raise UnreadableError(f"the field with tag {tag} does not have its {size} bytes")
            else:
                self.take(size, f"the field with tag {tag}")
        return found

    def end(self) -> None:
        """Nothing may follow."""
        if self.left:
            raise UnreadableError(f"{self.left} bytes are left over")
