"""An admin client that outlives the servers that it was given."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import (
    CoordinatorLoadInProgressError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
)

from kafka_assignors._cluster import admin as module, reaching
from kafka_assignors._cluster.admin import Admin, ClusterError, SilentBrokerError
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._cluster.reaching import Found
from kafka_assignors._common import waiting


class Clients:
    """Makes clients of a cluster whose brokers are advertised as these."""

    def __init__(self, *advertised: tuple[str, int]) -> None:
        self.advertised = [SimpleNamespace(host=host, port=port) for host, port in advertised]
        self.asked: list[list[str]] = []
        self.up = True

    def __call__(self, *, bootstrap_servers: Sequence[str], **_: object) -> Any:
        self.asked.append([*bootstrap_servers])
        if not self.up:
            raise KafkaTimeoutError
        known = SimpleNamespace(brokers=lambda: self.advertised)
        config = {"request_timeout_ms": 30_000, "socket_connection_setup_timeout_ms": 10_000}
        manager = SimpleNamespace(cluster=known, config=config, _backoff={}, _conns={})
        return SimpleNamespace(_manager=manager, close=lambda: None)


def opened(monkeypatch: pytest.MonkeyPatch, clients: Clients) -> Admin:
    monkeypatch.setattr(module, "look", lambda hosts, _: dict.fromkeys(hosts, Found()))
    monkeypatch.setattr(module, "KafkaAdminClient", clients)
    return Admin(["kafka-1:9092"])


def test_servers_may_have_commas_between_them() -> None:
    assert Cluster("a:1,b:2").bootstrap_servers == ("a:1", "b:2")


def test_a_cluster_stays_connected_to_the_end_of_the_outer_context(monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, clients := Clients(("kafka-1", 9092)))
    closed: list[str] = []
    monkeypatch.setattr(Admin, "close", lambda _: closed.append("closed"))
    clients.asked.clear()
    cluster = Cluster("kafka-1:9092")
    with cluster:
        with cluster, connect(cluster):
            pass
        assert closed == []
        with connect(cluster):
            pass
    assert (clients.asked, closed) == ([["kafka-1:9092"]], ["closed"])
    with connect(cluster):
        pass
    assert (clients.asked, closed) == ([["kafka-1:9092"]] * 2, ["closed"] * 2)


def test_a_server_for_which_no_time_is_left_is_not_said_to_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "REACHED_SECONDS", 0.9)
    assert reaching.look([("127.0.0.1", 1)], {}) == {("127.0.0.1", 1): Found()}


def test_brokers_that_the_cluster_has_named_are_servers_of_the_next_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = Clients(("kafka-1", 9092), ("kafka-2", 9092), ("fe80::3", 9092))
    admin = opened(monkeypatch, clients)
    admin.reconnect()
    assert clients.asked == [["kafka-1:9092"], ["kafka-1:9092", "kafka-2:9092", "[fe80::3]:9092"]]
    assert admin.settings["bootstrap_servers"] == clients.asked[-1]


def test_the_client_stays_if_no_broker_lets_another_one_in(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(("kafka-2", 9092))
    admin = opened(monkeypatch, clients)
    before = admin.once(lambda client: client)
    clients.up = False
    with pytest.raises(
        ClusterError, match=r"^no broker answers at kafka-1:9092, kafka-2:9092: KafkaTimeoutError"
    ):
        admin.reconnect()
    assert admin.once(lambda client: client) is before


def test_a_broker_that_does_not_answer_is_left_out_and_said_to_be_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    addresses = {1: ("kafka-1", 9092), 2: ("kafka-2", 9092), 3: ("kafka-3", 9092)}
    found = {one: Found(advertised=addresses) for one in addresses.values()}
    found["kafka-2", 9092] = Found("it hangs")
    clients = Clients(*addresses.values())
    admin = opened(monkeypatch, clients)
    monkeypatch.setattr(module, "look", lambda *_: found)
    admin.reconnect()
    admin.reconnect()
    assert clients.asked[1:] == [["kafka-1:9092", "kafka-3:9092"]] * 2
    assert admin.once(lambda client: {*client._manager._backoff}) == {2}
    assert [record.getMessage() for record in caplog.records] == [
        "left out: broker 2 as kafka-2:9092: it hangs"
    ]
    asked = []

    def refused(client: object) -> None:
        asked.append(client)
        raise NodeNotReadyError(2)

    with pytest.raises(SilentBrokerError, match=r"^it hangs$"):
        admin.ask(refused, node=2)
    assert len(asked) == 1


class Timeline:
    """The clock of a module: it passes when somebody sleeps, or waits for an answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for where in (module, waiting):
            monkeypatch.setattr(where, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def three_brokers(
    monkeypatch: pytest.MonkeyPatch, clock: Timeline, hanging: set[int], looks: float = 3.0
) -> Admin:
    """A client of three brokers of which some hang; to look at these takes time."""
    addresses = {number: (f"kafka-{number}", 9092) for number in (1, 2, 3)}

    def look(*_: object) -> dict[tuple[str, int], Found]:
        clock.sleep(looks if hanging else 0)
        return {
            address: Found("it hangs") if number in hanging else Found(advertised=addresses)
            for number, address in addresses.items()
        }

    admin = opened(monkeypatch, Clients(*addresses.values()))
    monkeypatch.setattr(module, "look", look)
    admin.reconnect()
    return admin


def asks(clock: Timeline, node: int, hanging: set[int], answers_after: float) -> Callable[[Any], str]:
    """A request to a broker that answers after so many seconds if it does not hang."""

    def request(client: Any) -> str:
        if node in client._manager._backoff:
            raise NodeNotReadyError(node)
        limit = client._manager.config["request_timeout_ms"] / 1000
        clock.sleep(min(limit, answers_after))
        if node in hanging or answers_after > limit:
            clock.sleep(max(0.0, limit - answers_after))
            raise RequestTimedOutError
        return f"answer after {clock.now:.1f} s"

    return request


@pytest.mark.parametrize("node", [None, 2])
@pytest.mark.parametrize(
    ("takes", "answered"), [(1.4, "1.4"), (1.6, "3.3"), (29.0, "30.7")], ids=["at once", "late", "very late"]
)
def test_a_broker_that_is_slow_gets_the_usual_time_after_a_look_at_who_hangs(
    monkeypatch: pytest.MonkeyPatch, node: int | None, takes: float, answered: str
) -> None:
    clock = Timeline(monkeypatch)
    admin = three_brokers(monkeypatch, clock, set())
    assert admin.ask(asks(clock, 2, set(), takes), node=node) == f"answer after {answered} s"


def test_a_broker_that_hangs_after_it_was_reached_is_known_to_within_five_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, hanging = Timeline(monkeypatch), set[int]()
    admin = three_brokers(monkeypatch, clock, hanging)
    hanging.add(2)
    with pytest.raises(SilentBrokerError, match=r"^it hangs$"):
        admin.ask(asks(clock, 2, hanging, 0.0), node=2)
    assert clock.now == pytest.approx(1.5 + 0.2 + 3.0)
    assert [record.getMessage() for record in caplog.records] == [
        "left out: broker 2 as kafka-2:9092: it hangs"
    ]


def test_who_alone_can_answer_and_hangs_is_waited_for_until_another_takes_over_or_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, hanging = Timeline(monkeypatch), set[int]()
    admin = three_brokers(monkeypatch, clock, hanging)
    hanging.add(2)
    with pytest.raises(SilentBrokerError) as caught:
        admin.ask(asks(clock, 2, hanging, 0.0))
    assert str(caught.value) == (
        "only broker 2 can answer, and no other has taken over from it within 15 s: it hangs; start it"
        " again, or ask later"
    )
    assert 15 <= clock.now < 20
    began = clock.now

    def taken_over(client: Any) -> str:
        return asks(clock, 2 if clock.now < began + 9 else 3, hanging, 0.0)(client)

    assert admin.ask(taken_over).startswith("answer")
    assert 9 <= clock.now - began < 9 + 0.2 + 3.0


def test_what_brokers_refuse_for_as_long_as_they_change_is_asked_for_up_to_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Timeline(monkeypatch)
    admin = three_brokers(monkeypatch, clock, set())

    def loading(_: object) -> None:
        raise CoordinatorLoadInProgressError

    with pytest.raises(CoordinatorLoadInProgressError):
        admin.ask(loading)
    assert 60 <= clock.now < 61
