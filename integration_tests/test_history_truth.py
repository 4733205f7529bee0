"""The history of groups on a real broker, held against what the members themselves said, row for row."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from integration_tests.support.clusters import own_cluster
from integration_tests.support.group_truth import Truth, by_topic, moved, owners, rounds
from integration_tests.support.scripted_groups import (
    HOST,
    LONG_MS,
    MODERN,
    NOTHING,
    PARTITIONS,
    SCRIPTS,
    SECONDS,
    ModernGroup,
    Partitions,
    Script,
)
from kafka_assignors.groups import Cluster as ClusterHandle
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._capture import capture
from kafka_assignors.history._metrics import SCHEMAS, metrics
from kafka_assignors.history._schemas import TABLES
from kafka_assignors.history._tables.job import make_tables, read_table
from kafka_assignors.testing import Cluster, ConsumerGroup, create_topic
from tests.support.delta_tables import rows_of

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]

ROW_OF_A_RECORD = ("partition", "offset", "member_id", "stage", "source", "topic", "moved_partition")


class Told(NamedTuple):
    """A classic group, what was done to it, and what its members said."""

    topic: str
    script: Script
    truth: Truth


class History(NamedTuple):
    """What was made of a cluster's records, by table."""

    classic: Mapping[str, Told]
    modern: ModernGroup
    tables: Mapping[str, Rows]

    def rows(self, table: str, group: str) -> Rows:
        return [row for row in self.tables[table] if row["group"] == group]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    settings = {
        "offsets.topic.num.partitions": 3,
        "group.consumer.heartbeat.interval.ms": 300,
        "group.consumer.min.heartbeat.interval.ms": 300,
    }
    with own_cluster(request.config, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def history(cluster: Cluster, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> History:  # noqa: ARG001 - its session is used
    folder = tmp_path_factory.mktemp("history")
    with ExitStack() as stack:
        scripts = {}
        for name, (_, assignor) in SCRIPTS.items():
            topic = create_topic(cluster, PARTITIONS)
            group = ConsumerGroup(
                cluster,
                topic,
                [assignor],
                group_id=name,
                place="thread",
                settings={"session_timeout_ms": LONG_MS},
                timeout=SECONDS,
            )
            scripts[name] = topic, Script(stack.enter_context(group), assignor.name)
        # All at once, so that their records lie between each other's.
        with ThreadPoolExecutor(len(SCRIPTS)) as pool:
            plays = [
                pool.submit(play, cluster, scripts[name][1], scripts[name][0])
                for name, (play, _) in SCRIPTS.items()
            ]
            modern = ModernGroup(cluster)
            stack.enter_context(modern.group)
            modern.play(cluster)
        for each in plays:
            each.result()
        archive = Archive.create(folder / "archive")
        capture(ClusterHandle(cluster.bootstrap_servers), archive)
        classic = {
            name: Told(topic, script, Truth(script.group.timeline))
            for name, (topic, script) in scripts.items()
        }
    return History(classic, modern, read_all(archive, folder))


def read_all(archive: Archive, folder: Path) -> dict[str, Rows]:
    out = str(folder / "tables")
    make_tables(archive, out)
    metrics(archive, folder / "metrics")
    tables = {name: read_table(out, name).read_all().to_pylist() for name in TABLES}
    return tables | {name: rows_of(folder / "metrics" / name, schema) for name, schema in SCHEMAS.items()}


@pytest.fixture(params=SCRIPTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def told(history: History, name: str) -> Told:
    return history.classic[name]


def values(rows: Rows, *columns: str) -> set[tuple[Any, ...]]:
    """Of each row these columns; lists as sorted tuples."""
    return {
        tuple(tuple(sorted(cell)) if isinstance(cell := row[column], list) else cell for column in columns)
        for row in rows
    }


def test_every_record_is_read(history: History) -> None:
    assert history.tables["rejected"] == []
    assert {row["group"] for row in history.tables["records"]} == {*SCRIPTS, MODERN}


@pytest.mark.parametrize("table", ["members", "assignments", "claims", "moves"])
def test_no_row_is_there_twice(history: History, table: str) -> None:
    rows = history.tables[table]
    of_record = [one for one in ROW_OF_A_RECORD if one in TABLES[table].names]
    assert len(values(rows, *of_record)) == len(rows) > 0


def test_assignments_are_what_each_member_heard(history: History, name: str, told: Told) -> None:
    truth = told.truth
    for of in truth.heard.keys() & truth.planned.keys():
        assert truth.heard[of] == truth.planned[of], of
    assert values(
        history.rows("assignments", name), "generation", "member_id", "stage", "topic", "partitions"
    ) == {
        (number, member_id, "assigned", topic, numbers)
        for (number, member_id), partitions in truth.given.items()
        for topic, numbers in by_topic(partitions).items()
    }


def test_all_members_heard_of_all_generations_that_lasted(told: Told) -> None:
    unheard = {number for number, _ in told.truth.given.keys() - told.truth.heard.keys()}
    # Of a hand-over's first round a member may not hear, if others let go before it asks.
    assert unheard.isdisjoint({step.generation for step in told.script.steps})


def test_claims_are_what_each_member_said(history: History, name: str, told: Told) -> None:
    truth = told.truth
    for of in truth.told.keys() & truth.told_to_leader.keys():
        assert truth.told[of] == truth.told_to_leader[of], of
    expected: set[tuple[Any, ...]] = set()
    for of, said in truth.said.items():
        claims: set[tuple[Any, ...]] = {
            ("owned", said.generation, one) for one in by_topic(said.owned).items()
        }
        if not claims and said.generation >= 0:
            claims = {("owned", said.generation, (None, ()))}
        expected |= {(*of, source, number, *one) for source, number, one in claims}
        expected |= {(*of, "sticky", number, *one) for number, one in remembered(told, of)}
    rows = history.rows("claims", name)
    known = [row for row in rows if (row["generation"], row["member_id"]) in truth.said]
    columns = ("generation", "member_id", "source", "claimed_generation", "topic", "partitions")
    assert values(known, *columns) == expected
    unknown = {(row["generation"], row["member_id"]) for row in rows} - truth.said.keys()
    assert all(number not in truth.leader for number, _ in unknown)


def remembered(told: Told, of: tuple[int, str]) -> set[tuple[int, tuple[str | None, tuple[int, ...]]]]:
    """What a member is to say in its user data: generation, topic, and partitions."""
    before = told.truth.before(of)
    if before is None or told.script.strategy not in {"sticky", "cooperative-sticky"}:
        return set()
    number, partitions = before
    if told.script.strategy == "cooperative-sticky":
        return {(number, (None, ()))}
    if told.truth.name[of[1]] == "aio":  # aiokafka does not say when it had them
        number = -1
    return {(number, one) for one in by_topic(partitions).items()}


def test_members_are_those_that_took_part(history: History, name: str, told: Told) -> None:
    truth = told.truth
    rows = history.rows("members", name)
    assert values(rows, "generation", "member_id") == truth.given.keys()
    for row in rows:
        of = row["generation"], row["member_id"]
        client = truth.name[row["member_id"]]
        # The coordinator keeps the client id that a static member first came with.
        assert row["client_id"] == told.script.group.timeline.identity[client]
        assert row["instance_id"] == truth.instance_id[row["member_id"]]
        assert row["host"] == HOST
        assert row["topics"] == [told.topic]
        assert row["session_timeout_ms"] == told.script.session_ms(client)
        assert row["problem"] is None
        if of in truth.said:
            said = truth.said[of]
            assert (row["subscription_version"], bytes(row["user_data"] or b"")) == (
                said.version,
                said.user_data,
            )


def test_generations_have_the_leader_that_told_so(history: History, name: str, told: Told) -> None:
    truth, steps = told.truth, told.script.steps
    rows = {row["generation"]: row for row in history.rows("generations", name)}
    # Nobody is in a group when it is made.
    assert sorted(rows) == [0, *truth.generations]
    assert (rows[0]["members"], rows[0]["leader"], rows[0]["protocol"]) == (0, None, None)
    for number in truth.generations:
        row, members = rows[number], truth.members(number)
        assert row["members"] == len(members)
        assert (row["protocol_type"], row["protocol"]) == ("consumer", told.script.strategy)
        restarts = sum(step.is_quiet and step.generation == number for step in steps)
        assert row["records"] == 1 + restarts
        if number in truth.leader:
            assert row["leader"] == members[truth.identity(truth.leader[number])]
        else:
            assert not tells_that_it_leads(told, row["leader"])


def tells_that_it_leads(told: Told, member_id: str) -> bool:
    return told.script.group.members[told.truth.name[member_id]].client == "kafka-python"


def test_moves_are_the_differences_of_what_members_heard(history: History, name: str, told: Told) -> None:
    truth = told.truth
    columns = ("generation", "before", "topic", "moved_partition", "source", "target")
    expected = rounds(told.script, truth)
    pairs = zip([0, *(one.last for one in expected)], expected, strict=False)
    assert values(history.rows("moves", name), *columns) == {
        (one.last, before, *move) for before, one in pairs for move in one.moves
    }


def test_rebalances_are_the_steps_of_the_script(history: History, name: str, told: Told) -> None:
    rows = sorted(history.rows("rebalances", name), key=lambda row: row["first_generation"])
    expected = rounds(told.script, told.truth)
    assert [(row["first_generation"], row["generation"]) for row in rows] == [
        (one.first, one.last) for one in expected
    ]
    for row, one in zip(rows, expected, strict=True):
        assert {(why["kind"], why["member"]) for why in row["reasons"]} == one.reasons
        assert row["strategy"] == told.script.strategy
        assert (row["members"], row["joined"], row["gone"], row["returned"]) == (
            one.members,
            one.count("member joined"),
            one.count("member gone", "member left", "static member gone"),
            0,
        )
        columns = ("topic", "partition", "source", "target")
        assert values(row["moves"], *columns) == one.moves
        assert row["moved"] == sum(None not in move for move in one.moves)
        assert row["partitions"] == len(one.after)
        assert row["imbalance"] == max(one.loads.values()) - min(one.loads.values())
        assert row["began"] <= row["ended"]


def test_every_step_but_a_static_restart_is_a_rebalance(history: History, name: str, told: Told) -> None:
    found = [
        frozenset((why["kind"], why["member"]) for why in row["reasons"])
        for row in sorted(history.rows("rebalances", name), key=lambda row: row["generation"])
    ]
    of_steps = [one for one in found if one != {("unknown", "")}]
    assert of_steps == [step.reasons for step in told.script.steps if not step.is_quiet]


def test_what_members_heard_last_is_what_they_had_when_the_group_was_stable(told: Told) -> None:
    for step in told.script.steps:
        assert told.truth.owners(step.generation) == owners(step.after)


def test_a_cooperative_hand_over_is_one_rebalance_of_two_generations(history: History) -> None:
    took = {
        row["reasons"][0]["member"]: row["generation"] - row["first_generation"] + 1
        for row in history.rows("rebalances", "cooperative")
        if row["reasons"][0]["kind"] == "member joined"
    }
    assert took == {f"a{HOST}": 1, f"b{HOST}": 2, "static-c": 2, f"d{HOST}": 2}


def test_groups_are_as_restless_as_the_script(history: History, name: str, told: Told) -> None:
    (row,) = history.rows("groups", name)
    steps, expected = told.script.steps, rounds(told.script, told.truth)
    seen = Counter(kind for one in expected for kind in {kind for kind, _ in one.reasons})
    assert row["rebalances"] == len(expected)
    assert {kind: often for kind, often in row["reasons"] if kind != "member restarted"} == seen
    assert row["returned"] == sum(step.is_quiet for step in steps)
    assert row["members"] == len(steps[-1].after)
    assert row["seen_members"] == len({one for step in steps for one in step.after})
    assert row["moved"] == sum(None not in move for one in expected for move in one.moves)
    assert row["flapping"] == []


# KIP-848


def test_members_of_kip_848_had_what_the_table_says(history: History) -> None:
    group = history.modern
    rows = sorted(history.rows("assignments", MODERN), key=lambda row: (row["partition"], row["offset"]))
    assert {row["member_id"] for row in rows} == {*group.ids.values()}
    assert {row["topic"] for row in rows} == {group.topic}
    for name, member_id in group.ids.items():
        held: dict[int, Partitions] = {}
        for row in rows:
            if row["member_id"] == member_id and row["stage"] in {"current", "revoking"}:
                parts = frozenset((row["topic"], number) for number in row["partitions"])
                held[row["offset"]] = held.get(row["offset"], NOTHING) | parts
        assert distinct([*held.values()]) == distinct([one for one in group.life(name) if one])


def distinct(listed: Sequence[Partitions]) -> list[Partitions]:
    """Without those that are the same as the one before."""
    return [one for number, one in enumerate(listed) if not number or listed[number - 1] != one]


def test_members_of_kip_848_are_told_by_name(history: History) -> None:
    rows = history.rows("members", MODERN)
    columns = ("member_id", "client_id", "instance_id", "host", "topics", "problem")
    assert values(rows, *columns) == {
        (member_id, name, None, HOST, (history.modern.topic,), None)
        for name, member_id in history.modern.ids.items()
    }


def test_rebalances_of_kip_848_are_the_steps_of_the_script(history: History) -> None:
    group = history.modern
    rows = sorted(history.rows("rebalances", MODERN), key=lambda row: row["ended"])
    # Of how it began, the records do not tell what there was before.
    rows = [row for row in rows if row["first_generation"] > group.epochs[0]]
    assert [{(one["kind"], one["member"]) for one in row["reasons"]} for row in rows] == [
        {("member joined", f"two{HOST}")},
        {("topics changed", "")},
        {("member gone", f"one{HOST}")},
    ]
    assert [row["generation"] for row in rows] == group.epochs[1:]
    stable = [{group.ids[name]: partitions for name, partitions in one.items()} for one in group.stable]
    for row, before, after in zip(rows, stable, stable[1:], strict=False):
        moves = {(one["topic"], one["partition"], one["source"], one["target"]) for one in row["moves"]}
        assert moves == moved(owners(before), owners(after))
        assert row["members"] == len(after)
