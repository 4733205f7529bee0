"""`kafka-assignors history capture` where no broker answers."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.support.scale import longer

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = """
import sys
from kafka_assignors._cli.main import main
status = main(["history", "capture", {archive!r}, "--bootstrap-server", {server!r}])
print(*sorted({{"pyarrow", "pyspark"}} & {{*sys.modules}}))
sys.exit(status)
"""


def test_a_capture_of_a_cluster_that_does_not_answer_ends_before_it_makes_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        code = CAPTURE.format(archive=str(archive), server=server)
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
    assert done.returncode == 1
    assert done.stderr == (
        f"kafka-assignors history capture: no broker answers at {server}: it does not answer within 3 s"
        " (a wrong port, or a broker that hangs)\n"
    )
    assert done.stdout == "\n"  # neither Spark nor what archives are made with was imported
    assert not archive.exists()
    assert seconds < longer(5) + start_of_python()


def start_of_python() -> float:
    """How long the import of the command takes on this machine."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import kafka_assignors._cluster.handle"], check=True)
    return time.monotonic() - began
