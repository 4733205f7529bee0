"""What aiokafka's consumers do where they differ from kafka-python's, held once on a real broker.

The simulated members of `tests.lab.clients.aiokafka_members` rest on it: they run the
same code, on a client and a coordinator that are not real. More is held in test_cooperative_aiokafka.py.
"""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, KafkaError

from integration_tests.support.aio_members import (
    Member,
    Members,
    Told,
    expelled,
    joins,
    partition,
    until,
)
from kafka_assignors import RangeAssignor
from kafka_assignors.aio import CooperativeConsumer, strategies
from kafka_assignors.testing import Cluster, create_topic

pytestmark = pytest.mark.usefixtures("nothing_left")

ALL = frozenset(range(6))


def own(members: Members, name: str, **settings: Any) -> Member:
    """A member on aiokafka's own consumer."""
    return members.member(
        name, AIOKafkaConsumer, partition_assignment_strategy=strategies(RangeAssignor), **settings
    )


async def test_aiokafkas_consumer_joins_again_though_its_application_does_not_poll(members: Members) -> None:
    """`GroupCoordinator._coordination_routine`; `_on_join_prepare` revokes all, also what it gets again."""
    a, b = own(members, "a"), own(members, "b")
    async with a, b:  # neither reads
        await members.settled({"a": 3, "b": 3})
    first, *others = a.told
    assert first == Told("revoked", frozenset())  # before the first join
    kinds = [told.kind for told in others]
    assert kinds == ["assigned", "revoked"] * (len(kinds) // 2) + ["assigned"]
    for given, taken in zip(others[::2], others[1::2], strict=False):
        assert taken.partitions == given.partitions


async def test_a_refused_commit_throws_aiokafkas_consumer_out_of_its_group(
    topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    """`GroupCoordinator._do_commit_offsets`: UNKNOWN_MEMBER_ID resets the generation."""
    a = own(members, "a", heartbeat_interval_ms=300_000, session_timeout_ms=600_000)
    async with a:
        await members.settled({"a": 6})
        member_id, mark = a.consumer._coordinator.member_id, len(a.told)
        await asyncio.to_thread(expelled, kafka_cluster, members, a)
        with pytest.raises(CommitFailedError):
            await a.consumer.commit({partition(topic, 0): 1})
        await until(lambda: len(a.told) == mark + 2, "a to be back")
        assert a.consumer._coordinator.member_id != member_id


async def test_aiokafkas_consumer_sends_no_heartbeat_while_it_joins(proxied_broker: Cluster) -> None:
    """`GroupCoordinator.ensure_active_group` ends the task; JoinGroup is answered when all have joined."""
    topic = create_topic(proxied_broker, 6)
    members = Members.on(proxied_broker, topic, proxied=True)
    a = own(members, "a", rebalance_timeout_ms=60_000)
    slow = own(members, "slow", rebalance_timeout_ms=60_000)
    late = own(members, "late", rebalance_timeout_ms=60_000)
    async with a, slow:
        await members.settled({"a": 3, "slow": 3})
        cut = proxied_broker.network.half_open(client="slow")
        async with joins(late) as joined:
            await until(lambda: a.consumer._coordinator._heartbeat_task is None, "its heartbeats to end")
            assert a.told[-1] == Told("revoked", a.told[-2].partitions)
            assert len(a.told[-1].partitions) == 3
            cut.heal()
            await joined
            await members.settled({"a": 2, "slow": 2, "late": 2})
            assert a.consumer._coordinator._heartbeat_task is not None


@pytest.mark.parametrize("client", [AIOKafkaConsumer, CooperativeConsumer])
async def test_a_static_leader_that_comes_back_is_not_told_that_it_leads(
    client: Any, topic: str, members: Members
) -> None:
    """`JoinGroupRequest` is version 5: KIP-814 came with version 9. It gets its assignment as a follower."""

    def made(name: str) -> Member:
        chosen: dict[str, Any] = {"partition_assignment_strategy": strategies(RangeAssignor)}
        return members.member(
            name, client, group_instance_id="one", **(chosen if client is AIOKafkaConsumer else {})
        )

    async with made("a") as a:
        await members.settled({"a": 6})
        assert a.consumer._coordinator._group_subscription == {topic}  # what a leader watches
        generation = a.generation
    async with made("again") as again:
        await members.settled({"again": 6})
        assert again.generation == generation
        assert again.consumer._coordinator._group_subscription is None


async def test_an_assignment_of_other_topics_ends_aiokafkas_own_consumer(kafka_cluster: Cluster) -> None:
    """`Subscription._assign` asserts; a static member that comes back is given its old topics (KIP-345)."""
    one, two = create_topic(kafka_cluster, 1), create_topic(kafka_cluster, 1)
    members = Members.on(kafka_cluster, one)
    async with own(members, "a", group_instance_id="static"):
        await until(lambda: len(members.made["a"].has) == 1, "its partition")
    again = own(members, "again", group_instance_id="static")
    again.consumer.subscribe([two], listener=again)
    with pytest.raises(KafkaError, match="Received an assignment for unsubscribed topic"):
        await again.consumer.start()
    await again.consumer.stop()
