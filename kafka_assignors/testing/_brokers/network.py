"""Network faults between real clients and real brokers, made by a TCP proxy in front of every broker.

Each broker has a listener of its own for them and advertises the proxy as its address. So clients that know
the cluster through `Network.access` never bypass the proxy.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

from kafka_assignors.testing._brokers.access import OPEN, Access, Security
from kafka_assignors.testing._brokers.proxy import Direction, Proxy, Rule
from kafka_assignors.testing._choices import check_choice
from kafka_assignors.testing._disturbance import Disturbance

T = TypeVar("T")

_networks: WeakValueDictionary[tuple[str, ...], "Network"] = WeakValueDictionary()


def network_of(access: Access) -> "Network | None":
    """The network that clients with such an access go through, if it is one of this process."""
    return _networks.get(access.servers)


class Fault(Disturbance):
    """Something wrong with the network, until it is healed. A context manager: healed on leaving."""

    def heal(self) -> None:
        """End the fault; nothing happens if it has ended. Other faults on the same connections stay."""
        self._undo()


class Network:
    """The way between clients and the brokers of a cluster, and what can be wrong with it.

    Faults are about all connections, those of one client, those to one broker, or those of one client to one
    broker. A client is named by its client id, which is read from the first request of each connection; in
    TLS it cannot be seen. Faults hold on return, add up, and can be made from any thread.

    Args:
        nodes: The ids of the brokers.
        security: What the brokers require behind the proxy.

    Attributes:
        access: How clients reach the cluster through the proxies.
    """

    def __init__(self, nodes: Sequence[int], security: Security = OPEN) -> None:
        self._nodes = nodes
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Proxy, list[str]]] = Future()
        # In the end nobody waits for it if this Python ends without closing.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="network of a Kafka cluster", daemon=True
        )
        self._thread.start()
        self._loop, self._closing, self._proxy, addresses = self._started.result()
        self.access = Access(tuple(addresses), security)
        # Each client that is followed, and who is called -> whether it is cut off.
        self._followed: dict[tuple[str, Callable[[bool], None]], bool] = {}
        self._looking = threading.Lock()
        _networks[self.access.servers] = self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Reset all connections and end the proxies; nothing is left of them on return."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()

    def lead_to(self, brokers: Mapping[int, str]) -> None:
        """Say where each node's listener behind the proxy is, "host:port" by node id."""
        targets = {}
        for node, address in brokers.items():
            host, _, port = address.rpartition(":")
            targets[node] = host, int(port)
        self._do(lambda: self._proxy.lead_to(targets))

    def delay(
        self,
        seconds: float,
        *,
        client: str | None = None,
        broker: int | None = None,
        direction: Direction = "both",
    ) -> Fault:
        """Let bytes arrive later by so many seconds; they stay in order.

        Each way is delayed: with "both" a request and its answer take twice the time. What is under way when
        the fault is healed arrives at once. Of each way of a connection 4 MB are under way at most.

        Raises:
            ValueError: There is no such broker or direction, clients cannot be distinguished, or the time is
                negative.
        """
        if seconds < 0:
            raise ValueError(f"seconds={seconds}: bytes cannot arrive before they were sent")
        return self._begin(
            Rule(kind="delay", client=client, broker=broker, direction=direction, seconds=seconds)
        )

    def drop(self, *, client: str | None = None, broker: int | None = None) -> Fault:
        """Reset the connections, and new ones while it lasts: at once, or when the client has said its id.

        Raises:
            ValueError: There is no such broker, or clients cannot be distinguished.
        """
        return self._begin(Rule(kind="drop", client=client, broker=broker))

    def half_open(
        self, *, client: str | None = None, broker: int | None = None, direction: Direction = "both"
    ) -> Fault:
        """Let no byte pass, while connections stay open and new ones are accepted: as if packets were lost.

        Neither end hears that the other closes, either. Bytes are held back, not lost, as TCP sends again
        what was not received. Once the fault is healed they arrive late, as do ends of connections. So a
        broker may get requests of a client that has given up long ago.

        Raises:
            ValueError: There is no such broker or direction, or clients cannot be distinguished.
        """
        return self._begin(Rule(kind="half_open", client=client, broker=broker, direction=direction))

    def heal(self) -> None:
        """End all faults."""
        self._end(*self.faults())

    def faults(self) -> tuple[Rule, ...]:
        """What is wrong now."""
        return self._proxy.rules

    def _end(self, *rules: Rule) -> None:
        self._do(lambda: self._proxy.change(ended=rules))
        self._look()

    def follow(self, client: str, changed: Callable[[bool], None]) -> Callable[[], None]:
        """Have a function called with True when a client reaches no broker, or hears of none; False: again.

        It is called in the thread that made or healed the fault. What is returned ends it.
        """
        with self._looking:
            self._followed[client, changed] = False
        self._look()

        def unfollow() -> None:
            with self._looking:
                self._followed.pop((client, changed), None)

        return unfollow

    def _look(self) -> None:
        with self._looking:
            news = {one: not cut for one, cut in self._followed.items() if cut != self._cuts(one[0])}
            self._followed |= news
        for (_, changed), cut in news.items():
            changed(cut)

    def _cuts(self, client: str) -> bool:
        return any(
            rule.kind in {"drop", "half_open"}
            and rule.client in {None, client}
            and (rule.broker is None or len(self._nodes) == 1)
            for rule in self.faults()
        )

    def connections(self, *, client: str | None = None, broker: int | None = None) -> int:
        """How many connections are open, of a client, to a broker, or in all."""
        return self._do(lambda: self._proxy.connections(client, broker))

    def _begin(self, rule: Rule) -> Fault:
        check_choice("direction", rule.direction, Direction)
        if rule.broker is not None and rule.broker not in self._nodes:
            raise ValueError(f"broker={rule.broker}: the cluster has the nodes {[*self._nodes]}")
        if rule.client is not None and self.access.security.encrypted:
            raise ValueError(
                f"client={rule.client!r}: in TLS no proxy sees client ids; select by broker, or take a "
                "cluster without TLS"
            )
        self._do(lambda: self._proxy.change(begun=[rule]))
        self._look()
        return Fault(lambda: self._end(rule))

    def _do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something in the loop, and wait until it is done."""
        if not self._thread.is_alive():
            raise RuntimeError("the network is closed, as its cluster has ended")
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()

    async def _serve(self) -> None:
        proxy, closing = Proxy(), asyncio.Event()
        try:
            servers, addresses = await proxy.listen(self._nodes)
        except OSError as error:
            self._started.set_exception(error)
            return
        self._started.set_result((asyncio.get_running_loop(), closing, proxy, addresses))
        await closing.wait()
        for server in servers:
            server.close()
        # What is left of connections is cancelled by asyncio.run.
