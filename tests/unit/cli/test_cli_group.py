"""`kafka-assignors group` as far as it needs no cluster: votes, and what is said of a group that was read."""

from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any

import pytest

from kafka_assignors._assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._cli.group_text import explained_lines
from kafka_assignors._wire.offsets_topic import GroupMetadataValue
from kafka_assignors.coordinator._simulator.settings import MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from kafka_assignors.coordinator._simulator.what_if import rolling_restart
from kafka_assignors.groups import _what_if
from kafka_assignors.groups._explain import ExplainedGroup
from kafka_assignors.groups._live import LiveGroup
from tests.support.live_groups import described, live_group, record_of
from tests.unit.cli.conftest import Cli

TOPICS = {"orders": 4, "payments": 2}
COORDINATOR = [
    "coordinator: broker 2 (at kafka-2:9092), which leads __consumer_offsets-9: the",
    "  hash of the group's id, of 50 partitions",
]
UNTOLD = [
    "strategy: range, which all members know and most preferred; what else they know,",
    "  the coordinator does not say",
]
JOINED = [
    "    A consumer joined: A consumer started, or came back after it had been lost.",
    "    Normal when you deploy or scale up. If it happens all the time, look for",
    "    consumers that restart or fall out of the group, and give each its own",
    "    group.instance.id (static membership).",
]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys, "group")


def lines_of(live: LiveGroup) -> list[str]:
    return list(explained_lines(ExplainedGroup.of(live, lambda _: {})))


def test_an_explained_group_reads_like_this() -> None:
    group = Simulation({"orders": 3, "payments": 1}, [RangeAssignor])
    group.join("m1")
    group.run_until_stable()
    first = group.group.record()
    group.join("m2", instance_id="two")
    group.run_until_stable()
    live = live_group(first, group.group.record(), topics={"orders": 3, "payments": 1})
    assert str(live.coordinator) == "broker 2 (at kafka-2:9092), which leads __consumer_offsets-9"
    assert lines_of(live) == [
        "billing: Stable, generation 2",
        *COORDINATOR,
        "leader: m1",
        *UNTOLD,
        "record: 461 bytes of 1,048,588 that it may have",
        "generation 2: 2025-06-15 15:06:43 UTC, 3.0 s after the one before",
        "  two joined",
        *JOINED,
        "",
        "all members subscribe to orders, payments",
        "session.timeout.ms is 45,000, max.poll.interval.ms 300,000",
        "member      host        had  has  lag  partitions",
        "m1 (leads)  /127.0.0.1    -    1    0  orders 2",
        "two         /127.0.0.1    -    3    0  orders 0 1, payments 0",
        "",
        "loads differ by 2: 0 is possible",
        "its leader is taken for Java (or this library), by what it sent; by the client",
        "  that leads, so many partitions would move now: Java (or this library) none,",
        "  librdkafka 4, kafka-python's own class none, aiokafka's own class 4",
        "in a rebalance now nothing would move, by Java (or this library)",
        "",
        "lag: 0 records in 4 partitions",
        "",
        "note: loads differ by 2, where 0 is possible",
        "  a sticky strategy balances over all topics, range topic by topic",
    ]


def test_the_generations_of_a_hand_over_are_one_rebalance_with_its_reason() -> None:
    group = Simulation(TOPICS, [CooperativeStickyAssignor])
    values: list[GroupMetadataValue] = []

    def stable(generation: int) -> bool:
        return group.group.generation == generation and group.group.state == "Stable"

    for generation in (1, 2, 3):
        if generation < 3:
            group.join(f"m{generation}")
        while not stable(generation):
            group.run(0.05)
        values.append(group.group.record())
    lines = lines_of(live_group(*values, topics=TOPICS))
    begin = lines.index("generations 2 to 3: 2025-06-15 15:06:46 UTC, 6.0 s after the one before")
    assert lines[begin + 1] == "  m2/127.0.0.1 joined"
    assert lines[begin + 2 : begin + 6] == JOINED
    assert not [line for line in lines if "that others revoked" in line]


def test_a_lone_record_says_that_there_is_none_before() -> None:
    lines = lines_of(live_group(record_of(TOPICS, "m1"), topics=TOPICS))
    assert "in a rebalance now nothing would move" in lines
    assert lines[7:9] == [
        "generation 1: 2025-06-15 15:06:40 UTC; no record of one before it is left in the",
        "  log",
    ]


def test_members_that_subscribe_to_different_topics_say_to_which() -> None:
    group = Simulation(TOPICS, [RangeAssignor])
    group.join("m1")
    group.join("m2", topics=["payments"])
    group.run_until_stable()
    lines = lines_of(live_group(group.group.record(), topics=TOPICS))
    head = next(line for line in lines if line.startswith("member"))
    place = head.index("topics")
    rows = lines[lines.index(head) + 1 :][:2]
    assert [row[place:].split("  ")[0] for row in rows] == ["orders, payments", "payments"]


