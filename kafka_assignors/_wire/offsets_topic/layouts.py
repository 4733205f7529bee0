"""How the classes of `records` stand in bytes, by the types of their fields; `wire` has the format."""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints
from uuid import UUID

from kafka_assignors._wire.offsets_topic.records import Since, Tag
from kafka_assignors._wire.offsets_topic.wire import RecordError, RecordReader
from kafka_assignors._wire.reader import INT16, INT32, UnreadableError, encode_string


class Layout(NamedTuple):
    """How a type stands in bytes in one version, `least` of them at the least.

    `read` is told `what` it reads.
    """

    least: int
    read: Callable[[RecordReader, str], Any]
    write: Callable[[Any], bytes]


class Message(NamedTuple):
    """A message that begins with its version. Kafka's versions from `flexible_since` on are flexible."""

    type: type
    name: str
    versions: range
    flexible_since: int

    def read(self, data: bytes) -> Any:
        """Read one, to its last byte. Raises RecordError if the bytes are something else."""
        reader = RecordReader(data)
        try:
            return self._read(reader)
        except UnreadableError as fault:
            raise RecordError(self.name, reader.offset, len(data), str(fault)) from fault

    def _read(self, reader: RecordReader) -> Any:
        version = reader.int16("the version")
        if version not in self.versions:
            raise UnreadableError(f"version {version} is not known, only {self._known} are")
        reader.flexible = version >= self.flexible_since
        message = _layout(self.type, version, reader.flexible).read(reader, self.name)
        reader.end()
        return message

    def write(self, message: Any, version: int) -> bytes:
        """Write one without its tagged fields.

        Raises ValueError if there is no such version, or a string has more than 32,767 bytes.
        """
        if version not in self.versions:
            raise ValueError(f"{self.name} has no version {version}, only {self._known}")
        return INT16.pack(version) + _layout(self.type, version, version >= self.flexible_since).write(
            message
        )

    @property
    def _known(self) -> str:
        return f"{self.versions[0]} to {self.versions[-1]}"


@cache
def _layout(hint: Any, version: int, flexible: bool) -> Layout:
    hint, marks = _unmarked(hint)
    kind, nullable = (get_args(hint)[0], True) if NoneType in get_args(hint) else (hint, False)
    if kind is int:
        number = marks[0]
        return Layout(number.size, lambda reader, what: reader.number(number, what), number.pack)
    if get_origin(kind) is tuple:
        return _array(get_args(kind)[0], version, flexible, nullable)
    if is_dataclass(kind):
        made = _struct(kind, version, flexible)
        return _or_null(made) if nullable else made
    if kind is UUID:
        return Layout(16, RecordReader.uuid, lambda uuid: bytes(uuid.bytes))
    if kind is str:
        read = RecordReader.string if nullable else RecordReader.text
        return Layout(1 if flexible else 2, read, partial(_text, flexible))
    return Layout(
        1 if flexible else 4, RecordReader.blob, lambda data: _length(flexible, len(data)) + bytes(data)
    )


def _unmarked(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what it is annotated with."""
    kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return kind, tuple(marks)


def _array(one: Any, version: int, flexible: bool, nullable: bool) -> Layout:
    element = _layout(one, version, flexible)
    kind, marks = _unmarked(one)

    def read(reader: RecordReader, what: str) -> Any:
        of_one = f"one of {what}"
        return reader.each(element.least, what.removeprefix("the "), lambda: element.read(reader, of_one))

    def read_numbers(reader: RecordReader, what: str) -> tuple[int, ...] | None:
        what = what.removeprefix("the ")
        found = reader.numbers_or_null(marks[0], what)
        if found is None and not nullable:
            raise UnreadableError(f"the array of {what} is null")
        return found

    def write(items: Any) -> bytes:
        return _length(flexible, len(items)) + b"".join(map(element.write, items))

    return Layout(1 if flexible else 4, read_numbers if kind is int else read, write)


def _struct(message: Any, version: int, flexible: bool) -> Layout:
    hints = get_type_hints(message, include_extras=True)
    plain: list[tuple[str, str, Layout]] = []
    tagged: dict[int, tuple[str, str, Layout]] = {}
    given = {"version": version} if hints.get("version") is int else {}
    for name, hint in hints.items():
        marks = _unmarked(hint)[1]
        if name in given or name == "value" or any(_lacks(version, mark) for mark in marks):
            continue
        field = name, f"the {name.replace('_', ' ')}", _layout(hint, version, flexible)
        tag = next((mark.tag for mark in marks if isinstance(mark, Tag)), None)
        if tag is None:
            plain.append(field)
        else:
            tagged[tag] = field
    readers = [(name, what, layout.read) for name, what, layout in plain]
    # The bytes of a record's key have not its value, which is to be added.
    make = partial(partial, message) if "value" in hints else message

    def read(reader: RecordReader, _: str) -> Any:
        found = {name: read_field(reader, what) for name, what, read_field in readers}
        if flexible:
            known = {tag: partial(layout.read, reader, what) for tag, (_, what, layout) in tagged.items()}
            found |= {tagged[tag][0]: value for tag, value in reader.tagged(known).items()}
        return make(**given, **found)

    def write(value: Any) -> bytes:
        written = [layout.write(getattr(value, name)) for name, _, layout in plain]
        return b"".join([*written, b"\0" if flexible else b""])

    return Layout(sum(layout.least for *_, layout in plain) + flexible, read, write)


def _lacks(version: int, mark: Any) -> bool:
    return isinstance(mark, Since) and not mark.first <= version <= mark.last


def _or_null(one: Layout) -> Layout:
    """Among tagged fields, a struct that can be null has a varint before it."""

    def read(reader: RecordReader, what: str) -> Any:
        return None if reader.unsigned(f"whether {what} is null") == 0 else one.read(reader, what)

    return Layout(1, read, lambda value: b"\0" if value is None else b"\1" + one.write(value))


def _text(flexible: bool, text: str | None) -> bytes:
    if text is None:
        return b"\0" if flexible else b"\xff\xff"
    encoded = encode_string(text)
    return _length(True, len(encoded) - INT16.size) + encoded[INT16.size :] if flexible else encoded


def _length(flexible: bool, length: int) -> bytes:
    """Of bytes or of an array."""
    if not flexible:
        return INT32.pack(length)
    number = length + 1
    varint = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        varint.append(number & 0x7F | 0x80)
        number >>= 7
    varint.append(number)
    return bytes(varint)
