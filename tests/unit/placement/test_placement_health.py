"""What is wrong with brokers and partitions, by what a cluster says of them."""

from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import RequestTimedOutError

from kafka_assignors._cli.placement_text import health_lines
from kafka_assignors._cluster import admin as module
from kafka_assignors.placement._cluster.health import Health, judge, read_health
from kafka_assignors.placement._cluster.logs import Logs, sizes_in
from kafka_assignors.placement._cluster.topics import Brokers, PartitionState, read_brokers, read_states
from tests.support.fake_cluster import Cluster, ClusterAdmin

UP = Brokers({1: "a", 2: "b", 3: "c"}, {})


def state(replicas: list[int], in_sync: list[int], leader: int | None) -> PartitionState:
    return PartitionState(replicas=tuple(replicas), in_sync=frozenset(in_sync), leader=leader)


def judged(
    states: dict[int, PartitionState],
    brokers: Brokers = UP,
    *,
    silent: dict[int, str] | None = None,
    min_in_sync: int = 1,
    adding: dict[int, list[int]] | None = None,
) -> Health:
    return judge(
        {"orders": states},
        brokers,
        logs=Logs({}, silent or {}, {}),
        min_in_sync={"orders": min_in_sync},
        adding={TopicPartition("orders", partition): to for partition, to in (adding or {}).items()},
    )


def test_a_cluster_in_order_is_healthy() -> None:
    health = judged({0: state([1, 2], [2, 1], 1)}, min_in_sync=2)
    assert health.healthy
    assert health.brokers == {1: "up", 2: "up", 3: "up"}
    assert set(health.partitions.values()) == {()}


def test_each_fault_of_a_partition_is_found() -> None:
    health = judged(
        {
            0: state([1, 2], [1, 2], 1),
            1: state([3], [3], None),
            2: state([1, 3], [1], 1),
            3: state([2, 1], [1, 2], 1),
        },
        min_in_sync=2,
    )
    assert health.offline == (("orders", 1),)
    assert health.under_replicated == (("orders", 2),)
    assert health.under_min_isr == (("orders", 1), ("orders", 2))
    assert health.led_by_others == (("orders", 1), ("orders", 3))
    assert not health.healthy


def test_a_leader_that_is_not_the_preferred_one_is_no_illness() -> None:
    assert judged({0: state([1, 2], [1, 2], 2)}).healthy


def test_a_replica_that_a_reassignment_adds_is_not_missing() -> None:
    added = judged({0: state([1, 3, 2], [1, 2], 1)}, adding={0: [3]})
    assert (added.under_replicated, added.reassigned) == ((), (("orders", 0),))
    assert added.healthy
    missing = judged({0: state([1, 3, 2], [1], 1)}, adding={0: [3]})
    assert missing.under_replicated == (("orders", 0),)


def test_brokers_are_fenced_silent_or_gone() -> None:
    brokers = Brokers({1: None, 2: None}, {3: None})
    health = judged({0: state([1, 9], [1, 9], 1)}, brokers, silent={2: "refused"})
    assert health.brokers == {1: "up", 2: "no answer", 3: "fenced", 9: "gone"}
    assert not health.healthy


def test_a_cluster_without_a_controller_is_described_without_reassignments() -> None:
    cluster = Cluster({"orders": {0: [1, 2]}})
    admin = ClusterAdmin(cluster)

    def time_out() -> None:
        raise RequestTimedOutError("too slow")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ONE_BROKER_SECONDS", 0)
        patch.setattr(cluster, "list_partition_reassignments", time_out)
        health = read_health(admin, read_states(admin), read_brokers(admin), Logs({}, {}, {}))
    assert (health.reassigned, health.healthy) == ((), False)
    assert next(iter(health_lines(health))) == (
        "the controller does not say what is being reassigned: [Error 7] RequestTimedOutError: too slow"
    )


def test_numbers_are_beside_the_names_in_json() -> None:
    found = judged({0: state([1, 2], [1], 1)}).to_json()
    assert found["healthy"] is False
    assert found["counts"] == {
        "offline": 0,
        "under_replicated": 1,
        "under_min_isr": 0,
        "led_by_others": 0,
        "reassigned": 0,
    }
    assert found["under_replicated"] == (("orders", 0),)


def folder(name: str, error: int, *sizes: int) -> dict[str, Any]:
    partitions = [
        {"partition_index": number, "partition_size": size, "is_future_key": False}
        for number, size in enumerate(sizes)
    ]
    return {"log_dir": name, "error_code": error, "topics": [{"name": "orders", "partitions": partitions}]}


def test_a_failed_disk_hides_no_other() -> None:
    found = sizes_in([folder("/a", 56), folder("/b", 0, 10, 20)])
    assert found == ({("orders", 0): 10, ("orders", 1): 20}, "/a: KafkaStorageError")


def test_a_copy_between_disks_is_no_replica() -> None:
    moved = folder("/a", 0, 10)
    moved["topics"][0]["partitions"][0]["is_future_key"] = True
    assert sizes_in([moved]) == ({}, "")


def test_a_broker_that_names_no_folder_refuses_to() -> None:
    sizes, why = sizes_in([])
    assert sizes == {}
    assert "the permission to describe the cluster may be missing" in why


def test_the_largest_replica_says_how_large_a_partition_is() -> None:
    logs = Logs({("orders", 0, 1): 5, ("orders", 0, 2): 7, ("other", 0, 1): 9}, {}, {})
    assert logs.largest({"orders": [0, 1]}) == {("orders", 0): 7, ("orders", 1): 0}
    assert logs.unknown([("orders", 0), ("third", 1), ("other", 0)]) == (("third", 1),)
