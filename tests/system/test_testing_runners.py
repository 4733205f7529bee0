"""Members' processes, of which none is left over whenever Ctrl-C comes, and their threads."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from integration_tests.support.waiting import has_ended
from kafka_assignors._common.waiting import wait_until
from kafka_assignors.testing._groups import processes, runners
from kafka_assignors.testing._groups.clients import CommitError
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.imports import imported
from kafka_assignors.testing._groups.runners import ProcessRunner, ThreadRunner
from kafka_assignors.testing._groups.seat import Seat
from kafka_assignors.testing._groups.worker import Worker
from tests.support import members

INTERRUPTED = """
import os, signal
from kafka_assignors.testing._groups import runners
from tests.system.test_testing_runners import member

made = []
start_process = runners.start_process

def interrupted(log):
    made.append(start_process(log))
    os.kill(os.getpid(), signal.SIGINT)
    return made[0]

runners.start_process = interrupted
runner = member([])
try:
    runner.start()
except KeyboardInterrupt:
    print("interrupted")
runner.kill()
runner.wait()
print(made[0].wait())
"""
"""A process of its own, as other tests may have changed what this one does on Ctrl-C: a Java machine does."""


def config(client: str, **pace: Any) -> WorkerConfig:
    """That of a member that waits."""
    return members.config(client=client, held=True, **pace)


def member(told: list[Mapping[str, Any]]) -> ProcessRunner:
    return ProcessRunner(config("kafka-python"), told.append)


def test_a_process_whose_start_is_interrupted_is_known_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert (done.stdout, done.returncode) == (f"interrupted\n{-signal.SIGKILL}\n", 0), done.stderr


def test_a_process_that_cannot_start_is_an_error_that_names_the_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(RuntimeError, match="m1 has no process") as caught:
        member([]).start()
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize("place", [ProcessRunner, ThreadRunner])
def test_a_member_that_waits_to_make_its_consumer_leaves_at_once(place: Any) -> None:
    told: list[Mapping[str, Any]] = []
    runner = place(config("kafka-python"), told.append)
    runner.start()
    wait_until(lambda: [] if told else ["nothing is reported"], 60, "it to start")
    runner.send({"command": "leave"})
    runner.wait()
    assert [event["event"] for event in told] == ["started", "closed", "exited"]
    assert (told[1]["reason"], told[2]["status"]) == ("left", 0)


APPLICATION = """
import json, os, sys
import numpy

def run(seat):
    told = {
        "environment": os.environ.get("OF_THE_TEST"),
        "folder": os.getcwd(),
        "group": os.getpgid(0) == os.getpid(),
        "imported": __import__("of_the_test").NAME,
        "drawn": numpy.random.random(),
        "hash": hash("a"),
    }
    print(json.dumps(told), file=sys.stderr)
