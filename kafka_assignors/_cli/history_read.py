"""What archives tell, from the command line: without Spark if they are small."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._info import describe, describe_here
from kafka_assignors.history._java import JavaMissingError
from kafka_assignors.history._local import is_small, spark_is_there
from kafka_assignors.history._store.places import read_store_config
from kafka_assignors.history._store.sets import TablesBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from kafka_assignors._cli.arguments import Selection, Store


class SparkError(RuntimeError):
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


def _without_spark(store: Store) -> bool:
    return store.master is None and not spark_is_there()
