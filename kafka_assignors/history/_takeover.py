"""Archives of format 1, which were Parquet in folders without a log, made present ones where they are.

    archive.json                                        with the cluster
    records/source=S/batch=B/day=YYYY-MM-DD/*.parquet
    topics/*.parquet
    staging/, checkpoint/, lock, exchange.json          of captures and merges

Nothing of the records is written again: the new tables' first commits name the files as they lie. Until
archive.json says format 2, the archive is an old one; what a takeover that was ended has left is removed.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from kafka_assignors.history._archive_format import (
    DESCRIPTION,
    FORMAT,
    RECORDS,
    TOPICS_NOTED,
    ArchiveBusyError,
    Description,
    WrongArchiveError,
    describe,
    format_of,
    log_of,
    make_empty,
)
from kafka_assignors.history._store.log import DataFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_assignors.history._store.places import Place


def take_over(where: Place) -> None:
    """Make an old archive one of the present format; nothing if another process has just done so.

    Args:
        where: Its place.

    Raises:
        WrongArchiveError: It is damaged; the message says where.
        ArchiveBusyError: An older version is writing into it.
    """
    folder = where.local
    if folder is None:
        raise WrongArchiveError(f"{where} is of format 1, which was for local folders only")
    with _locked(folder):
        text = where.read_text(DESCRIPTION) or ""
        if format_of(where, text) == FORMAT:
            return
        told = json.loads(text)
        described = Description(cluster_id=told.get("cluster_id"), partitions=told.get("partitions"))
        shutil.rmtree(folder / RECORDS / "_delta_log", ignore_errors=True)
        shutil.rmtree(folder / TOPICS_NOTED / "_delta_log", ignore_errors=True)
        files = _records(folder / RECORDS, _passed_over(folder))
        ends = _frontier(folder, files)
        dumps = {file.values["source"] for file in files} - {"topic"}
        topics = [
            DataFile(path.name, path.stat().st_size, _count(path))
            for path in (folder / TOPICS_NOTED).glob("[!.]*.parquet")
        ]
        records_log, topics_log = make_empty(where, described)
        topics_log.commit(add=topics)
        records_log.commit(
            add=files,
            transactions={
                **{log_of(number): end for number, end in ends.items()},
                **dict.fromkeys(dumps, 1),
            },
        )
        describe(where)
        _clear(folder)


def _clear(folder: Path) -> None:
    """Remove what only the old format had, but for the lock: who waits for it would have one of its own."""
    for name in ("staging", "checkpoint"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "exchange.json").unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        with FileLock(folder / "lock", timeout=0):
            yield
    except Timeout as error:
        raise ArchiveBusyError(
            f"a capture or import of an older version is writing into {folder}: end it first"
        ) from error


def _passed_over(folder: Path) -> set[str]:
    """The batches of a merge that was ended, which stand for others that are there."""
    journal = folder / "exchange.json"
    if not journal.exists():
        return set()
    told = _read_json(journal)
    done = (folder / told["source"] / f"batch={told['new']}").exists()
    return set(told["old"]) if done else set()


def _records(folder: Path, without: set[str]) -> list[DataFile]:
    found = []
    for path in sorted(folder.glob("source=*/batch=*/day=*/*.parquet")):
        source, batch, day, name = path.relative_to(folder).parts
        if batch.removeprefix("batch=") in without or name.startswith((".", "_")):
            continue
        values = {"source": source.removeprefix("source="), "day": day.removeprefix("day=")}
        found.append(DataFile(path.relative_to(folder).as_posix(), path.stat().st_size, _count(path), values))
    return found


def _count(path: Path) -> int:
    """How many rows a file has."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise WrongArchiveError(
            f"cannot read {path} ({error}): put it back from a backup, or move it out of the archive"
        ) from error


def _read_json(path: Path) -> Any:
    """The JSON of a file; Spark's have other lines before it."""
    try:
        return json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    except (OSError, ValueError, IndexError) as error:
        raise WrongArchiveError(f"cannot read {path} ({error}): put it back from a backup") from error


def _frontier(folder: Path, files: list[DataFile]) -> dict[int, int]:
    """By partition, up to where the topic was read: by the checkpoint, and by a batch unknown to it."""
    ends = _done_to(folder / "checkpoint")
    for file in files:
        if file.values["source"] == "topic":
            places = pq.read_table(
                folder / RECORDS / file.path, columns=["partition", "offset"], partitioning=None
            )
            last: Any = pa.TableGroupBy(places, "partition").aggregate([("offset", "max")])
            for row in last.to_pylist():
                number = row["partition"]
                ends[number] = max(row["offset_max"] + 1, ends.get(number, 0))
    return ends


def _done_to(checkpoint: Path) -> dict[int, int]:
    """By partition, where the newest batch ends that Spark's checkpoint says is done; empty if none is."""
    done = max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=None)
    if done is None:
        return {}
    ends: dict[str, int] = _read_json(checkpoint / "offsets" / str(done))
    return {int(number): end for number, end in ends.items()}
