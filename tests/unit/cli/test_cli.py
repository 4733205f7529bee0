"""The command line without a broker: what it accepts, and what a demo concludes from what it saw."""

import json
import re
import sys
from importlib.metadata import version
from typing import Any

import pytest
from kafka import TopicPartition
from rich.console import Console

from kafka_assignors._cli.main import main
from kafka_assignors._cli.results import DemoRun, DemoStep
from kafka_assignors._cli.show import show_comparison, show_run, show_step
from kafka_assignors._common.plain import to_json
from kafka_assignors._timelines.ownership import Overlap
from kafka_assignors._timelines.rebalances import SeenRebalance
from kafka_assignors.groups import Cluster


def partitions(*ids: int, topic: str = "orders-ab12") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, partition) for partition in ids)


def step(before: dict[str, Any], after: dict[str, Any], **fields: Any) -> DemoStep:
    rebalance = SeenRebalance(generation=4, start=1.0, end=2.0, leader="m1", claims={}, assignments=after)
    settings = {
        "title": "something happens",
        "seconds": 1.5,
        "rebalances": (rebalance,),
        "silence": {tp: 0.25 for tps in before.values() for tp in tps},
        "shared": False,
    }
    return DemoStep(before=before, after=after, **{**settings, **fields})


def run(*steps: DemoStep, **fields: Any) -> DemoRun:
    settings = {
        "assignor": "sticky",
        "produced": 100,
        "consumed": 100,
        "duplicates": 2,
        "overlaps": (),
        "double_assigned": 0,
    }
    return DemoRun(steps=steps, **{**settings, **fields})


JOIN = step(
    {"m1": partitions(0, 1, 2), "m2": partitions(3, 4, 5)},
    {"m1": partitions(0, 1), "m2": partitions(3, 4), "m3": partitions(2, 5)},
)
WASTEFUL_LEAVE = step(
    {"m1": partitions(0, 1), "m2": partitions(2, 3), "m3": partitions(4, 5)},
    {"m1": partitions(0, 2, 4), "m3": partitions(1, 3, 5)},
)
OVERLAP = Overlap(partition=TopicPartition("orders-ab12", 3), members=("m1", "m2"), start=1.0, seconds=0.5)


def test_moves_are_counted_against_the_least_possible() -> None:
    assert JOIN.moved == {
        TopicPartition("orders-ab12", 2): ("m1", "m3"),
        TopicPartition("orders-ab12", 5): ("m2", "m3"),
    }
    assert JOIN.least_moves == 2


def test_partitions_of_a_member_that_is_gone_do_not_count_as_moved() -> None:
    assert WASTEFUL_LEAVE.moved == {
        TopicPartition("orders-ab12", 1): ("m1", "m3"),
        TopicPartition("orders-ab12", 4): ("m3", "m1"),
    }
    assert WASTEFUL_LEAVE.least_moves == 0
    assert run(JOIN, WASTEFUL_LEAVE).moves == 4
    assert run(JOIN, WASTEFUL_LEAVE).least_moves == 2


def test_where_partitions_are_shared_nothing_moves() -> None:
    everything = {"m1": partitions(0, 1), "m2": partitions(0, 1)}
    shared = step(everything, {"m1": partitions(0, 1)}, shared=True)
    assert (shared.moved, shared.least_moves) == ({}, 0)


@pytest.mark.parametrize(
    ("fields", "ok"),
    [
        ({}, True),
        ({"consumed": 99}, False),
        ({"overlaps": (OVERLAP,)}, False),
        ({"double_assigned": 1}, False),
        ({"duplicates": 50}, True),
    ],
    ids=["all well", "a message lost", "two owners by their callbacks", "two owners by assignment", "again"],
)
def test_a_run_is_well_if_nothing_was_lost_and_nothing_owned_twice(fields: dict[str, Any], ok: bool) -> None:
    assert run(JOIN, **fields).ok is ok
    assert run(JOIN, **fields).to_json()["ok"] is ok


def test_broadcast_may_own_twice_but_not_lose() -> None:
    shared = step({}, {"m1": partitions(0), "m2": partitions(0)}, shared=True)
    assert run(shared, overlaps=(OVERLAP,), double_assigned=3).ok
    assert not run(shared, consumed=99).ok


def test_results_have_json() -> None:
    decoded = json.loads(json.dumps(to_json(run(JOIN, WASTEFUL_LEAVE))))
    assert decoded["moves"] == 4
    assert decoded["longest_not_consumed_seconds"] == 0.25
    assert decoded["steps"][0]["generations"] == [{"generation": 4, "leader": "m1"}]
    assert decoded["steps"][0]["assignment"]["m3"] == {"orders-ab12": [2, 5]}


