"""What of Java's strings and hash maps shows in what Kafka decides: their order and their hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FIRST_TABLE = 16
_FULL_BIN = 8  # A bin with so many keys makes a small table grow when one more comes.
_SMALL_TABLE = 64


def string_order(text: str) -> bytes:
    """A sort key for Java's order of strings: by UTF-16 units, so that U+1F600 comes before U+E000."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """`String.hashCode` as an unsigned number of 32 bits."""
    units = string_order(text)
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def spread_hash(key: str | None) -> int:
    """The hash of a key, 0 for the empty `Optional`, its upper half mixed into its lower as HashMap does."""
    hashed = 0 if key is None else string_hash(key)
    return hashed ^ hashed >> 16


class HashKeys:
    """The keys of a `java.util.HashMap`, walked in its order; strings, or `Optional`s of strings.

    The order goes by the keys' hashes and the size of the map's table, which grows with the keys and never
    shrinks. Left out is one thing: a bin with nine keys or more in a table of 64 bins or more, which Java
    makes a tree whose order depends on where objects lie in memory. Names that were not made to collide make
    none.

    Args:
        keys: Put one after the other; None is the empty `Optional`.
    """

    def __init__(self, keys: Iterable[str | None] = ()) -> None:
        self._hashes: dict[str | None, int] = {}
        self._table = _FIRST_TABLE
        for key in keys:
            self.add(key)

    def add(self, key: str | None) -> None:
        """Put a key; one that is there keeps its place."""
        if key in self._hashes:
            return
        spread = spread_hash(key)
        if self._table < _SMALL_TABLE:
            in_bin = sum((other ^ spread) & (self._table - 1) == 0 for other in self._hashes.values())
            if in_bin >= _FULL_BIN:
                self._table *= 2
        self._hashes[key] = spread
        if 4 * len(self._hashes) > 3 * self._table:
            self._table *= 2

    def discard(self, key: str | None) -> None:
        """Remove a key, if it is there."""
        self._hashes.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._hashes

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[str | None]:
        # A bin keeps its keys in the order they came, also when the table grows; so does a stable sort.
        return iter(sorted(self._hashes, key=lambda key: self._hashes[key] & (self._table - 1)))


def hash_order(keys: Iterable[str | None]) -> list[str | None]:
    """The keys, each once, in the order in which a hash map walks them in which they were put like this."""
    return list(HashKeys(keys))
