"""What the results of a run mean: each failure counts, and what did not run is named. A plug-in of pytest."""

from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from tests.support.kinds import LEFT_OUT
from tests.support.stalls import LONGEST, Watch

WATCH: Final = Watch()
"""What this process sees of the machine while a test runs."""

COUNTED: pytest.StashKey[tuple[int, dict[str, int]]] = pytest.StashKey()
"""In pytest-xdist's main process, how many tests were asked for, and how many left out, by reason."""

AGAIN: Final = "run again"
"""The property of a test that needed two tries: why."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """If a test with brokers fails while the machine stands still, run it once more: that result counts."""
    if item.get_closest_marker("broker") is None:
        return None
    WATCH.begin()
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    if failed:
        WATCH.tick()  # the thread that looks on has been let run as little
    if failed and WATCH.longest > LONGEST:
        why = f"{failed[0].when} failed while the machine stood still for {WATCH.longest:.1f} s"
        item.user_properties.append((AGAIN, f"{why}: {first_line(failed[0])}"))
        forget_failed_fixtures(item)
        WATCH.wait_for_calm()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def first_line(report: pytest.TestReport) -> str:
    """What a test failed with, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longrepr)).partition("\n")[0]


def forget_failed_fixtures(item: Any) -> None:
    """Have fixtures of a longer scope set up again that failed: pytest keeps the exception."""
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        for definition in definitions:
            if definition.cached_result is not None and definition.cached_result[2] is not None:
                definition.cached_result = None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of pytest-xdist has counted; all count the same."""
    if counted := (getattr(node, "workeroutput", None) or {}).get("counted"):
        node.config.stash[COUNTED] = counted


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that needed two tries."""
    reports = [one for each in terminalreporter.stats.values() for one in each]
    properties = [(one.nodeid, *each) for one in reports for each in getattr(one, "user_properties", ())]
    tries = {nodeid: text for nodeid, name, text in properties if name == AGAIN}
    if tries:
        terminalreporter.write_sep("-", "needed two tries")
    for nodeid, text in tries.items():
        terminalreporter.write_line(f"{nodeid}: {text}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Say in the last line how many tests ran, and why others did not."""
    config = session.config
    left_out = dict(config.stash.setdefault(LEFT_OUT, {}).items())  # no Counter, for pytest-xdist
    counted = len(session.items) + sum(left_out.values()), left_out
    if hasattr(config, "workeroutput"):
        config.workeroutput["counted"] = counted
    yield
    named, left_out = config.stash.get(COUNTED, counted)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if named and reporter is not None and not config.option.collectonly:
        reporter.write_line(last_line(reporter.stats, named, left_out))


def last_line(stats: dict[str, list[Any]], named: int, left_out: dict[str, int]) -> str:
    """How many tests ran, and how many did not, by reason."""
    skipped = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in stats.get("skipped", ()))
    kinds = ("passed", "failed", "error", "xfailed", "xpassed")
    ran = len({report.nodeid for kind in kinds for report in stats.get(kind, ())})
    missing = named - ran - sum(left_out.values()) - skipped.total()
    reasons = left_out | skipped | ({"the run ended before": missing} if missing > 0 else {})
    why = ", ".join(f"{count:,} ({reason})" for reason, count in reasons.items())
    return f"ran {ran:,} of {named:,}; left out: {why or 'nothing'}"