"""


def ran(place: Any, file: Path) -> Any:
    """The runner of an application that ran from its begin to its end."""
    told: list[Mapping[str, Any]] = []
    runner = place(config(f"{file}:run"), told.append)
    runner.start()
    runner.send({"command": "release"})
    runner.wait()
    assert [event["event"] for event in told] == ["started", "closed", "exited"], runner.log()
    assert (told[0]["pid"], told[-1]["status"]) == (runner.pid, 0)
    return runner


def test_a_process_sees_what_its_parent_sees_when_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "application.py"
    file.write_text(APPLICATION, encoding="utf-8")
    drawn, hashes = set(), []
    for name, seed in (("one", "1"), ("two", "2"), ("three", "1")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "of_the_test.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setenv("OF_THE_TEST", name)
            patch.setenv("PYTHONHASHSEED", seed)
            patch.chdir(folder)
            patch.syspath_prepend(folder)
            patch.setattr(sys, "path", [tmp_path, *sys.path])  # Python passes over what is no string
            seen = json.loads(ran(ProcessRunner, file).log().splitlines()[-1])
        drawn.add(seen["drawn"])
        hashes.append(seen["hash"])
        assert seen["environment"] == seen["imported"] == name
        assert seen["folder"] == str(folder)
        assert seen["group"]
    assert len(drawn) == 3
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere members are not forked")
def test_members_go_on_and_others_start_when_the_process_that_forks_is_gone() -> None:
    before: list[Mapping[str, Any]] = []
    runner = member(before)
    runner.start()
    asked = processes._forking_process()
    asked._process.kill()
    asked._process.wait()
    after: list[Mapping[str, Any]] = []
    other = member(after)
    other.start()
    for each in (runner, other):
        each.kill()
        each.wait()
    assert [(event["event"], event.get("status")) for event in before][-1] == ("exited", None)
    assert [(event["event"], event.get("status")) for event in after][-1] == ("exited", -signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere members are not forked")
def test_an_exit_status_that_nobody_reads_stops_no_other_member() -> None:
    with tempfile.TemporaryFile() as log:
        forgotten = cast("Any", processes.start_process(log))
        asked = forgotten._asked
        for file in (forgotten._ended, forgotten.stdin, forgotten.stdout):
            file.close()
        proc = Path(f"/proc/{forgotten.pid}")
        # It ends with its standard input, and is gone once it has been waited for.
        wait_until(lambda: [str(proc)] * proc.exists(), 30, "the member's process to be gone")
        other = processes.start_process(log)
        other.signal(signal.SIGKILL)
        assert other.wait() == -signal.SIGKILL
    assert asked.alive
    assert cast("Any", other)._asked is asked


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere members are not forked")
def test_members_end_while_another_is_frozen_that_has_done_nothing_yet() -> None:
    with tempfile.TemporaryFile() as log:
        for _ in range(20):
            ends, freezes = processes.start_process(log), processes.start_process(log)
            freezes.signal(signal.SIGSTOP)
            ends.signal(signal.SIGKILL)
            assert ends.wait() == -signal.SIGKILL
            freezes.signal(signal.SIGKILL)
            assert freezes.wait() == -signal.SIGKILL


def test_a_request_that_comes_in_pieces_is_received_whole() -> None:
    ours, theirs = socket.socketpair()

    def send() -> None:
        for piece in range(5):
            ours.sendall(bytes([piece]))

    with ours, theirs:
        sender = threading.Thread(target=send)
        sender.start()
        assert processes._receive(theirs, 5) == bytes(range(5))
        sender.join()
        ours.sendall(b"ab")
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(EOFError, match="2 of 3 bytes"):
            processes._receive(theirs, 3)


def test_a_process_that_is_started_afresh_freezes_thaws_and_ends_as_a_forked_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runners, "start_process", processes.FreshProcess)
    told: list[Mapping[str, Any]] = []
    runner = member(told)
    runner.start()
    runner.freeze()
    runner.thaw()
    runner.crash()
    runner.kill()  # what has ended, and was waited for, is not signalled again
    runner.wait()
    assert [(event["event"], event.get("status")) for event in told][-1] == ("exited", -signal.SIGKILL)


FORKS = """
import os, signal, time

def run(seat):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        {first}
        os.write(writes, b"1")
        signal.pause()
    os.read(reads, 1)
    seat.note("child", child)
    while not seat.leaving and {stays}:
        time.sleep(0.02)
"""
"""An application that forks another process, which has all its files open."""


@contextlib.contextmanager
def forking_member(file: Path, **application: str) -> Iterator[tuple[ProcessRunner, int, list[Any]]]:
    """A member whose application has forked, the process that it forked, and what is told."""
    file.write_text(FORKS.format(**{"first": "", "stays": "True", **application}), encoding="utf-8")
    told: list[Mapping[str, Any]] = []
    runner = ProcessRunner(config(f"{file}:run"), told.append)
    runner.start()
    runner.send({"command": "release"})

    def child() -> list[int]:
        return [event["value"] for event in told if event["event"] == "note"]

    try:
        wait_until(lambda: [] if child() else [f"told {told}"], 60, "it to fork")
        yield runner, child()[0], told
    finally:
        if child() and not has_ended(child()[0]):
            os.kill(child()[0], signal.SIGKILL)
        runner.kill()
        runner.wait()


def must_return(function: Callable[[], None]) -> None:
    """Call a function that is not to hang."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), f"{function} hangs"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("start", [processes.start_process, processes.FreshProcess])
