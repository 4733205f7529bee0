"""Groups on aiokafka beside other clients, hostile members and brokers that die."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer

from integration_tests.support.aio_members import Members, joins, partition, reading, until
from integration_tests.support.raw_member import RawMember
from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.aio import CooperativeConsumer, strategies
from kafka_assignors.testing import Cluster, ConsumerGroup, Load, create_topic
from tests.support.wire import subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeGroup = Callable[..., ConsumerGroup]

pytestmark = pytest.mark.usefixtures("nothing_left")

KINDS = [
    pytest.param(AIOKafkaConsumer, StickyAssignor, id="aiokafka's own consumer"),
    pytest.param(CooperativeConsumer, CooperativeStickyAssignor, id="cooperative"),
]
"""Consumers and a strategy that suits them."""


@pytest.mark.parametrize(
    ("assignor", "sizes"),
    [
        (RangeAssignor, [3, 3]),
        (RoundRobinAssignor, [3, 3]),
        (StickyAssignor, [3, 3]),
        (CooperativeStickyAssignor, [3, 3]),
        (RandomAssignor, None),
        (BroadcastAssignor, [6, 6]),
    ],
)
@pytest.mark.parametrize("client", [AIOKafkaConsumer, CooperativeConsumer])
async def test_each_strategy_shares_what_is_read_from_the_first_member_on(
    *,
    client: Any,
    assignor: Any,
    sizes: list[int] | None,
    topic: str,
    kafka_cluster: Cluster,
    members: Members,
) -> None:
    every = frozenset(range(6))
    with Load(kafka_cluster, topic, rate=200):
        a, b = (
            members.member(name, client, partition_assignment_strategy=strategies(assignor)) for name in "ab"
        )

        def shared() -> bool:
            found = [len(a.has), len(b.has)]
            return a.has | b.has == every and (found == sizes if sizes else sum(found) == 6)

        async with reading(a):
            await until(lambda: a.has == every, "a to have all")
            async with reading(b):
                await until(shared, "each to have its share")
                await until(lambda: a.read.keys() | b.read.keys() == every, "all to be read")
                await until(lambda: b.has <= b.read.keys(), "b to read what it has")
            await until(lambda: a.has == every, "a to have all again")
        assert a.error is b.error is None


@pytest.mark.parametrize(("client", "assignor"), KINDS)
async def test_a_topic_that_does_not_exist_holds_up_nobody_and_is_assigned_when_it_does(
    client: Any, assignor: Any, topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    later = f"{topic}-later"
    a = members.member(
        "a", client, partition_assignment_strategy=strategies(assignor), rebalance_timeout_ms=12_000
    )
    raw = RawMember(
        kafka_cluster.bootstrap_servers[0],
        members.group_id,
        [assignor.name],
        lambda _: subscription(3, [later]),
        session_timeout=20,
    )
    async with reading(a):
        await members.settled({"a": 6})
        with raw:
            await asyncio.to_thread(raw.wait_for, lambda raw: bool(raw.assigned), 60)
            assert set(raw.assigned.values()) == {frozenset()}
            await members.settled({"a": 6})
            create_topic(kafka_cluster, 2, name=later)
            await asyncio.to_thread(raw.wait_for, lambda raw: any(raw.assigned.values()), 60)
        await members.settled({"a": 6})
    assert {tp.topic for given in raw.assigned.values() for tp in given} == {later}
    assert a.error is None


@pytest.mark.parametrize(("client", "assignor"), KINDS)
async def test_members_get_what_has_a_replica_in_their_rack(
    client: Any, assignor: Any, three_brokers: Cluster
) -> None:
    topic = create_topic(three_brokers, 9)
    members = Members.on(three_brokers, topic)
    made = [
        members.member(
            name, client, partition_assignment_strategy=strategies(assignor(rack=f"rack-{number}"))
        )
        for number, name in enumerate("abc", 1)  # as the brokers are
    ]
    async with reading(*made):
        cluster = made[0].consumer._client.cluster
        leads = Counter(cluster.leader_for_partition(partition(topic, number)) for number in range(9))
        best = sum(min(3, leads[node]) for node in (1, 2, 3))

        def in_rack() -> int:
            return sum(
                cluster.leader_for_partition(one) == node
                for node, member in enumerate(made, 1)
                for one in member.consumer.assignment()
            )

        await members.settled({"a": 3, "b": 3, "c": 3})
        await until(lambda: in_rack() == best, f"{best} in their racks, of {leads}")


async def test_a_join_survives_the_death_of_the_coordinator(disturbed_brokers: Cluster) -> None:
    topic = create_topic(disturbed_brokers, 6, replication=3)

    try:
        with Load(disturbed_brokers, topic, rate=200):
            members = Members.on(disturbed_brokers, topic, proxied=True)
            a, slow, late = (
                members.member(name, rebalance_timeout_ms=60_000) for name in ("a", "slow", "late")
            )
            async with reading(a, slow):
                await members.settled({"a": 3, "slow": 3})
                had = a.has
                node = await asyncio.to_thread(disturbed_brokers.coordinator_of, members.group_id)
                cut = disturbed_brokers.network.half_open(client="slow")
                async with joins(late) as joined:
                    await until(lambda: a.joining and late.joining, "both to join")
                    await asyncio.to_thread(disturbed_brokers.broker(node).kill)
                    cut.heal()
                    await joined
                    await members.settled({"a": 2, "slow": 2, "late": 2})
                    had &= a.has
                    before = {number: len(a.read[number]) for number in had}
                    await until(lambda: all(len(a.read[one]) > before[one] for one in had), "records again")
            assert a.error is slow.error is late.error is None
            assert [one.kinds("lost") for one in (a, slow, late)] == [[], [], []]
            assert had
            for number in had:
                assert a.read[number] == list(range(len(a.read[number])))
    finally:
        disturbed_brokers.mend()
        disturbed_brokers.wait_complete()