@pytest.mark.parametrize(
    ("broken_off", "lines"),
    [
        (
            False,
            [
                "  have joined: b",
                "  has not joined: m1, unless a new member has yet to come back with its id",
            ],
        ),
        (True, ["  the coordinator does not say who has joined, of: b, m1"]),
    ],
)
def test_of_a_rebalance_only_what_is_known_is_said_of_who_has_joined(
    broken_off: bool, lines: list[str]
) -> None:
    value = record_of({"orders": 3}, "m1")
    look = described(value, "PreparingRebalance", "b", broken_off=broken_off)
    shown = lines_of(live_group(value, topics={"orders": 3}, look=look))
    begin = shown.index(lines[0])
    assert shown[begin : begin + len(lines)] == lines
    assert shown[begin + len(lines)].startswith("  waited for until ")
    table = shown.index("all members subscribe to orders") + 2
    assert shown[table : table + 6] == [
        "member      host        had  has  lag  partitions",
        "m1 (leads)  /127.0.0.1    -    3    0  orders 0 1 2",
        "b           /127.0.0.1    -    -    -  none yet",
        "",
        "loads differ by 0: the best possible",
        "",  # what would move is not predicted
    ]


def test_the_partition_of_a_group_is_found_without_a_cluster(cli: Cli) -> None:
    assert cli.json("find", "gg", "--partitions", "7") == {"partition": 6, "partitions": 7}


DESCRIBED = ["what-if", "--members", "3", "--topic", "orders=6", "--topic", "pay=3"]


def test_what_if_as_json(cli: Cli) -> None:
    rows = cli.json(*DESCRIBED, "--assignor", "range", "--crash", "--session-timeout-ms", "10000")
    assert [(row["assignor"], row["static"]) for row in rows] == [("range", False), ("range", True)]
    # A static member comes back when its session is just over, and the others have yet to hear of that.
    assert [(row["generations"], row["moved"], round(row["longest"], 1)) for row in rows] == [
        (3, 9, 12.1),
        (3, 0, 12.1),
    ]


@pytest.mark.parametrize("session_ms", ["3000", "4000000"])
def test_what_if_takes_sessions_that_brokers_do_not_allow_by_default(session_ms: str, cli: Cli) -> None:
    timeouts = ["--session-timeout-ms", session_ms, "--heartbeat-interval-ms", "1000"]
    rows = cli.json(*DESCRIBED, "--assignor", "range", *timeouts)
    # Members are closed: of dynamic ones no session ends.
    assert [row["generations"] for row in rows if not row["static"]] == [6]


def test_a_group_that_does_not_come_to_rest_is_a_failure(cli: Cli) -> None:
    """Heartbeats are 2 ms on their way, and each comes 1 ms after the session is over."""
    error = cli.refused(*DESCRIBED, "--assignor", "range", "--session-timeout-ms", "3001", status=1)
    assert error.startswith(
        "kafka-assignors group what-if: the group is PreparingRebalance after 3600 s: m00000 not stable"
    )


def test_what_if_takes_the_settings_of_the_running_group(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    settings = MemberSettings(session_timeout_ms=20_000, max_poll_interval_ms=5000)
    live = live_group(record_of({"orders": 3}, *"abc", member=settings), topics={"orders": 3})
    monkeypatch.setattr(_what_if, "connect", lambda _: nullcontext())
    monkeypatch.setattr(_what_if, "read_group", lambda *_, **__: live)
    row, _ = cli.json("what-if", "g", "--bootstrap-server", "x:1", "--assignor", "range", "--crash")

    def cost(member: MemberSettings) -> dict[str, Any]:
        group = Simulation({"orders": 3}, [RangeAssignor], member=member)
        return asdict(rolling_restart(group, [{"orders"}] * 3, down_seconds=10, crash=True))

    assert row == {"assignor": "range", "static": False, **cost(settings)}
    assert cost(settings) != cost(replace(settings, max_poll_interval_ms=300_000))


def test_timeouts_that_differ_are_in_the_table() -> None:
    value = record_of({"orders": 2}, "m1", "m2")
    members = (replace(value.members[0], session_timeout=6000), value.members[1])
    lines = lines_of(live_group(replace(value, members=members), topics={"orders": 2}))
    head = next(line for line in lines if line.startswith("member"))
    assert head == "member      host        session s  max poll s  had  has  lag  partitions"
    assert not any(line.startswith("session.timeout.ms is") for line in lines)
