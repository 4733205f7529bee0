"""What is in archives, from the command line: without Spark if they are small."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._info import describe, describe_here
from kafka_assignors.history._java import JavaMissingError
from kafka_assignors.history._local import TooLargeError, is_small, read_groups, spark_is_there
from kafka_assignors.history._metrics_local import measure_here
from kafka_assignors.history._metrics_tables import tables_at
from kafka_assignors.history._report_local import report_here
from kafka_assignors.history._store.places import place, read_store_config
from kafka_assignors.history._store.sets import TablesBusyError
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka_assignors._cli.arguments import Replayed, Selection, Store


class SparkError(KafkaAssignorsError, RuntimeError):
    """What Spark says, in words."""


ERRORS: Final = Errors(
    wrong=(ValueError,),  # a wrong archive, properties file, assignor or scenario
    failed=(JavaMissingError, SparkError, TablesBusyError, OSError),
)


def store_options(store: Store) -> dict[str, str]:
    """The options of a store."""
    return {} if store.store_config is None else read_store_config(store.store_config)


def opened(store: Store, *, skip_bad: bool = False) -> Archive:
    """The archive that is meant."""
    return Archive(store.archive, store_options(store), skip_bad=skip_bad)


@contextmanager
def running_spark(store: Store, doing: str) -> Iterator[SparkSession]:
    """A session of Spark, and the progress of what it does.

    Raises:
        SparkError: Spark failed.
    """
    # With Spark, this module would take seconds to import.
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from kafka_assignors.history._capture import reason  # noqa: PLC0415
    from kafka_assignors.history._progress import show_jobs  # noqa: PLC0415
    from kafka_assignors.history._session import spark_session  # noqa: PLC0415

    try:
        spark = spark_session(store.master)
        with show_jobs(spark, doing):
            yield spark
    except (PySparkException, Py4JError) as error:
        raise SparkError(f"{reason(str(error))} (in Spark)") from error


def info(*, store: Store, selection: Selection, skip_bad: bool) -> Answer:
    """What an archive has."""
    there = opened(store, skip_bad=skip_bad)
    if _without_spark(store) and is_small(there):
        found = describe_here(there, **selection._asdict())
    else:
        with running_spark(store, "counting") as spark:
            found = describe(spark, there, **selection._asdict())
    return Answer(
        lambda: {
            "archive": there.where.uri,
            "version": there.version,
            "files": len(there.files()),
            "bytes": sum(file.size for file in there.files()),
            "cluster_id": there.description.cluster_id,
            "topic": there.description.topic,
            "partitions": there.description.partitions,
            "topics": len({topic.topic for topic in there.topics()}),
            "sources": {name: text.counts_to_json(counts) for name, counts in found.counts.items()},
            "since": found.since,
            "until": found.until,
            "groups": dict(found.groups),
        },
        text.info_lines(there, found),
    )


def metrics(*, store: Store, out: str | None, selection: Selection, skip_bad: bool) -> Answer:
    """How restless groups were."""
    options = store_options(store)
    if out is not None:
        tables_at(place(out, options))  # a wrong one is refused before anything is read
    there = opened(store, skip_bad=skip_bad)
    records = _read_here(store, there, selection)
    if records is not None:
        rows = measure_here(records, there.topics(), out, options)
        rows = [{**row, "reasons": dict(row["reasons"])} for row in rows]
    else:
        rows = _measure_on_spark(store, there, out, selection)
    rows.sort(key=lambda row: (-row["rebalances"], row["group"]))
    return Answer(lambda: rows, text.metrics_lines(rows))


def _measure_on_spark(
    store: Store, there: Archive, out: str | None, selection: Selection
) -> list[dict[str, Any]]:
    with running_spark(store, "measuring") as spark:
        from pyspark import StorageLevel  # noqa: PLC0415 - as in `running_spark`

        from kafka_assignors.history._archive_report import zoned  # noqa: PLC0415
        from kafka_assignors.history._metrics import groups_of, measure, write_pieces  # noqa: PLC0415

        records = there.read_groups(spark, **selection._asdict())
        pieces = measure(records, there.topics()).persist(StorageLevel.DISK_ONLY)
        if out is not None:
            write_pieces(pieces, out, store_options(store))
        rows = [zoned(row, "since", "until") for row in groups_of(pieces).collect()]
        pieces.unpersist()
    return rows


def report(
    *,
    store: Store,
    page: Path,
    no_what_if: bool,
    replayed: Replayed,
    selection: Selection,
    skip_bad: bool,
) -> Answer:
    """Write the page on groups' histories."""
    there = opened(store, skip_bad=skip_bad)
    if not page.absolute().parent.is_dir():
        raise ValueError(f"there is no folder for the page {page}: make it, or name another")
    if page.is_dir():
        raise ValueError(f"{page} is a folder, and the page is a file: write {page / 'groups.html'}")
    assignors = () if no_what_if else replayed.assignors or ASSIGNORS
    scenarios = replayed.scenarios or SCENARIOS
    records = _read_here(store, there, selection, replayed=not no_what_if)
    if records is not None:
        size = report_here(there, records, page, assignors=assignors, scenarios=scenarios)
    else:
        with running_spark(store, "reporting") as spark:
            from kafka_assignors.history._archive_report import report_archive  # noqa: PLC0415 - as above

            rows = there.read_groups(spark, **selection._asdict())
            size = report_archive(there, rows, page, assignors=assignors, scenarios=scenarios)
    return Answer(
        lambda: {"page": str(page), "bytes": size}, [f"{page}: {size:,} bytes, to be opened in a browser"]
    )


def _without_spark(store: Store) -> bool:
    return store.master is None and not spark_is_there()


def _read_here(store: Store, there: Archive, selection: Selection, *, replayed: bool = False) -> Any | None:
    """The records that are meant; None if they are Spark's to read."""
    if not _without_spark(store) or not is_small(there, selection.since, selection.until, replayed=replayed):
        return None
    try:
        return read_groups(there, **selection._asdict())
    except TooLargeError:
        return None
