"""What signals, and a pipe that is closed, do to `kafka-assignors`."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._cli.main import main
from tests.support.group_files import large

# Says that it has come to read the group, which never comes.
WAITING = """
import sys
from kafka_assignors._cli import main
from kafka_assignors.groups import _file
read = _file.read_group
def reading(*args, **named):
    try:
        print("reading", flush=True)
        return read(*args, **named)
    finally:
        if {twice}:
            import os, signal
            os.kill(os.getpid(), signal.SIGTERM)
        print("clean-up done", flush=True)
_file.read_group = reading
if {ignored}:
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(main.main(["plan", "-"]))
"""


@pytest.mark.parametrize(
    ("number", "twice", "ignored", "status"),
    [
        (signal.SIGINT, False, False, 130),
        (signal.SIGTERM, False, False, 143),
        (signal.SIGTERM, True, False, 143),
        (signal.SIGTERM, False, True, 143),
    ],
    ids=["Ctrl-C", "SIGTERM", "SIGTERM twice, as timeout sends it", "SIGTERM where Ctrl-C is ignored"],
)
def test_a_signal_ends_a_command_in_order(
    number: signal.Signals, twice: bool, ignored: bool, status: int
) -> None:
    command = [sys.executable, "-c", WAITING.format(twice=twice, ignored=ignored)]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "reading\n"
        process.send_signal(number)
        # `communicate` would close the standard input, and the command would end by itself.
        assert process.stderr.read() == "interrupted\n"
        assert process.stdout.read() == "clean-up done\n"
        assert process.wait() == status


def test_a_command_leaves_signals_as_they_were(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert main(["plan", str(tmp_path / "missing")]) == 2
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_command_runs_outside_the_main_thread(tmp_path: Path) -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(main(["plan", str(tmp_path / "missing")])))
    thread.start()
    thread.join()
    assert found == [2]


def test_a_handler_of_somebody_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def terminated(**_: Any) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    monkeypatch.setattr("kafka_assignors._cli.plan.plan.callback", terminated)
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        assert main(["plan", "-"]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


WATCHING = """
from itertools import repeat
from types import SimpleNamespace
from kafka_assignors._cli.history_watch import show_rebalances
show_rebalances(repeat(SimpleNamespace(row=dict, quiet=True)), as_json=True)
"""


def test_watching_ends_when_nobody_reads_on() -> None:
    command = [sys.executable, "-c", WATCHING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["quiet"] is True
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    name = tmp_path / "group.json"
    name.write_text(json.dumps(large(200)), encoding="utf-8")
    command = [sys.executable, "-m", "kafka_assignors._cli.main", "plan", str(name), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
