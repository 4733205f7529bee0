"""`kafka-assignors group list` and `group export` of groups of which the cluster does not say all."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_assignors._cluster.groups import ClassicGroup, Extent, ListedGroup, Refused
from kafka_assignors._wire.offsets_topic import GroupMetadataValue
from kafka_assignors.groups import _status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._cluster.groups import Kind, Partition
    from tests.unit.cli.conftest import Cli

SERVER = ("--bootstrap-server", "h:1")
NOBODY = GroupMetadataValue(
    version=4, protocol_type="consumer", generation=-1, protocol=None, leader=None, members=()
)
EMPTY = ClassicGroup("billing", "Empty", NOBODY)
BEHIND: Mapping[Partition, int] = {("orders", 0): 4}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One whose topic ends at 10."""
    return Cluster(monkeypatch)


class Cluster:
    """A cluster of one group: classic, empty, with four records read of ten, unless it is said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kind: Kind = "classic"
        self.state = "Empty"
        self.described: ClassicGroup | Refused = EMPTY
        self.committed: Mapping[Partition, int] | Refused = BEHIND
        self.extents: Mapping[Partition, Extent] = {("orders", 0): Extent(0, 10)}
        monkeypatch.setattr(_status, "connect", nullcontext)
        for name, answer in {
            "list_all": lambda _: (ListedGroup("billing", self.kind, self.state, "consumer"),),
            "describe_classic": lambda _, ids: dict.fromkeys(ids, self.described),
            "committed_offsets": lambda _, ids: dict.fromkeys(ids, self.committed),
            "read_topics": lambda _: {"orders": {0: 1}},
            "find_extents": lambda *_: self.extents,
        }.items():
            monkeypatch.setattr(_status, name, answer)


REFUSED = Refused("not allowed", unknown=False)


def exported(cli: Cli) -> dict[str, float]:
    """The metrics of the group that have no further labels, and its state."""
    shown = cli.shown("group", "export", *SERVER)
    samples = [one for each in text_string_to_metric_families(shown) for one in each.samples]
    plain = {
        one.name.removeprefix("kafka_group_"): one.value
        for one in samples
        if one.labels == {"group": "billing"}
    }
    return plain | {one.labels["state"]: one.value for one in samples if one.name == "kafka_group_state"}


KNOWN = {"described": 1, "members": 0, "lag_known": 1, "uncommitted_partitions": 0, "Empty": 1}
NO_LAG = "0 records; that of 1 group is not known, or not all of it"
CASES: dict[str, tuple[dict[str, object], int, str, str, dict[str, int | None]]] = {
    "all": ({}, 0, "6 records", "Empty 0 6", {}),
    "no commits": (
        {"committed": REFUSED},
        1,
        NO_LAG,
        "Empty 0 ?",
        {"lag_known": 0, "uncommitted_partitions": None},
    ),
    "no ends": ({"extents": {}}, 1, NO_LAG, "Empty 0 ?", {"lag_known": 0}),
    "no members": ({"described": REFUSED}, 1, "6 records", "Empty ? 6", {"described": 0, "members": None}),
}
"""What the cluster says; a check's status and lag; state, members and lag in its row; metrics that differ."""


@pytest.mark.parametrize("case", CASES)
def test_a_check_fails_if_something_of_a_group_is_not_known(case: str, cluster: Cluster, cli: Cli) -> None:
    known, status, lag, row, changed = CASES[case]
    for name, answer in known.items():
        setattr(cluster, name, answer)
    lines = cli.shown("group", "list", "--check", *SERVER, status=status).splitlines()
    assert lines[0] == f"1 group, 0 with errors, {status} with warnings; lag: {lag}"
    assert lines[3].split()[:5] == ["billing", "classic", *row.split()]
    assert exported(cli) == {name: value for name, value in (KNOWN | changed).items() if value is not None}


def test_a_lag_that_is_not_known_fails_a_check_of_lags_and_has_a_reason(cluster: Cluster, cli: Cli) -> None:
    cluster.committed = REFUSED
    cli.shown("group", "list", "--check", "--max-lag", "5", *SERVER, status=1)
    (found,) = cli.json("group", "list", *SERVER)
    assert (found["members"], found["lag"]) == (0, None)
    assert found["problems"] == [
        {
            "kind": "lag unknown",
            "severity": "warning",
            "text": "its coordinator does not say what it has committed: not allowed",
            "advice": "the lag is not known: the client needs the right to describe the group",
        }
    ]


@pytest.mark.parametrize(("pattern", "found"), [("bill*", ["billing"]), ("order*", [])])
def test_one_pattern_can_be_given_as_text(cluster: Any, pattern: str, found: list[str]) -> None:
    assert [group.group_id for group in _status.list_groups(cluster, pattern)] == found


def test_a_check_passes_up_to_the_lag_that_is_allowed(cluster: Cluster, cli: Cli) -> None:
    assert cluster.described is EMPTY
    cli.shown("group", "list", "--check", "--max-lag", "6", *SERVER)
    assert "  error: it is 6" in cli.shown("group", "list", "--check", "--max-lag", "5", *SERVER, status=1)


@pytest.mark.parametrize(("state", "status", "shown"), [("Stable", 0, "Stable"), ("", 1, "Unknown")])
def test_a_group_of_a_type_that_is_not_described_fails_only_without_a_state(
    cluster: Cluster, cli: Cli, state: str, status: int, shown: str
) -> None:
    cluster.kind, cluster.state = "streams", state
    lines = cli.shown("group", "list", "--check", *SERVER, status=status).splitlines()
    assert lines[3].split()[:5] == ["billing", "streams", shown, "?", "6"]
    assert exported(cli)[shown] == 1


def test_a_share_group_has_no_lag_to_be_known(cluster: Cluster, cli: Cli) -> None:
    cluster.kind = "share"
    assert "lag_known" not in exported(cli)
