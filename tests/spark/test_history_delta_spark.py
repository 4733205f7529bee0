"""The archive and its tables, read by Delta's own connector for Spark."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from kafka_assignors.history._archive import Archive
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._metrics import metrics
from kafka_assignors.history._tables.job import make_tables
from kafka_assignors.testing._brokers.jars import fetch_jars
from tests.support.archives import counted
from tests.support.delta_tables import HISTORY, in_order, read_by_us
from tests.support.kinds import ROOT
from tests.support.small_archives import DAY, add, generation, kip848_dump

HASHES = Path(__file__).parents[1] / "support" / "delta-4.4.0.sha256"
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not pyspark.__version__.startswith("4.2."),
        reason=f"Delta's newest connector is for Spark 4.2, and this is {pyspark.__version__}",
    ),
]

READER = """
import pickle, sys
from kafka_assignors.history import spark_session

out, jars, *tables = sys.argv[1:]
spark = spark_session("local[2]", settings={
    "spark.jars": jars,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
})
rows = {table: spark.read.format("delta").load(table).toArrow().to_pylist() for table in tables}
open(out, "wb").write(pickle.dumps(rows))
"""


def jars_beside_spark() -> list[str]:
    """Delta's jars, without those that Spark has in a version of its own."""
    of_spark = {artifact(path) for path in (Path(pyspark.__path__[0]) / "jars").glob("*.jar")}
    return [str(path) for path in fetch_jars([DELTA], HASHES) if artifact(path) not in of_spark]


def artifact(jar: Path) -> str:
    return re.sub(r"-\d.*", "", jar.name)


def test_deltas_connector_reads_the_rows_that_this_package_reads(spark: SparkSession, tmp_path: Path) -> None:
    home = str(tmp_path)
    archive = Archive.create(f"{home}/archive")
    add(spark, archive, [generation(1, 0, "a"), generation(2, 3600, "a", "b"), counted(1, 500)])
    add(spark, archive, [generation(3, 3700, "b"), generation(4, DAY, "b")])
    import_dump(kip848_dump(tmp_path / "dump"), archive)
    make_tables(archive, f"{home}/tables")
    metrics(archive, f"{home}/metrics")
    maintain(archive, plan_maintenance(archive))
    expected = {f"{home}/{name}": read_by_us(home, name) for name in HISTORY}

    out = tmp_path / "rows"
    subprocess.run(
        [sys.executable, "-c", READER, str(out), ",".join(jars_beside_spark()), *expected],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        check=True,
        timeout=600,
    )
    read = pickle.loads(out.read_bytes())  # noqa: S301 - just written
    for table, rows in expected.items():
        assert in_order(read[table]) == in_order(rows), table
