"""A Spark standalone cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark

import kafka_assignors
from kafka_assignors.history._java import find_java, make_java_home
from kafka_assignors.testing._brokers.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECONDS = 120.0
WORKER_MEMORY = "700m"
EXECUTOR_MEMORY = "600m"
_DEPLOY = "org.apache.spark.deploy"
_HERE = ("--host", "127.0.0.1", "--webui-port", "0")
_EXECUTORS = f"""\
spark.executor.memory {EXECUTOR_MEMORY}
spark.executor.cores 1
spark.ui.enabled false
spark.sql.shuffle.partitions 2
"""


class SparkCluster(NamedTuple):
    """A cluster that runs.

    Attributes:
        url: Its master's, for `--master`.
        folder: Where its logs are.
        workers: The names of its workers.
        environment: What a driver needs in its environment.
    """

    url: str
    folder: Path
    workers: tuple[str, ...]
    environment: Mapping[str, str]

    def applications(self) -> list[str]:
        """The applications that the master had, by their ids."""
        return re.findall(r"Registered app .* with ID (\S+)", _log(self.folder, "master"))

    def tasks(self, worker: str, application: str) -> int:
        """How many tasks of an application the executors of a worker finished."""
        logs = (self.folder / worker / application).glob("*/stderr")
        return sum(log.read_text(encoding="utf-8").count("Finished task ") for log in logs)


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """Start a cluster, and end all of its processes.

    Args:
        folder: For its logs and settings.
        workers: How many workers; each has one core.
    """
    environment = _environment(folder)
    with ExitStack() as stack:

        def start(name: str, *command: str) -> None:
            stack.enter_context(_process(folder, name, command, environment))

        start("master", f"{_DEPLOY}.master.Master", *_HERE, "--port", "0")
        url = _wait_for(folder, "master", r"Starting Spark master at (spark://\S+)")
        _wait_for(folder, "master", r"(I have been elected leader)")
        names = tuple(f"worker-{number}" for number in range(workers))
        size = ("--cores", "1", "--memory", WORKER_MEMORY)
        for name in names:
            start(name, f"{_DEPLOY}.worker.Worker", url, *_HERE, *size, "--work-dir", str(folder / name))
        for name in names:
            _wait_for(folder, name, r"(Successfully registered with master)")
        yield SparkCluster(url, folder, names, environment)


def _environment(folder: Path) -> dict[str, str]:
    settings = folder / "conf"
    settings.mkdir(parents=True)
    (settings / "spark-defaults.conf").write_text(_EXECUTORS, encoding="utf-8")
    return {
        **os.environ,
        "JAVA_HOME": str(make_java_home(find_java(), folder / "java")),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(kafka_assignors.__file__).resolve().parent.parent),
        "SPARK_CONF_DIR": str(settings),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }


@contextmanager
def _process(
    folder: Path, name: str, command: tuple[str, ...], environment: Mapping[str, str]
) -> Iterator[None]:
    """A process of Spark's, and with it those that it starts."""
    program = Path(environment["SPARK_HOME"]) / "bin" / "spark-class"
    with (folder / f"{name}.log").open("wb") as log:
        running: subprocess.Popen[Any] = subprocess.Popen(
            [program, *command],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield
    finally:
        # Its executors are in its process group, and outlive a worker that is killed alone.
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _wait_for(folder: Path, name: str, pattern: str) -> str:
    """Wait until a process logs something."""

    def logged() -> list[str]:
        return re.findall(pattern, _log(folder, name))

    wait_until(lambda: [] if logged() else [_log(folder, name)], SECONDS, f"{pattern!r} in {name}'s log")
    return logged()[0]


def _log(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(encoding="utf-8")
