"""How records of the offsets topic are written: Kafka's message format, read without trusting a byte of it.

    int16 version, then the fields of that version, one behind another

Up to a message's first *flexible* version (KIP-482) lengths are int16 for strings and int32 for bytes and
arrays, -1 for null. From then on all are unsigned varints, one more than the length, 0 for null. Each struct
ends with tagged fields: varint count, each varint tag, varint size, bytes. Readers skip the tags that they do
not know, which is how newer brokers add fields (KIP-915).
"""

import struct
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._wire.reader import (
    INT16,
    INT32,
    LONGEST_TEXT,
    Reader,
    UnreadableError,
    encode_string,
)

_T = TypeVar("_T")

_INT64: Final = struct.Struct(">q")
_VARINT_BYTES: Final = 5
_VARINT_LIMIT: Final = 2**32
NEVER: Final = 2**15
"""The first flexible version of what has none."""


class RecordError(KafkaAssignorsError, ValueError):
    """The bytes are no record as Kafka writes it.

    Attributes:
        reading: What was being read, as Kafka calls it.
        place: The byte that reading had come to.
        size: How many bytes there are.
        reason: What is wrong there.
    """

    def __init__(self, reading: str, place: int, size: int, reason: str) -> None:
        # All of them as `args`: exceptions cross processes by these.
        super().__init__(reading, place, size, reason)
        self.reading = reading
        self.place = place
        self.size = size
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reading}, byte {self.place} of {self.size}: {self.reason}"


class RecordReader(Reader):
    """Reads a message's fields, of flexible versions as well."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.flexible = False

    def int8(self, what: str) -> int:
        """The next byte, signed."""
        return int.from_bytes(self.take(1, what), signed=True)

    def int64(self, what: str) -> int:
        """The next eight bytes."""
        return int(_INT64.unpack(self.take(_INT64.size, what))[0])

    def uuid(self, what: str) -> UUID:
        """The next sixteen bytes."""
        return UUID(bytes=self.take(16, what))

    def unsigned(self, what: str) -> int:
        """An unsigned varint below 2^32."""
        number = 0
        for place in range(_VARINT_BYTES):
            (byte,) = self.take(1, what)
            number |= (byte & 0x7F) << 7 * place
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

    def int32s(self, what: str) -> tuple[int, ...]:
        """An array of int32 that cannot be null."""
        return self._int32s(self.count(4, what), what)

    def int32s_or_null(self, what: str) -> tuple[int, ...] | None:
        """An array of int32; None for null."""
        count = self.count_or_null(4, what)
        return None if count is None else self._int32s(count, what)

    def texts(self, what: str, one: str) -> tuple[str, ...]:
        """An array of strings; neither it nor they can be null."""
        return self.each(1 if self.flexible else 2, what, lambda: self.text(one))

    def tagged(self, known: Mapping[int, Callable[[], Any]] = {}) -> dict[int, Any]:
        """The tagged fields that end a struct; nothing in versions that are not flexible.

        Args:
            known: What reads each tag that is known.

        Returns:
            What was read, by tag. Tags that are not known are skipped.
        """
        found: dict[int, Any] = {}
        if not self.flexible:
            return found
        for _ in range(self.unsigned("the number of tagged fields")):
            tag = self.unsigned("a tag")
            size = self.unsigned(f"the size of the field with tag {tag}")
            end = self.place + size
            if tag in known:
                found[tag] = known[tag]()
                if self.place != end:
                    raise UnreadableError(f"the field with tag {tag} has not the {size} bytes that it says")
            else:
                self.take(size, f"the field with tag {tag}")
        return found

    def end(self) -> None:
        """Nothing may follow."""
        if self.left:
            raise UnreadableError(f"{self.left} bytes are left over")

    def _int32s(self, count: int, what: str) -> tuple[int, ...]:
        return struct.unpack(f">{count}i", self.take(4 * count, what))


class RecordWriter:
    """Writes a message's fields, one behind another.

    Args:
        flexible: Whether the version is a flexible one.
    """

    def __init__(self, *, flexible: bool = False) -> None:
        self.flexible = flexible
        self._parts: list[bytes] = []

    def int16(self, number: int) -> None:
        """Two bytes."""
        self._parts.append(INT16.pack(number))

    def int32(self, number: int) -> None:
        """Four bytes."""
        self._parts.append(INT32.pack(number))

    def int64(self, number: int) -> None:
        """Eight bytes."""
        self._parts.append(_INT64.pack(number))

    def text(self, text: str | None) -> None:
        """A string, or null.

        Raises:
            ValueError: It has more than 32,767 bytes.
        """
        if text is None:
            self._parts.append(b"\0" if self.flexible else b"\xff\xff")
            return
        encoded = encode_string(text)
        if self.flexible:
            encoded = encoded[INT16.size :]
            self._unsigned(len(encoded) + 1)
        self._parts.append(encoded)

    def blob(self, data: bytes) -> None:
        """Bytes."""
        self.count(len(data))
        self._parts.append(data)

    def count(self, count: int) -> None:
        """How many things follow."""
        if self.flexible:
            self._unsigned(count + 1)
        else:
            self.int32(count)

    def no_tags(self) -> None:
        """The end of a struct without tagged fields."""
        if self.flexible:
            self._unsigned(0)

    def written(self) -> bytes:
        """All of it."""
        return b"".join(self._parts)

    def _unsigned(self, number: int) -> None:
        varint = bytearray()
        while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
            varint.append(number & 0x7F | 0x80)
            number >>= 7
        varint.append(number)
        self._parts.append(bytes(varint))


def read_message(
    data: bytes,
    name: str,
    read: Callable[[RecordReader, int], _T],
    *,
    versions: Collection[int],
    flexible_since: int = NEVER,
) -> _T:
    """Read a message that begins with its version, to its last byte.

    Args:
        data: The bytes.
        name: What they are, as Kafka calls it.
        read: Reads the fields, given the version.
        versions: Those that are known.
        flexible_since: The first flexible version.

    Raises:
        RecordError: The bytes are something else.
    """
    reader = RecordReader(data)
    try:
        version = reader.int16("the version")
        _check_version(version, versions)
        reader.flexible = version >= flexible_since
        message = read(reader, version)
        reader.end()
    except UnreadableError as fault:
        raise RecordError(name, reader.place, len(data), str(fault)) from fault
    return message


def _check_version(version: int, versions: Collection[int]) -> None:
    if version not in versions:
        raise UnreadableError(f"version {version} is not known, only {min(versions)} to {max(versions)} are")
