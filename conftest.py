"""What holds for all tests: their kinds, who runs beside whom, how much is tried."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from tests.support import plugin
from tests.support.kinds import LEFT_OUT, group_of, is_broad, left_out, markers_of, rank
from tests.support.scale import GATE_EXAMPLES, GATE_SCALE, longer, set_scale
from tests.support.stalls import slowness

pytest_plugins = ["tests.support.sessions", "tests.support.verdicts", *plugin.NAMED]

KAFKA_TIMEOUT = 240
"""Seconds that a group may take on an idle machine: for what hangs, as others have been ten times as slow."""

SESSION_MS = 45_000
"""On an idle machine. Nobody is expelled but by a test that wants it, with a session of its own."""

BEGAN: pytest.StashKey[float] = pytest.StashKey()
"""When this process of the run started."""

# The same examples in every run, however slow the machine.
settings.register_profile("gate", derandomize=True, deadline=None, max_examples=GATE_EXAMPLES)
settings.register_profile("dev", settings.get_profile("gate"), max_examples=GATE_EXAMPLES // 5)
# New ones each time; what fails is kept in .hypothesis/ and tried first the next time.
settings.register_profile("nightly", deadline=None, max_examples=GATE_EXAMPLES * 10, print_blob=True)

# Tests start some thousand processes of Python. Where each compiles anew what it imports, a consumer takes
# 0.8 s of CPU to start instead of 0.4, and a worker of Spark's 1.9 s instead of 0.6.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

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
        help="how many random groups tests/oracle tries: 0.01 (default) while developing, "
        f"{GATE_SCALE} in the gate, 10 at night; hypothesis's profile follows (dev, gate, nightly), unless "
        "--hypothesis-profile names it",
    )
    parser.addoption(
        "--whole",
        action="store_true",
        help="repeat tests with brokers or Spark for each assignor, client and store, not for one of them; "
        "run slow tests, which else run where their files are named",
    )
    parser.addoption(
        "--slowness",
        type=float,
        metavar="X",
        help="how many times as long as on an idle machine tests wait for members, and the coordinator for "
        "their heartbeats; by default as measured at the start",
    )
    parser.addoption(
        "--screens",
        metavar="FOLDER",
        help="where integration_tests/test_bad_night.py keeps what commands show on terminals, as pictures",
    )
    parser.addoption(
        "--within",
        type=float,
        metavar="SECONDS",
        help="skip tests that would begin later than so many seconds after the start",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set how much is tried, and have xdist keep to the order of `rank`."""
    config.stash[BEGAN] = time.monotonic()
    scale = config.getoption("--oracle-scale")
    options = config.option
    if options.slowness is None:
        # A worker of pytest-xdist takes that of the main process.
        options.slowness = getattr(config, "workerinput", {}).get("slowness") or slowness()
    set_scale(scale, options.slowness)
    options.kafka_timeout = options.kafka_timeout or str(longer(KAFKA_TIMEOUT))
    session = f"session_timeout_ms={longer(SESSION_MS):.0f}"
    options.kafka_consumer_settings = [session, *(options.kafka_consumer_settings or ())]
    if not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile("dev" if scale < GATE_SCALE else "gate" if scale <= 1 else "nightly")
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the slowness on to a worker of pytest-xdist."""
    node.workerinput["slowness"] = node.config.option.slowness


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say how much is tried."""
    scale, examples = config.getoption("--oracle-scale"), settings().max_examples
    variants = "each" if config.getoption("--whole") else "one"
    gate = f"the gate: {GATE_SCALE}, {GATE_EXAMPLES}"
    return [
        f"random tests: a scale of {scale:g}, {examples} examples ({gate})",
        f"tests with brokers or Spark: {variants} of their assignors, clients and stores",
        f"waits for members: {config.getoption('--slowness'):g} times as long as on an idle machine",
    ]


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
    # After -k and -m: who asks for one client gets it.
    if not config.getoption("--whole") and (spared := left_out(items, slow=is_broad(config))):
        config.stash[LEFT_OUT] = Counter(spared.values())
        config.hook.pytest_deselected(items=[item for item in items if item in spared])
        items[:] = [item for item in items if item not in spared]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what the run has no time for; before fixtures, which may be what takes it."""
    config = item.config
    within = config.getoption("--within")
    if within is not None and time.monotonic() - config.stash[BEGAN] > within:
        pytest.skip(f"the {within:g} s of --within are over")
