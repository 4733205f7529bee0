"""Apache Kafka's StripedReplicaPlacerTest and AdminRackAwareTest (of AdminUtils), for our placements.

    testBrokerList                                      test_broker_list
    testAvoidFencedReplicaIfPossibleOnSingleRack        test_avoid_fenced_replica_if_possible_on_single_rack
    testMultiPartitionTopicPlacementOnSingleUnfencedBroker
                                                        test_multi_partition_..._on_single_unfenced_broker
    testPlacementOnFencedReplicaOnSingleRack            test_placement_on_fenced_replica_on_single_rack
    testRackListWithMultipleRacks                       test_rack_list_with_multiple_racks
    testRackListWithInvalidRacks                        test_rack_list_with_invalid_racks
    testAllBrokersFenced, testRackListAllBrokersFenced  test_all_brokers_fenced
    testNotEnoughBrokers, testRackListNotEnoughBrokers  test_not_enough_brokers
    testNonPositiveReplicationFactor, testRackListNonPositiveReplicationFactor
                                                        test_non_positive_replication_factor
    testSuccessfulPlacement                             test_successful_placement
    testEvenDistribution                                test_even_distribution

    testGetRackAlternatedBrokerListAndAssignReplicasToBrokers
                                                        test_rack_alternated_broker_list_and_replicas
    testAssignmentWithRackAware, ...WithRandomStartIndex, ...WithUnevenReplicas, ...WithUnevenRacks,
    testAssignmentWith2ReplicasRackAware, ...With6Partitions, ...With6PartitionsAnd3Brokers,
    testRackAwareExpansion, testLargeNumberPartitionsAssignment
                                                        test_distribution, by these names
    testMoreReplicasThanRacks, testLessReplicasThanRacks, testSingleRack
                                                        test_racks_of_each_partition, by these names
    testSkipBrokerWithReplicaAlreadyAssigned            test_skip_broker_with_replica_already_assigned
    testReplicaAssignment                               test_replica_assignment
    testAssignReplicasToBrokersWithInvalidParameters    test_invalid_parameters

Where Kafka draws a start index without a seed, ten seeds stand for it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from kafka_assignors._wire.java.random import JavaRandom
from kafka_assignors.placement._generators import alternate, place_rack_aware, place_rack_unaware
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._striped import BrokerList, RackList, place_striped

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kafka_assignors.placement._placement import Racks

SEEDS = range(10)


class MockRandom(JavaRandom):
    """The random numbers of Kafka's tests: another generator, of 64 bits, below the same methods."""

    def __init__(self) -> None:
        super().__init__(0)
        self._state = 17

    def next_31_bits(self) -> int:
        self._state = (self._state * 2862933555777941757 + 3037000493) % 2**64
        return self._state >> 33


def striped(
    partitions: int, replication_factor: int, racks: Racks, fenced: Collection[int] = ()
) -> list[list[int]]:
    rack_list = RackList(racks, fenced, MockRandom())
    return [rack_list.place(replication_factor) for _ in range(partitions)]


# StripedReplicaPlacerTest ---------------------------------------------------------------------------------


def test_broker_list() -> None:
    assert BrokerList([]).next(1) is None
    brokers = BrokerList([0, 1, 2, 3])
    assert [brokers.next(0) for _ in range(6)] == [0, 1, 2, 3, None, None]
    assert [brokers.next(1) for _ in range(5)] == [1, 2, 3, 0, None]


def test_avoid_fenced_replica_if_possible_on_single_rack() -> None:
    assert striped(5, 4, dict.fromkeys([3, 1, 0, 4, 2]), fenced=[1]) == [
        [3, 4, 0, 2],
        [4, 0, 2, 3],
        [0, 2, 3, 4],
        [2, 3, 4, 0],
        [0, 4, 3, 2],
    ]


def test_multi_partition_topic_placement_on_single_unfenced_broker() -> None:
    assert striped(3, 1, {0: None, 1: None}, fenced=[1]) == [[0], [0], [0]]


