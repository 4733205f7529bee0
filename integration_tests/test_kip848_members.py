"""Members of KIP-848 groups, whose broker assigns: they join, crash and leave as those of classic groups."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jpype
import pytest

from integration_tests.support.commands import run_command
from integration_tests.support.scene import live_through, sizes
from integration_tests.support.services import commits_last_with_librdkafka
from kafka_assignors.testing import ConsumerGroup, GroupNotStableError
from kafka_assignors.testing._groups.clients import java

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration_tests.support.scene import Scene
    from kafka_assignors.testing import Seat

    MakeGroup = Callable[..., ConsumerGroup]

BY_EPOCHS = {"group_protocol": "consumer"}
CLIENTS = ["confluent-kafka", "java"]


@pytest.mark.parametrize("client", CLIENTS)
def test_members_join_crash_freeze_leave_and_come_back(client: str, scene: Scene) -> None:
    group = scene.group(client=client, settings=BY_EPOCHS)
    with scene.load() as load:
        without_b, without_a = live_through(group, load)
    assert group.timeline.double_assigned() == {}
    # The session timeout is the broker's, and no client says how long it is.
    timeout, without = "the broker's group.consumer.session.timeout.ms", r"generation \d+, without it, was"
    for how, since, until in (
        (rf"b ended at .* for {timeout}", None, without_b),
        (rf"a was frozen at [\d.]+ s, longer than {timeout}", without_b, without_a),
    ):
        # In these times alone: on a laden machine a member that starts may take longer than either.
        with pytest.raises(AssertionError, match=f"{how}; {without}"):
            group.timeline.assert_paused_at_most(1500, by="records", since=since, until=until)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_epoch_is_a_generation_that_all_members_come_to(client: str, scene: Scene) -> None:
    group = scene.group(client=client, settings=BY_EPOCHS, members=1)
    before = group.wait_stable()
    group.join("b")
    after = group.wait_stable(expect={"m1": 3, "b": 3})
    assert after.protocol == "uniform"
    assert after.generation > before.generation
    last = group.timeline.rebalances[-1]
    assert last.generation == after.generation
    assert last.assignments == after.assignments
    # Others have a partition when its owner has let go of it, and not before.
    group.timeline.assert_never_owned_twice()
    assert {one.source for one in group.timeline.moves(after=before.generation)} == {"m1"}
    group.timeline.assert_no_rebalance(after=after.generation)


def test_a_classic_group_comes_over_by_a_rolling_restart(scene: Scene) -> None:
    group = scene.group(["range"], client="confluent-kafka", members=2)
    assert group.wait_stable().protocol == "range"
    with scene.load(50) as load:
        for name in ("m1", "m2"):
            group.members[name].leave()
            group.join(f"{name}-new", assignors=["uniform"], settings=BY_EPOCHS)
            assert sorted(sizes(group).values()) == [3, 3]
        load.stop()
        group.wait_consumed(load)
    group.timeline.assert_all_consumed(load.produced)


def test_an_application_s_own_consumer_is_followed_by_epochs(scene: Scene) -> None:
    group = scene.group(client=commits_last_with_librdkafka, settings=BY_EPOCHS, members=1)
    group.join("b")
    assert sizes(group) == {"m1": 3, "b": 3}


def takes_shares(seat: Seat) -> None:
    """A service on Java's share consumer (KIP-932), which the kit does not follow."""
    java.start_java()
    properties = {
        "bootstrap.servers": seat.librdkafka()["bootstrap.servers"],
        "group.id": seat.group_id,
        "key.deserializer": java._DESERIALIZER,
        "value.deserializer": java._DESERIALIZER,
    }
    consumer_class = jpype.JClass("org.apache.kafka.clients.consumer.KafkaShareConsumer")
    consumer = consumer_class(jpype.java.util.HashMap(properties))
    consumer.subscribe(jpype.java.util.ArrayList([*seat.topics]))
    while not seat.leaving:
        consumer.poll(jpype.java.time.Duration.ofMillis(200))
    consumer.close()


def test_a_share_group_is_told_apart(scene: Scene) -> None:
    sharing = scene.group(client=takes_shares, group_id="shared")
    sharing.join()
    no_group = "shared is no consumer group, but one of another kind, as a share group"
    sharing.wait_for(lambda: sharing.describe().error == no_group, what="the share group")
    explained = run_command(scene.cluster, "group", "explain", "shared")
    assert (explained.returncode, explained.stdout) == (2, ""), explained.stderr
    assert "group 'shared' is a share group: its members are not read" in explained.stderr
    (listed,) = json.loads(run_command(scene.cluster, "group", "list", "shared", "--json").stdout)
    assert [listed[name] for name in ("type", "state", "members", "lag")] == ["share", "Stable", None, None]
    assert [(one["kind"], one["severity"]) for one in listed["problems"]] == [("not described", "note")]
    group = scene.group(client="confluent-kafka", group_id="shared")
    group.join()
    with pytest.raises(GroupNotStableError) as caught:
        group.wait_stable(timeout=5)
    assert no_group in str(caught.value)
