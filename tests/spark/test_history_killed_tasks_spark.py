"""Tasks that are killed and that Spark tries again, and a disk of this machine that is full."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import pytest
from pyspark.sql import SparkSession

from benchmarks.processes import below
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._store.location import StoreError, locate
from tests.support.kinds import ROOT
from tests.support.object_store import Fault, ObjectStore
from tests.support.small_archives import DAY, add, generation, opened, said_by, seen

pytestmark = pytest.mark.slow

WRITER = """
import sys
from kafka_assignors.history import Archive, maintain, plan_maintenance, spark_session
from tests.support.small_archives import DAY, add, generation

spark = spark_session("local[2,4]")  # each task is tried up to four times
print("ready", flush=True)
for line in sys.stdin:
    what, uri = line.split()
    archive = Archive(uri)
    if what == "append":
        add(spark, archive, [generation(3, 2, "a"), generation(4, DAY, "a"), generation(5, DAY + 1, "b")])
    else:
        maintain(archive, plan_maintenance(archive))
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def writer(object_store: ObjectStore) -> Iterator[subprocess.Popen[str]]:
    """A process that appends or maintains, an archive a line, and whose tasks Spark tries again."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with subprocess.Popen(
        [sys.executable, "-c", WRITER],
        cwd=ROOT,
        env={**environment, **object_store.options, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.stdin.close()


def kill_tasks(writer: subprocess.Popen[str]) -> int:
    """Kill the Python processes of all tasks; how many there were."""
    killed = 0
    for daemon in below(writer.pid):
        with suppress(psutil.NoSuchProcess):
            if "pyspark.daemon" in daemon.cmdline():
                for task in daemon.children():
                    task.kill()
                    killed += 1
    return killed


def of_day(day: str, *, done: bool) -> Fault:
    path = rf"records/source=topic/day={day}/\S+\.parquet$"
    return Fault(method="PUT|POST", path=path, hold=True, status=503, code="SlowDown", done=done)


POINTS = {
    "its first file": ("append", of_day("2026-01-01", done=False)),
    "its first file, which is there later": ("append", of_day("2026-01-01", done=True)),
    "its last file": ("append", of_day("2026-01-02", done=False)),
    "its last file, which is there later": ("append", of_day("2026-01-02", done=True)),
    "what it reads": ("maintain", Fault(method="GET", path=r"\.parquet$", times=1, hold=True)),
    "what it read, made one": ("maintain", of_day("2026-01-01", done=True)),
}
"""What a task waits for when it is killed."""


@pytest.mark.parametrize("point", POINTS)
def test_a_task_that_is_killed_and_tried_again_adds_its_rows_once(
    spark: SparkSession, object_store: ObjectStore, writer: subprocess.Popen[str], point: str
) -> None:
    assert writer.stdin is not None
    assert writer.stdout is not None
    what, fault = POINTS[point]
    archive = Archive.create(f"s3://{object_store.bucket()}/a", object_store.options)
    archive.belongs_to("c", 1)
    for at in (0, 1):
        add(spark, archive, [generation(1 + at, at, "a")])
    with object_store.failing(fault) as struck:
        writer.stdin.write(f"{what} {archive.where.uri}\n")
        writer.stdin.flush()
        struck.wait()
        assert kill_tasks(writer) >= 1
    assert writer.stdout.readline() == "done\n"
    new, end, files = ([2, DAY, DAY + 1], DAY + 2, 4) if what == "append" else ([], 2, 1)
    assert seen(spark, archive) == ([0, 1, *new], {0: end})
    assert len(opened(archive).files()) == files


# A full disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 512 kB."""
    mount, folder = shutil.which("mount"), tmp_path / "disk"
    folder.mkdir()
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("nobody may mount here, so that there is no small disk")
    try:
        yield folder
    finally:
        umount = shutil.which("umount")
        assert umount is not None
        subprocess.run([umount, "--lazy", str(folder)], check=True)


def fill(disk: Path, *, but: int) -> Path:
    """Leave no room on a disk but for some bytes; the file that takes it."""
    filler = disk / "filler"
    free = shutil.disk_usage(disk).free
    filler.write_bytes(bytes(free - but))
    assert shutil.disk_usage(disk).free == but
    return filler


PAGE = 4096
"""What the smallest file takes of such a disk."""


@pytest.mark.parametrize("room", [0, PAGE], ids=["data", "commit"])
def test_a_full_disk_ends_a_batch_and_with_room_it_goes_on(
    spark: SparkSession, disk: Path, room: int
) -> None:
    archive = Archive.create(disk / "archive")
    archive.belongs_to("c", 1)
    add(spark, archive, [generation(1, 0, "a"), generation(2, 1, "a")])
    filler = fill(disk, but=room)
    full = rf"{archive.where}/records\S*: .*No space left on device"
    if room:
        with pytest.raises(StoreError, match=f"^cannot commit to {full}"):
            add(spark, opened(archive), [generation(3, 2, "a")])
    else:
        said = said_by(lambda: add(spark, opened(archive), [generation(3, 2, "a")]))
        assert re.match(f"StoreError: cannot write {full}", said), said
        assert len(locate(f"{archive.where}/records/source=topic/day=2026-01-01").names()) == 1
    assert seen(spark, archive) == ([0, 1], {0: 2})
    filler.unlink()
    add(spark, opened(archive), [generation(3, 2, "a")])
    assert seen(spark, archive) == ([0, 1, 2], {0: 3})


def test_a_batch_that_fills_a_disk_leaves_nothing_there(spark: SparkSession, disk: Path) -> None:
    archive = Archive.create(disk / "archive")
    archive.belongs_to("c", 1)
    add(spark, archive, [generation(1, 0, "a")])
    free = shutil.disk_usage(disk).free
    large = generation(2, 1, "a") | {"value": Random(1).randbytes(600_000)}
    said = said_by(lambda: add(spark, opened(archive), [large]))
    assert said.startswith(f"StoreError: cannot write {archive.where}/records/source=topic/day=2026-01-01/")
    assert said.endswith(
        ": [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"
    )
    assert shutil.disk_usage(disk).free == free
    assert len(locate(disk / "archive/records/source=topic/day=2026-01-01").names()) == 1
