"""Delta tables that belong together: which version of each, in one small file.

A log is one table's. Readers that go by the file see the tables of one run, whole. To others the newest
versions are the same but for the moments in which a run commits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._store.log import ConflictError, Log
from kafka_assignors.history._store.places import StoreError, WrongPlaceError
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
        """Have these files be the tables. If that fails, the tables are the old ones again.

        Then files that no log has named are removed. Others stay, as somebody may be reading them.

        Args:
            files: By table, its files, relative to the place of all; tables that are not named are empty.
            told: What to say of the set; fit for JSON.

        Raises:
            TablesBusyError: See there.
            StoreError: The store does not let it be done.
        """
        unnamed = dict(files)
        new: list[DataFile] = []
        replaced: list[tuple[Log, list[DataFile]]] = []
        versions: dict[str, int] = {}
        try:
            for name, schema in self._schemas.items():
                new = unnamed.pop(name, [])
                log = self._logs[name] or Log.create(self.where / name, schema, description=_described(name))
                self._logs[name] = log
                old = log.files()
                log.commit(
                    add=[file._replace(path=file.path.removeprefix(f"{name}/")) for file in new],
                    remove=old,
                    transactions={_SET: self._number},
                )
                replaced.append((log, old))
                versions[name] = log.version
            text = json.dumps({"format": _FORMAT, "versions": versions, "told": told})
            self.where.write_text(self._manifest, f"{text}\n")
        except ConflictError as error:
            self._undo(replaced, [*unnamed.values(), new])
            raise TablesBusyError(
                f"another run has put its tables into {self.where} meanwhile: run one at a time"
            ) from error
        except BaseException:  # what was committed last may be there for all that: its files stay
            self._undo(replaced, [*unnamed.values()])
            raise

    def _undo(self, replaced: list[tuple[Log, list[DataFile]]], unnamed: list[list[DataFile]]) -> None:
        """Put the old tables back, and remove files that no log has named."""
        for log, old in replaced:
            try:
                log.commit(add=old, remove=log.files(), transactions={_SET: self._number})
            except (ConflictError, StoreError):
                continue  # it is another run's by now, or the manifest alone says which version holds
        self.where.remove([file.path for some in unnamed for file in some])

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
