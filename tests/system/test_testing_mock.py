"""Confluent-kafka's clients on the mock cluster: what they do when it does as it is told."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, libversion
from confluent_kafka.admin import AdminClient

from kafka_assignors.testing import MockCluster, MockRequest
from kafka_assignors.testing._brokers.librdkafka import function
from kafka_assignors.testing._topics import LOG_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_assignors.testing import MockApi

PATIENCE = 60.0  # seconds; a laden machine needs a few

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
pytestmark = pytest.mark.skipif(libversion()[1] < 0x02100000, reason="needs confluent-kafka 2.16")


class Member:
    """A consumer in a group, and what came to it. Settings have underscores for dots."""

    def __init__(self, mock: MockCluster, topic: str = "t", **settings: Any) -> None:
        self.records: list[bytes] = []
        self.errors: list[str] = []
        self.changes: list[tuple[str, list[int]]] = []
        self.consumer = Consumer(
            {
                **mock.access.librdkafka(),
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "retry.backoff.ms": 20,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": LOG_LEVEL,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.consumer.subscribe(
            [topic],
            on_assign=lambda _, partitions: self._note("assigned", partitions),
            on_revoke=lambda _, partitions: self._note("revoked", partitions),
            on_lost=lambda _, partitions: self._note("lost", partitions),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    @property
    def owned(self) -> set[int]:
        return {partition.partition for partition in self.consumer.assignment()}

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is None:
            return
        if (error := message.error()) is None:
            self.records.append(message.value() or b"")
        else:
            self.errors.append(error.name())

    def _note(self, change: str, partitions: list[Any]) -> None:
        self.changes.append((change, sorted(partition.partition for partition in partitions)))


def classic(mock: MockCluster, topic: str = "t", **settings: Any) -> Member:
    """A member of a group of the classic protocol, in which the consumer's process leads."""
    return Member(mock, topic, **{"session_timeout_ms": 6000, "heartbeat_interval_ms": 50, **settings})