@pytest.mark.parametrize("end", ["crash", "kill", "leave", "returns"])
def test_what_a_member_has_forked_ends_with_it(
    end: str, start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "start_process", start)
    stays = str(end != "returns")
    with forking_member(tmp_path / "application.py", stays=stays) as (runner, child, told):
        if end == "leave":
            runner.send({"command": "leave"})
        elif end != "returns":
            getattr(runner, end)()
        must_return(runner.drain)
        must_return(runner.wait)
        killed = end in {"crash", "kill"}
        assert (told[-1]["event"], told[-1]["status"]) == ("exited", -signal.SIGKILL if killed else 0)
        wait_until(lambda: [] if has_ended(child) else [f"process {child} is there"], 30, "it to end")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere members are not forked")
def test_what_a_member_has_forked_ends_with_it_though_the_process_that_forks_is_gone(tmp_path: Path) -> None:
    with forking_member(tmp_path / "application.py") as (runner, child, told):
        asked = processes._forking_process()
        asked._process.kill()
        asked._process.wait()
        runner.crash()
        must_return(runner.drain)
        assert (told[-1]["event"], told[-1]["status"]) == ("exited", None)
        wait_until(lambda: [] if has_ended(child) else [f"process {child} is there"], 30, "it to end")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_member_has_ended_though_what_it_forked_in_a_session_of_its_own_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "_END_SECONDS", 0.1)
    with forking_member(tmp_path / "application.py", first="os.setsid()") as (runner, child, told):
        runner.crash()
        must_return(runner.drain)
        assert (told[-1]["event"], told[-1]["status"]) == ("exited", -signal.SIGKILL)
        assert not has_ended(child)


def test_what_a_member_in_a_thread_needs_is_imported_before_its_thread_begins(tmp_path: Path) -> None:
    file = tmp_path / "application.py"
    file.write_text(
        "import threading\nIMPORTED_BY = threading.get_ident()\ndef run(seat): return None\n",
        encoding="utf-8",
    )
    ran(ThreadRunner, file)
    assert imported(f"{file}:IMPORTED_BY") == threading.get_ident()


class Rebalancing:
    """A client whose commits are refused until it has polled so many times."""

    def __init__(self, polls: int, refusal: str) -> None:
        self.left = polls
        self.refusal = refusal

    def poll(self, _: float) -> bool:
        self.left -= 1
        return False

    def commit(self) -> None:
        if self.left:
            raise CommitError(self.refusal)


@pytest.mark.parametrize(
    ("refusal", "before", "polls"),
    [
        ("RebalanceInProgressError: a rebalance is on", [], 3),
        ("UnknownMemberIdError: who is it", [], 0),
        ("RebalanceInProgressError: a rebalance is on", ["pause"], 0),
    ],
    ids=["polls complete it", "another reason", "does not poll"],
)
def test_a_commit_amid_a_rebalance_is_done_when_polls_have_completed_it_and_fails_otherwise(
    refusal: str, before: list[str], polls: int
) -> None:
    client: Any = Rebalancing(3, refusal)
    told: list[str] = []
    worker = Worker(config("kafka-python"), lambda kind, **_: told.append(kind))
    for command in before:
        worker._obey(client, {"command": command})
    with contextlib.nullcontext() if polls else pytest.raises(CommitError, match=refusal):
        worker._obey(client, {"command": "commit"})
    assert (client.left, told[-1:] == ["obeyed"]) == (3 - polls, bool(polls))


