"""On which tests of groups a machine can give a verdict whose processors are also others'.

Before each it is looked how long processes stand still, and while it runs. A plug-in of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.kinds import is_broad
from tests.support.stalls import LONGEST, LONGEST_IN_A_TEST, Stalls, Watch

if TYPE_CHECKING:
    from collections.abc import Generator

STALLS: pytest.StashKey[Stalls] = pytest.StashKey()
"""What this process has seen of the machine."""

WATCH: pytest.StashKey[Watch] = pytest.StashKey()
"""What it sees of the machine while a test runs."""

TOO_LONG = "this machine's processors stand still for"
STOOD_STILL = "it failed, but this machine's processors stood still meanwhile for"


def pytest_configure(config: pytest.Config) -> None:
    """Nothing has been seen of the machine."""
    config.stash[STALLS] = Stalls()
    config.stash[WATCH] = Watch()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test that this machine would fail at random; before fixtures, which start brokers."""
    if is_hasty(item):
        stall = item.config.stash[STALLS].too_long()
        if stall is not None:
            pytest.skip(f"{TOO_LONG} {stall:.1f} s at a time: members of groups would be expelled at random")
        item.config.stash[WATCH].begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give no verdict on a test of a group that failed while its members were not let run."""
    report = yield
    if report.failed and is_hasty(item):
        stall = item.config.stash[WATCH].too_long()
        if stall is not None:
            path, line, _ = item.location
            why = f"{STOOD_STILL} {stall:.1f} s: {report.head_line}: {first_line(report)}"
            report.outcome, report.longrepr = "skipped", (path, (line or 0) + 1, why)
    return report


def is_hasty(item: pytest.Item) -> bool:
    """Whether a test takes a machine that runs processes when they are due, and nobody insists on it."""
    config = item.config
    hasty = item.get_closest_marker("broker") and not item.get_closest_marker("patient")
    return bool(hasty) and is_broad(config) and not config.getoption("--whole")


def first_line(report: pytest.TestReport) -> str:
    """What a test failed with, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longrepr)).partition("\n")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests this machine could not run."""
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    before = sum(why.startswith(f"Skipped: {TOO_LONG}") for why in skipped)
    during = [why for why in skipped if why.startswith(STOOD_STILL)]
    if not before and not during:
        return
    terminalreporter.write_sep("-", "left out")
    if before:
        terminalreporter.write_line(
            f"{before} tests of groups on real brokers: {TOO_LONG} more than {LONGEST} s at a time"
        )
    if during:
        terminalreporter.write_line(
            f"{len(during)} more failed while they stood still for more than {LONGEST_IN_A_TEST} s:"
        )
    for why in during:
        terminalreporter.write_line(f"  {why.removeprefix(STOOD_STILL).strip()}")
    terminalreporter.write_line("they count with --whole, or if their files are named")
