"""Faults of the network, seen from both ends of real connections; the test is client and broker in one."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from kafka_assignors.testing._brokers.access import Security
from kafka_assignors.testing._brokers.network import Network
from kafka_assignors.testing._brokers.proxy import Direction, client_id_in

NOT_YET = 0.15  # seconds in which nothing comes
PATIENCE = 10.0  # seconds in which something does


def request(client: str | None, body: bytes = b"") -> bytes:
    """A first request, in the header's first version: the client id comes at the same place in all."""
    name = b"" if client is None else client.encode()
    header = struct.pack(">hhih", 18, 0, 7, -1 if client is None else len(name)) + name
    return struct.pack(">i", len(header) + len(body)) + header + body


class Brokers:
    """Two brokers behind a network, and connections to them."""

    def __init__(self, network: Network, servers: dict[int, socket.socket]) -> None:
        self.network = network
        self._servers = servers
        self._stack = contextlib.ExitStack()

    def dial(self, broker: int = 1) -> socket.socket:
        host, _, port = self.network.access.servers[broker - 1].rpartition(":")
        return self._stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))

    def connect(self, client: str | None, broker: int = 1) -> tuple[socket.socket, socket.socket]:
        """A client that has said its id; its end of the connection and the broker's."""
        near = self.dial(broker)
        near.sendall(request(client))
        far, _ = self._servers[broker].accept()
        far.settimeout(PATIENCE)
        self._stack.enter_context(far)
        assert exactly(far, len(request(client))) == request(client)
        return near, far

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with contextlib.ExitStack() as stack:
        servers = {
            node: stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=5)) for node in (1, 2)
        }
        for server in servers.values():
            server.settimeout(PATIENCE)
        network = stack.enter_context(Network([1, 2]))
        network.lead_to({node: f"127.0.0.1:{server.getsockname()[1]}" for node, server in servers.items()})
        both = Brokers(network, servers)
        stack.callback(both.close)
        yield both


