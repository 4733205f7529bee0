"""Members' processes: none is left over, whenever Ctrl-C comes."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors.testing.brokers.access import Access
from kafka_assignors.testing.groups.runners import ProcessRunner
from kafka_assignors.testing.groups.worker import WorkerConfig

INTERRUPTED = """
import os, signal, subprocess, types
from kafka_assignors.testing.groups import runners
from tests.test_testing_runners import member

made = []

def interrupted(*arguments, **options):
    made.append(subprocess.Popen(*arguments, **options))
    os.kill(os.getpid(), signal.SIGINT)
    return made[0]

runners.subprocess = types.SimpleNamespace(Popen=interrupted, PIPE=subprocess.PIPE)
runner = member([])
try:
    runner.start()
except KeyboardInterrupt:
    print("interrupted")
runner.kill()
runner.wait()
print(made[0].returncode)
"""
"""A process of its own, as other tests may have changed what this one does on Ctrl-C: a Java machine does."""


def member(told: list[Mapping[str, Any]]) -> ProcessRunner:
    """The process of a member that waits."""
    config = WorkerConfig(
        access=Access(("127.0.0.1:1",)),
        group_id="g",
        name="m",
        topics=("t",),
        pattern=None,
        client="kafka-python",
        assignors=None,
        held=True,
    )
    return ProcessRunner(config, told.append)


def test_a_process_whose_start_is_interrupted_is_known_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[1],
    )
    assert (done.stdout, done.returncode) == (f"interrupted\n{-signal.SIGKILL}\n", 0), done.stderr


def test_a_process_that_cannot_start_is_an_error_that_names_the_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(RuntimeError, match="m has no process") as caught:
        member([]).start()
    assert isinstance(caught.value.__cause__, FileNotFoundError)
