"""`kafka-assignors placement` on files: what it prints, and what it refuses."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from kafka_assignors import placement
from kafka_assignors._cli.arguments import data_size
from kafka_assignors._common.plain import to_json
from kafka_assignors.placement import PlacementError, Placements, _moving
from kafka_assignors.placement._reassignment_file import parse_reassignment
from tests.support.fake_cluster import Cluster, open_as
from tests.unit.cli.conftest import Cli

SERVER = ("--bootstrap-server", "kafka:9092")
PAGE = Path(__file__).parents[3] / "docs" / "placement.md"

TOPIC_TEST2 = {0: [2, 0, 1], 1: [0, 1, 2], 2: [1, 2, 0], 3: [2, 1, 0], 4: [0, 2, 1], 5: [1, 0, 2]}
UNEVEN = {0: [1, 2], 1: [1, 2], 2: [1, 2], 3: [1, 3]}


@pytest.fixture
def placements(tmp_path: Path) -> str:
    path = tmp_path / "placements.json"
    path.write_text(Placements({"topic-test2": TOPIC_TEST2, "uneven": UNEVEN}).text)
    return str(path)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys, "placement")


def test_what_is_lost_with_a_rack_and_who_is_not_up_is_said(placements: str, cli: Cli) -> None:
    described = ("describe", "uneven", "--placements", placements, "--brokers")
    out = cli.shown(*described, "1=a,2=b,3=b,4=c", "--min-insync", "2")
    assert "rack  brokers  replicas  leaders  offline without it  read-only\n" in out
    assert "b           2         4        0                   0          4\n" in out
    out = cli.shown(*described, "1=a,2=a")
    assert "4 partitions, 8 replicas on 3 brokers, 1 of them not up\n" in out
    assert "broker 3 is not up\n" in out
    assert out.endswith("only on a: uneven-0, uneven-1, uneven-2\n")


def test_a_picture_is_drawn(placements: str, tmp_path: Path, cli: Cli) -> None:
    cli.shown("describe", "--placements", placements, "--draw", str(tmp_path / "p.svg"))
    assert "topic-test2, uneven" in (tmp_path / "p.svg").read_text()


def test_that_none_fits_is_a_status(placements: str, cli: Cli) -> None:
    assert cli.shown("infer", "uneven", "--placements", placements, status=1).endswith("uneven: none fits\n")


def test_a_plan_moves_as_few_replicas_as_possible(placements: str, tmp_path: Path, cli: Cli) -> None:
    after, before = tmp_path / "after.json", tmp_path / "before.json"
    arguments = ("reassign", "uneven", "--placements", placements, "--brokers", "1,2,3,4")
    out = cli.shown(*arguments, "--output", str(after), "--rollback", str(before))
    # 4, 3, 1, 0 replicas become 2, 2, 2, 2.
    assert "replicas on a broker: 2 to 2, the best possible\n" in out
    assert parse_reassignment(before.read_text()) == {"uneven": UNEVEN}
    document = cli.json(*arguments)
    assert len(document["plan"]["moves"]) == 3
    assert parse_reassignment(after.read_text()) == {
        topic: {int(partition): replicas for partition, replicas in placement.items()}
        for topic, placement in document["after"].items()
    }


def test_a_file_says_where_to_go(placements: str, tmp_path: Path, cli: Cli) -> None:
    wanted = tmp_path / "wanted.json"
    wanted.write_text(Placements({"uneven": {3: [2, 3]}}).text)
    document = cli.json("reassign", "--placements", placements, "--file", str(wanted))
    assert document["after"] == {"uneven": {"3": [2, 3]}}
    move = {"topic": "uneven", "partition": 3, "target": 2, "source": 1, "size": None}
    assert document["plan"]["moves"] == [move]
    assert document["plan"]["after"]["uneven"] == {"0": [1, 2], "1": [1, 2], "2": [1, 2], "3": [2, 3]}
    out = cli.shown("reassign", "--placements", placements, "--file", str(wanted))
    assert out == (
        "uneven-3: to 2 in place of 1\n\n"
        "1 replica to copy; 1 preferred leader changes\n"
        "replicas on a broker: 0 to 4\n"
        "preferred leaders of a broker: 0 to 3\n"
        "nothing is changed: --execute does it\n"
    )
    wanted.write_text(Placements({"uneven": {3: [2, 7]}}).text)
    said = cli.refused("reassign", "--placements", placements, "--file", str(wanted))
    assert "topic uneven: partition 3: '2:7' has broker 7, which does not exist" in said
    wanted.write_text(Placements({"uneven": {4: [2, 3]}}).text)
    said = cli.refused("reassign", "--placements", placements, "--file", str(wanted))
    assert "uneven-4 does not exist: the topic has no such partition" in said


def test_a_rollback_of_partitions_with_different_numbers_of_replicas_is_taken(
    tmp_path: Path, cli: Cli
) -> None:
    """Replicas are added to a topic some partitions at a time; Kafka's own tool takes such files."""
    mixed = {"orders": {0: [1, 2], 1: [2], 2: [3, 1, 2]}}
    now, rollback = tmp_path / "now.json", tmp_path / "rollback.json"
    now.write_text(Placements(mixed).text)
    arguments = ("reassign", "--placements", str(now))
    cli.shown(*arguments, "--replication-factor", "2", "--rollback", str(rollback))
    assert parse_reassignment(rollback.read_text()) == mixed
    assert "0 replicas to copy (0 B); " in cli.shown(*arguments, "--file", str(rollback))
    now.write_text(Placements({"orders": {0: [1, 2], 1: [2, 3], 2: [3, 1]}}).text)
    plan = cli.json(*arguments, "--file", str(rollback))["plan"]
    assert [(move["partition"], move["target"], move["source"]) for move in plan["moves"]] == [(2, 2, None)]


