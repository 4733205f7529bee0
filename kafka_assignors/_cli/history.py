"""The history of groups, from the command line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Final

from kafka.errors import KafkaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.arguments import ClusterClient, Replayed, Selection, Store
from kafka_assignors._cli.client import client_settings
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.history_read import opened, store_options
from kafka_assignors._cli.history_what_if_text import what_if_lines
from kafka_assignors._cli.output import Answer
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import ArchiveBusyError
from kafka_assignors.history._capture import (
    INTERVAL_SECONDS,
    Captured,
    CaptureError,
    capture as capture_into,
    reason,
)
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._java import JavaMissingError
from kafka_assignors.history._maintenance import maintain as keep_up, plan_maintenance
from kafka_assignors.history._progress import show_capture, show_jobs
from kafka_assignors.history._schemas import TOPICS
from kafka_assignors.history._session import spark_session
from kafka_assignors.history._spark_schema import spark_schema
from kafka_assignors.history._store.places import place
from kafka_assignors.history._store.sets import TablesBusyError
from kafka_assignors.history._tables.job import make_tables, tables_at
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS, what_if as replay


def _words(error: Exception) -> str:
    if isinstance(error, (PySparkException, Py4JError)):
        return f"{reason(str(error))} (in Spark)"
    return str(error)


ERRORS: Final = Errors(
    wrong=(ValueError,),  # a wrong archive, dump, properties file, assignor or scenario
    failed=(
        ClusterError,
        KafkaError,
        CaptureError,
        ArchiveBusyError,
        JavaMissingError,
        TablesBusyError,
        OSError,
        PySparkException,
        Py4JError,
    ),
    words=_words,
)


@contextmanager
def _spark(store: Store, doing: str) -> Iterator[SparkSession]:
    """A session of Spark, and the progress of what it does."""
    spark = spark_session(store.master)
    with show_jobs(spark, doing):
        yield spark


def capture(
    *,
    client: ClusterClient,
    store: Store,
    continuous: bool,
    interval: int | None,
    max_records: int,
) -> Answer:
    """Read what is new in a running cluster into an archive; see `capture` of `history`."""
    settings = client_settings(client)
    into = Archive.create(store.archive, store_options(store))
    spark = spark_session(store.master)
    so_far = Captured()

    def note(captured: Captured) -> None:
        nonlocal so_far
        so_far = captured
        watch(captured)

    try:
        with show_capture() as watch:
            done = capture_into(
                spark,
                client.bootstrap_servers or [],
                into,
                once=not continuous,
                interval=interval or INTERVAL_SECONDS,
                settings=settings,
                max_records=max_records,
                watch=note,
            )
    except KeyboardInterrupt:
        print("\n".join(text.captured_lines(so_far)), file=sys.stderr)
        raise
    return Answer(
        lambda: {
            "offsets": done.offsets,
            "batches": done.batches,
            "lost": done.lost,
            **text.counts_to_json(done.counts),
        },
        text.captured_lines(done),
    )


def import_records(*, store: Store, dump: Path) -> Answer:
    """Add the records of a dump to an archive."""
    into = Archive.create(store.archive, store_options(store))
    with _spark(store, "importing") as spark:
        done = import_dump(spark, dump, into)
    return Answer(
        lambda: {"source": done.source, "known": done.known, **text.counts_to_json(done.counts)},
        text.imported_lines(done),
    )


def maintain(
    *, store: Store, keep: timedelta | None, retention: timedelta, execute: bool, skip_bad: bool
) -> Answer:
    """Make many files few, remove old days, delete files that nobody needs."""
    there = opened(store, skip_bad=skip_bad)
    plan = plan_maintenance(there, keep=None if keep is None else keep.days, retention=retention)
    if execute:
        with _spark(store, "maintaining") as spark:
            bad = keep_up(spark, there, plan)
    else:
        bad = []
    return Answer(
        lambda: {
            "executed": execute,
            "compacted": [[file.path for file in day] for day in plan.compacted],
            "removed": [file.path for file in plan.removed],
            "deleted": plan.deleted,
            "bad": [file.path for file in bad],
        },
        text.maintenance_lines(there, plan, bad, executed=execute),
    )


def tables(*, store: Store, out: str, decoder: str, selection: Selection, skip_bad: bool) -> Answer:
    """Decode an archive into tables."""
    options = store_options(store)
    tables_at(place(out, options))  # a wrong one is refused before anything is read
    there = opened(store, skip_bad=skip_bad)
    with _spark(store, "decoding") as spark:
        records: DataFrame | Archive = there
        topics = None
        if any(selection):
            records = there.read(spark, **selection._asdict())
            topics = spark.createDataFrame(there.topics(), spark_schema(TOPICS))
        counts = make_tables(spark, records, out, decoder=decoder, topics=topics, options=options)
    return Answer(lambda: asdict(counts), text.tables_lines(out, counts))


def what_if(
    *,
    store: Store,
    replayed: Replayed,
    selection: Selection,
    skip_bad: bool,
) -> Answer:
    """What groups' histories would have been with other assignors and settings."""
    there = opened(store, skip_bad=skip_bad)
    topics, names = seen_and_names(there.topics())
    with _spark(store, "replaying") as spark:
        found = replay(
            there.read_groups(spark, **selection._asdict()),
            assignors=replayed.assignors or ASSIGNORS,
            scenarios=replayed.scenarios or SCENARIOS,
            topics=topics,
            topic_names=names,
        )
        rows = [row.asDict() for row in found.collect()]
    return Answer(lambda: rows, what_if_lines(rows))
