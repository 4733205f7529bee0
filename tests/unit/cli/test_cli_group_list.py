"""`kafka-assignors group list` and `group export` of groups of which the cluster does not say all."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafka_assignors._cli.main import main
from kafka_assignors._cluster.groups import ClassicGroup, Extent, ListedGroup, Refused
from kafka_assignors.groups import _status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._cluster.groups import Kind, Partition

SERVER = ("--bootstrap-server", "h:1")
EMPTY = ClassicGroup("billing", "Empty", "consumer", None, ())
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


def checked(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[str]]:
    """The status of a check, and its lines."""
    status = main(["group", "list", "--check", *more, *SERVER])
    return status, capsys.readouterr().out.splitlines()


def exported(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The metrics of the group that have no further labels, and its state."""
    assert main(["group", "export", *SERVER]) == 0
    samples = [
        one for each in text_string_to_metric_families(capsys.readouterr().out) for one in each.samples
    ]
    plain = {one.name: one.value for one in samples if one.labels == {"group": "billing"}}
    return plain | {one.labels["state"]: one.value for one in samples if one.name == "kafka_group_state"}


def test_a_group_of_which_all_is_known_passes(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.state == "Empty"
    status, lines = checked(capsys)
    assert (status, lines[0]) == (0, "1 group, 0 with errors, 0 with warnings; lag: 6 records")
    assert exported(capsys) == {
        "kafka_group_described": 1,
        "kafka_group_members": 0,
        "kafka_group_lag_known": 1,
        "kafka_group_uncommitted_partitions": 0,
        "Empty": 1,
    }


def test_a_group_whose_commits_are_not_said_fails_and_has_no_lag(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.committed = REFUSED
    status, lines = checked(capsys, "--max-lag", "5")
    assert status == 1
    assert lines[0] == (
        "1 group, 0 with errors, 1 with warnings; lag: 0 records; that of 1 group is not known, or not all of"
        " it"
    )
    assert lines[3].split()[:5] == ["billing", "classic", "Empty", "0", "?"]
    assert exported(capsys) == {
        "kafka_group_described": 1,
        "kafka_group_members": 0,
        "kafka_group_lag_known": 0,
        "Empty": 1,
    }
    main(["group", "list", "--json", *SERVER])
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["members"], found["lag"]) == (0, None)
    assert found["problems"] == [
        {
            "kind": "lag unknown",
            "severity": "warning",
            "text": "its coordinator does not say what it has committed: not allowed",
            "advice": "the lag is not known: the client needs the right to describe the group",
        }
    ]


def test_a_group_with_an_end_that_is_not_known_fails(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.extents = {}
    status, lines = checked(capsys)
    assert status == 1
    assert lines[0].endswith("lag: 0 records; that of 1 group is not known, or not all of it")
    assert exported(capsys)["kafka_group_lag_known"] == 0


def test_a_group_that_is_not_described_fails_and_has_no_number_of_members(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.described = REFUSED
    status, lines = checked(capsys)
    assert status == 1
    assert lines[3].split()[:5] == ["billing", "classic", "Empty", "?", "6"]
    assert exported(capsys) == {
        "kafka_group_described": 0,
        "kafka_group_lag_known": 1,
        "kafka_group_uncommitted_partitions": 0,
        "Empty": 1,
    }


@pytest.mark.parametrize(("state", "status", "shown"), [("Stable", 0, "Stable"), ("", 1, "Unknown")])
def test_a_group_of_a_type_that_is_not_described_fails_only_without_a_state(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], state: str, status: int, shown: str
) -> None:
    cluster.kind, cluster.state = "streams", state
    found, lines = checked(capsys)
    assert (found, lines[3].split()[:5]) == (status, ["billing", "streams", shown, "?", "6"])
    assert exported(capsys)[shown] == 1


def test_a_share_group_has_no_lag_to_be_known(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.kind = "share"
    assert "kafka_group_lag_known" not in exported(capsys)
