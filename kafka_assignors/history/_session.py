"""Spark sessions: on this machine without any set-up, or on a cluster."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

import kafka_assignors
from kafka_assignors.history._java import find_java, make_java_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOCAL: Final = "local[*]"
"""All cores of this machine, in one process."""

_LOGGING: Final = """\
status=error
rootLogger.level=error
rootLogger.appenderRef.stderr.ref=stderr
appender.stderr.type=Console
appender.stderr.name=stderr
appender.stderr.target=SYSTEM_ERR
appender.stderr.layout.type=PatternLayout
appender.stderr.layout.pattern=%d %p %c: %m%n%ex
# What fails is raised in Python, where it is told once and in words; here it comes as traces of stacks.
logger.spark.name=org.apache.spark
logger.spark.level=off
# Spark announces this one's level where it is not the root's.
logger.gateway.name=org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level=error
"""

_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # Batches that fit into caches: with Spark's 64 MB, decoding takes twice the CPU.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2m",
}

_LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    # As many as a small machine keeps busy; adaptive execution makes fewer of them where there is little.
    "spark.sql.shuffle.partitions": "16",
    # Workers may be started elsewhere than in the folder from which this package was imported.
    "spark.executorEnv.PYTHONPATH": str(Path(kafka_assignors.__file__).resolve().parent.parent),
}


def spark_session(
    master: str | None = None,
    *,
    name: str = "kafka-assignors history",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session that is there (as under spark-submit), or a new one.

    On this machine (masters that begin with "local") nothing has to be set up. Java is found or brought by
    `pip`, and workers run this Python with this package. On a cluster, workers need the package installed in
    the Python that PYSPARK_PYTHON names there, with the extra `history`.

    Args:
        master: Spark's master: `LOCAL` by default, unless spark-submit said another.
        name: What the application is called.
        settings: Further settings of Spark; they come before those made here.

    Raises:
        JavaMissingError: No Java was found to start Spark with.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started Java, and knows its master
    chosen = master or (None if submitted else LOCAL)
    local = chosen is not None and chosen.startswith("local")
    builder = SparkSession.builder.appName(name)
    if chosen is not None:
        builder = builder.master(chosen)
    wanted: dict[str, bool | float | int | str | None] = {
        **_SETTINGS,
        **(_LOCAL_SETTINGS if local else {}),
        **(settings or {}),
    }
    if submitted:
        return builder.config(map=wanted).getOrCreate()
    folder = Path(tempfile.mkdtemp(prefix="kafka-assignors-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, encoding="utf-8")
    option = f"-Dlog4j2.configurationFile={logging.as_uri()}"
    wanted["spark.driver.extraJavaOptions"] = f"{option} {wanted.get('spark.driver.extraJavaOptions', '')}"
    with _environment(folder, local=local):
        return builder.config(map=wanted).getOrCreate()


@contextmanager
def _environment(folder: Path, *, local: bool) -> Iterator[None]:
    """The variables that Spark starts with, for that time."""
    variables = {} if sys.platform == "win32" else {"JAVA_HOME": str(make_java_home(find_java(), folder))}
    if local:
        # Without an address, Spark looks up the machine's name, which can take seconds; without a Python,
        # its workers run the python3 of the path.
        variables |= {
            "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
