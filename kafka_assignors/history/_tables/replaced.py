"""Delta tables that belong together: which version of each, in one small file.

A log is one table's. Readers that go by the file see the tables of one run, whole. To others the newest
versions are the same, but while a run commits, and after one that failed then until the next.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive_format import DESCRIPTION
from kafka_assignors.history._store.location import WrongPlaceError
from kafka_assignors.history._store.log import ConflictError, Log
from kafka_assignors.history._store.writing import TASK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from kafka_assignors.history._store.location import Location
    from kafka_assignors.history._store.log import DataFile

_FORMAT: Final = 2
_SET: Final = "set"
"""The transaction that counts the runs."""


class TablesBusyError(KafkaAssignorsError, RuntimeError):
    """Somebody else made tables in the same place at the same time, and ended first."""


class NoTablesError(KafkaAssignorsError, LookupError):
    """There are no tables in a place."""


class TableSet:
    """Tables of a place, by name with their columns, to be replaced all at once.

    The manifest will have `counts`, or how many rows each table has.
    """

    def __init__(self, where: Location, manifest: str, schemas: Mapping[str, pa.Schema]) -> None:
        self.where = where
        self.files: dict[str, list[DataFile]] = {}
        self.counts: Any = None
        self._manifest = manifest
        self._schemas = schemas
        _check_manifest(where, manifest)
        self._logs = {name: Log.owned(where / name, _described(name), TASK_FILE) for name in schemas}
        seen = [log.transaction(_SET) or 0 for log in self._logs.values() if log is not None]
        self._number = max(seen, default=0) + 1

    def rows(self, table: str) -> int:
        """How many rows a table is to have."""
        return sum(file.rows or 0 for file in self.files.get(table, ()))

    def replace(self) -> None:
        """Have the files be the tables, once the manifest says so.

        A file leaves `files` when a log may name it. If this fails, the manifest names the old versions,
        whose files stay.
        """
        counts = {name: self.rows(name) for name in self._schemas} if self.counts is None else self.counts
        versions: dict[str, int] = {}
        for name, schema in self._schemas.items():
            try:
                log = self._logs[name] or Log.create(self.where / name, schema, description=_described(name))
                self._logs[name] = log
                # A commit that fails may have been done: what it does not remove itself stays.
                new = self.files.pop(name, [])
                added = [file._replace(path=file.path.removeprefix(f"{name}/")) for file in new]
                log.commit(add=added, remove=log.files(), transactions={_SET: self._number})
            except ConflictError as error:
                raise TablesBusyError(
                    f"another run has put its tables into {self.where} meanwhile: run one at a time"
                ) from error
            versions[name] = log.version
        text = json.dumps({"format": _FORMAT, "versions": versions, "told": counts})
        self.where.write_text(self._manifest, f"{text}\n")

    def clean_up(self) -> None:
        """Delete files that were replaced long enough ago, and what runs have left that were ended."""
        for log in self._logs.values():
            if log is not None:
                log.vacuum(limits.TABLES_KEPT_HOURS, dry_run=False)


@contextmanager
def replacing(where: Location, manifest: str, schemas: Mapping[str, pa.Schema]) -> Iterator[TableSet]:
    """Tables of a place, to be given new files; if anything fails meanwhile, these are removed."""
    if where.read_text(DESCRIPTION) is not None:
        raise WrongPlaceError(f"{where} is an archive, and its tables go elsewhere: name another folder")
    tables = TableSet(where, manifest, schemas)
    try:
        yield tables
        tables.replace()
    except BaseException:
        where.remove([file.path for some in tables.files.values() for file in some])
        raise
    tables.clean_up()


def read_set(where: Location, manifest: str) -> tuple[dict[str, int], Any]:
    """The versions of the tables that belong together, and what was said of them."""
    text = where.read_text(manifest)
    if text is None:
        raise NoTablesError(f"there are no tables in {where}: it has no {manifest}")
    found = json.loads(text)
    if found["format"] != _FORMAT:
        raise NoTablesError(
            f"the tables in {where} are of format {found['format']}, and only {_FORMAT} is known: make them"
            " again"
        )
    return found["versions"], found["told"]


def _described(name: str) -> str:
    """What each table says of itself."""
    return f"{name}: made of an archive of groups' history"


def _check_manifest(where: Location, manifest: str) -> None:
    """Make sure that a file of that name is ours to replace."""
    text = where.read_text(manifest)
    try:
        found = {"format": _FORMAT} if text is None else json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or "format" not in found:
        raise WrongPlaceError(
            f"{where / manifest} is a file of others, which the tables would replace: name another folder, or"
            " move it elsewhere"
        )
