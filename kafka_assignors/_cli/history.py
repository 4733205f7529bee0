"""The history of groups, from the command line."""

import argparse
from dataclasses import asdict
from typing import Any

from kafka.errors import KafkaError
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.client import client_settings
from kafka_assignors._cli.errors import complain, exit_status
from kafka_assignors._cli.history_what_if_text import what_if_lines
from kafka_assignors._cli.output import show, show_json
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._archive import Archive, ArchiveBusyError, Counts, file_uri
from kafka_assignors.history._archive_report import report_archive, zoned
from kafka_assignors.history._capture import INTERVAL_SECONDS, CaptureError, capture, reason
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._info import describe
from kafka_assignors.history._java import JavaMissingError
from kafka_assignors.history._metrics import groups_of, measure, write_pieces
from kafka_assignors.history._progress import show_capture, show_jobs
from kafka_assignors.history._schemas import TOPICS
from kafka_assignors.history._session import spark_session
from kafka_assignors.history._spark_schema import spark_schema
from kafka_assignors.history._tables.job import TablesBusyError, make_tables
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS, what_if

_REFUSALS = (
    ClusterError,
    KafkaError,
    CaptureError,
    ArchiveBusyError,
    JavaMissingError,
    TablesBusyError,
    OSError,
)


def run(options: argparse.Namespace) -> int:
    """Run one of the commands; see the parser.

    Returns:
        The exit status: 0 done, 1 it could not be done, 2 what cannot be asked for.
    """
    command = f"history {options.verb}"
    try:
        return exit_status(
            command,
            lambda: _RUN[options.verb](options),
            wrong=(ValueError,),  # a wrong archive, dump, properties file, assignor or scenario
            failed=_REFUSALS,
        )
    except (PySparkException, Py4JError) as error:
        complain(command, f"{reason(str(error))} (in Spark)")
        return 1


def _capture(options: argparse.Namespace) -> int:
    settings = client_settings(options)
    archive = Archive.create(options.archive)
    spark = spark_session(options.master)
    with show_capture() as watch:
        done = capture(
            spark,
            options.bootstrap_servers.split(","),
            archive,
            once=not options.continuous,
            interval=options.interval or INTERVAL_SECONDS,
            settings=settings,
            max_records=options.max_records,
            watch=watch,
        )
    if options.json:
        show_json({"offsets": done.offsets, "batches": done.batches, **_counts_to_json(done.counts)})
    else:
        show("\n".join(text.captured_lines(done)))
    return 0


def _import(options: argparse.Namespace) -> int:
    archive = Archive.create(options.archive)
    spark = spark_session(options.master)
    with show_jobs(spark, "importing"):
        done = import_dump(spark, options.dump, archive)
    if options.json:
        show_json({"source": done.source, "known": done.known, **_counts_to_json(done.counts)})
    else:
        show("\n".join(text.imported_lines(done)))
    return 0


def _info(options: argparse.Namespace) -> int:
    archive = Archive(options.archive)
    spark = spark_session(options.master)
    with show_jobs(spark, "counting"):
        found = describe(spark, archive, since=options.since, until=options.until, groups=options.groups)
    if options.json:
        show_json(
            {
                "archive": str(archive.path),
                "cluster_id": archive.description.cluster_id,
                "topic": archive.description.topic,
                "partitions": archive.description.partitions,
                "topics": len({topic.topic for topic in archive.topics()}),
                "sources": {name: _counts_to_json(counts) for name, counts in found.counts.items()},
                "since": found.since,
                "until": found.until,
                "groups": dict(found.groups),
            }
        )
    else:
        show("\n".join(text.info_lines(archive, found)))
    return 0


def _merge(options: argparse.Namespace) -> int:
    archive = Archive(options.archive)
    spark = spark_session(options.master)
    with show_jobs(spark, "merging"):
        merged = archive.merge(spark)
    if options.json:
        show_json({"merged": merged})
    else:
        show(text.merged_line(archive, merged))
    return 0


def _tables(options: argparse.Namespace) -> int:
    archive = Archive(options.archive)
    spark = spark_session(options.master)
    records: DataFrame | str = file_uri(archive.path)
    topics = None
    if options.since or options.until or options.groups:
        records = archive.read(spark, since=options.since, until=options.until, groups=options.groups)
        topics = spark.createDataFrame(archive.topics(), spark_schema(TOPICS))
    with show_jobs(spark, "decoding"):
        counts = make_tables(
            spark,
            records,
            file_uri(options.out),
            decoder=options.decoder,
            topics=topics,
        )
    if options.json:
        show_json(asdict(counts))
    else:
        show("\n".join(text.tables_lines(options.out, counts)))
    return 0


def _metrics(options: argparse.Namespace) -> int:
    archive = Archive(options.archive)
    spark = spark_session(options.master)
    with show_jobs(spark, "measuring"):
        pieces = measure(_selected(spark, archive, options), archive.topics()).persist(StorageLevel.DISK_ONLY)
        if options.out is not None:
            write_pieces(pieces, options.out)
        rows = [zoned(row, "since", "until") for row in groups_of(pieces).collect()]
        pieces.unpersist()
    rows.sort(key=lambda row: (-row["rebalances"], row["group"]))
    if options.json:
        show_json(rows)
    else:
        show("\n".join(text.metrics_lines(rows)))
    return 0


def _what_if(options: argparse.Namespace) -> int:
    archive = Archive(options.archive)
    topics, names = seen_and_names(archive.topics())
    spark = spark_session(options.master)
    with show_jobs(spark, "replaying"):
        found = what_if(
            _selected(spark, archive, options),
            assignors=options.assignors or ASSIGNORS,
            scenarios=options.scenarios or SCENARIOS,
            topics=topics,
            topic_names=names,
        )
        rows = [row.asDict() for row in found.collect()]
    if options.json:
        show_json(rows)
    else:
        show("\n".join(what_if_lines(rows)))
    return 0


def _report(options: argparse.Namespace) -> int:
    archive = Archive(options.archive)
    if not options.page.absolute().parent.is_dir():
        raise ValueError(f"there is no folder for the page {options.page}: make it, or name another")
    spark = spark_session(options.master)
    with show_jobs(spark, "reporting"):
        size = report_archive(
            archive,
            _selected(spark, archive, options),
            options.page,
            assignors=() if options.no_what_if else options.assignors or ASSIGNORS,
            scenarios=options.scenarios or SCENARIOS,
        )
    if options.json:
        show_json({"page": str(options.page), "bytes": size})
    else:
        show(f"{options.page}: {size:,} bytes, to be opened in a browser")
    return 0


def _selected(spark: SparkSession, archive: Archive, options: argparse.Namespace) -> DataFrame:
    return archive.read_groups(spark, since=options.since, until=options.until, groups=options.groups)


def _counts_to_json(counts: Counts) -> dict[str, Any]:
    return {"read": counts.read, "kept": dict(counts.kept), "counted": dict(counts.counted)}


_RUN = {
    "capture": _capture,
    "import": _import,
    "info": _info,
    "merge": _merge,
    "metrics": _metrics,
    "report": _report,
    "tables": _tables,
    "what-if": _what_if,
}
