"""One batch of an archive instead of several: what tells, at any moment, which of both count.

    <archive>/exchange.json    the new batch, and the old ones that it stands for

It is written before the new batch gets its place, by a rename, and removed after the old ones. From the
rename on the old ones are passed over, so that whoever reads sees each record once, whenever the exchange was
ended.
"""

from __future__ import annotations

import json
import posixpath
from typing import Final, NamedTuple

from kafka_assignors.history._folders import folders, read_text, remove_file, remove_folder, write_text

JOURNAL: Final = "exchange.json"
_BATCH: Final = "batch="


class Exchange(NamedTuple):
    """Batches of one source.

    Attributes:
        source: The folder of the source.
        new: The new batch.
        old: Those that it stands for.
    """

    source: str
    new: str
    old: tuple[str, ...]


def begin(archive: str, exchange: Exchange) -> None:
    """Tell what is about to be exchanged; the new batch must not be there yet."""
    write_text(archive, JOURNAL, json.dumps(exchange._asdict()))


def finish(archive: str) -> None:
    """Remove the old batches, if the new one has its place; else everything stays as it was."""
    found = _read(archive)
    if found is None:
        return
    if _is_in_place(archive, found):
        for batch in found.old:
            remove_folder(posixpath.join(archive, found.source), f"{_BATCH}{batch}")
    remove_file(archive, JOURNAL)


def passed_over(archive: str) -> frozenset[str]:
    """The old batches of an exchange that is not over, if they no longer count."""
    found = _read(archive)
    return frozenset(found.old) if found is not None and _is_in_place(archive, found) else frozenset()


def _read(archive: str) -> Exchange | None:
    text = read_text(archive, JOURNAL)
    if text is None:
        return None
    told = json.loads(text)
    return Exchange(told["source"], told["new"], tuple(told["old"]))


def _is_in_place(archive: str, exchange: Exchange) -> bool:
    return f"{_BATCH}{exchange.new}" in folders(posixpath.join(archive, exchange.source))