def test_placement_on_fenced_replica_on_single_rack() -> None:
    assert striped(4, 3, dict.fromkeys([3, 1, 2]), fenced=[1]) == [[3, 2, 1], [2, 3, 1], [3, 2, 1], [2, 3, 1]]


def test_rack_list_with_multiple_racks() -> None:
    racks = {11: "1", 10: "1", 30: "3", 31: "3", 21: "2", 20: "2"}
    assert striped(3, 4, racks, fenced=[20]) == [[11, 21, 31, 10], [21, 30, 10, 20], [31, 11, 21, 30]]


def test_rack_list_with_invalid_racks() -> None:
    racks = {11: "1", 10: "1", 30: "3", 31: "3", 20: "2", 21: "2", 41: "4", 40: "4"}
    assert striped(3, 4, racks, fenced=[30, 31, 20, 21, 40]) == [
        [41, 11, 21, 30],
        [10, 20, 31, 41],
        [41, 21, 30, 11],
    ]


@pytest.mark.parametrize("racks", [{11: "1", 10: "1"}, dict.fromkeys([0, 1, 2])])
def test_all_brokers_fenced(racks: Racks) -> None:
    with pytest.raises(PlacementError, match=r"^all \d brokers are fenced"):
        place_striped(1, 1, racks, fenced=racks.keys())


def test_not_enough_brokers() -> None:
    with pytest.raises(PlacementError, match=r"^replication_factor is 3, but there are 2 brokers"):
        place_striped(1, 3, {11: "1", 10: "1"})


@pytest.mark.parametrize("replication_factor", [0, -1])
def test_non_positive_replication_factor(replication_factor: int) -> None:
    with pytest.raises(PlacementError, match=rf"^replication_factor is {replication_factor}:"):
        place_striped(1, replication_factor, {11: "1", 10: "1"})


def test_successful_placement() -> None:
    assert striped(5, 3, dict.fromkeys([0, 3, 2, 1])) == [
        [2, 3, 0],
        [3, 0, 1],
        [0, 1, 2],
        [1, 2, 3],
        [1, 0, 2],
    ]


def test_even_distribution() -> None:
    counts = Counter(map(tuple, striped(200, 2, dict.fromkeys([0, 1, 2, 3]))))
    assert counts == {
        (0, 1): 14,
        (0, 2): 22,
        (0, 3): 14,
        (1, 0): 17,
        (1, 2): 17,
        (1, 3): 16,
        (2, 0): 13,
        (2, 1): 17,
        (2, 3): 20,
        (3, 0): 20,
        (3, 1): 19,
        (3, 2): 11,
    }


# AdminRackAwareTest ---------------------------------------------------------------------------------------

