"""Groups of aiokafka's consumers with our strategies: our cooperative consumer, and aiokafka's own.

They are beside other clients, hostile members, and brokers that die.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IllegalStateError, KafkaError

from integration_tests.support.aio_members import Members, joins, partition, reading, until
from integration_tests.support.patience import QUICK
from integration_tests.support.raw_member import RawMember
from integration_tests.support.waiting import wait_for
from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._timelines.events import AssignmentReceived, Lost, Revoked
from kafka_assignors.aio import CooperativeConsumer, strategies
from kafka_assignors.testing import Cluster, ConsumerGroup, Load, create_topic, delete_topic, grow_topic
from kafka_assignors.testing._groups.stability import describe
from kafka_assignors.testing._topics import admin_client, existing_partitions
from tests.support.pages import defined, listings
from tests.support.wire import subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeGroup = Callable[..., ConsumerGroup]

pytestmark = pytest.mark.usefixtures("nothing_left")

PAGE = "docs/aiokafka.md"

KINDS = [
    pytest.param(AIOKafkaConsumer, StickyAssignor, id="aiokafka's own consumer"),
    pytest.param(CooperativeConsumer, CooperativeStickyAssignor, id="cooperative"),
]
"""Consumers and a strategy that suits them."""


def revoked_in_vain(group: ConsumerGroup) -> dict[str, list[str]]:
    """What members revoked though their next assignment had it."""
    found: dict[str, list[str]] = {}
    for name in group.members:
        events = group.timeline.of(Revoked, AssignmentReceived, member=name)
        for event, after in pairwise(events):
            if isinstance(event, Revoked) and isinstance(after, AssignmentReceived):
                kept = event.partitions & after.partitions
                if kept:
                    found.setdefault(name, []).append(str(event))
    return found


# In processes of their own


def test_staying_partitions_are_never_revoked_as_members_come_crash_freeze_and_leave(
    topic: str, consumer_group: MakeGroup, kafka_cluster: Cluster
) -> None:
    group = consumer_group(topic, [CooperativeStickyAssignor], client="aiokafka")
    with Load(kafka_cluster, topic) as load:
        for name in "abcd":
            group.join(name, settings=QUICK if name in "bd" else None)
            group.wait_stable()
        group.members["b"].crash()
        group.wait_stable(expect={"a": 2, "c": 2, "d": 2})
        group.members["d"].freeze()
        group.wait_stable(expect={"a": 3, "c": 3})
        group.members["d"].thaw()
        group.wait_stable(expect={"a": 2, "c": 2, "d": 2})
        grow_topic(kafka_cluster, topic, 9)
        group.wait_stable(expect={"a": 3, "c": 3, "d": 3})
        group.members["a"].leave()
        group.wait_stable()
        load.stop()
        group.wait_consumed(load)
    assert revoked_in_vain(group) == {}
    assert [event.member for event in group.timeline.of(Lost)] == ["d"]
    assert group.timeline.missing(load.produced) == {}
    assert group.timeline.double_assigned() == {}
    assert group.timeline.overlaps("generation") == ()
    # The frozen one could not know.
    assert {overlap.members[0] for overlap in group.timeline.overlaps()} <= {"d"}


# On the test's event loop


async def test_records_and_commits_flow_while_a_member_is_slow_to_join(proxied_broker: Cluster) -> None:
    topic = create_topic(proxied_broker, 6)

    with Load(proxied_broker, topic, rate=200):
        members = Members.on(proxied_broker, topic, proxied=True)
        a = members.member("a", commits=True)
        slow = members.member("slow", rebalance_timeout_ms=35_000)
        late = members.member("late")
        async with reading(a, slow):
            await members.settled({"a": 3, "slow": 3})
            generation, told = a.generation, len(a.told)
            cut = proxied_broker.network.half_open(client="slow")
            async with joins(late) as joined:
                await until(lambda: a.joining, "a to join again")
                before = {number: len(a.read.get(number, ())) for number in a.has}

                def has_read_more() -> bool:
                    more = [len(a.read.get(number, ())) - count for number, count in before.items()]
                    return min(more) > 0 and sum(more) >= 50

                await until(has_read_more, "records of each partition in the midst of the rebalance")
                consumed = {partition(topic, number): a.read[number][-1] + 1 for number in a.has}
                await a.consumer.commit(consumed)
                # The rebalance was on all the time, and nobody was told anything.
                assert (a.joining, a.generation, a.told[told:]) == (True, generation, [])
                cut.heal()
                await joined
                await members.settled({"a": 2, "slow": 2, "late": 2})
            assert [len(one) for one in a.kinds("revoked")] == [3, 1]
        assert a.error is None
        assert a.kinds("lost") == slow.kinds("lost") == []


async def test_a_consumer_that_is_cancelled_while_it_starts_leaves_nothing_behind(
    proxied_broker: Cluster,
) -> None:
    topic = create_topic(proxied_broker, 2)
    members = Members.on(proxied_broker, topic, proxied=True)
    a, late = members.member("a"), members.member("late")
    async with reading(a):
        await members.settled({"a": 2})
        cut = proxied_broker.network.half_open(client="a")
        entering = asyncio.create_task(late.consumer.__aenter__())
        await until(lambda: late.joining, "it to join")
        entering.cancel()
        await asyncio.wait([entering])
        assert entering.cancelled()
        assert late.consumer._closed
        cut.heal()
        await members.settled({"a": 2})


@pytest.mark.parametrize(
    "strategy",
    [[CooperativeStickyAssignor, RangeAssignor], [CooperativeStickyAssignor]],
    ids=["eager", "cooperative"],
)
async def test_a_topic_that_is_deleted_holds_up_neither_a_rebalance_nor_stop(
    strategy: list[Any], topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    doomed = create_topic(kafka_cluster, 3)
    a, b = (
        members.member(name, partition_assignment_strategy=strategy, enable_auto_commit=True) for name in "ab"
    )
    a.consumer.subscribe([topic, doomed], listener=a)
    async with reading(a):
        await until(lambda: len(a.consumer.assignment()) == 9, "both topics")
        for number in range(3):
            assert await a.consumer.position(partition(doomed, number)) == 0  # so it is committed
        await asyncio.to_thread(delete_topic, kafka_cluster, doomed)
        async with reading(b):
            await members.settled({"a": 3, "b": 3})
            assert {one.topic for one in a.consumer.assignment()} == {topic}
            await b.stops_to_read()
            await asyncio.wait_for(b.consumer.stop(), 10)
        await asyncio.to_thread(create_topic, kafka_cluster, 3, name=doomed)
        await until(lambda: len(a.consumer.assignment()) == 9, "the topic again")
        for number in range(3):
            assert await a.consumer.position(partition(doomed, number)) == 0
        await a.stops_to_read()
        await asyncio.to_thread(delete_topic, kafka_cluster, doomed)
        await asyncio.wait_for(a.consumer.stop(), 10)
    assert (a.error, b.error) == (None, None)


async def test_a_second_consumer_starts_without_partitions_and_seeks_as_its_listener_hears_of_them(
    topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    seeks = defined(*listings(PAGE))["FromTheEnd"]

    with Load(kafka_cluster, topic, rate=200) as load:
        wait_for("records in each partition", lambda: len(load.produced) == 6, 60)
    a, b = members.member("a"), members.member("b")
    b.hooks["assigned"] = lambda: seeks(b.consumer).on_partitions_assigned(b.consumer.assignment())
    async with reading(a):
        await members.settled({"a": 6})
        async with b:
            assert b.has == set()
            with pytest.raises(IllegalStateError, match="No partitions are assigned: wait for"):
                await b.consumer.seek_to_end()
            await members.settled({"a": 3, "b": 3})
            ends = await b.consumer.end_offsets(b.consumer.assignment())
            assert min(ends.values()) > 0
            assert {one: await b.consumer.position(one) for one in ends} == ends


async def test_lists_and_patterns_change_without_revoking_what_stays(kafka_cluster: Cluster) -> None:
    one = create_topic(kafka_cluster, 2)
    two = create_topic(kafka_cluster, 2, name=f"{one}-two")
    members = Members.on(kafka_cluster, one)
    a = members.member("a")
    async with reading(a):
        await members.settled({"a": 2})
        a.consumer.subscribe([one, two], listener=a)
        await until(lambda: len(a.consumer.assignment()) == 4, "both topics")
        assert a.kinds("revoked") == []
        a.consumer.subscribe([two], listener=a)
        await until(lambda: len(a.consumer.assignment()) == 2, "one topic")
        assert [len(told) for told in a.kinds("revoked")] == [2]
        assert {tp.topic for tp in a.consumer.assignment()} == {two}
        a.consumer.unsubscribe()
        assert a.consumer.assignment() == set()
        a.consumer.subscribe(pattern=f"^{one}.*", listener=a)
        await until(lambda: len(a.consumer.assignment()) == 4, "all that match")
        create_topic(kafka_cluster, 1, name=f"{one}-three")
        await until(lambda: len(a.consumer.assignment()) == 5, "a new topic")
        assert [len(told) for told in a.kinds("revoked")] == [2, 2]  # by unsubscribing, too
        assert a.kinds("lost") == []


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.slow)])
async def test_many_consumers_of_one_process_share_a_topic_and_leave_nothing_behind(
    count: int, kafka_cluster: Cluster
) -> None:
    members = Members.on(kafka_cluster, create_topic(kafka_cluster, 2 * count))
    many = [members.member(f"m{number}", heartbeat_interval_ms=3000) for number in range(count)]
    await asyncio.gather(*(member.consumer.start() for member in many))
    for member in many:
        member.starts_to_read()
    await members.settled(dict.fromkeys(members.made, 2))
    await asyncio.gather(*(member.__aexit__() for member in many))
    assert {member.error for member in many} == {None}


async def test_the_listings_of_the_page_run(kafka_cluster: Cluster) -> None:
    admin = admin_client(kafka_cluster)
    if "orders" not in existing_partitions(admin):
        create_topic(kafka_cluster, 6, name="orders")
    names = defined(*listings(PAGE))
    servers = ",".join(kafka_cluster.bootstrap_servers)

    with Load(kafka_cluster, "orders", rate=50):
        services = [names["service"](servers), names["cooperative_service"](servers)]
        tasks = [asyncio.create_task(service) for service in services]
        try:
            for group_id in ("billing", "shipping"):
                await until(
                    lambda name=group_id: any(describe(admin, name).assignments.values()),  # type: ignore[misc]
                    f"{group_id} to have partitions",
                )
            assert [task.done() for task in tasks] == [False, False]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


# Beside others


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


@pytest.mark.parametrize(("kind", "assignor"), KINDS)
async def test_a_topic_that_does_not_exist_holds_up_nobody_and_is_assigned_when_it_does(
    kind: Any, assignor: Any, topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    later = f"{topic}-later"
    a = members.member(
        "a", kind, partition_assignment_strategy=strategies(assignor), rebalance_timeout_ms=12_000
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


@pytest.mark.parametrize(("kind", "assignor"), KINDS)
async def test_members_get_what_has_a_replica_in_their_rack(
    kind: Any, assignor: Any, three_brokers: Cluster
) -> None:
    topic = create_topic(three_brokers, 9)
    members = Members.on(three_brokers, topic)
    made = [
        members.member(name, kind, partition_assignment_strategy=strategies(assignor(rack=f"rack-{number}")))
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


@pytest.mark.parametrize(("kind", "assignor"), KINDS)
async def test_a_second_consumer_with_the_same_strategy_object_is_refused(
    kind: Any, assignor: Any, topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    with Load(kafka_cluster, topic, rate=200):
        shared = assignor()
        a, b = (members.member(name, kind, partition_assignment_strategy=strategies(shared)) for name in "ab")
        async with reading(a):
            with pytest.raises(KafkaError, match=f"this {assignor.__name__} belongs to another consumer"):
                await b.__aenter__()
            await b.consumer.stop()
            assert a.has == frozenset(range(6))
            await until(lambda: a.count > 0, "records")
