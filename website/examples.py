"""Results of functions that need a cluster, of groups that were made up: for a page, and for tests."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafka import TopicPartition

from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._cli.results import DemoRun, DemoStep
from kafka_assignors._cluster.groups import ClassicGroup, EpochGroup, EpochMember, Extent
from kafka_assignors._groups.joining import Look
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._timelines.rebalances import SeenRebalance
from kafka_assignors.coordinator import Simulation
from kafka_assignors.groups._coordinator import GroupCoordinator
from kafka_assignors.groups._explain import ExplainedGroup
from kafka_assignors.groups._live import LiveGroup, LiveRecord
from kafka_assignors.groups._status import GroupStatus
from kafka_assignors.history._capture import Captured
from kafka_assignors.history._counts import Counts
from kafka_assignors.history._dump import Imported
from kafka_assignors.history._maintenance import Maintenance
from kafka_assignors.history._store.log import DataFile
from kafka_assignors.placement._cluster.stall import Reason
from kafka_assignors.placement._cluster.throttle import Throttles
from kafka_assignors.placement._moving import UnderWay

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from kafka_assignors._wire.offsets_topic import GroupMetadataValue

COORDINATOR: Final = GroupCoordinator(partition=9, partitions=50, broker=2, address="kafka-2:9092")
TOPICS: Final = {"orders": {0: 1, 1: 2, 2: 3}}
COMMITTED: Final = {("orders", 0): 70, ("orders", 1): 81}
_NOW_MS: Final = 1_750_000_000_000


def extents(partitions: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], Extent]:
    """Where partitions begin and end."""
    return dict.fromkeys(partitions, Extent(0, 82))


def live_record(time_ms: int, value: GroupMetadataValue) -> LiveRecord:
    """A record of the log."""
    return LiveRecord(ArchivedRecord(b"", None, -1, -1, 1000 * time_ms, None), value)


@cache
def live_group() -> LiveGroup:
    """A group of the classic protocol, stable after a member joined."""
    group = Simulation({"orders": 3}, [CooperativeStickyAssignor])
    records = []
    for name in ("a", "b"):
        group.join(name)
        group.run_until_stable()
        records.append(live_record(_NOW_MS + round(1000 * group.now), group.group.record()))
    described = ClassicGroup("billing", "Stable", records[-1].value)
    return LiveGroup(
        looks=(Look(_NOW_MS + 60_000, described),),
        coordinator=COORDINATOR,
        records=tuple(records),
        record_limit=1_048_588,
        topics=TOPICS,
        committed=COMMITTED,
    )


@cache
def live_epoch_group() -> LiveGroup:
    """A group of KIP-848 in which a member has yet to revoke a partition."""

    def member(name: str, epoch: int, has: Collection[int], target: Collection[int]) -> EpochMember:
        return EpochMember(
            member_id=f"{name}-id",
            instance_id=None,
            client_id=name,
            host="/10.0.0.11",
            rack=None,
            epoch=epoch,
            topics=("orders",),
            expression=None,
            assignment=frozenset(("orders", one) for one in has),
            target=frozenset(("orders", one) for one in target),
            protocol="consumer",
        )

    members = (member("n1", 4, (0, 1, 2), (0, 1)), member("n2", 5, (), (2,)))
    group = EpochGroup("billing", "Reconciling", 5, 5, "uniform", members)
    return LiveGroup(
        looks=(Look(_NOW_MS, group), Look(_NOW_MS + 5000, group)),
        coordinator=COORDINATOR,
        topics=TOPICS,
        committed=COMMITTED,
    )


def explained_classic() -> ExplainedGroup:
    """What `explain` says of the first."""
    return ExplainedGroup.of(live_group(), extents)


def explained_consumer() -> ExplainedGroup:
    """What `explain` says of the second."""
    return ExplainedGroup.of(live_epoch_group(), extents)


def listed() -> tuple[GroupStatus, ...]:
    """What `list_groups` says of the first."""
    found = explained_classic()
    return (
        GroupStatus(
            group_id="billing",
            kind="classic",
            state=found.state,
            protocol_type="consumer",
            strategy=found.account.strategy,
            epoch=None,
            account=found.account,
            lag=found.lag,
            problems=found.problems,
        ),
    )


def demo_runs() -> list[DemoRun]:
    """What a demo of one strategy finds in which one member joins another."""
    orders = [TopicPartition("orders", partition) for partition in range(2)]
    after: Any = {"m1": frozenset(orders[:1]), "m2": frozenset(orders[1:])}
    rebalance = SeenRebalance(generation=2, start=1.0, end=2.0, leader="m1", claims={}, assignments=after)
    step = DemoStep(
        title="a second member joins",
        seconds=1.0,
        rebalances=(rebalance,),
        before={"m1": frozenset(orders)},
        after=after,
        silence=dict.fromkeys(orders, 0.25),
        shared=False,
    )
    return [
        DemoRun(
            assignor="sticky",
            steps=(step,),
            produced=100,
            consumed=100,
            duplicates=2,
            overlaps=(),
            double_assigned=0,
        )
    ]


def under_way() -> UnderWay:
    """A reassignment that waits for a broker."""
    return UnderWay(
        under_way=(("orders", 0),),
        replicas=1,
        missing=1_048_576,
        waits_for=(Reason("orders-0: broker 3 is not up", "start it, or cancel"),),
        throttles=Throttles(rates={}, own={}, replicas={}, untold={}),
    )


def captured() -> Captured:
    """A capture of one batch."""
    return Captured(offsets=1500, total=1500, batches=1, counts=_counts())


def imported() -> Imported:
    """An import of which one record was known."""
    return Imported(source="dump-1f3a", counts=_counts(), known=1, rejected=0)


def maintenance() -> Maintenance:
    """What there is to do in an archive."""
    small, old = (
        DataFile(path=f"day={day}/{day}.parquet", size=1024) for day in ("2026-03-02", "2025-03-01")
    )
    return Maintenance(compacted=[[small]], removed=[old], deleted=["day=2026-03-01/0.parquet"])


def _counts() -> Counts:
    return Counts(kept=Counter({"GroupMetadata": 2}), counted=Counter({"OffsetCommit": 1200}))
