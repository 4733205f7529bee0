"""The tables of docs/performance.md are those of the stored runs."""

import json
import re
from collections import defaultdict

import pytest

from tests.support.pages import read

PERFORMANCE = "docs/performance.md"
LEADER = "benchmarks/results/leader.md"

CASES = {
    "1,000,000, 2,000, equal subscriptions": "K2",
    "1,000,000, 2,000, one member's differs": "K4",
    "500,000, 10,000, in 50 services": "X1, join",
    "50,000, 5,000, two topics each": "J8",
    "10,000, 1,000, 20 topics of its own each": "D3, join",
    "10,000, 100, equal subscriptions": "P4, reassign",
    "5,000, 50, two topics each": "P7",
    "1,000, 20, equal subscriptions": "P1, reassign",
}
"""A row of the page on performance -> its case in the stored results, and its event if there are several."""


def rows(head: str) -> list[list[str]]:
    """The rows of the table of performance whose head begins so."""
    lines = read(PERFORMANCE).split(head)[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


ROWS = rows("| partitions, members | event |")
PAUSES = rows("| members | a member joins |")

SCENARIOS = {
    "a member joins": "A member joins",
    "one is slow to join by 5 s": "A member is slow to join",
    "a member leaves": "A member leaves",
    "the coordinator moves": "The coordinator moves",
}
"""The columns of the table of pauses, and the stored run's sections."""


@pytest.mark.parametrize("row", PAUSES, ids=lambda row: row[0])
def test_a_row_of_pauses_is_the_worst_of_the_stored_runs(row: list[str]) -> None:
    client = row[0].replace("`CooperativeStickyAssignor`", "our cooperative-sticky")
    client = client.replace("`CooperativeConsumer`", "our CooperativeConsumer")
    for cell, section in zip(row[1:], SCENARIOS.values(), strict=True):
        stored = read("benchmarks/results/pauses.md").split(f"## {section}\n")[1].split("##")[0]
        (line,) = [line for line in stored.splitlines() if line.startswith(f"| {client} |")]
        waits = [float(wait) for wait in line.split("|")[2].split(",")]
        assert float(cell) == max(waits)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_of_performance_is_that_of_the_stored_run(row: list[str]) -> None:
    case, _, *shown = row
    stored = read(LEADER)
    name, _, event = CASES[case].partition(", ")
    (line,) = re.findall(rf"^\| {name}: .*{event} \| sticky \| .*$", stored, re.MULTILINE)
    _, _, ours, inside, stock, _, java, franz, *_ = [cell.strip() for cell in line.strip("|").split(" | ")]
    for cell, measured in zip(shown, (ours, inside, franz, java, stock), strict=True):
        number = re.match(r"[\d.]+", measured)
        if cell == "not tried":
            assert measured.startswith("not tried")
        elif cell == "> 10,000":
            assert measured == "> 10 s" or measured.startswith("not tried")
        else:
            assert number is not None
            assert float(cell.replace(",", "")) == pytest.approx(float(number[0]), rel=0.05)


def test_every_case_is_in_the_table() -> None:
    assert [row[0] for row in ROWS] == [*CASES]


def test_ours_is_ahead_from_10000_partitions_on_but_for_one_case() -> None:
    times: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    for one in json.loads(read(LEADER.replace(".md", ".json")))["measurements"]:
        if timed := one["warm"] or one["cold"]:
            times[one["key"], one["strategy"], one["partitions"]][one["peer"]] = timed["wall"]
    behind = {
        (key, strategy)
        for (key, strategy, partitions), peers in times.items()
        if partitions >= 10_000 and not min(peers, key=peers.__getitem__).startswith("library")
    }
    assert behind == {("J3-fresh", "sticky")}
    ratios = {
        key: peers["library"] / peers["franz-go"]
        for (key, _, partitions), peers in times.items()
        if partitions >= 500_000 and "franz-go" in peers
    }
    assert {key: ratio for key, ratio in ratios.items() if ratio > 1 / 3} == {}
    assert ratios


LOADS = rows("| scenario | strategy | drained |")


@pytest.mark.parametrize("row", LOADS, ids=lambda row: f"{row[0]}, {row[1]}")
def test_a_row_of_plans_by_load_is_that_of_the_stored_days(row: list[str]) -> None:
    scenario, strategy, drained, lag, moves = row
    stored = read("benchmarks/results/load.md").split(f"## {scenario.capitalize()}\n")[1].split("##")[0]
    (line,) = [line for line in stored.splitlines() if line.startswith(f"| {strategy.strip('`')} |")]
    _, when, longest, moved, _ = [cell.strip() for cell in line.strip("|").split(" | ")]
    assert drained.split()[0] == when.split()[0]
    assert lag == f"{longest.split()[0]} s"
    assert moves == moved
    if "no plan" in drained:
        assert f"Bound: {drained.split()[-2]} s." in stored
