"""The kinds of tests: what marks them, and in which order they are begun."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

LEFT_OUT: Final[pytest.StashKey[dict[str, int]]] = pytest.StashKey()
"""How many tests were left out before the start, by reason."""

MARKERS: Final = {
    "tests/oracle": "oracle",
    "tests/spark": "spark",
    "tests/browser": "browser",
    "tests/system": "system",
    "integration_tests": "broker",
}
"""The marker of all tests in a folder."""

MARKERS_OF_FIXTURES: Final = {
    "spark": "spark",
    "java": "java",
    "kafka_3_9": "java",
    "object_store": "system",
}
"""The marker of tests that use a fixture, wherever they are."""

SHAPES: Final = (
    "chaos_brokers",
    "disturbed_brokers",
    "three_brokers",
    "proxied_broker",
    "sasl_tls_broker",
    "sasl_broker",
    "tls_broker",
)
"""Fixtures that are clusters of a shape; a process starts each once."""

SPARK_WITH_BROKERS: Final = ("test_history_capture", "test_history_cluster", "test_history_truth")
"""Integration tests that start Spark; those of the second start a cluster of it."""

VARIED: Final = {"assignor", "client", "cluster", "home", "leads", "ours", "seed", "stock", "strategy"}
"""Arguments of tests that are repeated for them: with brokers or Spark, each repetition takes seconds."""

LONGEST: Final = (
    "chaos_brokers",
    "spark",
    "java",
    "disturbed_brokers",
    "spark with brokers",
    "three_brokers",
)
"""Groups that take minutes. Of all that start Java they are begun first, so that no process is left with one
in the end; clusters of three brokers, which start at the same time on two cores, disturb each other."""

WITH_JAVA: Final = frozenset({"broker", "spark", "java"})
"""Brokers, Spark and Kafka's classes stay until a process of tests ends. On a slow machine each takes a third
of a processor while idle."""


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
    """What tests share that is slow to start, or their file; None where that costs nothing."""
    fixtures, markers = fixtures_of(item), markers_of(item)
    for shape in SHAPES:
        if shape in fixtures:
            return shape
    if "broker" in markers and item.path.stem in SPARK_WITH_BROKERS:
        return "spark with brokers"
    if "spark" in markers:
        return "spark"
    if "java" in markers:
        return "java"
    if "oracle" in markers:
        return None
    return f"{item.path.parent.name}/{item.path.stem}"


def rank(item: pytest.Item) -> int:
    """Place in the order in which tests are begun: those without Java first, then the longest groups."""
    markers = markers_of(item)
    if not markers & WITH_JAVA:
        return 0 if markers else 1
    group = group_of(item)
    return 2 + (LONGEST.index(group) if group in LONGEST else len(LONGEST))


def is_broad(config: pytest.Config) -> bool:
    """Whether folders are run, not files or tests that are named."""
    return any(Path(arg).is_dir() for arg in config.args)


def left_out(items: Sequence[pytest.Item], *, slow: bool) -> dict[pytest.Item, str]:
    """The tests that only a whole run takes, and why: those that are slow, if so wished, and repetitions.

    In a file that is marked as slow, what is marked as core is not.
    """
    minutes = (one for one in items if one.get_closest_marker("slow") and not one.get_closest_marker("core"))
    repeated = dict.fromkeys(repetitions(items), "repetitions: --whole runs them")
    return repeated | dict.fromkeys(minutes if slow else (), "slow: --whole runs them")


def repetitions(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Of each slow test that is repeated for assignors, clients or stores, all repetitions but one.

    Which one is kept hangs on the test's name and its kinds' order alone: the same in every process and every
    run, and another assignor or client from test to test.
    """
    alike: dict[str, dict[tuple[str, ...], list[pytest.Item]]] = {}
    for item in items:
        if (chosen := getattr(item, "callspec", None)) is None or not markers_of(item) & {"broker", "spark"}:
            continue
        others = tuple(f"{name}={value}" for name, value in chosen.params.items() if name not in VARIED)
        alike.setdefault(item.nodeid.partition("[")[0], {}).setdefault(others, []).append(item)
    return [
        item
        for test, kinds in alike.items()
        for kind, same in enumerate(kinds.values())
        for number, item in enumerate(same)
        # No hash() and no address in memory: the same in every process.
        if number != zlib.crc32(f"{test} {kind}".encode()) % len(same)
    ]
