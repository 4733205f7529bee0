"""What holds for all tests: their kinds, who runs beside whom, how much is tried."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from tests.support.scale import GATE_EXAMPLES, set_scale

pytest_plugins = ["tests.support.sessions"]

# The same examples in every run, however slow the machine.
settings.register_profile("gate", derandomize=True, deadline=None, max_examples=GATE_EXAMPLES)
settings.register_profile("dev", settings.get_profile("gate"), max_examples=GATE_EXAMPLES // 5)
# New ones each time; what fails is kept in .hypothesis/ and tried first the next time.
settings.register_profile("nightly", deadline=None, max_examples=GATE_EXAMPLES * 10, print_blob=True)

# Started in the background or by nohup, pytest would hand signals to ignore down to the processes that tests
# start to see what Ctrl-C and a closed terminal do to them.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

ROOT: Final = Path(__file__).parent

MARKERS: Final = {
    "tests/oracle": "oracle",
    "tests/spark": "spark",
    "tests/browser": "browser",
    "tests/system": "system",
    "integration_tests": "broker",
}
"""The marker of all tests in a folder."""

MARKERS_OF_FIXTURES: Final = {"spark": "spark", "java": "java", "kafka_3_9": "java"}
"""The marker of tests that use a fixture, wherever they are."""

SHAPES: Final = (
    "chaos_brokers",
    "disturbed_brokers",
    "three_brokers",
    "sasl_tls_broker",
    "sasl_broker",
    "tls_broker",
)
"""Clusters of which there is one: the tests of each run in one process, one after the other."""

LONGEST: Final = (
    "chaos_brokers",
    "spark",
    "spark with brokers",
    "disturbed_brokers",
    "three_brokers",
)
"""Groups that take minutes. They are begun first, so that no process is left with one in the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    parser.addoption(
        "--oracle-scale",
        type=float,
        default=0.01,
        metavar="X",
        help="how many random groups tests/oracle tries: 0.01 (default) while developing, 1 in the gate, 10 "
        "at night; hypothesis's profile follows (dev, gate, nightly), unless --hypothesis-profile names it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set how much is tried, and have xdist keep to the order of `rank`."""
    scale = config.getoption("--oracle-scale")
    set_scale(scale)
    if not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile("dev" if scale < 1 else "gate" if scale == 1 else "nightly")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_report_header(config: pytest.Config) -> str:
    """Say how much is tried."""
    scale, examples = config.getoption("--oracle-scale"), settings().max_examples
    return f"random tests: {scale:g} times the gate's groups, {examples} examples (the gate: {GATE_EXAMPLES})"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by kind, and those that share what is slow to start as a group."""
    for item in items:
        for marker in sorted(markers_of(item)):
            item.add_marker(marker)
        if (group := group_of(item)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(config, "workerinput"):
        items.sort(key=rank)


def markers_of(item: pytest.Item) -> set[str]:
    """The kinds of a test: that of its folder, and those of the fixtures that it uses."""
    folder = item.path.relative_to(ROOT).as_posix()
    found = {marker for where, marker in MARKERS.items() if folder.startswith(f"{where}/")}
    return found | {MARKERS_OF_FIXTURES[name] for name in fixtures_of(item) & MARKERS_OF_FIXTURES.keys()}


def fixtures_of(item: pytest.Item) -> set[str]:
    """The fixtures that a test uses; of the cluster that its parameter names, that one."""
    chosen = getattr(item, "callspec", None)
    level = chosen.params.get("cluster") if chosen is not None else None
    return {*getattr(item, "fixturenames", ()), *([f"{level}_broker"] if level is not None else [])}


def group_of(item: pytest.Item) -> str | None:
    """Tests of one group run in one process (`--dist loadgroup`), so that what they share starts once.

    Others are alone, and fill up the processes: what a file of oracles shares costs nothing.
    """
    fixtures, markers = fixtures_of(item), markers_of(item)
    for shape in SHAPES:
        if shape in fixtures:
            return shape
    if "spark" in markers:
        return "spark with brokers" if "broker" in markers else "spark"
    if "java" in markers:
        return "java"
    if "oracle" in markers:
        return None
    return f"{item.path.parent.name}/{item.path.stem}"


def rank(item: pytest.Item) -> int:
    """Place in the order in which tests are begun: the longest groups first, what fills gaps last."""
    mark = item.get_closest_marker("xdist_group")
    group = mark.args[0] if mark is not None else ""
    if group in LONGEST:
        return LONGEST.index(group)
    markers = markers_of(item)
    return len(LONGEST) + (0 if "broker" in markers else 1 if markers - {"oracle"} else 2)
