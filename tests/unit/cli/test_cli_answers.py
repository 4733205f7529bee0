"""What a command prints with `--json` is the JSON of what its function returns."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._common.plain import to_json
from kafka_assignors.groups import (
    Cluster,
    _coordinator,
    _explain,
    _status,
    _what_if,
    elect_strategy,
    explain,
    find_coordinator,
    list_groups,
    plan,
    read_group,
    what_if,
)
from kafka_assignors.groups._what_if import WhatIfError
from kafka_assignors.planners import plan_kip848_range, plan_kip848_uniform
from tests.support.group_files import GROUP_AS_YAML
from tests.unit.cli.conftest import Cli
from website import examples

CLUSTER = Cluster("kafka-1:9092")
SERVER = ("--bootstrap-server", "kafka-1:9092")
TIMES = {"plan_ms", "certificate_ms"}
RESTART = ("--assignor", "range", "--down", "2")


@pytest.fixture(autouse=True)
def _running_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of made-up groups: "billing" of the classic protocol, "shipping" of KIP-848."""

    def read_group(_: Any, group_id: str, **__: Any) -> Any:
        return examples.live_epoch_group() if group_id == "shipping" else examples.live_group()

    for module in (_coordinator, _explain, _status, _what_if):
        monkeypatch.setattr(module, "connect", nullcontext)
    monkeypatch.setattr(_coordinator, "coordinator_of", lambda *_: examples.COORDINATOR)
    monkeypatch.setattr(_status, "read_groups", lambda *_, **__: examples.listed())
    monkeypatch.setattr(_explain, "find_extents", lambda _, partitions, __: examples.extents(partitions))
    for module in (_explain, _what_if):
        monkeypatch.setattr(module, "read_group", read_group)


CASES: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {
    "explain": (("explain", "billing", *SERVER), lambda: explain(CLUSTER, "billing")),
    "explain, of KIP-848": (("explain", "shipping", *SERVER), lambda: explain(CLUSTER, "shipping")),
    "list": (("list", *SERVER), lambda: list_groups(CLUSTER)),
    "find": (("find", "billing", *SERVER), lambda: find_coordinator(CLUSTER, "billing")),
    "elect": (
        ("elect", "a=range,sticky", "b=sticky,range"),
        lambda: elect_strategy({"a": ["range", "sticky"], "b": ["sticky", "range"]}),
    ),
    "what-if": (
        ("what-if", "billing", *SERVER, *RESTART),
        lambda: what_if(CLUSTER, "billing", ["range"], down_seconds=2),
    ),
    "what-if, described": (
        ("what-if", "--members", "2", "--topic", "orders=4", *RESTART),
        lambda: what_if({"orders": 4}, 2, ["range"], down_seconds=2),
    ),
}


@pytest.mark.parametrize(("arguments", "function"), CASES.values(), ids=[*CASES])
def test_a_group_command_prints_the_json_of_its_function(
    arguments: tuple[str, ...], function: Callable[[], Any], cli: Cli
) -> None:
    printed = cli.json("group", *arguments)
    assert printed == json.loads(json.dumps(to_json(function())))
    assert printed


@pytest.mark.parametrize("cooperative", [False, True])
def test_plan_prints_the_json_of_its_function(cooperative: bool, tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(GROUP_AS_YAML, encoding="utf-8")
    printed = cli.json("plan", str(file), *(["--cooperative"] if cooperative else []))
    made = json.loads(
        json.dumps(to_json(plan(read_group(file, cooperative=cooperative), cooperative=cooperative)))
    )
    assert {**printed, **dict.fromkeys(TIMES)} == {**made, **dict.fromkeys(TIMES)}
    assert (printed["first_round"] is not None) == cooperative


def test_a_group_is_planned_as_by_the_coordinator_of_the_new_protocol(tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(GROUP_AS_YAML, encoding="utf-8")
    group = read_group(file).group
    for name, planner in (("uniform", plan_kip848_uniform), ("range", plan_kip848_range)):
        assert plan(group, f"kip848:{name}").plan.assignments() == planner(group).assignments()
    for name in ("best", "sticky"):
        known = "exact, kip54, range, roundrobin, copartitioned, load-aware, kip848:uniform, kip848:range"
        with pytest.raises(ValueError, match=f"no planner '{name}'; choose one of {known}$"):
            plan(group, name)


@pytest.mark.parametrize(
    ("source", "group"),
    [({"orders": 3}, "billing"), ({"orders": 3}, 0), (CLUSTER, 6)],
    ids=["id", "nobody", "number"],
)
def test_a_restart_is_of_a_cluster_s_group_or_of_a_number_of_members(source: Any, group: str | int) -> None:
    with pytest.raises(
        WhatIfError, match=f"^the group is {group!r}: give its id on a cluster, or its number of members$"
    ):
        what_if(source, group)
