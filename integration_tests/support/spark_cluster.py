"""A Spark standalone cluster on this machine: a master and workers, each a process of its own."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyspark

import kafka_assignors
from kafka_assignors.history._java import find_java, make_java_home
from kafka_assignors.testing._brokers.waiting import wait_until

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
# As on machines of their own: else one executor reads the other's files.
spark.shuffle.readHostLocalDisk false
"""
_ALONE: Final = (
    *("unshare", "--mount", "sh", "-euc"),
    """
    hidden=$1 folder=$2 name=$3
    shift 3
    mount --bind "$folder" /mnt
    mount -t tmpfs tmpfs "$hidden"
    for seen in conf java "$name"; do
        mkdir -p "$folder/$seen"
        mount --bind "/mnt/$seen" "$folder/$seen"
    done
    umount /mnt
    exec "$@"
    """,
    "sh",
)
"""Runs a command in a mount namespace of its own; see `spark_cluster`."""


def can_hide() -> bool:
    """Whether workers can be started that do not see each other's files."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    command = [unshare, "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class SparkCluster(NamedTuple):
    url: str
    folder: Path
    workers: tuple[str, ...]
    environment: Mapping[str, str]
    processes: Mapping[str, int]

    def kill(self, worker: str) -> None:
        """Kill a worker with its executors and their tasks, as if its machine lost its power."""
        os.killpg(self.processes[worker], signal.SIGKILL)

    def applications(self) -> list[str]:
        """The applications that the master had, by their ids."""
        return re.findall(r"Registered app .* with ID (\S+)", _log(self.folder, "master"))

    def tasks(self, worker: str, application: str) -> int:
        """How many tasks of an application the executors of a worker finished."""
        logs = (self.folder / worker / application).glob("*/stderr")
        return sum(log.read_text(encoding="utf-8").count("Finished task ") for log in logs)


@contextmanager
def spark_cluster(folder: Path, workers: int = 2, *, hidden: Path | None = None) -> Iterator[SparkCluster]:
    """Start a cluster, and end all of its processes.

    Args:
        folder: For its logs and settings.
        workers: How many workers; each has one core.
        hidden: A folder around it, in which each worker sees nothing but its own work and the settings: not
            the driver's files, nor another worker's. That needs Linux, and the right to mount.
    """
    environment = _environment(folder)
    processes: dict[str, int] = {}
    with ExitStack() as stack:

        def start(name: str, *command: str) -> None:
            program = [str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class"), *command]
            own = environment
            if hidden is not None and name != "master":
                (folder / name).mkdir()
                program = [*_ALONE, str(hidden), str(folder), name, *program]
                own = {**environment, "SPARK_LOCAL_DIRS": str(folder / name), "TMPDIR": str(folder / name)}
            processes[name] = stack.enter_context(_process(folder, name, program, own))

        start("master", f"{_DEPLOY}.master.Master", *_HERE, "--port", "0")
        url = _wait_for(folder, "master", r"Starting Spark master at (spark://\S+)")
        _wait_for(folder, "master", r"(I have been elected leader)")
        names = tuple(f"worker-{number}" for number in range(workers))
        size = ("--cores", "1", "--memory", WORKER_MEMORY)
        for name in names:
            start(name, f"{_DEPLOY}.worker.Worker", url, *_HERE, *size, "--work-dir", str(folder / name))
        for name in names:
            _wait_for(folder, name, r"(Successfully registered with master)")
        yield SparkCluster(url, folder, names, environment, processes)


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
    folder: Path, name: str, command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[int]:
    """The process group of a process of Spark's, which those that it starts belong to."""
    with (folder / f"{name}.log").open("wb") as log:
        running: subprocess.Popen[Any] = subprocess.Popen(
            command,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield running.pid
    finally:
        # Its executors are in its process group, and outlive a worker that is killed alone.
        with suppress(ProcessLookupError):  # it was killed
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _wait_for(folder: Path, name: str, pattern: str) -> str:
    def logged() -> list[str]:
        return re.findall(pattern, _log(folder, name))

    wait_until(lambda: [] if logged() else [_log(folder, name)], SECONDS, f"{pattern!r} in {name}'s log")
    return logged()[0]


def _log(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(encoding="utf-8")
