"""Members' processes: none is left over, whenever Ctrl-C comes."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kafka_assignors.testing.brokers.access import Access
from kafka_assignors.testing.groups import runners
from kafka_assignors.testing.groups.runners import ProcessRunner
from kafka_assignors.testing.groups.worker import WorkerConfig


@pytest.fixture
def runner() -> Iterator[ProcessRunner]:
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
    told: list[Mapping[str, Any]] = []
    runner = ProcessRunner(config, told.append)
    yield runner
    runner.kill()
    runner.wait()


def test_a_process_whose_start_is_interrupted_is_known_and_ends(
    runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[subprocess.Popen[bytes]] = []

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return made[0]

    monkeypatch.setattr(runners, "subprocess", type("Interrupted", (), {"Popen": interrupted, "PIPE": -1}))
    with pytest.raises(KeyboardInterrupt):
        runner.start()
    runner.kill()
    runner.wait()
    assert made[0].returncode == -signal.SIGKILL


def test_a_process_that_cannot_start_is_an_error_that_names_the_member(
    runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(RuntimeError, match="m has no process") as caught:
        runner.start()
    assert isinstance(caught.value.__cause__, FileNotFoundError)
