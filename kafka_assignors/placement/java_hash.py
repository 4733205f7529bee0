"""What of Java's strings and hash maps shows in a placement: two orders of rack names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_TABLE = 16
_FULL_BIN = 8  # A bin with so many keys makes a small table grow when one more comes.
_SMALL_TABLE = 64


def string_order(text: str) -> bytes:
    """A sort key for Java's order of strings: by UTF-16 units, so that U+1F600 comes before U+E000."""
    return text.encode("utf-16-be", "surrogatepass")


def hash_order(keys: Iterable[str | None]) -> list[str | None]:
    """The order in which a `java.util.HashMap` walks keys of type `Optional<String>`.

    Left out is one thing: a bin with nine keys or more in a table of 64 bins or more, which Java makes a tree
    whose order depends on where objects lie in memory. Names that were not made to collide make none.

    Args:
        keys: In the order in which they are put, None for the empty `Optional`. One that is put again keeps
            its place.

    Returns:
        Each key once, in the map's order.
    """
    hashes: dict[str | None, int] = {}
    table = _FIRST_TABLE
    for key in keys:
        if key in hashes:
            continue
        spread = _spread_hash(key)
        if table < _SMALL_TABLE:
            bin_size = sum((other ^ spread) & (table - 1) == 0 for other in hashes.values())
            if bin_size >= _FULL_BIN:
                table *= 2
        hashes[key] = spread
        if 4 * len(hashes) > 3 * table:
            table *= 2
    # A bin keeps its keys in the order they came, also when the table grows; so does a stable sort.
    return sorted(hashes, key=lambda key: hashes[key] & (table - 1))


def _spread_hash(key: str | None) -> int:
    """The hash of an `Optional` of the string, its upper half mixed into its lower as HashMap does."""
    value = 0
    units = b"" if key is None else string_order(key)
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value ^ value >> 16
