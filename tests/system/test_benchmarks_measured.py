"""Leaders that the benchmarks measure, each in a process of its own, and what is kept of a whole run."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.cases import Case, Event, Shape, make
from benchmarks.measure import Effort, Measurement, measure
from benchmarks.peers import PEERS, Order, Peer, PythonPeer
from benchmarks.run import run

LIBRARY, KAFKA_PYTHON = PEERS[0], PEERS[2]
TINY = Case(label="T", shape=Shape.TWO_TOPICS, event=Event.JOIN, topics=3, partitions=4, members=4)
QUICK = Effort(cap=30.0, budget=0.0, repetitions=1)


def test_ours_and_a_peer_are_measured(tmp_path: Path) -> None:
    peers = [LIBRARY, KAFKA_PYTHON]
    report = run([TINY], peers, QUICK, tmp_path, Console(quiet=True))
    assert report.complete
    assert [measurement.peer for measurement in report.measurements] == ["library", "kafka-python"]
    for measurement in report.measurements:
        assert measurement.failure is None
        assert measurement.verdict is not None
        assert (measurement.verdict.least, measurement.verdict.most) == (3, 3)
        assert measurement.cold is not None
        assert measurement.warm is not None
        assert measurement.repetitions == 1


class StubPeer(PythonPeer):
    """Runs a program in place of a leader."""

    def __init__(self, program: str) -> None:
        super().__init__("stub", needs="kafka_assignors")
        self._program = program

    def command(self, order: Order) -> list[str]:
        return [sys.executable, "-c", self._program, *order.arguments]


def measured(peer: Peer, folder: Path, limits: Effort = QUICK) -> Measurement:
    return measure(peer, TINY, make(TINY), "sticky", group=folder / "group", limits=limits)


@pytest.mark.parametrize(
    ("program", "limits", "failure"),
    [
        ("import time; time.sleep(60)", replace(QUICK, cap=0.3, set_up=0.0), "> 0 s"),
        ("raise ValueError('odd')", QUICK, "error: ValueError: odd"),
        ("b' ' * 2**33", replace(QUICK, memory=1024), "more than 1 GiB of memory"),
        (
            "import sys; open(sys.argv[2], 'wb').write(bytes(4)); print('{}')",
            QUICK,
            "wrong: 4 members are missing or unknown, say c0",
        ),
    ],
)
def test_a_peer_that_fails_gets_no_times(tmp_path: Path, program: str, limits: Effort, failure: str) -> None:
    result = measured(StubPeer(program), tmp_path, limits)
    assert result.failure == failure
    assert result.best is None
