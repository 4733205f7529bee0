"""`kafka-assignors` run as a command on a cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kafka_assignors.testing import Cluster

COMMAND: Final = str(Path(sys.executable).with_name("kafka-assignors"))


def command_line(cluster: Cluster | None, *arguments: str, servers: Sequence[str] = ()) -> list[str]:
    """With the cluster's servers, if there is one, unless others are given."""
    where = () if cluster is None else ("--bootstrap-server", ",".join(servers or cluster.bootstrap_servers))
    return [COMMAND, *arguments, *where]


def run_command(
    cluster: Cluster | None, *arguments: str, servers: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    command = command_line(cluster, *arguments, servers=servers)
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def read_command(cluster: Cluster | None, *arguments: str, status: int | None = None) -> Any:
    """What it answers with --json, with this status or any, and without a word of error."""
    done = run_command(cluster, *arguments, "--json")
    assert done.stderr == ""
    assert status in {None, done.returncode}, done.stdout
    return json.loads(done.stdout)


def begin_command(cluster: Cluster, *arguments: str) -> subprocess.Popen[str]:
    """Start it, with its output unbuffered."""
    return subprocess.Popen(
        command_line(cluster, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def next_error_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()
