"""A Spark cluster as its page says, from the first command to the last."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from kafka_assignors.history._archive import Archive
from kafka_assignors.testing._brokers.ports import free_ports
from kafka_assignors.testing._brokers.waiting import wait_until
from tests.support.archives import archived, random_records
from tests.support.pages import listings
from tests.support.written_archives import add_batch

pytestmark = pytest.mark.slow

PAGE = "docs/how-to/histories-on-spark-clusters.md"
SECONDS = 120.0


@contextmanager
def started(script: str, log: Path, until: str) -> Iterator[None]:
    """A shell that runs a script, once it logged what it is waited for; all of its processes end with it."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            ["/bin/bash", "-euc", script], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        wait_until(lambda: [] if re.search(until, log.read_text()) else [log.read_text()], SECONDS, until)
        yield
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def test_its_commands_start_a_cluster_that_reads_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive.create(tmp_path / "history")
    add_batch(archive, archived(random_records(Random(1), 100)))
    named = {
        "10.0.0.1": "127.0.0.1",
        "7077": str(free_ports(1)[0]),
        "/srv/history": str(tmp_path / "history"),
        "/srv/spark-work": str(tmp_path / "work"),
    }
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    scripts = []
    for script in listings(PAGE, "sh")[1:]:
        for name, here in named.items():
            script = script.replace(name, here)  # noqa: PLW2901
        scripts.append(script)
    master, worker, read = scripts
    with ExitStack() as stack:
        stack.enter_context(started(master, tmp_path / "master.log", "elected leader"))
        for name in ("one.log", "two.log"):
            stack.enter_context(started(worker, tmp_path / name, "Successfully registered with master"))
        done = subprocess.run(
            ["/bin/bash", "-euc", read], check=False, capture_output=True, text=True, timeout=SECONDS
        )
    assert done.returncode == 0, done.stderr
    local = subprocess.run(
        [sys.executable, "-m", "kafka_assignors", "history", "metrics", str(archive.where)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == local.stdout
    assert sum(1 for _ in (tmp_path / "work").glob("app-*")) == 1
