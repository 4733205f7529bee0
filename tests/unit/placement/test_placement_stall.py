"""Why a reassignment does not get on, by what a cluster says."""

import itertools
import time

import pytest
from kafka import TopicPartition

from kafka_assignors.placement._cluster.logs import Logs
from kafka_assignors.placement._cluster.stall import Pace, Reason, StallSituation, reasons
from kafka_assignors.placement._cluster.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Throttles,
)
from kafka_assignors.placement._cluster.topics import Brokers, PartitionState

TP = TopicPartition("orders", 0)
UNTHROTTLED = Throttles({}, {}, {}, {})


def situation(
    *,
    leader: int | None = 1,
    up: tuple[int, ...] = (1, 2, 3),
    down: tuple[int, ...] = (),
    silent: tuple[int, ...] = (),
    in_sync: tuple[int, ...] = (1, 2),
    throttles: Throttles = UNTHROTTLED,
) -> StallSituation:
    sizes = {("orders", 0, broker): size for broker, size in ((1, 4096), (2, 4096), (3, 1024))}
    return StallSituation(
        adding={TP: [3]},
        states={TP: PartitionState(replicas=(1, 3, 2), in_sync=frozenset(in_sync), leader=leader)},
        brokers=Brokers(dict.fromkeys(up), dict.fromkeys(down)),
        logs=Logs(
            {key: size for key, size in sizes.items() if key[2] not in silent}, dict.fromkeys(silent, ""), {}
        ),
        throttles=throttles,
    )


def throttles(**rates: int) -> Throttles:
    """Of broker 1 as the leader, of broker 3 as the follower."""
    names = {"leader": (1, LEADER_RATE), "follower": (3, FOLLOWER_RATE)}
    found: dict[int, dict[str, int]] = {}
    for which, rate in rates.items():
        broker, name = names[which]
        found[broker] = {name: rate}
    return Throttles(found, found, {"orders": {LEADER_REPLICAS: ["*"], FOLLOWER_REPLICAS: ["0:3"]}}, {})


@pytest.mark.parametrize(
    ("found", "text", "advice"),
    [
        (
            situation(up=(1, 2), down=(3,)),
            "broker 3 is fenced: orders-0 cannot continue",
            "start it, or break off with `placement cancel`",
        ),
        (
            situation(up=(1, 2)),
            "broker 3 is gone: orders-0 cannot continue",
            "start it if it still exists, or break off with `placement cancel`",
        ),
        (
            situation(silent=(3,)),
            "broker 3 does not answer: orders-0 cannot continue",
            "see whether it runs, or break off with `placement cancel`",
        ),
        (
            situation(leader=None, in_sync=(), up=(3,), down=(1, 2)),
            "there is no leader to copy from: orders-0 cannot continue",
            "start a broker that has a replica (1, 2)",
        ),
        (
            situation(),
            "broker 3 is 3.0 KiB behind in orders-0",
            "see the logs of broker 3 and of the leaders, or break off with `placement cancel`",
        ),
        (
            situation(throttles=throttles(leader=2048, follower=1024)),
            "broker 3 is 3.0 KiB behind in orders-0, throttled to 1.0 KiB/s",
            "the throttle is too low: begin again with a higher --throttle",
        ),
    ],
)
def test_the_reason_and_the_way_out_are_said(found: StallSituation, text: str, advice: str) -> None:
    assert reasons(found, stalled=True) == [Reason(text, advice)]


def test_a_replica_in_sync_is_waited_for_no_longer() -> None:
    assert reasons(situation(in_sync=(1, 2, 3)), stalled=True) == []


def test_a_rate_counts_for_listed_replicas_only() -> None:
    assert throttles(leader=5, follower=7).rate(TP, 1, 3) == 5
    assert throttles(follower=7).rate(TopicPartition("orders", 1), 1, 3) is None
    assert throttles(follower=7).rate(TP, 1, 2) is None
    assert throttles(leader=5).rate(TP, None, 3) is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second from look to look."""
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))


def paced(*looks: tuple[int, dict[tuple[TopicPartition, int], int | None]]) -> float:
    pace = Pace()
    for done, behind in looks:
        pace.look(done, behind)
    return pace.since


@pytest.mark.usefixtures("clock")
def test_only_fewer_missing_bytes_or_replicas_are_progress() -> None:
    key, other = (TP, 3), (TP, 2)
    assert paced((0, {key: 100}), (0, {key: 100}), (0, {key: 200}), (0, {key: None})) == 0
    assert paced((0, {key: 100}), (0, {key: 99})) == 2
    # What has grown is progress only once it is below the least that it was.
    assert paced((0, {key: 100}), (0, {key: 200}), (0, {key: 150})) == 3
    assert paced((0, {key: 100}), (0, {key: None}), (0, {key: 90})) == 5
    assert paced((0, {key: 100, other: 5}), (0, {key: 100})) == 7
    assert paced((0, {key: 100}), (1, {key: 100})) == 9
