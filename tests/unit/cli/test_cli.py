"""The command line without a broker: what it accepts, and what a demo concludes from what it saw."""

import json
import re
import sys
from importlib.metadata import version
from typing import Any

import pytest
from kafka import TopicPartition
from rich.console import Console

from kafka_assignors._cli.results import DemoRun, DemoStep
from kafka_assignors._cli.show import show_comparison, show_run, show_step
from kafka_assignors._common.plain import to_json
from kafka_assignors._timelines.ownership import Overlap
from kafka_assignors._timelines.rebalances import SeenRebalance
from tests.unit.cli.conftest import Cli


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


def demo_run(*steps: DemoStep, **fields: Any) -> DemoRun:
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


def test_partitions_of_a_member_that_is_gone_do_not_count_as_moved() -> None:
    assert WASTEFUL_LEAVE.moved == {
        TopicPartition("orders-ab12", 1): ("m1", "m3"),
        TopicPartition("orders-ab12", 4): ("m3", "m1"),
    }
    assert WASTEFUL_LEAVE.least_moves == 0
    assert demo_run(JOIN, WASTEFUL_LEAVE).moves == 4
    assert demo_run(JOIN, WASTEFUL_LEAVE).least_moves == 2


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
    assert demo_run(JOIN, **fields).ok is ok
    assert demo_run(JOIN, **fields).to_json()["ok"] is ok


def test_broadcast_may_own_twice_but_not_lose() -> None:
    shared = step({}, {"m1": partitions(0), "m2": partitions(0)}, shared=True)
    assert demo_run(shared, overlaps=(OVERLAP,), double_assigned=3).ok
    assert not demo_run(shared, consumed=99).ok


def test_results_have_json() -> None:
    decoded = json.loads(json.dumps(to_json(demo_run(JOIN, WASTEFUL_LEAVE))))
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
    show_run(console, demo_run(JOIN, consumed=97, overlaps=(OVERLAP,)))
    shown = console.export_text()
    assert "FAILED sticky\n  100 messages produced, 97 consumed, 3 lost, 2 delivered again\n" in shown
    assert "orders-3 had m1 and m2 for 0.500 s" in shown


def test_the_comparison_fits_into_80_columns() -> None:
    console = Console(width=80, record=True, file=sys.stderr)
    names = ["range", "roundrobin", "sticky", "cooperative-sticky"]
    show_comparison(
        console, [demo_run(JOIN, assignor=name, produced=123456, consumed=123456) for name in names]
    )
    shown = console.export_text()
    assert "…" not in shown
    assert [line.split()[0] for line in shown.splitlines() if "123456" in line] == names


