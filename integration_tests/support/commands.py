"""`kafka-assignors` run as a command on a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_assignors.testing import Cluster

COMMAND: Final = str(Path(sys.executable).with_name("kafka-assignors"))


def run_command(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end, with the cluster's servers."""
    return subprocess.run(
        [COMMAND, *arguments, "--bootstrap-server", ",".join(cluster.bootstrap_servers)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