def test_the_way_back_of_an_interrupted_run_is_never_written_over(tmp_path: Path, cli: Cli) -> None:
    now, wanted, rollback = (tmp_path / name for name in ("now.json", "wanted.json", "rollback.json"))
    before, between = ({"t": {0: [1, 2], 1: second}} for second in ([1, 2], [1, 3]))
    now.write_text(Placements(before).text)
    wanted.write_text(Placements({"t": {0: [1, 3], 1: [1, 3]}}).text)
    arguments = ("reassign", "--placements", str(now), "--brokers", "1,2,3", "--file", str(wanted))
    for _ in range(2):  # shown first, and then done
        cli.shown(*arguments, "--rollback", str(rollback))
    now.write_text(Placements(between).text)
    said = cli.refused(*arguments, "--rollback", str(rollback))
    assert "rollback.json exists, and has other placements than those of now" in said
    assert parse_reassignment(rollback.read_text()) == before
    plan = str(tmp_path / "plan.json")
    for others in (["--rollback", str(wanted)], ["--rollback", plan, "--output", plan]):
        assert "cannot be the rollback and the plan at once" in cli.refused(*arguments, *others)
    assert parse_reassignment(wanted.read_text()) == {"t": {0: [1, 3], 1: [1, 3]}}
    said = cli.refused(*arguments, "--rollback", "x" * 300, status=1)
    assert re.match(r"kafka-assignors placement reassign: cannot \w+ x{300}: File name too long\n", said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "nope"), "json: topic-test2, uneven"),
        (("expand", "nope", "--partitions", "9"), "there is no topic 'nope'"),
        (("expand", "uneven", "--partitions", "4"), "uneven has 4 partitions already"),
        (
            ("reassign", "--replication-factor", "5"),
            "is to have 5 replicas, but at most 4 brokers",
        ),
        (("reassign", "uneven", "--to-brokers", "1,8"), "broker 8 is not known: there are 0, 1, 2, 3\n"),
        (("reassign", "--brokers", "1=a,2=b,3"), "broker 3 is without a rack, and others have one"),
        (("describe", "--draw", "p.txt"), "p.txt is no name for a picture"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[str, ...], said: str, placements: str, cli: Cli) -> None:
    assert said in cli.refused(*arguments, "--placements", placements)


def test_a_rack_with_too_few_brokers_is_named_and_racks_can_be_left_out(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "t.json"
    file.write_text(Placements({"t": {p: [p % 2, 2 + p % 2, 4] for p in range(10)}}).text)
    arguments = ("reassign", "--placements", str(file), "--brokers", "0=a,1=a,2=b,3=b,4=c")
    assert "rack c has few brokers" in cli.shown(*arguments)
    assert cli.json(*arguments)["crowded_racks"] == ["c"]
    even = cli.json(*arguments, "--disable-rack-aware")
    assert (even["crowded_racks"], {*even["plan"]["replica_loads"].values()}) == ([], {6})
    some = (*arguments[:-1], "0=a,1=a,2=b,3=b,4")
    assert "broker 4 is without a rack, and others have one" in cli.refused(*some)
    assert cli.json(*some, "--disable-rack-aware") == even


def test_files_that_cannot_be_read_are_named(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "No such file" in cli.refused("describe", "--placements", str(tmp_path / "missing"))
    assert f"{__file__}: not JSON: line 1, column 3" in cli.refused("describe", "--placements", __file__)
    Path("deep").write_text("[" * 100_000, encoding="utf-8")
    for arguments in ("describe --placements deep", "reassign --bootstrap-server h:1 --file deep"):
        assert "deep: nested too deeply" in cli.refused(*arguments.split())


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("10485760", 10_485_760), ("10MiB", 10_485_760), ("1.5 kb", 1500), ("2GB", 2 * 10**9)],
)
def test_sizes_have_the_units_that_people_write(text: str, size: int) -> None:
    assert data_size(text) == size


