"""A test of a group that fails while the machine stood still is no failure, and is not hidden either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import plugin
from tests.support.kinds import ROOT

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from tests.support.stalls import Stalls, Watch

Stalls.too_long = lambda self: None
Watch.too_long = lambda self: {longest}

def test_of_a_plan():
    assert False, "of no group"

@pytest.mark.broker
@pytest.mark.patient
def test_without_a_deadline():
    assert False, "patient"

@pytest.mark.broker
def test_of_a_group():
    assert 1 == 2, "two owners"
"""


CONFTEST = """
pytest_plugins = ["tests.support.verdicts"]

def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true")
"""


def run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, longest: float | None, *arguments: str
) -> pytest.RunResult:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers =\n    broker:\n    patient:\n")
    pytester.makepyfile(test_it=TESTS.format(longest=longest))
    return pytester.runpytest_subprocess(*plugin.ALONE, *arguments)


def test_a_group_that_fell_apart_in_a_stall_is_left_out_and_listed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, monkeypatch, 1.94, ".")
    result.assert_outcomes(failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "1 more failed while they stood still for more than 0.5 s:",
            "  1.9 s: test_of_a_group: AssertionError: two owners",
            "they count with --whole, or if their files are named",
        ]
    )


def test_without_a_stall_it_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    run(pytester, monkeypatch, None, ".").assert_outcomes(failed=3)


def test_whoever_names_the_file_wants_the_verdict(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(pytester, monkeypatch, 1.94, "test_it.py").assert_outcomes(failed=3)
