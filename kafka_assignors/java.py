"""What of Java's strings, ids and hash maps shows in a plan or a placement: the orders in which they come."""

from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

Key = TypeVar("Key")

_FIRST_TABLE = 16
_FULL_BIN = 8  # A bin with so many keys makes a small table grow when one more comes.
_SMALL_TABLE = 64


def string_order(text: str) -> bytes:
    """A sort key for Java's order of strings: by UTF-16 units, so that U+1F600 comes before U+E000."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str | None) -> int:
    """The `hashCode` of a string, and of an `Optional` of it, None for the empty one: 32 bits, unsigned."""
    value = 0
    units = b"" if text is None else string_order(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def uuid_order(uuid: UUID) -> tuple[int, int]:
    """A sort key for Java's order of UUIDs: its two halves are signed, so that 8... comes before 7..."""
    high, low = _halves(uuid)
    return high - ((high & 1 << 63) << 1), low - ((low & 1 << 63) << 1)


def uuid_hash(uuid: UUID) -> int:
    """The `hashCode` of a UUID, Java's or Kafka's: 32 bits, unsigned."""
    high, low = _halves(uuid)
    both = high ^ low
    return (both >> 32 ^ both) & 0xFFFFFFFF


def _halves(uuid: UUID) -> tuple[int, int]:
    return uuid.int >> 64, uuid.int & (1 << 64) - 1


def hash_order(keys: Iterable[Key], hash_of: Callable[[Key], int], *, room: int = 0) -> list[Key]:
    """The order in which a `java.util.HashMap`, or a `HashSet`, walks its keys.

    Left out is one thing: a bin with nine keys or more in a table of 64 bins or more, which Java makes a tree
    whose order depends on where objects lie in memory. Names that were not made to collide make none.

    Args:
        keys: In the order in which they are put. One that is put again keeps its place.
        hash_of: The `hashCode` of a key: 32 bits, unsigned.
        room: For how many keys the map was made, if it was made for some. Java 19 and newer need no more
            bins for them than for the same keys put one by one; an older one may.

    Returns:
        Each key once, in the map's order.
    """
    hashes: dict[Key, int] = {}
    table = _FIRST_TABLE
    while 4 * room > 3 * table:
        table *= 2
    for key in keys:
        if key in hashes:
            continue
        spread = _spread(hash_of(key))
        if table < _SMALL_TABLE:
            bin_size = sum((other ^ spread) & (table - 1) == 0 for other in hashes.values())
            if bin_size >= _FULL_BIN:
                table *= 2
        hashes[key] = spread
        if 4 * len(hashes) > 3 * table:
            table *= 2
    # A bin keeps its keys in the order they came, also when the table grows; so does a stable sort.
    return sorted(hashes, key=lambda key: hashes[key] & (table - 1))


def _spread(value: int) -> int:
    """A hash with its upper half mixed into its lower, as HashMap does."""
    return value ^ value >> 16