def test_the_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = Cluster({"orders": {p: [1, 2] for p in range(6)}})
    cluster.after_alter = cluster.finish
    open_as(cluster, monkeypatch)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 5
    names: dict[str, Any] = {}
    for example in examples:
        exec(example, names)  # noqa: S102 - our own page
    assert len(cluster.topics["orders"]) == 8
    assert {broker for replicas in cluster.topics["orders"].values() for broker in replicas} == {1, 2, 3}
    assert parse_reassignment(Path("before.json").read_text(encoding="utf-8"))["orders"][0] == [1, 2]
    assert cluster.rate(3) is None


ORDERS = placement.Cluster("kafka:9092")
SHOWN: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {
    "describe": (("describe", "orders"), lambda: placement.describe(ORDERS, ["orders"])),
    "infer": (("infer",), lambda: placement.infer(ORDERS)),
    "create": (
        ("create", "new", "--replica-assignment", "1:2,2:3", "--dry-run"),
        lambda: placement.create(ORDERS, "new", placement={0: [1, 2], 1: [2, 3]}, dry_run=True),
    ),
    "expand": (
        ("expand", "orders", "--partitions", "8", "--balanced"),
        lambda: placement.expand(ORDERS, "orders", 8, balanced=True),
    ),
    "reassign": (
        ("reassign", "orders", "--throttle", "1KiB"),
        lambda: replace(placement.plan_reassignment(ORDERS, ["orders"]), throttle=1024),
    ),
    "executed": (
        ("reassign", "orders", "--no-throttle", "--execute"),
        lambda: placement.reassign(
            ORDERS,
            placement.plan_reassignment(ORDERS, ["orders"]),
            placement.Pacing(unthrottled=True),
        ),
    ),
    "verify": (("verify", "orders"), lambda: placement.verify(ORDERS, ["orders"])),
    "cancel": (("cancel", "orders"), lambda: placement.cancel(ORDERS, ["orders"])),
}


@pytest.mark.parametrize("case", SHOWN)
def test_what_a_command_prints_as_json_is_what_its_function_returns(
    case: str, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    arguments, function = SHOWN[case]
    found = []
    for ask in (
        lambda: cli.shown(*arguments, *SERVER, "--json", status=case in {"infer", "verify"}),
        function,
    ):
        cluster = Cluster({"orders": {p: [1, 2] for p in range(6)}})
        if case in {"verify", "cancel"}:
            cluster.moving[TopicPartition("orders", 0)] = [1, 3]
        cluster.after_alter = cluster.finish
        open_as(cluster, monkeypatch)
        result = ask()
        found.append(json.loads(result if isinstance(result, str) else json.dumps(to_json(result))))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("bytes_of_each", "much"),
    [
        (None, "orders-0, orders-1, orders-3 and 1 more, of unknown size,"),
        (_moving.UNTHROTTLED_BYTES // 4 + 1, "1.0 GiB"),
        (_moving.UNTHROTTLED_BYTES // 4, None),
    ],
    ids=["of unknown size", "too much", "as much as may be"],
)
def test_much_is_not_copied_before_a_word_on_its_rate(
    bytes_of_each: int | None, much: str | None, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    cluster = Cluster({"orders": {p: [1, 2] for p in range(6)}})
    if bytes_of_each is not None:
        cluster.sizes = {("orders", p): bytes_of_each for p in range(6)}
    cluster.after_alter = cluster.finish
    open_as(cluster, monkeypatch)
    shown = cli.shown("reassign", "orders", *SERVER)
    wants = f"--execute wants --throttle or --no-throttle: {much} would be copied"
    assert (wants in shown.splitlines()) == (much is not None)
    plan = placement.plan_reassignment(ORDERS, ["orders"])
    if much is None:
        assert placement.reassign(ORDERS, plan).reassigned == 5
        return
    with pytest.raises(PlacementError, match=f"{much} would be copied as fast as brokers can"):
        placement.reassign(ORDERS, plan)
    assert not cluster.moving