def exactly(end: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = end.recv(size - len(data))
        assert chunk, f"closed after {data!r}"
        data += chunk
    return data


def passes(source: socket.socket, target: socket.socket, within: float = PATIENCE) -> bool:
    source.sendall(b"x")
    return comes(target, within)


def comes(target: socket.socket, within: float = PATIENCE) -> bool:
    target.settimeout(within)
    try:
        return target.recv(1) == b"x"
    except TimeoutError:
        return False
    finally:
        target.settimeout(PATIENCE)


def is_reset(end: socket.socket) -> bool:
    try:
        return end.recv(1) == b"never"
    except ConnectionResetError:
        return True


def is_refused(brokers: Brokers, broker: int) -> bool:
    try:
        return is_reset(brokers.dial(broker))
    except ConnectionResetError:  # so soon that it was not even dialled
        return True


@pytest.mark.parametrize("client", ["a", "", "Zoë", None])
def test_a_client_is_known_by_its_first_request_as_soon_as_its_id_is_there(client: str | None) -> None:
    whole = request(client, b"body")
    enough = len(whole) - 4
    assert [client_id_in(whole[:size])[0] for size in range(enough)] == [False] * enough
    assert client_id_in(whole[:enough]) == client_id_in(whole) == (True, client)


def test_in_tls_and_in_what_is_no_kafka_there_is_no_id() -> None:
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(32)
    assert client_id_in(hello) == (True, None)
    assert client_id_in(b"GET / HTTP/1.1\r\n\r\n") == (True, None)


def test_bytes_pass_both_ways_as_they_are(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    data = bytes(range(256)) * 8000  # 2 MB: in many pieces
    for source, target in ((near, far), (far, near)):
        sending = threading.Thread(target=source.sendall, args=(data,))
        sending.start()
        assert exactly(target, len(data)) == data
        sending.join()


def test_open_connections_are_counted_by_client_and_broker(brokers: Brokers) -> None:
    brokers.connect("a")
    brokers.connect("a", broker=2)
    near, far = brokers.connect("b")
    network = brokers.network
    assert [network.connections(client=client) for client in "abc"] == [2, 1, 0]
    assert [network.connections(broker=broker) for broker in (1, 2)] == [2, 1]
    assert network.connections(client="a", broker=2) == 1
    near.close()
    assert far.recv(1) == b""
    far.close()
    deadline = time.monotonic() + 10
    while network.connections(client="b"):
        assert time.monotonic() < deadline
    assert network.connections() == 2


def test_an_end_of_one_side_is_an_end_for_the_other(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    near.close()
    assert far.recv(1) == b""
    near, far = brokers.connect("a")
    far.sendall(b"last words")
    far.close()
    assert exactly(near, 10) == b"last words"
    assert near.recv(1) == b""


def test_a_broker_that_is_down_resets_its_clients(brokers: Brokers) -> None:
    brokers.network.lead_to({1: "127.0.0.1:1"})  # nobody listens there
    for broker in (1, 2):
        near = brokers.dial(broker)
        near.sendall(request("a"))
        assert is_reset(near)


@pytest.mark.parametrize(
    ("direction", "there", "back"), [("both", 0.2, 0.2), ("to_broker", 0.2, 0.0), ("to_client", 0.0, 0.2)]
)
def test_a_delay_makes_bytes_late_the_way_it_is_told(
    direction: Direction, there: float, back: float, brokers: Brokers
) -> None:
    near, far = brokers.connect("a")
    with brokers.network.delay(0.2, client="a", direction=direction):
        for source, target, late in ((near, far, there), (far, near, back)):
            begin = time.monotonic()
            source.sendall(b"x")
            assert exactly(target, 1) == b"x"
            assert time.monotonic() - begin >= late


def test_bytes_that_are_late_stay_in_order(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    numbers = b"".join(struct.pack(">i", number) for number in range(100))
    slow = brokers.network.delay(0.2)
    for begin in range(0, 200, 4):
        near.sendall(numbers[begin : begin + 4])
    brokers.network.delay(0.05)
    slow.heal()  # what comes now is less late than what is under way
    for begin in range(200, 400, 4):
        near.sendall(numbers[begin : begin + 4])
    assert exactly(far, len(numbers)) == numbers


def test_what_is_under_way_arrives_at_once_when_the_delay_is_healed(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    with brokers.network.delay(3600):
        assert not passes(near, far, NOT_YET)
    assert comes(far)


def test_a_dropped_client_is_reset_until_healed_and_others_are_not(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    others = [brokers.connect("b"), brokers.connect(None)]
    with brokers.network.drop(client="a"):
        assert is_reset(near)
        assert is_reset(far)
        assert brokers.network.connections(client="a") == 0
        again = brokers.dial()
        again.sendall(request("a"))
        assert is_reset(again)
        assert [passes(*other) for other in others] == [True, True]
    assert passes(*brokers.connect("a"))


def test_a_dropped_broker_refuses_before_a_word_and_another_does_not(brokers: Brokers) -> None:
    other = brokers.connect("a", broker=2)
    with brokers.network.drop(broker=1):
        assert is_refused(brokers, 1)
        assert passes(*other)
        assert passes(*brokers.connect("a", broker=2))
    assert passes(*brokers.connect("a"))


@pytest.mark.parametrize(
    ("direction", "there", "back"),
    [("both", False, False), ("to_broker", False, True), ("to_client", True, False)],
)
def test_half_open_holds_bytes_back_the_way_it_is_told_and_delivers_them_late(
    direction: Direction, there: bool, back: bool, brokers: Brokers
) -> None:
    near, far = brokers.connect("a")
    with brokers.network.half_open(client="a", direction=direction):
        assert passes(near, far, PATIENCE if there else NOT_YET) == there
        assert passes(far, near, PATIENCE if back else NOT_YET) == back
    assert (there or comes(far), back or comes(near)) == (True, True)
    assert (passes(near, far), passes(far, near)) == (True, True)


def test_half_open_accepts_new_connections_and_spares_other_clients_and_brokers(brokers: Brokers) -> None:
    other = brokers.connect("b")
    with brokers.network.half_open(client="a", broker=1):
        near = brokers.dial()
        near.sendall(request("a"))
        assert passes(*other)
        assert passes(*brokers.connect("a", broker=2))
        far, _ = brokers._servers[1].accept()
        with far:
            assert not comes(far, NOT_YET)
            brokers.network.heal()
            far.settimeout(PATIENCE)
            assert exactly(far, len(request("a"))) == request("a")


def test_half_open_holds_back_that_the_other_side_has_closed(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    with brokers.network.half_open():
        near.close()
        far.settimeout(NOT_YET)
        with pytest.raises(TimeoutError):
            far.recv(1)
    far.settimeout(PATIENCE)
    assert far.recv(1) == b""


def test_faults_add_up_and_each_is_healed_alone_or_all_at_once(brokers: Brokers) -> None:
    near, far = brokers.connect("a")
    network = brokers.network
    first, second = network.half_open(), network.half_open(client="a")
    first.heal()
    first.heal()
    assert not passes(near, far, NOT_YET)
    second.heal()
    assert comes(far)
    network.half_open()
    network.delay(3600)
    network.heal()
    assert passes(near, far)


def test_faults_that_make_no_sense_are_refused(brokers: Brokers) -> None:
    with pytest.raises(ValueError, match=r"broker=3: the cluster has the nodes \[1, 2\]"):
        brokers.network.drop(broker=3)
    with pytest.raises(ValueError, match="seconds=-1: bytes cannot arrive before they were sent"):
        brokers.network.delay(-1)
    with pytest.raises(ValueError, match="direction='to_brokers': must be one of both, to_broker, to_client"):
        brokers.network.half_open(direction=cast("Any", "to_brokers"))
    with (
        Network([1], Security(protocol="SSL")) as encrypted,
        pytest.raises(ValueError, match="client='a': in TLS no proxy sees client ids; select by broker"),
    ):
        encrypted.half_open(client="a")


def test_nothing_is_left_of_a_closed_network() -> None:
    threads = set(threading.enumerate())
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.settimeout(PATIENCE)
        network = stack.enter_context(Network([1]))
        network.lead_to({1: f"127.0.0.1:{server.getsockname()[1]}"})
        brokers = Brokers(network, {1: server})
        stack.callback(brokers.close)
        near, far = brokers.connect("a")
        silent = brokers.dial()
        network.half_open()
        network.close()
        assert [is_reset(end) for end in (near, far, silent)] == [True, True, True]
        with pytest.raises(ConnectionRefusedError):
            brokers.dial()
        with pytest.raises(RuntimeError, match="the network is closed, as its cluster has ended"):
            network.heal()
        network.close()
    assert set(threading.enumerate()) == threads


def test_a_client_is_followed_into_each_cut_and_out_until_that_is_called_off() -> None:
    heard: list[bool] = []
    with Network([1]) as network:
        unfollow = network.follow("a", heard.append)
        with network.half_open(client="b"):
            assert heard == []
        with network.half_open(client="a"), network.half_open():
            assert heard == [True]
        assert heard == [True, False]
        unfollow()
        unfollow()  # a group may be closed twice
        with network.half_open(client="a"):
            assert heard == [True, False]