THREE = {0: "rack1", 1: "rack2", 4: "rack3"}
SIX = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
SIX_FROM_6 = {broker + 6: rack for broker, rack in SIX.items()}
TWELVE = SIX | {6: "rack1", 7: "rack2", 8: "rack2", 9: "rack3", 10: "rack1", 11: "rack3"}
UNEVEN = {0: "rack1", 1: "rack1", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
SKEWED = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack2"}


def test_rack_alternated_broker_list_and_replicas() -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert alternate(racks) == [0, 3, 1, 5, 4, 2]
    assert alternate({broker: rack for broker, rack in racks.items() if broker != 5}) == [0, 3, 1, 4, 2]
    assert place_rack_aware(7, 3, racks, start_index=0) == {
        0: [0, 3, 1],
        1: [3, 1, 5],
        2: [1, 5, 4],
        3: [5, 4, 2],
        4: [4, 2, 0],
        5: [2, 0, 3],
        6: [0, 4, 2],
    }


def racks_of(placement: Mapping[int, list[int]], racks: Racks) -> list[int]:
    """How many racks each partition is on."""
    return [len({racks[broker] for broker in replicas}) for replicas in placement.values()]


LEADERS, REPLICAS = "leaders", "replicas"  # of which every broker has as many


@pytest.mark.parametrize(
    ("racks", "size", "options", "even"),
    [
        pytest.param(SIX, (6, 3), {"start_index": 2}, {LEADERS, REPLICAS}, id="AssignmentWithRackAware"),
        pytest.param(SIX, (6, 3), {}, {LEADERS, REPLICAS}, id="...WithRandomStartIndex"),
        pytest.param(SIX, (13, 3), {"start_index": 0}, set(), id="...WithUnevenReplicas"),
        pytest.param(UNEVEN, (12, 3), {}, {LEADERS}, id="...WithUnevenRacks"),
        pytest.param(SIX, (12, 2), {}, {LEADERS, REPLICAS}, id="AssignmentWith2ReplicasRackAware"),
        pytest.param(SIX_FROM_6, (6, 2), {}, {LEADERS, REPLICAS}, id="...With6Partitions"),
        pytest.param(THREE, (3, 2), {}, {LEADERS, REPLICAS}, id="...With6PartitionsAnd3Brokers"),
        pytest.param(
            SIX_FROM_6, (12, 2), {"first_partition": 12}, {LEADERS, REPLICAS}, id="RackAwareExpansion"
        ),
        pytest.param(TWELVE, (96, 3), {}, {LEADERS, REPLICAS}, id="LargeNumberPartitionsAssignment"),
    ],
)
def test_distribution(racks: Racks, size: tuple[int, int], options: dict[str, int], even: set[str]) -> None:
    partitions, replication_factor = size
    first = options.get("first_partition", 0)
    for seed in SEEDS:
        placement = place_rack_aware(partitions, replication_factor, racks, seed=seed, **options)
        assert list(placement) == list(range(first, first + partitions))
        assert racks_of(placement, racks) == [replication_factor] * partitions
        if LEADERS in even:
            leaders = Counter(replicas[0] for replicas in placement.values())
            assert leaders == dict.fromkeys(racks, partitions // len(racks))
        if REPLICAS in even:
            replicas_on = Counter(broker for replicas in placement.values() for broker in replicas)
            assert replicas_on == dict.fromkeys(racks, partitions * replication_factor // len(racks))


@pytest.mark.parametrize(
    ("racks", "replication_factor", "expected"),
    [
        pytest.param(SKEWED, 5, 3, id="MoreReplicasThanRacks"),
        pytest.param(SKEWED, 2, 2, id="LessReplicasThanRacks"),
        pytest.param(dict.fromkeys(range(6), "rack1"), 3, 1, id="SingleRack"),
    ],
)
def test_racks_of_each_partition(racks: Racks, replication_factor: int, expected: int) -> None:
    for seed in SEEDS:
        placement = place_rack_aware(6, replication_factor, racks, seed=seed)
        assert [len(set(replicas)) for replicas in placement.values()] == [replication_factor] * 6
        assert racks_of(placement, racks) == [expected] * 6
        assert sorted(replicas[0] for replicas in placement.values()) == list(range(6))


def test_skip_broker_with_replica_already_assigned() -> None:
    placement = place_rack_aware(6, 4, {0: "a", 1: "b", 2: "c", 3: "a", 4: "a"}, start_index=2)
    assert [len(set(replicas)) for replicas in placement.values()] == [4] * 6


def test_replica_assignment() -> None:
    for replication_factor in (0, 6):
        with pytest.raises(PlacementError, match=rf"^replication_factor is {replication_factor}\b"):
            place_rack_unaware(10, replication_factor, range(5))
    assert place_rack_unaware(10, 3, range(5), start_index=0) == {
        0: [0, 1, 2],
        1: [1, 2, 3],
        2: [2, 3, 4],
        3: [3, 4, 0],
        4: [4, 0, 1],
        5: [0, 2, 3],
        6: [1, 3, 4],
        7: [2, 4, 0],
        8: [3, 0, 1],
        9: [4, 1, 2],
    }


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "message"),
    [
        (0, 0, r"^partitions is 0:"),
        (10, 0, r"^replication_factor is 0:"),
        (10, 6, r"^replication_factor is 6, but there are 5 brokers"),
        (10, 5, r"^broker 4 is without a rack, "),
    ],
)
def test_invalid_parameters(partitions: int, replication_factor: int, message: str) -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: None}
    with pytest.raises(PlacementError, match=message):
        place_rack_aware(partitions, replication_factor, racks)
