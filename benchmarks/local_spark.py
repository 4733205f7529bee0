"""A Spark on this machine, for benchmarks that run on one."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession


@contextmanager
def local_spark(cores: int = 2, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session whose workers run this Python.

    Args:
        cores: How many tasks run at the same time.
        settings: Further settings of Spark's.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - after its environment

    builder = (
        SparkSession.Builder()
        .master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", str(4 * cores))
        .config("spark.sql.session.timeZone", "UTC")
    )
    spark: SparkSession = builder.config(map=dict(settings or {})).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
