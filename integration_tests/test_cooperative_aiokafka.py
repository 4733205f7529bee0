"""Groups of aiokafka's consumers with our strategies: our cooperative consumer, and aiokafka's own."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.errors import IllegalStateError

from integration_tests.support.aio_members import Member, Members, expelled, joins, partition, reading, until
from integration_tests.support.patience import QUICK
from integration_tests.support.waiting import wait_for
from kafka_assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
)
from kafka_assignors._timelines.events import AssignmentReceived, Lost, Revoked
from kafka_assignors.aio import FencedInstanceIdError
from kafka_assignors.testing import Cluster, ConsumerGroup, Load, create_topic, delete_topic, grow_topic
from kafka_assignors.testing._groups.stability import describe
from kafka_assignors.testing._topics import admin_client, existing_partitions
from tests.support.pages import defined, listings

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeGroup = Callable[..., ConsumerGroup]

pytestmark = pytest.mark.usefixtures("nothing_left")

PAGE = "docs/aiokafka.md"


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


EAGER_AND_COOPERATIVE = [
    pytest.param([CooperativeStickyAssignor, RangeAssignor], id="eager"),
    pytest.param([CooperativeStickyAssignor], id="cooperative"),
]

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
        assert a.refused == []
        assert a.kinds("lost") == slow.kinds("lost") == []


@pytest.mark.parametrize("strategy", EAGER_AND_COOPERATIVE)
async def test_consumers_stop_at_once_while_others_are_slow_to_join(
    strategy: list[Any], proxied_broker: Cluster
) -> None:
    topic = create_topic(proxied_broker, 6)
    members = Members.on(proxied_broker, topic, proxied=True)

    def made(name: str) -> Member:
        return members.member(name, partition_assignment_strategy=strategy, rebalance_timeout_ms=60_000)

    a, slow, late = made("a"), made("slow"), made("late")
    async with reading(a, slow):
        await members.settled({"a": 3, "slow": 3})
        cut = proxied_broker.network.half_open(client="slow")
        starting = asyncio.create_task(late.consumer.start())
        await until(lambda: a.joining and late.joining, "both to join")
        starting.cancel()
        for member in (a, late):
            await asyncio.wait_for(member.__aexit__(), 20)
        cut.heal()
        # They have left: nobody waits for their sessions to end, of 30 s.
        await asyncio.wait_for(members.settled({"slow": 6}), 20)


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


async def test_commits_in_listeners_succeed_and_nothing_new_is_delivered_before_its_listener_is_done(
    topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    with Load(kafka_cluster, topic, rate=200):
        a, b = members.member("a"), members.member("b")
        committed: list[int] = []
        seen: list[int] = []

        async def commit() -> None:
            await a.consumer.commit()
            committed.append(a.generation)
            await until(
                lambda: bool(b.told), "the first round of the newcomer"
            )  # else the second overtakes it

        async def look() -> None:
            for number in b.told[-1].partitions:
                await b.consumer.position(partition(topic, number))
            await asyncio.sleep(0.5)
            seen.append(b.count)

        a.hooks["revoked"] = commit
        b.hooks["assigned"] = look
        async with reading(a):
            await members.settled({"a": 6})
            await until(lambda: len(a.read) == 6, "records of all partitions")
            async with reading(b):
                await members.settled({"a": 3, "b": 3})
                await until(lambda: b.count > 0, "records of the new ones")
                assert len(committed) == 1
                assert seen == [0, 0]  # in the first round it got nothing
                # What a had read and committed, b does not get again.
                for number in b.read.keys() & a.read.keys():
                    assert b.read[number][0] > a.read[number][-1]
        assert len(committed) == 2  # as it stops, too


@pytest.mark.parametrize("strategy", EAGER_AND_COOPERATIVE)
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


@pytest.mark.parametrize("strategy", EAGER_AND_COOPERATIVE)
async def test_whoever_waits_for_a_record_of_a_partition_hears_that_it_has_gone(
    strategy: list[Any], topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    a, b = (members.member(name, partition_assignment_strategy=strategy) for name in "ab")
    async with a:
        await members.settled({"a": 6})
        partitions = [partition(topic, number) for number in range(6)]
        waiting = {one: asyncio.create_task(a.consumer.getone(one)) for one in partitions}
        async with reading(b):
            await members.settled({"a": 3, "b": 3})
            gone = set(partitions) - a.consumer.assignment()
            await until(lambda: all(waiting[one].done() for one in gone), "who waits to hear")
            for one in gone:
                with pytest.raises(IllegalStateError, match=r"Partitions \[.* are not assigned"):
                    waiting[one].result()
                with pytest.raises(IllegalStateError):
                    await a.consumer.getone(one)
                assert await a.consumer.getmany(one, timeout_ms=10) == {}
            with Load(kafka_cluster, topic, rate=200):
                for one in a.consumer.assignment():
                    assert (await waiting[one]).partition == one.partition


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


async def test_a_member_that_was_removed_hears_once_that_it_lost_and_comes_back(
    topic: str, kafka_cluster: Cluster, members: Members
) -> None:
    with Load(kafka_cluster, topic, rate=200):
        a, b = members.member("a"), members.member("b")
        async with reading(a, b):
            await members.settled({"a": 3, "b": 3})
            before, count = b.has, {}

            async def counted() -> None:
                count[b.told[-1].kind] = b.count

            b.hooks = {"lost": counted, "assigned": counted}
            await asyncio.to_thread(expelled, kafka_cluster, members, b)
            await until(lambda: bool(b.kinds("lost")), "b to hear")
            await members.settled({"a": 3, "b": 3})
            assert b.kinds("lost") == [before]
            await until(lambda: "assigned" in count, "the listener to hear")
            # Nothing came between the loss and the next assignment.
            assert count["lost"] == count["assigned"]
            read = b.count
            await until(lambda: b.count > read, "records again")
        assert a.kinds("lost") == []


async def test_a_static_member_comes_back_without_a_rebalance_and_a_second_one_ends_the_first(
    members: Members,
) -> None:
    a = members.member("a", group_instance_id="one")
    b = members.member("b", group_instance_id="two")
    async with reading(a):
        async with reading(b):
            await members.settled({"a": 3, "b": 3})
            generation, had = a.generation, b.has
        again = members.member("again", group_instance_id="two")
        async with reading(again):
            await members.settled({"a": 3, "again": 3})
            assert (a.generation, again.has) == (generation, had)
            assert len(a.kinds("revoked")) == 1
            usurper = members.member("usurper", group_instance_id="two")
            async with reading(usurper):
                await until(lambda: again.error is not None, "the first holder's error")
                assert isinstance(again.error, FencedInstanceIdError)
                assert "another consumer has joined" in str(again.error)
                assert "as 'two': give each consumer a group_instance_id of its own" in str(again.error)
                assert again.kinds("lost") == [had]
                assert usurper.has == had


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


# aiokafka's own consumer


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
