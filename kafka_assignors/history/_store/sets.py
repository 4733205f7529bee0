"""Delta tables that belong together: which version of each, in one small file.

A log is one table's. Readers that go by the file see the tables of one run, whole. To others the newest
versions are the same, but while a run commits, and after one that failed then until the next.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._store.log import ConflictError, Log
from kafka_assignors.history._store.places import WrongPlaceError
from kafka_assignors.history._store.writing import TASK_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.places import Place

_FORMAT: Final = 2
_SET: Final = "set"
"""The transaction that counts the runs."""

KEPT_HOURS: Final = 24
"""How long files stay that were replaced, for who reads them; tables can be made again."""


class TablesBusyError(KafkaAssignorsError, RuntimeError):
    """Somebody else made tables in the same place at the same time, and ended first."""


class NoTablesError(KafkaAssignorsError, LookupError):
    """There are no tables in a place."""


class TableSet:
    """Tables to be replaced all at once.

    Args:
        where: The place of all of them.
        manifest: The name of the file that says which versions belong together.
        schemas: By table, its columns, with comments.

    Raises:
        WrongPlaceError: There is something else where they are to be.
        StoreError: The store does not let them be read.
    """

    def __init__(self, where: Place, manifest: str, schemas: Mapping[str, pa.Schema]) -> None:
        self.where = where
        self._manifest = manifest
        self._schemas = schemas
        _check_manifest(where, manifest)
        self._logs = {name: Log.owned(where / name, _described(name), TASK_FILE) for name in schemas}
        seen = [log.transaction(_SET) or 0 for log in self._logs.values() if log is not None]
        self._number = max(seen, default=0) + 1

    def replace(self, files: Mapping[str, list[DataFile]], told: Any) -> None:
        """Have these files be the tables, once the manifest says so.

        If that fails, the manifest names the versions of before, whose files stay. Then files that no log has
        named are removed.

        Args:
            files: By table, its files, relative to the place of all; tables that are not named are empty.
            told: What to say of the set; fit for JSON.

        Raises:
            TablesBusyError: See there.
            StoreError: The store does not let it be done.
        """
        unnamed = dict(files)
        versions: dict[str, int] = {}
        try:
            for name, schema in self._schemas.items():
                # Of a commit that fails nobody knows whether it was done, but for conflicts: its files stay.
                new = unnamed.pop(name, [])
                try:
                    versions[name] = self._replace(name, schema, new)
                except ConflictError as error:
                    unnamed[name] = new
                    raise TablesBusyError(
                        f"another run has put its tables into {self.where} meanwhile: run one at a time"
                    ) from error
            text = json.dumps({"format": _FORMAT, "versions": versions, "told": told})
            self.where.write_text(self._manifest, f"{text}\n")
        except BaseException:
            self.where.remove([file.path for some in unnamed.values() for file in some])
            raise

    def _replace(self, name: str, schema: pa.Schema, new: list[DataFile]) -> int:
        """Replace one table; its version then."""
        log = self._logs[name] or Log.create(self.where / name, schema, description=_described(name))
        self._logs[name] = log
        added = [file._replace(path=file.path.removeprefix(f"{name}/")) for file in new]
        log.commit(add=added, remove=log.files(), transactions={_SET: self._number})
        return log.version

    def clean_up(self) -> None:
        """Delete files that were replaced long enough ago, and what runs have left that were ended."""
        for log in self._logs.values():
            if log is not None:
                log.vacuum(KEPT_HOURS, dry_run=False)


def read_set(where: Place, manifest: str) -> tuple[dict[str, int], Any]:
    """The versions of the tables that belong together, and what was said of them.

    Raises:
        NoTablesError: There are none, or of an older version of this package.
        StoreError: The store does not let them be read.
    """
    text = where.read_text(manifest)
    if text is None:
        raise NoTablesError(f"there are no tables in {where}: it has no {manifest}")
    told = json.loads(text)
    if told["format"] != _FORMAT:
        raise NoTablesError(
            f"the tables in {where} are of format {told['format']}, and only {_FORMAT} is known: make them"
            " again"
        )
    return told["versions"], told["told"]


def _described(name: str) -> str:
    """What each table says of itself."""
    return f"{name}: made of an archive of groups' history"


def _check_manifest(where: Place, manifest: str) -> None:
    """Make sure that a file of that name is ours to replace."""
    text = where.read_text(manifest)
    try:
        told = {"format": _FORMAT} if text is None else json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict) or "format" not in told:
        raise WrongPlaceError(
            f"{where / manifest} is a file of others, which the tables would replace: name another folder, or"
            " move it elsewhere"
        )
