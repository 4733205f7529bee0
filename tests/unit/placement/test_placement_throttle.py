"""What a throttle is set on, what it replaces, and how long copying takes under it."""

from dataclasses import replace

from kafka import TopicPartition

from kafka_assignors._cli.placement_text import plan_lines
from kafka_assignors.placement import Placements, plan_reassignment
from kafka_assignors.placement._cluster.throttle import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    entries_of,
)
from kafka_assignors.placement._cluster.topics import Reassignment
from kafka_assignors.placement._planning.moves import ReplicaMove
from kafka_assignors.placement._planning.volume import Volume


def test_those_that_have_a_replica_send_and_those_that_lack_it_get() -> None:
    entries = entries_of(
        {
            TopicPartition("orders", 0): Reassignment([2, 1], [2, 3], [3]),
            TopicPartition("orders", 1): Reassignment([1], [2, 4], [2, 4]),
            TopicPartition("other", 0): Reassignment([5, 6], [6, 5], []),
        }
    )
    listed = {(LEADER_REPLICAS, 0, 1), (LEADER_REPLICAS, 0, 2), (LEADER_REPLICAS, 1, 1)}
    listed |= {(FOLLOWER_REPLICAS, 0, 3), (FOLLOWER_REPLICAS, 1, 2), (FOLLOWER_REPLICAS, 1, 4)}
    assert entries == {("orders", *one) for one in listed}


def test_the_broker_with_the_most_to_do_takes_the_longest() -> None:
    moves = [
        ReplicaMove(topic="orders", partition=partition, target=target, source=None, size=None)
        for partition, target in ((0, 3), (1, 3), (1, 4))
    ]
    sizes = {("orders", 0): 100, ("orders", 1): 300}
    volume = Volume.of(moves, {("orders", 0): 1, ("orders", 1): 2}, sizes)
    assert (volume.sent, volume.got) == ({1: 100, 2: 600}, {3: 400, 4: 300})
    assert (volume.total, volume.most) == (700, (2, "sends", 600))
    assert (Volume.of([], {}, {}).total, Volume.of([], {}, {}).seconds(5)) == (0, 0.0)


def volume_of(*partitions: tuple[int, int, int], mebibytes: int) -> Volume:
    """Partitions of so many MiB each, by leader, target, and how many of them."""
    moves: list[ReplicaMove] = []
    leaders: dict[tuple[str, int], int] = {}
    for leader, target, many in partitions:
        for _ in range(many):
            name = "orders", len(moves)
            moves.append(ReplicaMove(topic=name[0], partition=name[1], target=target, source=None, size=None))
            leaders[name] = leader
    return Volume.of(moves, leaders, dict.fromkeys(leaders, mebibytes << 20))


def test_a_fetch_passes_at_once_and_the_rest_at_the_rate() -> None:
    one = volume_of((1, 3, 1), mebibytes=101)
    assert (one.sent_at_once, one.got_at_once) == ({1: 1 << 20}, {3: 1 << 20})
    assert (one.seconds(10 << 20), one.passes(10 << 20)) == (10.0, 0)
    two = volume_of((1, 3, 2), (2, 3, 3), mebibytes=21)
    assert (two.sent_at_once, two.got_at_once) == ({1: 2 << 20, 2: 3 << 20}, {3: 5 << 20})
    assert two.seconds(1 << 20) == 100.0


def test_a_fetch_brings_at_most_10_mib_whatever_the_partitions() -> None:
    many = volume_of((1, 3, 12), (1, 2, 4), mebibytes=2)
    assert (many.sent_at_once, many.got_at_once) == ({1: 14 << 20}, {2: 4 << 20, 3: 10 << 20})


def test_under_a_low_throttle_a_fetch_passes_each_window() -> None:
    low = volume_of((1, 3, 2), mebibytes=11)
    assert (low.seconds(1024), low.passes(1024)) == (110.0, 2 << 20)
    # A fetch of 2 MiB in 11 s is as much as this rate allows.
    allowed = -(-(2 << 20) // 11)
    assert (low.passes(allowed - 1), low.passes(allowed)) == (2 << 20, 0)
    small = volume_of((1, 3, 2), mebibytes=1)
    assert (small.seconds(1024), small.passes(1024)) == (0.0, 2 << 20)


def test_a_throttle_that_does_not_hold_is_named_with_what_passes() -> None:
    plan = plan_reassignment(Placements({"orders": {0: [1, 2]}}))
    low = replace(plan, volume=volume_of((1, 3, 1), mebibytes=4))
    # What comes before are the moves, of which there are none, and the loads.
    assert [*plan_lines(low, 1024, asks=False)][3:] == [
        "at 1.0 KiB/s about 33 s: broker 1 sends 4.0 MiB, the most",
        "  so low a throttle does not hold: Kafka looks at it before a fetch, so 1.0 MiB",
        "    pass at once, and as much every 11 s",
    ]
    assert [*plan_lines(low, 1 << 20, asks=False)][3:] == [
        "at 1.0 MiB/s about 3 s: broker 1 sends 4.0 MiB, the most"
    ]