SERVER = "--bootstrap-server h:1"
WRONG: dict[str, dict[str, str]] = {
    "": {"": "Usage: kafka-assignors [OPTIONS] COMMAND", "dance": "No such command 'dance'"},
    "demo": {
        "--assignor best": "'best' is not one of 'range', 'roundrobin'",
        "--assignor range --assignor sticky": "--compare",
        "--heartbeat-interval-ms soon": "'soon' is not a whole number of 0 or more",
        "--heartbeat-interval-ms 0": "0 is too few",
    },
    "plan": {
        "": "Missing argument 'FILE'",
        "x.json --assignor best": "'best' is not one of 'exact', 'kip54'",
        "x.json --max-skew -1": "'-1' is not a whole number of 0 or more",
        "x.json --assignor kip54 --max-moves 1": "are options of --assignor exact",
        "x.json --check --no-certify": "--check needs the certificate",
        "x.json --assignor --no-certify": "Error: Option '--assignor' requires an argument.\n",
    },
    "group elect": {
        "a": ": 'a' is not MEMBER=STRATEGY[,...], or names a member twice\n",
        "a=range a=range": ": 'a=range' is not MEMBER=STRATEGY[,...], or names a member twice\n",
        "a=range b=sticky": ": no strategy is known to all members: a: range; b: sticky\n",
    },
    "group export": {
        f"{SERVER} --output f --listen 0": "\n\nError: give either --output or --listen\n",
        f"{SERVER} --listen 65536": "ports are at most 65535, not 65536",
    },
    "group what-if": {
        "billing": "give GROUP and --bootstrap-server, or --members and --topic",
        f"billing {SERVER} --members 3": "give GROUP and --bootstrap-server, or --members and --topic",
        "billing --members 3 --topic orders=6": "give GROUP and --bootstrap-server, or --members and --topic",
        "--members 3 --topic orders=6 --topic orders=7": "--topic names a topic twice",
        "--members 3 --topic orders": "'orders' is not NAME=PARTITIONS",
        f"--members 3 --topic orders={'9' * 5000}": "9' is not NAME=PARTITIONS",
        "--members 3 --topic orders=0": "'orders=0' is not NAME=PARTITIONS",
        "--members 3 --topic orders=6 --down -5": "'-5' is not a number of seconds, 0 or more",
        "--members 3 --topic orders=6 --down nan": "'nan' is not a number of seconds, 0 or more",
        "--members 3 --topic orders=6 --down inf": "'inf' is not a number of seconds, 0 or more",
        "--members 3 --topic orders=6 --heartbeat-interval-ms 45000": (
            "heartbeat.interval.ms 45000 is not below session.timeout.ms 45000: sessions would end"
        ),
    },
    "placement cancel": {"t": "Missing option '--bootstrap-server'"},
    "placement create": {
        "t": "Missing option '--bootstrap-server'",
        f"t {SERVER}": "give --partitions and --replication-factor",
        f"t {SERVER} --partitions 2 --replica-assignment 1:2": "--replica-assignment names all replicas",
        f"t {SERVER} --partitions 2 --replication-factor 1 --generator striped --shift 1": (
            "has no --start-index and no --shift"
        ),
        f"t {SERVER} --config x": "'x' is not name=value",
        f"t {SERVER} --replica-assignment 1:1": "partition 0: '1:1' has broker 1 twice",
    },
    "placement describe": {
        "": "give --bootstrap-server or --placements",
        f"{SERVER} --placements f": "give either --bootstrap-server or --placements",
        f"{SERVER} --brokers 1": "--brokers goes with --placements",
        "--placements f --command-config c": "--command-config needs --bootstrap",
        "--placements f --check": "--check needs --bootstrap-server",
        f"--placements f --brokers {2**40}": "broker ids are at most 2147483647",
        "--placements f --brokers one": "'one' is not a whole number",
        "--placements f --brokers 1=a,2=b,1=c": "'1=a,2=b,1=c' names a broker twice",
    },
    "placement expand": {
        "t --partitions 2 --placements f --execute": "--execute needs --bootstrap",
        "t --partitions 0 --placements f": "0 is too few",
    },
    "placement reassign": {
        "--placements f --throttle 1 --no-throttle": "give either --throttle or --no-throttle",
        "--placements f --throttle fast": "'fast' is not a number of bytes",
        "--placements f --throttle 2G": "'2G' is not a number of bytes, such as 10485760 or 10MiB",
        "--placements f --throttle 0": "'0' is not a number of bytes",
        "--placements f --throttle 9000000TiB": "'9000000TiB' is not a number of bytes",
        f"--placements f --throttle {'9' * 400}": "9' is not a number of bytes",
        "t --placements f --file g": "leave out topics",
        f"--placements f --to-brokers {'9' * 5000}": "Exceeds the limit",
    },
    "placement verify": {f"t {SERVER} --execute": "No such option '--execute'"},
}


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [(command, *one) for command, each in WRONG.items() for one in each.items()],
    ids=lambda text: text[:60],
)
def test_a_wrong_command_line_exits_with_2_and_says_why(
    command: str, arguments: str, message: str, cli: Cli
) -> None:
    error = cli.refused(*command.split(), *arguments.split())
    assert error.startswith((f"Usage: kafka-assignors {command}", f"kafka-assignors {command}: "))
    assert message in error


def test_a_kafka_that_is_not_there_is_an_error_in_words(cli: Cli) -> None:
    shown = cli.shown("demo", "--bootstrap-server", "localhost:1", status=1)
    assert "ClusterUnavailableError" in shown
    assert "localhost:1" in shown


def test_the_version_is_that_of_the_distribution(cli: Cli) -> None:
    assert cli.shown("--version") == f"kafka-assignors {version('kafka-assignors')}\n"


def test_options_are_listed_by_what_they_are_about(cli: Cli) -> None:
    shown = cli.shown("placement", "reassign", "--help")
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
