"""Delta tables that belong together: which version of each, in one small file, as a log is one table's."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive_format import DESCRIPTION
from kafka_assignors.history._store.location import Location, WrongPlaceError
from kafka_assignors.history._store.log import ConflictError, DataFile, Log
from kafka_assignors.history._store.writing import TASK_FILE

_FORMAT: Final = 2
_SET: Final = "set"  # the transaction that counts the runs


class TablesBusyError(KafkaAssignorsError, RuntimeError):
    """Somebody else made tables in the same place at the same time, and ended first."""


class NoTablesError(KafkaAssignorsError, LookupError):
    """There are no tables in a place."""


@contextmanager
def replacing(
    where: Location, manifest: str, schemas: Mapping[str, pa.Schema]
) -> Iterator[dict[str, list[DataFile]]]:
    """Tables of a location, to be replaced by the files put under their names, all at once or not at all."""
    if where.read_text(DESCRIPTION) is not None:
        raise WrongPlaceError(f"{where} is an archive, and its tables go elsewhere: name another folder")
    _check_manifest(where, manifest)
    logs = {name: Log.owned(where / name, _described(name), TASK_FILE) for name in schemas}
    number = 1 + max(log.transaction(_SET) or 0 if log is not None else 0 for log in logs.values())
    files: dict[str, list[DataFile]] = {}
    replaced: list[Log] = []
    try:
        yield files
        for name, schema in schemas.items():
            log = logs[name] or Log.create(where / name, schema, description=_described(name))
            # Taken out, as a commit that fails may have been done: what it does not remove itself stays.
            new = files.pop(name, [])
            added = [file._replace(path=file.path.removeprefix(f"{name}/")) for file in new]
            log.commit(add=added, remove=log.files(), transactions={_SET: number})
            replaced.append(log)
        versions = {name: log.version for name, log in zip(schemas, replaced, strict=True)}
        where.write_text(manifest, f"{json.dumps({'format': _FORMAT, 'versions': versions})}\n")
    except BaseException as error:
        where.remove([file.path for some in files.values() for file in some])
        if isinstance(error, ConflictError):
            raise TablesBusyError(
                f"another run has put its tables into {where} meanwhile: run one at a time"
            ) from error
        raise
    for log in replaced:
        log.vacuum(limits.TABLES_KEPT_HOURS, dry_run=False)


def read_versions(where: Location, manifest: str) -> dict[str, int]:
    """The versions of the tables that belong together."""
    text = where.read_text(manifest)
    if text is None:
        raise NoTablesError(f"there are no tables in {where}: it has no {manifest}")
    try:
        found = json.loads(text)
        known = found["format"]
        versions = dict(found["versions"]) if known == _FORMAT else {}
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise NoTablesError(f"cannot read {where / manifest} ({error}): make the tables again") from error
    if known != _FORMAT:
        raise NoTablesError(
            f"the tables in {where} are of format {known}, and only {_FORMAT} is known: make them again"
        )
    return versions


def _described(name: str) -> str:
    return f"{name}: made of an archive of groups' history"


def _check_manifest(where: Location, manifest: str) -> None:
    """Make sure that a file of that name is ours to replace."""
    text = where.read_text(manifest)
    try:
        found = {"format": _FORMAT} if text is None else json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "format" not in found:
        raise WrongPlaceError(
            f"{where / manifest} is a file of others, which the tables would replace: name another folder, or"
            " move it elsewhere"
        )
