"""Many messages read at the same time, the same field of all of them in one step of numpy.

What messages have any number of is read by its place: the first of all messages, then the second of those
that have two, and so on.

The bytes come from anybody. A `Cursor` reads nothing outside of the messages that it was given; one that ends
too early, or says what cannot be, is no longer `fine`, and what is read of it from then on means nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors._model.arrays import BoolArray, IntArray

_T = TypeVar("_T")

_WIDEST: Final = 8
_STEPS: Final = 40
"""As many things of a message are read in any case, however few messages have them."""
_FEWEST: Final = 24
"""Beyond that so many messages must have more of them: for fewer, a step of numpy takes longer than reading
them one by one."""


class Span(NamedTuple):
    """Where some bytes are in each message.

    Attributes:
        start: (M,) where they begin.
        size: (M,) how many there are; -1 for null.
    """

    start: IntArray
    size: IntArray


class Data:
    """The bytes that messages lie in.

    Args:
        array: An Arrow array of bytes, each of them a message.

    Attributes:
        whole: Where each message is.
        bytes: All bytes.
        integers: By width in bytes, the integer that begins at each byte.
    """

    def __init__(self, array: Any) -> None:
        array.validate(full=True)
        _, bounds, raw = array.buffers()
        ends = np.zeros(1, np.int64)
        if len(array):
            ends = np.frombuffer(bounds, np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
        self.whole = Span(ends[:-1], np.diff(ends))
        self.bytes = np.zeros(0, np.uint8) if raw is None else np.frombuffer(raw, np.uint8)
        if self.bytes.size < _WIDEST:
            self.bytes = np.concatenate((self.bytes, np.zeros(_WIDEST, np.uint8)))
        self.integers = {width: self._integers(width) for width in (2, 4, _WIDEST)}

    def _integers(self, width: int) -> Any:
        count = self.bytes.size - width + 1
        return np.ndarray((count,), f">i{width}", self.bytes, strides=(1,))

    def is_text(self, span: Span, text: bytes) -> BoolArray:
        """(M,) whether the bytes of a span are these."""
        same: BoolArray = span.size == len(text)
        for place, byte in enumerate(text):
            same &= self.bytes[np.minimum(span.start + place, self.bytes.size - 1)] == byte
        return same

    def slices(self, span: Span) -> Any:
        """An Arrow array of bytes: those of each span.

        Raises:
            ValueError: Spans are not in ascending order, each behind the one before.
        """
        count = span.start.size
        if count == 0:
            return pa.array([], pa.binary())
        # Between any two that are wanted there is one more, of what lies between them.
        bounds = np.empty(2 * count, dtype=np.int32)
        bounds[::2] = span.start
        bounds[1::2] = span.start + np.maximum(span.size, 0)
        if bounds[0] < 0 or bounds[-1] > self.bytes.size or (bounds[1:] < bounds[:-1]).any():
            raise ValueError("the spans are not in ascending order")
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.bytes)]
        pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        is_null = span.size < 0
        indices = np.arange(0, 2 * count, 2)
        return pieces.take(pa.array(indices, mask=is_null) if is_null.any() else pa.array(indices))


class Each(NamedTuple, Generic[_T]):
    """Things that messages have any number of, in the order of messages, and of each in its own.

    Attributes:
        whose: (E,) the number of the message.
        what: What was read: arrays of length E, in (named) tuples.
    """

    whose: IntArray
    what: _T

    def of(self, kept: BoolArray) -> Each[_T]:
        """Those of some messages, which are numbered anew."""
        mine = kept[self.whose]
        return Each((np.cumsum(kept) - 1)[self.whose[mine]], picked(self.what, mine))

    def merged(self, more: Each[_T]) -> Each[_T]:
        """These, and those of other messages."""
        if more.whose.size == 0:
            return self
        return _in_order([self.whose, more.whose], [self.what, more.what])


class Cursor:
    """A place in each of many messages.

    Args:
        data: What they lie in.
        span: The bytes of each.

    Attributes:
        at: (M,) where what is to be read next begins.
        fine: (M,) whether all that was read was there, and as it should be.
    """

    def __init__(self, data: Data, span: Span) -> None:
        self._data = data
        self.at = span.start.copy()
        self._end = span.start + np.maximum(span.size, 0)
        self.fine = np.ones(self.at.size, dtype=np.bool_)

    def need(self, condition: BoolArray) -> None:
        """Messages for which this does not hold are not fine."""
        if not condition.all():
            self._fail(~condition)

    def _fail(self, failed: BoolArray | IntArray) -> None:
        self.fine[failed] = False
        self.at[failed] = 0
        self._end[failed] = 0

    @property
    def left(self) -> IntArray:
        """(M,) how many bytes are left."""
        return self._end - self.at

    def skip(self, size: IntArray | int) -> IntArray:
        """Pass over bytes, of which there must be so many. Sizes below zero count as zero.

        Returns:
            (M,) where they begin.
        """
        start = self.at
        self.at = start + np.maximum(size, 0)
        self.need(self.at <= self._end)
        return start

    def _integer(self, width: int, when: BoolArray | None, otherwise: int) -> IntArray:
        is_there = when is None or when.all()
        start = self.skip(width if is_there else np.where(when, width, 0))  # type: ignore[arg-type]
        integers = self._data.integers[width]
        # What is not there could begin where the bytes end.
        read: IntArray = integers[np.minimum(start, integers.size - 1)].astype(np.int64)
        return read if is_there else np.where(when, read, otherwise)  # type: ignore[arg-type]

    def int16(self) -> IntArray:
        """The next two bytes."""
        return self._integer(2, None, 0)

    def int32(self, when: BoolArray | None = None, otherwise: int = -1) -> IntArray:
        """The next four bytes.

        Args:
            when: (M,) the messages that have this field.
            otherwise: What it is for others.
        """
        return self._integer(4, when, otherwise)

    def int64(self, when: BoolArray | None = None, otherwise: int = -1) -> IntArray:
        """The next eight bytes; see `int32`."""
        return self._integer(8, when, otherwise)

    def string(self, when: BoolArray | None = None) -> Span:
        """A string with its length in two bytes before it, or null."""
        return self._sized(self._integer(2, when, -1))

    def blob(self) -> Span:
        """Bytes with their length in four bytes before them, or null."""
        return self._sized(self.int32())

    def _sized(self, size: IntArray) -> Span:
        self.need(size >= -1)
        return Span(self.skip(size), size)

    def count(self, least: int, when: BoolArray | None = None) -> IntArray:
        """How many things follow, of so many bytes or more each; none where there is no such field."""
        count = self.int32(when, 0)
        self.need((count >= 0) & (count <= self.left // least))
        return count

    def each(self, count: IntArray, read: Callable[[Cursor, IntArray], _T]) -> Each[_T]:
        """Read what comes several times: the first of all messages, the second of those that have two, ...

        Messages with so many that hardly another has as many are not fine.

        Args:
            count: (M,) how often it comes.
            read: Reads one of each of some messages, of a cursor in these and their numbers.
        """
        whose: list[IntArray] = []
        what: list[_T] = []
        rows = np.flatnonzero(self.fine & (count > 0))
        while rows.size or not what:
            if len(what) >= _STEPS and rows.size < _FEWEST:
                self._fail(rows)
                break
            part = Cursor(self._data, Span(self.at[rows], self.left[rows]))
            what.append(read(part, rows))
            whose.append(rows)
            self.at[rows] = part.at
            self._fail(rows[~part.fine])
            rows = rows[part.fine & (count[rows] > len(what))]
        return Each(whose[0], what[0]) if len(what) == 1 else _in_order(whose, what)


def _in_order(whose: list[IntArray], what: list[_T]) -> Each[_T]:
    every = np.concatenate(whose)
    order = np.argsort(every, kind="stable")
    return Each(every[order], picked(_concatenated(what), order))


def only(what: _T, kept: BoolArray) -> _T:
    """What there is of some messages, in (named) tuples of arrays, and of `Each` whose messages they are."""
    return what if kept.all() else picked(what, kept)


def picked(what: Any, which: Any) -> Any:
    """As `only`, whether that are all or not; or, of arrays alone, those of some places."""
    if isinstance(what, np.ndarray):
        return what[which]
    if isinstance(what, Each):
        return what.of(which)
    parts = (picked(one, which) for one in what)
    return tuple(parts) if type(what) is tuple else type(what)(*parts)


def _concatenated(parts: list[Any]) -> Any:
    """Arrays in (named) tuples of the same kind, one behind another."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return type(parts[0])(*(_concatenated([*these]) for these in zip(*parts, strict=True)))