class Sender:
    """A producer, and what became of its records. Settings have underscores for dots."""

    def __init__(self, mock: MockCluster, **settings: Any) -> None:
        self.delivered: list[bytes] = []
        self.refused: list[str] = []
        self.producer = Producer(
            {
                **mock.access.librdkafka(),
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 50,
                "log_level": LOG_LEVEL,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    def send(self, value: bytes, partition: int = 0, topic: str = "t") -> None:
        self.producer.produce(topic, value, partition=partition, on_delivery=self._done)

    def send_and_wait(self, value: bytes, partition: int = 0, topic: str = "t") -> float:
        """Seconds until the record was delivered or refused."""
        began = time.monotonic()
        self.send(value, partition, topic)
        assert self.producer.flush(PATIENCE) == 0
        return time.monotonic() - began

    def poll(self) -> None:
        self.producer.poll(0.02)

    def _done(self, error: Any, record: Any) -> None:
        if error is None:
            self.delivered.append(record.value())
        else:
            self.refused.append(error.name())


def until(condition: Callable[[], object], *clients: Member | Sender) -> None:
    """Poll the clients until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        seen = [vars(client) for client in clients]
        assert time.monotonic() < deadline, f"it did not come about in {PATIENCE} s: {seen}"
        for client in clients:
            client.poll()
        if not clients:
            time.sleep(0.01)


def admin(mock: MockCluster) -> AdminClient:
    return AdminClient({**mock.access.librdkafka(), "log_level": LOG_LEVEL})


def leaders(mock: MockCluster, topic: str) -> list[int]:
    partitions = admin(mock).list_topics(topic, timeout=PATIENCE).topics[topic].partitions
    return [partitions[number].leader for number in sorted(partitions)]


# Topics and brokers -----------------------------------------------------------------------------------


def test_topics_have_the_partitions_asked_for_with_leaders_that_go_round() -> None:
    with MockCluster(3, topics={"t": 5, "one": 1}) as mock:
        mock.create_topic("everywhere", 4, replication=3)
        assert len(mock.bootstrap_servers) == 3
        assert leaders(mock, "t") == [1, 2, 3, 1, 2]
        assert leaders(mock, "one") == [1]
        assert leaders(mock, "everywhere") == [1, 2, 3, 1]


@pytest.mark.parametrize("brokers", [1, 2, 3, 4])
def test_leaders_are_replicas(brokers: int) -> None:
    with MockCluster(brokers) as mock:
        for replication in range(1, brokers + 1):
            mock.create_topic(f"t{replication}", 9, replication=replication)
        topics = admin(mock).list_topics(timeout=PATIENCE).topics
        for replication in range(1, brokers + 1):
            for partition in topics[f"t{replication}"].partitions.values():
                assert len(set(partition.replicas)) == replication
                assert partition.leader in partition.replicas


def test_a_group_consumes_what_is_produced_to_each_partition() -> None:
    with MockCluster(3, topics={"t": 7}) as mock:
        sender = Sender(mock)
        for number in range(7):
            sender.send_and_wait(b"%d" % number, number)
        with classic(mock) as member:
            until(lambda: len(member.records) == 7, member)
            assert sorted(member.records) == [b"0", b"1", b"2", b"3", b"4", b"5", b"6"]
            assert member.changes == [("assigned", [0, 1, 2, 3, 4, 5, 6])]
            assert member.errors == []


def test_a_topic_is_made_once() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        with pytest.raises(KafkaException) as caught:
            mock.create_topic("t", 2)
        error = caught.value.args[0]
        assert error.code() == KafkaError.TOPIC_ALREADY_EXISTS
        assert error.str().startswith("rd_kafka_mock_topic_create(b't', 2, 1): ")


def test_racks_are_shown_to_clients_and_can_be_changed() -> None:
    with MockCluster(2, racks=["a", "b"]) as mock:
        client = admin(mock)  # must outlive the answer

        def racks() -> dict[int, str]:
            nodes = client.describe_cluster(request_timeout=PATIENCE).result().nodes
            return {node.id: node.rack for node in nodes}

        assert racks() == {1: "a", 2: "b"}
        mock.set_rack(2, "c")
        assert racks() == {1: "a", 2: "c"}


def test_an_assignor_that_knows_racks_assigns_by_them() -> None:
    with contextlib.ExitStack() as stack:
        racks = ["a", "b", "c"]
        mock = stack.enter_context(MockCluster(3, racks=racks, topics={"t": 6}))
        members = {
            rack: stack.enter_context(
                classic(
                    mock,
                    client_rack=rack,
                    partition_assignment_strategy="range",
                    session_timeout_ms=1500,  # how soon a rebalance ends
                )
            )
            for rack in reversed(racks)
        }
        until(lambda: all(len(member.owned) == 2 for member in members.values()), *members.values())
        assert {rack: member.owned for rack, member in members.items()} == {
            "a": {0, 3},
            "b": {1, 4},
            "c": {2, 5},
        }


def test_consumers_fetch_from_a_follower() -> None:
    with MockCluster(3, topics={"t": 1}) as mock, classic(mock) as member:
        mock.set_follower("t", 0, 3)
        sender = Sender(mock)
        sender.send_and_wait(b"1")
        until(lambda: member.records == [b"1"], member)
        mock.clear_requests()
        sender.send_and_wait(b"2")
        until(lambda: member.records == [b"1", b"2"], member)
        assert {request.broker for request in mock.requests("Produce")} == {1}
        assert {request.broker for request in mock.requests("Fetch")} == {3}


def test_without_a_follower_consumers_go_back_to_the_leader() -> None:
    with MockCluster(2, topics={"t": 1}) as mock, classic(mock) as member:
        mock.set_follower("t", 0, 2)
        until(lambda: mock.requests("Fetch", broker=2), member)
        mock.set_follower("t", 0, None)
        mock.clear_requests()
        until(lambda: mock.requests("Fetch", broker=1), member)
        Sender(mock).send_and_wait(b"1")
        until(lambda: member.records == [b"1"], member)


def test_a_leader_moves_with_its_records_and_clients_follow() -> None:
    with MockCluster(2, topics={"t": 1}) as mock, classic(mock) as member:
        sender = Sender(mock)
        sender.send_and_wait(b"1")
        until(lambda: member.records == [b"1"], member)
        mock.set_leader("t", 0, 2)
        sender.send_and_wait(b"2")
        until(lambda: member.records == [b"1", b"2"], member)
        assert leaders(mock, "t") == [2]
        assert mock.requests("Produce")[-1].broker == 2
        assert mock.requests("Fetch", broker=2) != []
        with classic(mock, group_id="later") as late:
            until(lambda: len(late.records) == 2, late)
            assert late.records == [b"1", b"2"]


def test_without_a_leader_records_wait() -> None:
    with MockCluster(2, topics={"t": 1}, leaderless=True) as mock, classic(mock) as member:
        sender = Sender(mock)
        sender.send_and_wait(b"1")
        until(lambda: member.records == [b"1"], member)
        mock.set_leader("t", 0, None)
        assert leaders(mock, "t") == [-1]
        sender.send(b"2")
        mock.clear_requests()
        until(lambda: len(mock.requests("Metadata")) >= 5, member, sender)
        assert (sender.delivered, sender.refused, member.records) == ([b"1"], [], [b"1"])
        mock.set_leader("t", 0, 2)
        until(lambda: len(member.records) == 2, member, sender)
        assert (sender.delivered, member.records) == ([b"1", b"2"], [b"1", b"2"])


def test_a_broker_that_is_down_gets_no_requests_until_it_is_up() -> None:
    with MockCluster(2, topics={"t": 2}) as mock:
        sender = Sender(mock)
        sender.send_and_wait(b"before", 1)
        mock.set_down(2)
        mock.clear_requests()
        sender.send(b"down", 1)
        sender.send(b"elsewhere", 0)
        until(lambda: b"elsewhere" in sender.delivered, sender)
        assert sender.delivered == [b"before", b"elsewhere"]
        assert mock.requests(broker=2) == []
        mock.set_up(2)
        until(lambda: len(sender.delivered) == 3, sender)
        assert sender.delivered == [b"before", b"elsewhere", b"down"]


def test_a_delayed_broker_answers_that_much_later() -> None:
    with MockCluster(2, topics={"t": 2}) as mock:
        sender = Sender(mock)
        sender.send_and_wait(b"connects", 1)
        mock.delay(2, 0.4)
        assert sender.send_and_wait(b"late", 1) >= 0.4
        mock.delay(2, 0)
        # Records of a connection are answered in turn, so nothing late is left before the next one.
        sender.send_and_wait(b"soon", 1)
        assert sender.delivered == [b"connects", b"late", b"soon"]


def test_an_api_can_be_taken_away() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        mock.set_api_version("InitProducerId", -1, -1)
        sender = Sender(mock, enable_idempotence=True)
        with pytest.raises(KafkaException) as caught:
            until(lambda: False, sender)
        assert caught.value.args[0].name() == "_UNSUPPORTED_FEATURE"
        assert mock.requests("InitProducerId") == []


# Errors -----------------------------------------------------------------------------------------------


def test_a_retriable_error_of_produce_is_retried() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        mock.inject("Produce", "NOT_ENOUGH_REPLICAS", KafkaError.NOT_ENOUGH_REPLICAS)
        sender = Sender(mock)
        sender.send_and_wait(b"1")
        assert (sender.delivered, sender.refused) == ([b"1"], [])
        assert len(mock.requests("Produce")) == 3


def test_other_errors_of_produce_are_told_in_turn() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        mock.inject("Produce", "MSG_SIZE_TOO_LARGE", "NO_ERROR", "RECORD_LIST_TOO_LARGE")
        sender = Sender(mock)
        for value in [b"1", b"2", b"3", b"4"]:
            sender.send_and_wait(value)
        assert sender.refused == ["MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]
        assert sender.delivered == [b"2", b"4"]


def test_cleared_errors_do_not_come() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        mock.inject("Produce", "MSG_SIZE_TOO_LARGE", "MSG_SIZE_TOO_LARGE")
        mock.inject("Fetch", "TOPIC_AUTHORIZATION_FAILED")
        mock.clear_errors("Produce")
        sender = Sender(mock)
        sender.send_and_wait(b"1")
        assert (sender.delivered, sender.refused) == ([b"1"], [])
        with classic(mock) as member:  # the error of another API is still there
            until(lambda: member.records == [b"1"], member)
            assert member.errors == ["TOPIC_AUTHORIZATION_FAILED"]


def test_a_connection_is_closed_on_request() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        sender = Sender(mock)
        sender.send_and_wait(b"1")
        mock.clear_requests()
        mock.inject("Produce", "_TRANSPORT")
        sender.send_and_wait(b"2")
        apis = [request.api for request in mock.requests() if request.api in {"Produce", "ApiVersions"}]
        assert apis[0] == apis[-1] == "Produce"
        assert "ApiVersions" in apis  # how a new connection begins
        assert (sender.delivered, sender.refused) == ([b"1", b"2"], [])


def test_an_error_of_fetch_is_told_and_fetching_goes_on() -> None:
    with MockCluster(1, topics={"t": 1}) as mock, classic(mock, enable_partition_eof=True) as member:
        # The client would take an error in the Fetch that first reaches the end for that end.
        until(lambda: member.errors == ["_PARTITION_EOF"], member)
        mock.inject("Fetch", "TOPIC_AUTHORIZATION_FAILED")
        until(lambda: len(member.errors) == 2, member)
        assert member.errors[1] == "TOPIC_AUTHORIZATION_FAILED"
        Sender(mock).send_and_wait(b"1")
        until(lambda: member.records == [b"1"], member)


def test_a_coordinator_that_is_none_any_more_is_looked_up_again_to_join() -> None:
    with MockCluster(3, topics={"t": 2}) as mock:
        mock.inject("JoinGroup", "NOT_COORDINATOR", "NOT_COORDINATOR")
        with classic(mock) as member:
            until(lambda: member.owned == {0, 1}, member)
            assert len(mock.requests("JoinGroup")) >= 3
            assert member.errors == []
            assert member.changes == [("assigned", [0, 1])]


def test_a_refusal_to_join_is_told() -> None:
    with MockCluster(1, topics={"t": 2}) as mock:
        mock.inject("JoinGroup", "GROUP_AUTHORIZATION_FAILED")
        with classic(mock) as member:
            until(lambda: member.owned == {0, 1}, member)
            assert member.errors == ["GROUP_AUTHORIZATION_FAILED"]


@pytest.mark.parametrize(
    ("error", "change"),
    [("REBALANCE_IN_PROGRESS", "revoked"), ("UNKNOWN_MEMBER_ID", "lost"), ("ILLEGAL_GENERATION", "lost")],
)
def test_an_error_of_a_heartbeat_makes_a_member_join_again(error: str, change: str) -> None:
    with MockCluster(1, topics={"t": 2}) as mock, classic(mock, session_timeout_ms=1500) as member:
        until(lambda: member.owned == {0, 1}, member)
        joins = len(mock.requests("JoinGroup"))
        mock.inject("Heartbeat", error)
        until(lambda: len(member.changes) == 3, member)
        assert member.changes == [("assigned", [0, 1]), (change, [0, 1]), ("assigned", [0, 1])]
        assert len(mock.requests("JoinGroup")) > joins


def test_errors_on_one_broker_are_not_those_of_another() -> None:
    with MockCluster(2, topics={"t": 2}) as mock:
        mock.inject_on(2, "Produce", "MSG_SIZE_TOO_LARGE")
        assert (mock.pending(1, "Produce"), mock.pending(2, "Produce")) == (0, 1)
        sender = Sender(mock)
        sender.send_and_wait(b"0", 0)
        assert (sender.delivered, sender.refused, mock.pending(2, "Produce")) == ([b"0"], [], 1)
        sender.send_and_wait(b"1", 1)
        assert (sender.delivered, sender.refused) == ([b"0"], ["MSG_SIZE_TOO_LARGE"])
        assert mock.pending(2, "Produce") == 0


def test_errors_can_be_late() -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        mock.inject_on(1, "Produce", ("NO_ERROR", 0.3), ("MSG_SIZE_TOO_LARGE", 0.4), "RECORD_LIST_TOO_LARGE")
        sender = Sender(mock)
        assert sender.send_and_wait(b"1") >= 0.3
        assert sender.send_and_wait(b"2") >= 0.4
        sender.send_and_wait(b"3")
        assert sender.delivered == [b"1"]
        assert sender.refused == ["MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"]


def test_errors_that_a_brokers_own_would_hide_are_refused() -> None:
    with MockCluster(2) as mock:
        mock.inject_on(2, "Fetch", "NO_ERROR")
        mock.inject("Produce", "NO_ERROR")
        with pytest.raises(
            ValueError, match=r"inject\('Fetch'\) would not reach brokers \[2\].*use inject_on"
        ):
            mock.inject("Fetch", "NOT_LEADER_FOR_PARTITION")


# Groups -----------------------------------------------------------------------------------------------


def test_two_members_share_and_one_that_leaves_leaves_all_to_the_other() -> None:
    with MockCluster(3, topics={"t": 6}) as mock, classic(mock, session_timeout_ms=1500) as stayer:
        with classic(mock, session_timeout_ms=1500) as leaver:
            until(lambda: (len(stayer.owned), len(leaver.owned)) == (3, 3), stayer, leaver)
            assert stayer.owned | leaver.owned == set(range(6))
        assert len(mock.requests("LeaveGroup")) == 1
        until(lambda: stayer.owned == set(range(6)), stayer)


def test_the_first_rebalance_waits_for_more_members() -> None:
    with MockCluster(1, topics={"t": 2}, rebalance_delay=0.4) as mock, classic(mock) as member:
        until(lambda: member.owned == {0, 1}, member)
        (joined,) = mock.requests("JoinGroup")
        (synced,) = mock.requests("SyncGroup")
        assert synced.time - joined.time >= 0.4


def test_a_group_survives_that_its_coordinator_was_down() -> None:
    with MockCluster(3, topics={"t": 3}) as mock:
        mock.set_coordinator("g", 2)
        with classic(mock) as member:
            until(lambda: mock.requests("Heartbeat", broker=2) and member.owned == {0, 1, 2}, member)
            mock.set_down(2)
            mock.clear_requests()
            until(lambda: mock.requests("FindCoordinator"), member)
            assert mock.requests(broker=2) == []
            mock.set_up(2)
            until(lambda: mock.requests("Heartbeat", broker=2) and member.owned == {0, 1, 2}, member)
            sender = Sender(mock)
            for partition in range(3):
                sender.send_and_wait(b"%d" % partition, partition)
            until(lambda: len(member.records) == 3, member)
            assert sorted(member.records) == [b"0", b"1", b"2"]


def test_a_member_follows_its_coordinator() -> None:
    with MockCluster(3, topics={"t": 2}) as mock:
        mock.set_coordinator("g", 1)
        with classic(mock) as member:
            until(lambda: mock.requests("Heartbeat"), member)
            assert {request.broker for request in mock.requests("Heartbeat")} == {1}
            mock.set_coordinator("g", 3)
            until(lambda: mock.requests("Heartbeat", broker=3), member)
            assert {request.broker for request in mock.requests("JoinGroup")} == {1}
            assert member.changes == [("assigned", [0, 1])]


def test_without_a_coordinator_nobody_joins() -> None:
    with MockCluster(2, topics={"t": 2}) as mock:
        mock.set_coordinator("g", None)
        with classic(mock) as member:
            until(lambda: len(mock.requests("FindCoordinator")) >= 3, member)
            assert mock.requests("JoinGroup") == []
            mock.set_coordinator("g", 2)
            until(lambda: member.owned == {0, 1}, member)
            assert {request.broker for request in mock.requests("JoinGroup")} == {2}


# Requests ---------------------------------------------------------------------------------------------


def test_requests_are_told_by_broker_and_kind() -> None:
    began = time.monotonic()
    with MockCluster(2, topics={"t": 2}) as mock:
        assert mock.requests() == []
        sender = Sender(mock)
        for value in [b"1", b"2", b"3"]:
            sender.send_and_wait(value, 1)
        sender.send_and_wait(b"4", 0)
        requests = mock.requests()
        produce = [(request.broker, request.api) for request in requests if request.api == "Produce"]
        assert produce == [(2, "Produce"), (2, "Produce"), (2, "Produce"), (1, "Produce")]
        times = [request.time for request in requests]
        assert times == sorted(times)
        if sys.platform == "linux":
            assert began <= times[0] <= times[-1] <= time.monotonic()
        assert mock.requests("Produce", broker=2) == [
            request for request in requests if request.broker == 2 and request.api == "Produce"
        ]
        assert len(mock.requests("Produce")) == 4
        assert {request.broker for request in mock.requests(broker=1)} == {1}
        mock.clear_requests()
        assert mock.requests("Produce") == []


def test_requests_of_a_kind_without_a_name_are_told_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    with MockCluster(1, topics={"t": 1}) as mock:
        Sender(mock).send_and_wait(b"1")
        known = len(mock.requests("Produce"))
        monkeypatch.setattr("kafka_assignors.testing._brokers.mock_protocol._NAMES", {})
        assert [request.api for request in mock.requests()].count("ApiKey 0") == known == 1


# What is refused, and the end -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"brokers": 0}, "brokers=0: a cluster has at least one"),
        ({"brokers": 2, "racks": ["a"]}, r"racks=\['a'\]: name one for each of the 2 brokers"),
        ({"topics": {"t": 0}}, "partitions=0: a topic has at least one"),
        ({"rebalance_delay": -1}, "-1 s: a delay is not negative"),
    ],
)
def test_clusters_that_cannot_be_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        MockCluster(**settings)


@pytest.fixture(scope="module")
def idle() -> Iterator[MockCluster]:
    """One that refuses everything, so that tests can share it."""
    with MockCluster(2, topics={"t": 2}) as mock:
        yield mock


@pytest.mark.parametrize("broker", [-1, 0, 3])
@pytest.mark.parametrize(
    "act",
    [
        lambda mock, broker: mock.set_down(broker),
        lambda mock, broker: mock.set_up(broker),
        lambda mock, broker: mock.set_rack(broker, "a"),
        lambda mock, broker: mock.delay(broker, 1),
        lambda mock, broker: mock.set_leader("t", 0, broker),
        lambda mock, broker: mock.set_follower("t", 0, broker),
        lambda mock, broker: mock.set_coordinator("g", broker),
        lambda mock, broker: mock.inject_on(broker, "Fetch", "NO_ERROR"),
        lambda mock, broker: mock.pending(broker, "Fetch"),
        lambda mock, broker: mock.requests(broker=broker),
    ],
)
def test_brokers_that_are_not_there_are_refused(
    idle: MockCluster, act: Callable[[MockCluster, int], None], broker: int
) -> None:
    with pytest.raises(ValueError, match=f"broker={broker}: the cluster has brokers 1 to 2"):
        act(idle, broker)


def test_partitions_that_are_not_there_are_refused(idle: MockCluster) -> None:
    for act in (idle.set_leader, idle.set_follower):
        with pytest.raises(KafkaException) as caught:
            act("t", 2, 1)
        assert caught.value.args[0].name() == "UNKNOWN_TOPIC_OR_PART"


@pytest.mark.parametrize("replication", [0, 3])
def test_replicas_need_a_broker_each(idle: MockCluster, replication: int) -> None:
    with pytest.raises(ValueError, match=f"replication={replication}: the cluster has 2 brokers"):
        idle.create_topic("u", 1, replication=replication)


def test_a_partition_without_a_leader_must_be_allowed_for_from_the_start(idle: MockCluster) -> None:
    with pytest.raises(ValueError, match=r"t-0 without a leader can crash.*leaderless=True"):
        idle.set_leader("t", 0, None)


@pytest.mark.parametrize("api", ["produce", "CreateTopics", 0])
def test_unknown_apis_are_refused(idle: MockCluster, api: MockApi) -> None:
    with pytest.raises(ValueError, match=f"{api!r} is no API of the mock's: Produce, Fetch, "):
        idle.inject(api, "NO_ERROR")


@pytest.mark.parametrize("error", ["nonsense", "code", 12345, "_TIMED_OUT", KafkaError._TIMED_OUT])
def test_errors_that_no_broker_sends_are_refused(idle: MockCluster, error: int | str) -> None:
    with pytest.raises(ValueError, match=f"{error!r} is no broker's error: take one of KafkaError's"):
        idle.inject("Fetch", error)


def test_nothing_is_asked_of_a_closed_cluster() -> None:
    mock = MockCluster(1)
    mock.close()
    mock.close()
    with pytest.raises(RuntimeError, match="the mock cluster is closed"):
        mock.set_down(1)


def test_a_librdkafka_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_assignors.testing._brokers.mock._OLDEST", libversion()[1] + 1)
    with pytest.raises(
        NotImplementedError, match=rf"librdkafka {libversion()[0]} of confluent-kafka 2.*: install"
    ):
        MockCluster(1)


def test_a_function_that_librdkafka_lacks_is_named_with_its_version() -> None:
    told = (
        rf"librdkafka {libversion()[0]} of confluent-kafka .* does not offer rd_kafka_mock_nonsense: install"
    )
    with pytest.raises(NotImplementedError, match=told):
        function("rd_kafka_mock_nonsense")


def in_process() -> tuple[int, int]:
    """Threads and open files of this process."""
    return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))


@on_linux
def test_nothing_is_left_of_a_closed_cluster() -> None:
    def use() -> tuple[int, int]:
        with MockCluster(3, topics={"t": 3}) as mock, classic(mock) as member:
            until(lambda: member.owned == {0, 1, 2}, member)
            return in_process()

    before = in_process()
    for _ in range(5):
        threads, files = use()
        assert threads > before[0]
        assert files > before[1]
    until(lambda: in_process() == before)
    with pytest.raises(ValueError, match="partitions=0"):
        MockCluster(3, topics={"t": 0})
    until(lambda: in_process() == before)


@on_linux
def test_the_library_is_the_one_of_the_clients() -> None:
    with MockCluster(1):
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    assert len({line.split()[-1] for line in mapped if "librdkafka" in line}) == 1


def test_a_request_is_a_value() -> None:
    assert MockRequest(1, "Fetch", 2.5) == MockRequest(broker=1, api="Fetch", time=2.5)
