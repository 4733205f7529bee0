"""`kafka-assignors` run as a command on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_assignors.testing import Cluster

COMMAND: Final = str(Path(sys.executable).with_name("kafka-assignors"))


def run_command(
    cluster: Cluster, *arguments: str, servers: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, with the cluster's servers unless others are given."""
    return subprocess.run(
        [COMMAND, *arguments, "--bootstrap-server", ",".join(servers or cluster.bootstrap_servers)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def begin_command(cluster: Cluster, *arguments: str) -> subprocess.Popen[str]:
    """Start it, with its output unbuffered."""
    return subprocess.Popen(
        [COMMAND, *arguments, "--bootstrap-server", ",".join(cluster.bootstrap_servers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def next_error_line(process: subprocess.Popen[str]) -> str:
    """The next line of its standard error."""
    assert process.stderr is not None
    return process.stderr.readline()
