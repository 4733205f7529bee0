"""What holds for all tests: their kinds, who runs beside whom, how much is tried."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.kinds import group_of, markers_of, rank
from tests.support.scale import GATE_EXAMPLES, set_scale

if TYPE_CHECKING:
    from collections.abc import Generator

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


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Mark tests by kind, and those that share what is slow to start as a group; begin with the longest ones.

    A wrapper, so that it comes before xdist reads the groups: xdist asks to be the first as well, and wins.
    """
    for item in items:
        for marker in sorted(markers_of(item)):
            item.add_marker(marker)
        if group := group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
    if hasattr(config, "workerinput"):
        items.sort(key=rank)
    yield
