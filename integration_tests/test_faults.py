"""A cluster of three: brokers are killed, stopped and frozen, coordinators move, the network fails."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaException
from kafka import KafkaConsumer, TopicPartition

from integration_tests.support.scene import more
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors.testing import (
    Cluster,
    ConsumerGroup,
    Load,
    _load,
    create_topic,
    kafka_cluster as started,
)
from kafka_assignors.testing._brokers import coordinator
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError
from kafka_assignors.testing._brokers.metadata import fault_of_coordinator
from tests.support.scale import longer

pytestmark = pytest.mark.slow

PATIENCE = 60.0  # seconds; a killed broker is missed after 3, but the machine may be laden


@pytest.fixture(scope="module")
def kafka_cluster(disturbed_brokers: Cluster) -> Cluster:
    """Topics and groups of this module are on it."""
    return disturbed_brokers


@pytest.fixture(autouse=True)
def _whole_again(kafka_cluster: Cluster) -> Iterator[None]:
    """Whatever a test did to the brokers, the next one finds them all."""
    yield
    kafka_cluster.mend()
    kafka_cluster.wait_complete()


def produced(cluster: Cluster, topic: str, count: int) -> Mapping[TopicPartition, int]:
    """Put at least so many records into a topic; how many each partition has."""
    with Load(cluster, topic, rate=2000) as load:
        wait_for("records", more(load, count), PATIENCE)
        return load.stop()


def end_offsets(cluster: Cluster, partitions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    client: Any = KafkaConsumer(**cluster.access.kafka_python())
    with contextlib.closing(client) as consumer:
        return dict(consumer.end_offsets([*partitions]))


# Brokers ----------------------------------------------------------------------------------------------


def test_brokers_all_killed_come_back_with_their_data_at_their_addresses(
    kafka_cluster: Cluster, topic: str
) -> None:
    before = produced(kafka_cluster, topic, 600)  # each broker has two of the six partitions
    assert len(before) == 6
    with contextlib.ExitStack() as killed:
        for broker in kafka_cluster.brokers:
            killed.enter_context(broker.kill())
        assert kafka_cluster.death() is None
    kafka_cluster.wait_complete()
    assert end_offsets(kafka_cluster, before) == before


def test_nothing_is_lost_when_the_coordinators_machine_breaks_down(
    kafka_cluster: Cluster, topic_factory: Callable[..., str], consumer_group: Callable[..., ConsumerGroup]
) -> None:
    topic = topic_factory(6, replication=3)
    group = consumer_group(topic, [CooperativeStickyAssignor])
    with Load(kafka_cluster, topic, rate=200) as load:
        for name in "abc":
            group.join(name)
        group.wait_stable()
        coordinator = kafka_cluster.coordinator_of(group.group_id)
        kafka_cluster.broker(coordinator).kill()
        kafka_cluster.wait_complete()
        assert kafka_cluster.death() is None
        assert kafka_cluster.coordinator_of(group.group_id) != coordinator
        group.wait_stable(timeout=longer(PATIENCE))
        group.wait_for(more(load, 100), what="the load to go on")
        kafka_cluster.broker(coordinator).start()
        kafka_cluster.wait_complete()
        acknowledged = load.stop()
    group.wait_consumed(load, timeout=longer(PATIENCE))
    assert group.timeline.missing(acknowledged) == {}
    assert group.timeline.double_assigned() == {}
    # Neither lost nor doubled on the brokers.
    assert end_offsets(kafka_cluster, acknowledged) == acknowledged


def test_a_frozen_broker_is_replaced_and_taken_back(
    kafka_cluster: Cluster, topic_factory: Callable[..., str]
) -> None:
    topic = topic_factory(6, replication=3)
    broker = kafka_cluster.broker(1)
    with Load(kafka_cluster, topic, rate=200) as load:
        broker.freeze()
        kafka_cluster.wait_complete()  # the two others: it leads nothing any more
        assert kafka_cluster.death() is None
        broker.thaw()
        kafka_cluster.wait_complete()
        acknowledged = load.stop()
    assert len(acknowledged) == 6
    assert end_offsets(kafka_cluster, acknowledged) == acknowledged


def test_a_fault_of_the_network_that_was_left_is_named_and_healed(kafka_cluster: Cluster) -> None:
    kafka_cluster.network.drop(broker=3)
    (wrong,) = kafka_cluster.mend()
    assert wrong.startswith("its network has a fault: ")
    assert kafka_cluster.mend() == []


def test_a_topic_that_cannot_be_made_names_the_brokers_that_are_down(kafka_cluster: Cluster) -> None:
    with (
        kafka_cluster.broker(2).kill(),
        kafka_cluster.broker(3).kill(),
        pytest.raises((KafkaException, TimeoutError)) as caught,
    ):
        create_topic(kafka_cluster, 1, timeout=5)
    assert caught.value.__notes__ == ["of the cluster: node 2 is down; node 3 is down"]
    assert kafka_cluster.wrong() == []


# Coordinators -----------------------------------------------------------------------------------------


def test_a_stable_group_goes_on_when_its_coordinator_moves(
    kafka_cluster: Cluster, topic_factory: Callable[..., str], consumer_group: Callable[..., ConsumerGroup]
) -> None:
    topic = topic_factory(6, replication=3)
    group = consumer_group(topic, [RangeAssignor])
    with Load(kafka_cluster, topic, rate=200) as load:
        members = [group.join("a"), group.join("b")]
        before = group.wait_stable()
        first = kafka_cluster.coordinator_of(group.group_id)
        second = kafka_cluster.move_coordinator(group.group_id)
        assert second != first
        assert kafka_cluster.coordinator_of(group.group_id) == second
        third = ({1, 2, 3} - {first, second}).pop()
        assert kafka_cluster.move_coordinator(group.group_id, to=third) == third
        assert kafka_cluster.coordinator_of(group.group_id) == third
        # The new coordinator knows them: it takes their commits, and lets a third one in.
        for member in members:
            member.commit()
            assert (member.generation, member.assignment) == (
                before.generation,
                before.assignments[member.name],
            )
        members.append(group.join("c"))
        group.wait_for(
            lambda: all(
                member.generation > before.generation and len(member.assignment) == 2 for member in members
            ),
            timeout=PATIENCE,
            what="the third member",
        )
        load.stop()
    group.wait_consumed(load, timeout=longer(PATIENCE))
    assert group.timeline.double_assigned() == {}


def test_a_coordinator_that_has_it_already_keeps_the_group(kafka_cluster: Cluster) -> None:
    node = kafka_cluster.coordinator_of("somebody")
    assert kafka_cluster.move_coordinator("somebody", to=node) == node
    assert kafka_cluster.coordinator_of("somebody") == node


def test_a_broker_says_why_it_does_not_answer_for_a_group(kafka_cluster: Cluster) -> None:
    node = kafka_cluster.move_coordinator("somebody")

    def said() -> dict[bool, set[str]]:
        faults: dict[bool, set[str]] = {True: set(), False: set()}
        for broker in kafka_cluster.brokers:
            faults[broker.node_id == node].add(fault_of_coordinator(broker.bootstrap, "somebody"))
        return faults

    # Right after the move it may be loading its groups.
    wait_for("the coordinator to answer", lambda: said() == {True: {""}, False: {"NotCoordinatorError"}}, 30)


def test_a_coordinator_finishes_loading_before_it_moves(
    kafka_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kafka_cluster.coordinator_of("somebody")
    where = []

    def loads(_: str, group_id: str) -> str:
        where.append(kafka_cluster.coordinator_of(group_id))
        return "CoordinatorLoadInProgressError" if len(where) < 3 else ""

    monkeypatch.setattr(coordinator, "fault_of_coordinator", loads)
    assert kafka_cluster.move_coordinator("somebody") != first
    assert where == [first] * 3
    monkeypatch.setattr(coordinator, "fault_of_coordinator", lambda *_: "CoordinatorLoadInProgressError")
    with pytest.raises(ClusterUnavailableError, match=r"to load its groups:\n.*LoadInProgress"):
        kafka_cluster.move_coordinator("somebody", timeout=0.2)


def test_the_coordinator_moves_on_a_given_cluster_too_but_its_brokers_are_left_alone(
    kafka_cluster: Cluster,
) -> None:
    with started(3, bootstrap=kafka_cluster.bootstrap_servers[0]) as given:
        given.wait_complete()
        before = given.coordinator_of("somebody")
        after = given.move_coordinator("somebody")
        assert after != before
        assert kafka_cluster.coordinator_of("somebody") == after
        with pytest.raises(ClusterUnavailableError, match="is given, so it cannot be stopped or killed"):
            given.broker(1)


# Load -------------------------------------------------------------------------------------------------


def test_records_are_counted_once_that_a_load_sends_again(kafka_cluster: Cluster, topic: str) -> None:
    network = kafka_cluster.network
    with Load(network.access, topic, rate=500) as load:
        wait_for("records", lambda: len(load.produced) == 6, PATIENCE)
        network.half_open(direction="to_client")  # brokers have what comes now, but cannot acknowledge it
        wait_for(
            "records to be unacknowledged",
            lambda: sum(end_offsets(kafka_cluster, load.produced).values()) > sum(load.produced.values()),
            PATIENCE,
        )
        network.drop()  # the acknowledgements are lost
        network.heal()
        wait_for("the load to go on", more(load, 500), PATIENCE)
        counted = load.stop()
    assert end_offsets(kafka_cluster, counted) == counted


def test_a_load_says_how_much_the_brokers_did_not_acknowledge(
    kafka_cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_assignors.testing._load.DELIVERY_SECONDS", 2.0)
    load = Load(kafka_cluster.network.access, topic, rate=500)
    with contextlib.ExitStack() as stack:
        stack.enter_context(load)
        wait_for("records", lambda: load.produced, PATIENCE)
        kafka_cluster.network.half_open()
        # More than acknowledgements on their way.
        wait_for("records to wait", lambda: len(load._producer) > 100, PATIENCE)
        said = rf"load on {topic}: \d+ records were not acknowledged besides \d+ that were; .*timed out"
        with pytest.raises(RuntimeError, match=said):
            stack.close()
    assert sum(load.produced.values()) > 0


def test_a_load_has_a_backlog_on_several_topics_with_keys_and_values_of_ones_own(
    kafka_cluster: Cluster,
) -> None:
    topics = [create_topic(kafka_cluster, 2), create_topic(kafka_cluster, 3)]
    load = Load(
        kafka_cluster,
        topics,
        rate=0.001,
        backlog=50,
        key=lambda number: b"one key" if number % 2 else b"another",
        value=lambda number: b"poison" if number == 7 else b"%d" % number,
    )
    consumer: Any = KafkaConsumer(
        **kafka_cluster.access.kafka_python(), auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    with load, contextlib.closing(consumer):
        assert sum(load.produced.values()) == 50
        assert {one.topic for one in load.produced} == {*topics}
        assert end_offsets(kafka_cluster, load.produced) == load.produced
        consumer.assign(list(load.produced))
        records = [next(consumer) for _ in range(50)]
    assert sorted(record.value for record in records) == sorted(
        [b"poison", *(b"%d" % number for number in range(50) if number != 7)]
    )
    partitions = {(record.topic, record.key): record.partition for record in records}
    assert len(partitions) == 4
    assert all(partitions[record.topic, record.key] == record.partition for record in records)


def test_a_backlog_that_the_brokers_do_not_take_is_an_error(
    kafka_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_load, "DELIVERY_SECONDS", 2)
    with (
        pytest.raises(RuntimeError, match="no broker shows such a topic"),
        Load(kafka_cluster, "unknown", backlog=1),
    ):
        pytest.fail("it was entered")


def test_a_backlog_that_takes_too_long_is_an_error(
    kafka_cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Load(kafka_cluster, topic, backlog=200_000)
    monkeypatch.setattr(load._has_backlog, "wait", lambda _: None)  # as if the time were over
    with pytest.raises(RuntimeError, match=r"the brokers had \d+ of a backlog of 200000 records after"), load:
        pytest.fail("it was entered")


def test_a_load_without_topic_or_brokers_says_so(kafka_cluster: Cluster) -> None:
    said = "load on unknown ended by itself: .*no broker "
    with pytest.raises(RuntimeError, match=f"{said}shows such a topic"), Load(kafka_cluster, "unknown"):
        pass
    with pytest.raises(RuntimeError, match=f"{said}answers"), Load("127.0.0.1:1", "unknown"):
        pass
