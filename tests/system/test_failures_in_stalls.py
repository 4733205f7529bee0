"""A test of a group that fails while the machine stands still has a second try, and each is named."""

from pathlib import Path

import pytest

from tests.support import plugin
from tests.support.kinds import ROOT

pytest_plugins = ["pytester"]

TESTS = """
import os
import signal
import subprocess
from pathlib import Path

import pytest

def attempt(name):
    with Path("tries", name).open("a") as file:
        file.write("x")
    return Path("tries", name).stat().st_size

def stand_still():
    with subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {os.getpid()}"]):
        os.kill(os.getpid(), signal.SIGSTOP)

@pytest.fixture(scope="session")
def cluster():
    if attempt("cluster") == 1:
        stand_still()
        raise TimeoutError("no broker")

def test_of_a_plan():
    attempt("plan")
    stand_still()
    assert False, "of no group"

@pytest.mark.broker
def test_without_a_stall():
    attempt("calm")
    assert False, "three owners"

@pytest.mark.broker
def test_expelled_once():
    if attempt("once") == 1:
        stand_still()
        assert 1 == 2, "two owners"

@pytest.mark.broker
def test_expelled_always():
    attempt("always")
    stand_still()
    assert False, "no owner"

@pytest.mark.broker
def test_skipped_in_a_stall():
    attempt("skipped")
    stand_still()
    pytest.skip("no Docker")

@pytest.mark.broker
def test_with_a_cluster_that_started_in_a_stall(cluster):
    attempt("with a cluster")
"""


CONFTEST = """
from collections import Counter

from tests.support.kinds import LEFT_OUT

pytest_plugins = ["tests.support.verdicts"]

def pytest_collection_modifyitems(config, items):
    config.stash[LEFT_OUT] = Counter(slow=2)
"""


@pytest.fixture
def tries(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each test notes its tries."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers =\n    broker:\n")
    pytester.makepyfile(test_it=TESTS)
    return pytester.mkdir("tries")


@pytest.mark.parametrize("arguments", [(), ("-n", "2", "--dist", "loadgroup")], ids=["alone", "with xdist"])
def test_the_second_result_counts_and_both_are_said(
    arguments: tuple[str, ...], pytester: pytest.Pytester, tries: Path
) -> None:
    result = pytester.runpytest_subprocess(*plugin.ALONE, *arguments)
    result.assert_outcomes(passed=2, failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "*FAILED test_it.py::test_of_a_plan - AssertionError: of no group",
            "*FAILED test_it.py::test_without_a_stall - AssertionError: three owners",
            "*FAILED test_it.py::test_expelled_always - AssertionError: no owner",
        ]
    )
    counts = {path.name: path.stat().st_size for path in tries.iterdir()}
    assert counts == {
        "plan": 1,
        "calm": 1,
        "once": 2,
        "always": 2,
        "skipped": 1,
        "cluster": 2,
        "with a cluster": 1,
    }
    named = [line.partition(" failed while the machine stood still for ") for line in result.outlines]
    assert sorted((test, why.partition(" s: ")[2]) for test, said, why in named if said) == [
        ("test_it.py::test_expelled_always: call", "AssertionError: no owner"),
        ("test_it.py::test_expelled_once: call", "AssertionError: two owners"),
        ("test_it.py::test_with_a_cluster_that_started_in_a_stall: setup", "TimeoutError: no broker"),
    ]
    assert result.outlines[-1] == "ran 5 of 8; left out: 2 (slow), 1 (no Docker)"


def test_what_a_run_did_not_get_to_is_counted(pytester: pytest.Pytester, tries: Path) -> None:
    result = pytester.runpytest_subprocess(*plugin.ALONE, "-x")
    assert [path.name for path in tries.iterdir()] == ["plan"]
    assert result.outlines[-1] == "ran 1 of 8; left out: 2 (slow), 5 (the run ended before)"