class Told:
    """A client that tells what it is asked for, until it is closed."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def poll(self, seconds: float) -> bool:
        self.told.append(f"poll {seconds:g}")
        return True

    def commit(self) -> None:
        self.told.append("commit")

    def close(self) -> None:
        self.told.append("close")


def test_an_application_works_between_its_poll_and_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    worker = Worker(config("kafka-python", poll_ms=50, work_ms=3000), lambda kind, **_: told.append(kind))
    worker.take({"command": "release"})

    def work(seconds: float) -> None:
        told.append(f"work {seconds:g}")
        worker.take({"command": "leave"})  # obeyed when the work is done

    monkeypatch.setattr("kafka_assignors.testing._groups.worker.time.sleep", work)
    assert worker._loop(cast("Any", Told(told))) == 0
    assert told == ["poll 0.05", "work 3", "commit", "close", "closed"]


class Function:
    """A user's function, its consumer if it returns one, and its worker, which says what happens."""

    subscribed = True

    def __init__(self, *, own_loop: bool, amid: str | None = None) -> None:
        self.told: list[str] = []
        self.worker = Worker(config("x:y"), self.report)
        self.worker._function = self
        self.consumer = self
        self._own_loop = own_loop
        self._amid = amid

    def __call__(self, seat: Seat) -> Any:
        if self._amid:
            self.worker.take({"command": self._amid})
        if not self._own_loop:
            seat.observed = cast("Any", self)
            return self
        while not seat.leaving:
            self.poll(0)
        return None

    def report(self, kind: str, **_: Any) -> None:
        self.told.append(kind)
        if kind == "paused":
            threading.Thread(target=self.worker.take, args=[{"command": "resume"}]).start()

    def poll(self, _: float) -> bool:
        self.worker._wait_to_poll()
        assert "poll" not in self.told, "it goes on to poll"
        self.told.append("poll")
        self.worker.take({"command": "leave"})
        return False

    def close(self) -> None:
        self.told.append("close")

    def run(self, *early: str) -> list[str]:
        """Run it when these commands have come; what happens."""
        for command in ("release", *early):
            self.worker.take({"command": command})
        runs = threading.Thread(target=self.worker.run, daemon=True)
        runs.start()
        runs.join(30)
        assert not runs.is_alive(), self.told
        return self.told


@pytest.mark.parametrize(
    ("own_loop", "early", "amid", "happens"),
    [
        (True, ["leave"], None, []),
        (True, ["pause"], None, ["paused", "resumed", "poll"]),
        (False, ["leave"], None, ["close"]),
        (False, ["pause"], None, ["paused", "resumed", "poll", "close"]),
        (False, [], "leave", ["close"]),
        (False, [], "pause", ["paused", "resumed", "poll", "close"]),
        (False, ["unknown", "leave"], None, ["error", "close"]),
    ],
)
def test_a_member_whose_import_or_consumer_took_long_does_as_it_was_told_meanwhile(
    own_loop: bool, early: list[str], amid: str | None, happens: list[str]
) -> None:
    told = Function(own_loop=own_loop, amid=amid).run(*early)
    told.remove("started")  # in its own loop, at any time
    assert told == [*happens, "closed"]


@pytest.mark.parametrize("pace", [{"poll_ms": 0}, {"work_ms": -1}])
def test_a_member_whose_polls_or_work_make_no_sense_is_refused(pace: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"m1: poll_ms=.* a poll takes 1 ms at least, work 0 ms"):
        config("kafka-python", **pace)


@pytest.mark.parametrize("failure", ["import no_such_module", "raise SystemExit('no_such_module')"])
def test_a_member_in_a_thread_whose_module_cannot_be_imported_ends_and_says_why(
    failure: str, tmp_path: Path
) -> None:
    file = tmp_path / "application.py"
    file.write_text(failure, encoding="utf-8")
    told: list[Mapping[str, Any]] = []
    runner = ThreadRunner(config(f"{file}:run"), told.append)
    runner.start()
    runner.wait()
    assert [(event["event"], event["status"]) for event in told] == [("exited", 1)]
    assert "no_such_module" in runner.log()