def test_a_step_shows_who_has_what_what_moved_and_the_pauses() -> None:
    console = Console(width=100, record=True, file=sys.stderr)
    show_step(console, JOIN)
    shown = [line.rstrip() for line in console.export_text().splitlines() if line.strip()]
    assert shown == [
        "something happens: generation 4 (led by m1), 1.5 s",
        "  m1    orders 0 1      2 partitions",
        "  m2    orders 3 4      2 partitions",
        "  m3    orders +2 +5    2 partitions",
        "  moved 2, least possible 2: orders-2 m1 → m3, orders-5 m2 → m3",
        "  not consumed for, in seconds:",
        "     orders  0:0.25  1:0.25  2:0.25  3:0.25  4:0.25  5:0.25",
    ]


def test_a_failed_run_says_what_was_wrong() -> None:
    console = Console(width=200, record=True, file=sys.stderr)
    show_run(console, run(JOIN, consumed=97, overlaps=(OVERLAP,)))
    shown = console.export_text()
    assert "FAILED sticky\n  100 messages produced, 97 consumed, 3 lost, 2 delivered again\n" in shown
    assert "orders-3 had m1 and m2 for 0.500 s" in shown


def test_the_comparison_fits_into_80_columns() -> None:
    console = Console(width=80, record=True, file=sys.stderr)
    names = ["range", "roundrobin", "sticky", "cooperative-sticky"]
    show_comparison(console, [run(JOIN, assignor=name, produced=123456, consumed=123456) for name in names])
    shown = console.export_text()
    assert "…" not in shown
    assert [line.split()[0] for line in shown.splitlines() if "123456" in line] == names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: kafka-assignors [OPTIONS] COMMAND"),
        (["dance"], "No such command 'dance'"),
        (["demo", "--assignor", "best"], "'best' is not one of 'range', 'roundrobin'"),
        (["demo", "--assignor", "range", "--assignor", "sticky"], "--compare"),
        (["demo", "--heartbeat-interval-ms", "soon"], "'soon' is no whole number from 0 on"),
        (["demo", "--heartbeat-interval-ms", "0"], "0 is too few"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_why(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_a_kafka_that_is_not_there_is_an_error_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--bootstrap-server", "localhost:1"]) == 1
    shown = capsys.readouterr().out
    assert "ClusterUnavailableError" in shown
    assert "localhost:1" in shown


def shown_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kafka-assignors {version('kafka-assignors')}\n"


def test_commands_are_listed_in_their_order_not_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    listed = shown_help(capsys, "group", "-h").split("Commands:\n")[1].split("\n\n")[0]
    names = re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE)
    assert names == ["explain", "list", "export", "what-if", "find", "elect"]


def test_options_are_listed_by_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_help(capsys, "placement", "reassign", "--help")
    assert re.findall(r"^(\w.*):$", shown, re.MULTILINE) == [
        "Positional arguments",
        "Options",
        "The cluster",
        "Where they should be",
        "How gently",
    ]
    gently = shown.split("How gently:\n")[1].split("\n\n")[0]
    assert re.findall(r"^  (--[\w-]+)", gently, re.MULTILINE) == [
        "--throttle",
        "--no-throttle",
        "--at-once",
        "--stalled-after",
    ]


def test_the_end_of_a_help_is_shown_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\n      partitions: [0, 1, 4]        # or a number\n" in shown_help(capsys, "plan", "--help")


@pytest.mark.parametrize(
    "written",
    [["--bootstrap-server", "a:1,b:2"], ["--bootstrap-server=a:1,b:2"]],
    ids=["apart", "with ="],
)
def test_brokers_are_named_by_kafkas_option(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, ...]] = []

    def find(cluster: Cluster, _: str) -> str:
        found.append(cluster.bootstrap_servers)
        return ""

    monkeypatch.setattr("kafka_assignors.groups._coordinator.find_coordinator", find)
    assert main(["group", "find", "billing", *written]) == 0
    assert found == [("a:1", "b:2")]


def test_metrics_go_to_a_file_or_are_served_but_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["group", "export", "--bootstrap-server", "h:1", "--output", "f", "--listen", "0"])
    assert exit_.value.code == 2
    assert capsys.readouterr().err == (
        "Usage: kafka-assignors group export [OPTIONS] [GROUP]...\n"
        "Try 'kafka-assignors group export --help' for help.\n\n"
        "Error: say --output or --listen, one of them\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["placement", "reassign", "--output", "--execute", "--bootstrap-server", "h:1"],
        ["placement", "create", "t", "--config", "--dry-run", "--bootstrap-server", "h:1"],
        ["plan", "group.json", "--assignor", "--no-certify"],
    ],
    ids=" ".join,
)
def test_an_option_is_no_value_of_another_one(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    option = next(word for word in arguments if word.startswith("--"))
    assert f"Error: Option {option!r} requires an argument.\n" in capsys.readouterr().err
