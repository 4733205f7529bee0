"""The tutorials, from the first listing to the last, on a Kafka that they start."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration_tests.support.waiting import wait_for
from tests.support import plugin
from tests.support.pages import listing, listings

pytestmark = pytest.mark.slow

ASSIGNOR = "docs/tutorials/first-assignor.md"
TEST = "docs/tutorials/first-test.md"
HISTORY = "docs/tutorials/first-history.md"
SECONDS = 600
"""For each wait. Each command starts Spark, which took minutes on a machine that others used."""


class Script:
    """A script of a tutorial in a process of its own; what it prints goes to a file."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self._out = path.with_suffix(f".{len([*path.parent.iterdir()])}.out")
        with self._out.open("w", encoding="utf-8") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", path, *arguments],
                stdin=subprocess.PIPE,
                stdout=out,
                text=True,
            )

    def lines(self, number: int) -> list[str]:
        """All that it printed, once it is so many lines or more."""
        wait_for(f"{number} lines", lambda: len(self._printed()) >= number, SECONDS)
        return self._printed()

    def _printed(self) -> list[str]:
        return self._out.read_text(encoding="utf-8").splitlines()


@contextmanager
def consuming(script: Path, address: str) -> Iterator[Script]:
    """A consumer, ended by Ctrl-C."""
    running = Script(script, address)
    try:
        yield running
    finally:
        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=SECONDS)


@contextmanager
def broker(page: str, folder: Path) -> Iterator[str]:
    """The Kafka of a tutorial; gives its address, and stops it as the page says."""
    script = folder / "broker.py"
    script.write_text(listing(page, "# broker.py"), encoding="utf-8")
    running = Script(script)
    try:
        address = re.fullmatch(r"Kafka is at (\S+)", running.lines(1)[0])
        assert address is not None
        yield address[1]
    finally:
        running.process.communicate("\n", timeout=SECONDS)
    assert running.process.returncode == 0


def shown(number: int) -> list[str]:
    """The lines of a session on the page of the first assignor, without its command."""
    session = listings(ASSIGNOR, "console")[number]
    return [line for line in session.splitlines() if not line.startswith("$")]


def test_the_first_assignor_is_seen_to_keep_what_does_not_move(tmp_path: Path) -> None:
    script = tmp_path / "consumer.py"
    code = listing(ASSIGNOR, "# consumer.py")
    with broker(ASSIGNOR, tmp_path) as address:
        script.write_text(code, encoding="utf-8")
        with consuming(script, address) as first:
            assert first.lines(1) == shown(0)
            with consuming(script, address) as second:
                assert first.lines(2) == shown(0) + shown(1)
                assert second.lines(1) == shown(2)
            assert first.lines(3)[2] == "assigned [3, 4, 5]"
        script.write_text(code.replace("CooperativeStickyAssignor", "RangeAssignor"), encoding="utf-8")
        with consuming(script, address) as first:
            assert first.lines(1) == shown(0)
            with consuming(script, address):
                all_of_them, half = shown(3)
                assert first.lines(3)[1] == all_of_them
                assert first.lines(3)[2] in {half, "assigned [3, 4, 5]"}


def test_the_first_test_finds_the_bug_and_passes_once_it_is_fixed(tmp_path: Path) -> None:
    service, fixed = (code for code in listings(TEST) if code.startswith("# billing.py"))
    (tmp_path / "test_billing.py").write_text(listing(TEST, "# test_billing.py"), encoding="utf-8")
    run = [
        sys.executable,
        "-m",
        "pytest",
        *plugin.LOADED,
        *plugin.ALONE,
        "-p",
        "no:cacheprovider",
        "--kafka-timeout=120",
    ]
    (message,) = (
        line for line in listings(TEST, "console")[0].splitlines() if line.startswith("records were")
    )
    for code, status in ((service, 1), (fixed, 0)):
        (tmp_path / "billing.py").write_text(code, encoding="utf-8")
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == status, done.stdout
        assert (message in done.stdout) == (status == 1), done.stdout


def test_the_first_history_becomes_a_page(tmp_path: Path) -> None:
    command = str(Path(sys.executable).with_name("kafka-assignors"))
    sessions = [line for code in listings(HISTORY, "sh")[1:] for line in code.splitlines()]
    assert len(sessions) == 5
    with broker(HISTORY, tmp_path) as address:
        for line in sessions:
            name, *arguments = shlex.split(line.replace("127.0.0.1:35721", address))
            assert name == "kafka-assignors"
            done = subprocess.run(
                [command, *arguments],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            if "metrics" in arguments:
                assert len(done.stdout.splitlines()) == 3
    assert "cooperative-sticky" in (tmp_path / "groups.html").read_text(encoding="utf-8")
