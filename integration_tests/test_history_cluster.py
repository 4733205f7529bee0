"""The jobs of the history give on a real Spark cluster what they give in one process."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from integration_tests.support.spark_cluster import SparkCluster, can_hide, spark_cluster
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._metrics import SCHEMAS
from kafka_assignors.history._schemas import ARCHIVED, TABLES
from kafka_assignors.history._store.location import Location, locate
from kafka_assignors.history._store.reading import Part, read_parts
from kafka_assignors.testing import Cluster, ConsumerGroup, create_topic
from tests.support.archives import batch_of, random_records as random_pairs, row as row_of
from tests.support.delta_tables import rounded, rows_of
from tests.support.group_histories import random_records
from tests.support.kip848_log import SEEN_TOPICS, hand_overs
from tests.support.local_archives import rows_of as archive_rows
from tests.support.object_store import Fault, ObjectStore
from tests.support.pages import listing
from tests.support.written_archives import add_batch

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]

PAGE = "docs/how-to/histories-on-spark-clusters.md"
SECONDS = 400.0
SEED = 7
GROUPS = 6
FILES = 4


def all_rows() -> Rows:
    """Simulated groups, one of KIP-848, and whatever else there may be, damaged records among it."""
    lives = [random_records(SEED + number, group=f"group-{number}", records=50) for number in range(GROUPS)]
    lives.append(hand_overs(29))
    rows = [row for partition, records in enumerate(lives) for row in archive_rows(records, partition)]
    began = rows[0]["timestamp"]
    rows += [
        row_of(key, value, partition=len(lives), offset=offset)
        | {"timestamp": began + timedelta(seconds=offset)}
        for offset, (key, value) in enumerate(random_pairs(Random(SEED), 200))
    ]
    return rows


def make_archive(folder: Path | str, options: Mapping[str, str] | None = None) -> Archive:
    archive = Archive.create(folder, options)
    rows = all_rows()
    # Of each group, there is something in every batch.
    for number in range(FILES):
        part = [one for one in rows if one["offset"] * FILES // 200 % FILES == number]
        add_batch(archive, batch_of(part))
    archive.add_topics(SEEN_TOPICS)
    return archive


class Made(NamedTuple):
    """What the jobs made with some master."""

    counts: Mapping[str, Any]
    tables: Mapping[str, Rows]
    what_if: Rows
    page: str
    captured: Rows


class Driver(NamedTuple):
    master: str
    environment: Mapping[str, str]


ALL = """
import json, sys
from kafka_assignors._cli.main import main
sys.exit(max(main(one) for one in json.loads(sys.argv[1])))
"""
"""Commands one after the other: Spark starts once for all of them."""


def make(
    archive: Archive, out: Location, page: Path, brokers: str, driver: Driver, *more: Sequence[str]
) -> Made:
    """Run all jobs, and further commands after them."""
    told = run(
        driver,
        ["tables", archive.where.uri, (out / "tables").uri],
        ["metrics", archive.where.uri, "--out", (out / "metrics").uri],
        ["what-if", archive.where.uri, "--assignor", "range", "--assignor", "cooperative-sticky"],
        ["report", archive.where.uri, str(page), "--assignor", "range"],
        ["capture", (out / "captured").uri, "--bootstrap-server", brokers, "--max-records", "50"],
        *more,
    )
    made = {
        name: rows_of((out / folder / name).uri, schema, out.options)
        for folder, schemas in (("tables", TABLES), ("metrics", SCHEMAS))
        for name, schema in schemas.items()
    }
    text = page.read_text(encoding="utf-8").replace(archive.where.uri, "ARCHIVE")
    captured = records_of(Archive((out / "captured").uri, out.options))
    return Made(
        counts=told[0],
        tables={name: rounded(rows) for name, rows in made.items()},
        what_if=rounded(told[2]),
        page=re.sub(r"[\d-]+ [\d:]+ UTC from", "from", text),
        captured=rounded(row for row in captured if row["key"] is not None),
    )


def run(driver: Driver, *verbs: Sequence[str]) -> list[Any]:
    """Run commands in a process of their own, as a process has one master, and return what they say."""
    commands = [["history", *verb, "--master", driver.master, "--json"] for verb in verbs]
    done = subprocess.run(
        [sys.executable, "-c", ALL, json.dumps(commands)],
        env=driver.environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return in_turn(done.stdout)


def records_of(archive: Archive) -> Rows:
    records, _ = archive.logs
    files = map(Part, archive.files())
    return [row for batch in read_parts(records.where, files, ARCHIVED) for row in batch.to_pylist()]


def in_turn(printed: str) -> list[Any]:
    """Several values of JSON, one after the other."""
    found, decoder = [], json.JSONDecoder()
    while printed := printed.lstrip():
        value, end = decoder.raw_decode(printed)
        found.append(value)
        printed = printed[end:]
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return make_archive(tmp_path_factory.mktemp("history") / "archive")


@pytest.fixture(scope="module")
def brokers(kafka_cluster: Cluster) -> str:
    """Brokers whose offsets topic has something to capture."""
    topic = create_topic(kafka_cluster, 3)
    with ConsumerGroup(
        kafka_cluster, topic, [CooperativeStickyAssignor], place="thread", timeout=240
    ) as group:
        for _ in range(3):
            group.join()
            group.wait_stable()
    return ",".join(kafka_cluster.bootstrap_servers)


@pytest.fixture(scope="module")
def here(
    cluster: SparkCluster, archive: Archive, brokers: str, tmp_path_factory: pytest.TempPathFactory
) -> Made:
    """What one process makes."""
    alone = {**cluster.environment, "SPARK_CONF_DIR": os.devnull}
    out = tmp_path_factory.mktemp("here")
    return make(archive, locate(out), out / "page.html", brokers, Driver("local[2]", alone))


def test_a_cluster_makes_what_one_process_makes(
    cluster: SparkCluster, archive: Archive, brokers: str, here: Made, tmp_path: Path
) -> None:
    driver = Driver(cluster.url, cluster.environment)
    there = make(archive, locate(tmp_path), tmp_path / "page.html", brokers, driver)

    assert {name: len(rows) for name, rows in here.tables.items() if not rows} == {}
    assert len(here.tables["records"]) > 500
    assert len(here.what_if) > 2 * GROUPS
    assert there.counts == here.counts
    for name, rows in here.tables.items():
        assert there.tables[name] == rows, name
    assert there.what_if == here.what_if
    assert there.page == here.page

    application = cluster.applications()[-1]
    # There are tasks enough for both.
    assert all(cluster.tasks(worker, application) > 0 for worker in cluster.workers)


def test_workers_that_share_no_folder_do_all_that_one_process_does(
    here: Made, archive: Archive, brokers: str, object_store: ObjectStore, tmp_path: Path
) -> None:
    if not can_hide():
        pytest.skip("nobody may mount here")
    bucket = locate(f"s3://{object_store.bucket()}", object_store.options)
    stored = make_archive((bucket / "archive").uri, object_store.options)
    with spark_cluster(tmp_path / "cluster", hidden=tmp_path) as cluster:
        driver = Driver(cluster.url, {**cluster.environment, **object_store.options})
        maintain = ["maintain", stored.where.uri, "--execute"]
        there = make(stored, bucket, tmp_path / "page.html", brokers, driver, maintain)
        (application,) = cluster.applications()
        assert all(cluster.tasks(worker, application) > 0 for worker in cluster.workers)
    assert there._replace(page="", captured=[]) == here._replace(page="", captured=[])
    assert there.page == here.page
    # The second capture has what was written to the log since the first, too.
    assert len(here.captured) >= 3
    assert [row for row in there.captured if row in here.captured] == here.captured

    stored.refresh()
    days = [file.values["day"] for file in stored.files()]
    assert len(days) == len({*days}) < len(archive.files())
    rows = [rounded(records_of(one)) for one in (archive, stored)]
    assert len(rows[0]) == len(all_rows())
    assert rows[1] == rows[0]


def test_a_capture_goes_on_when_a_worker_is_killed_amid_its_data(
    here: Made, brokers: str, object_store: ObjectStore, tmp_path: Path
) -> None:
    bucket = locate(f"s3://{object_store.bucket()}", object_store.options)
    to = bucket / "captured"
    with killed_amid_its_data(object_store, tmp_path, to) as driver:
        (told,) = run(driver, ["capture", to.uri, "--bootstrap-server", brokers])
    captured = records_of(Archive(to.uri, to.options))
    places = [(row["partition"], row["offset"]) for row in captured if row["offset"] is not None]
    assert len(places) == len({*places})
    assert told["read"] == sum(row["count"] for row in captured)
    kept = rounded(row for row in captured if row["key"] is not None)
    assert [row for row in kept if row in here.captured] == here.captured


def test_tables_are_made_whole_when_a_worker_is_killed_amid_its_data(
    here: Made, object_store: ObjectStore, tmp_path: Path
) -> None:
    bucket = locate(f"s3://{object_store.bucket()}", object_store.options)
    stored = make_archive((bucket / "archive").uri, object_store.options)
    to = bucket / "tables"
    with killed_amid_its_data(object_store, tmp_path, to) as driver:
        (counts,) = run(driver, ["tables", stored.where.uri, to.uri])
    assert counts == here.counts
    for name, schema in TABLES.items():
        assert rounded(rows_of((to / name).uri, schema, to.options)) == here.tables[name], name


@contextmanager
def killed_amid_its_data(store: ObjectStore, folder: Path, to: Location) -> Iterator[Driver]:
    """A driver whose cluster loses one of two workers when both of them write data to a place."""
    key = to.uri.removeprefix("s3:/")
    data = Fault(method="PUT|POST", path=rf"{key}/.*\.parquet", hold=True)
    with spark_cluster(folder / "cluster") as cluster, ThreadPoolExecutor(1) as pool:

        def kill() -> None:
            with store.failing(data) as struck:
                struck.wait(2)
                cluster.kill("worker-0")

        killed = pool.submit(kill)
        yield Driver(cluster.url, {**cluster.environment, **store.options})
        killed.result(timeout=0)


def test_what_is_submitted_runs_on_the_cluster(
    cluster: SparkCluster, archive: Archive, here: Made, tmp_path: Path
) -> None:
    script = tmp_path / "history.py"
    script.write_text(listing(PAGE, "# history.py"), encoding="utf-8")
    before = len(cluster.applications())
    done = subprocess.run(
        [
            Path(cluster.environment["SPARK_HOME"]) / "bin" / "spark-submit",
            *("--master", cluster.url, script, "tables", archive.where.uri, tmp_path / "tables", "--json"),
        ],
        env={**cluster.environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (counts,) = in_turn(done.stdout)
    assert counts == here.counts
    (application,) = cluster.applications()[before:]
    assert sum(cluster.tasks(worker, application) for worker in cluster.workers) > FILES
