"""Spark, on this machine or on a cluster: its session, and tasks that read their own share of the rows."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import kafka_assignors
from kafka_assignors.history._java import find_java, make_java_home
from kafka_assignors.history._records import Order, SparkError
from kafka_assignors.history._store.reading import Split
from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task, run_task

Read = Callable[[Iterator[Any]], Iterator[Any]]

_SENT: Final[Any] = CPickleSerializer()
"""Sends what tasks found as Spark itself sends what Python's tasks return; tasks are sent by it as well."""
LOCAL: Final = "local[*]"  # all cores of this machine, in one process
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

_IS_STOPPED: Final = re.compile("a stopped SparkContext|SparkContext was shut down|removed our application")
_STOPPED: Final = (
    "Spark has stopped: all of its executors failed, or somebody has ended it. The workers' logs say why, by"
    " default in the folder work of each worker's Spark"
)

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


def spark_session(master: str | None = None, *, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is there (as under spark-submit), or a new one.

    On this machine (masters that begin with "local") nothing has to be set up. On a cluster, workers need the
    package, with the extra `history`, in the Python that PYSPARK_PYTHON names there.

    Args:
        master: Spark's master: `LOCAL` by default, unless spark-submit said another.
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
    builder = SparkSession.builder.appName("kafka-assignors history")
    if chosen is not None:
        builder = builder.master(chosen)
    wanted: dict[str, Any] = _SETTINGS | (_LOCAL_SETTINGS if local else {}) | dict(settings or {})
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
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def running_spark(master: str | None, *, progress: bool) -> Iterator[SparkSession]:
    """A session of Spark, which shows its progress on a terminal if it is to, and is a new one."""
    shown = str(progress and sys.stderr.isatty()).lower()
    try:
        yield spark_session(master, settings={"spark.ui.showConsoleProgress": shown})
    except (PySparkException, Py4JError) as error:
        raise SparkError(reason(str(error))) from error


def run(
    spark: SparkSession, split: Split, task: Task, files: MakeFiles | None, order: Order | None
) -> Outcome:
    """See `Engine.run`."""
    if order is None:
        return _outcome(*_shares(spark, split), task, files)
    tasks: list[Any] = [] if order.together else [1]
    if order.a_core:
        tasks = [order.a_core * spark.sparkContext.defaultParallelism]
    rows = frame(spark, split, order.schema).repartition(*tasks, *order.together)
    return run_frame(rows.sortWithinPartitions(*order.columns), order.schema, task, files)


def run_frame(rows: DataFrame, schema: pa.Schema, task: Task, files: MakeFiles | None) -> Outcome:
    """The same of rows that Spark has, with these columns."""
    return _outcome(rows.select(schema.names), partial(in_schema, schema=schema), task, files)


def frame(spark: SparkSession, split: Split, schema: pa.Schema) -> DataFrame:
    """Rows of a schema as Spark's; times are `TimestampType`."""
    numbers, read = _shares(spark, split)
    return numbers.mapInArrow(read, spark_schema(schema))


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns for Spark."""
    return from_arrow_schema(schema.remove_metadata(), prefer_timestamp_ntz=False)


def _shares(spark: SparkSession, split: Split) -> tuple[DataFrame, Read]:
    """A number for each share of the rows, and what a task reads of such numbers."""
    source = split(spark.sparkContext.defaultParallelism)
    count = len(source.shares)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from source.read(source.shares[number])

    return spark.range(0, count, 1, max(1, count)), read


def in_schema(batches: Iterator[Any], *, schema: pa.Schema) -> Iterator[Any]:
    """Batches from Spark in a schema of ours: their times have the session's zone."""
    return (batch.select(schema.names).cast(schema) for batch in batches)


def _outcome(rows: DataFrame, read: Read, task: Task, files: MakeFiles | None) -> Outcome:
    """Have Spark do tasks, each with files of its own, if any are to be written."""

    def do(batches: Iterator[Any]) -> Iterator[Any]:
        yield pa.RecordBatch.from_pydict({"done": [_SENT.dumps(run_task(read(batches), task, files))]})

    found = Outcome(rows=[])
    for (sent,) in rows.mapInArrow(do, "done binary").collect():
        done: Outcome = _SENT.loads(sent)
        found.rows.extend(done.rows)
        for table, of_table in done.files.items():
            found.files.setdefault(table, []).extend(of_table)
    return found


def reason(text: str) -> str:
    """What this package raised in a worker, else what Python did, else Java's deepest cause."""
    for pattern in (
        r"^kafka_assignors[\w.]*\.(\w+: .+)$",
        r"^(?!py4j)(?:\w+\.)*(\w*Error: .+)$",
        r"^Caused by: (?:[\w$]+\.)*([\w$]+: .+)$",
        r"^: (?:[\w$]+\.)*([\w$]+: .+)$",
    ):
        if found := re.findall(pattern, text, re.MULTILINE):
            return _STOPPED if _IS_STOPPED.search(found[-1]) else str(found[-1])
    return text.partition("\n")[0]
