"""One broker of a cluster that was started here, and what is the same of it in whichever way."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

from kafka_assignors.testing._brokers.errors import BrokerDiedError
from kafka_assignors.testing._brokers.layout import PLAIN
from kafka_assignors.testing._brokers.metadata import cluster_state
from kafka_assignors.testing._brokers.waiting import START_TIMEOUT, wait_until
from kafka_assignors.testing._disturbance import Disturbance

_LOG_LINES = 30  # the end of a log that an error shows

State = Literal["down", "running", "frozen"]


class Broker(ABC):
    """One node of a cluster that was started here: a broker and controller in one.

    It is killed, stopped and started again on the data that it has, at the address that it had. A cluster
    of three continues without one of them. Without two, none of them knows any more what the cluster is.

    Attributes:
        node_id: 1, 2, ...; the node's rack is ``rack-<node_id>``.
        addresses: Where its listeners are, ``host:port`` by the names in
            `kafka_assignors.testing._brokers.layout`.
        peers: All nodes of its cluster, itself included.
        image: The image of its container; empty without one.
    """

    image = ""

    def __init__(self, node_id: int, addresses: Mapping[str, str]) -> None:
        self.node_id = node_id
        self.addresses = addresses
        self.peers: Sequence[Broker] = (self,)
        self._state: State = "down"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.node_id}: {self._state}>"

    @property
    def bootstrap(self) -> str:
        """Where it answers without security, for the kit's own work: ``host:port``."""
        return self.addresses[PLAIN]

    @property
    def running(self) -> bool:
        """Whether it was started, and has not been stopped, killed or frozen since."""
        return self._state == "running"

    def start(self, *, wait: bool = True, timeout: float = START_TIMEOUT) -> None:
        """Start it on the data that it has.

        Args:
            wait: Return only when it answers, and it and the others that run know each other. Without a
                majority of the nodes none of them does: start the first ones of those without waiting.
            timeout: In seconds.

        Raises:
            RuntimeError: It is not down.
            BrokerDiedError: It ended again.
            ClusterUnavailableError: It took longer than the timeout.
        """
        self._expect("down", "start")
        self._launch()
        self._state = "running"
        if wait:
            wait_until_complete([peer for peer in self.peers if peer.running], timeout)

    def stop(self) -> None:
        """Stop it in an orderly way: it hands its partitions over first. Nothing happens if it is down."""
        if self._state == "frozen":
            self.thaw()
        self._bring_down(orderly=True)

    def kill(self) -> Disturbance:
        """End it at once, running or frozen, as if its machine broke down. Nothing happens if it is down.

        The others take over its partitions when it has not been heard of for ``broker.session.timeout.ms``.

        Returns:
            A context at whose end it is started again, unless it was meanwhile. If a majority of the nodes
            runs then, it also is waited for.
        """
        self._bring_down(orderly=False)
        return Disturbance(self._start_again)

    def _start_again(self) -> None:
        if self._state == "down":
            running = 1 + sum(peer.running for peer in self.peers)
            self.start(wait=2 * running > len(self.peers))

    def restart(self, *, kill: bool = False, timeout: float = START_TIMEOUT) -> None:
        """Stop or kill it, and start it again.

        After a kill it is refused until the session that it had is over: ``broker.session.timeout.ms``, here
        6 seconds among three brokers and 20 alone.

        Raises:
            BrokerDiedError: It ended again.
            ClusterUnavailableError: It took longer than the timeout, in seconds.
        """
        if kill:
            self.kill()
        else:
            self.stop()
        self.start(timeout=timeout)

    def freeze(self) -> Disturbance:
        """Suspend it: its connections stay and nobody answers on them.

        Returns:
            A context at whose end it is thawed, unless it was meanwhile.

        Raises:
            RuntimeError: It is not running.
        """
        self._expect("running", "freeze")
        self._suspend()
        self._state = "frozen"
        return Disturbance(lambda: self.thaw() if self._state == "frozen" else None)

    def thaw(self) -> None:
        """Let it continue after `freeze`.

        Raises:
            RuntimeError: It is not frozen.
        """
        self._expect("frozen", "thaw")
        self._resume()
        self._state = "running"

    def wrong(self) -> str | None:
        """Why it serves nobody, in words; None while it runs."""
        if self.has_died():
            return f"node {self.node_id} has died"
        return None if self.running else f"node {self.node_id} is {self._state}"

    def mend(self) -> None:
        """Have it run again, in any state; does not wait until it answers.

        Raises:
            Exception: It can be neither thawed nor started again. The error is that of its process or
                container.
        """
        if self._state == "frozen" and self._alive():
            with contextlib.suppress(Exception):  # it is killed and started then
                self.thaw()
        if not self.running or self.has_died():
            self._bring_down(orderly=False)
            self.start(wait=False)

    def has_died(self) -> bool:
        """Whether it ended by itself: it was neither stopped nor killed from here."""
        return self._state != "down" and not self._alive()

    @abstractmethod
    def log(self) -> str:
        """All that it has logged since it was last started."""

    @abstractmethod
    def _launch(self) -> None: ...

    @abstractmethod
    def _end(self, *, orderly: bool) -> None: ...

    @abstractmethod
    def _suspend(self) -> None: ...

    @abstractmethod
    def _resume(self) -> None: ...

    @abstractmethod
    def _alive(self) -> bool: ...

    def _bring_down(self, *, orderly: bool) -> None:
        if self._state != "down":
            self._end(orderly=orderly)
            self._state = "down"

    def _expect(self, state: State, purpose: str) -> None:
        if self._state != state:
            raise RuntimeError(f"Kafka node {self.node_id} is {self._state}: cannot {purpose} it")


def find_death(brokers: Sequence[Broker]) -> str | None:
    """Say of the first broker that has died which it is, and the end of its log; None if all live."""
    for broker in brokers:
        if broker.has_died():
            return f"Kafka node {broker.node_id} has died. {end_of(broker.log())}"
    return None


def end_of(log: str) -> str:
    """The end of a broker's log, for the message of an error."""
    return "\n".join(["The end of its log:", *log.splitlines()[-_LOG_LINES:]])


def wait_until_complete(brokers: Sequence[Broker], timeout: float = START_TIMEOUT) -> None:
    """Wait until every broker has started and answers that all of them are there.

    Raises BrokerDiedError if one ended meanwhile, ClusterUnavailableError after so many seconds.
    """
    everybody = {broker.node_id for broker in brokers}
    for broker in brokers:

        def wrong(broker: Broker = broker) -> list[str]:
            # Its own word first: on a port that it could not have, somebody else may answer.
            log = broker.log()
            if "Kafka Server started" in log and everybody <= known_by(broker.bootstrap):
                return []
            if (death := find_death(brokers)) is not None:
                raise BrokerDiedError(death)
            return [end_of(log)]

        wait_until(wrong, timeout, f"Kafka node {broker.node_id} to be ready")


def known_by(server: str) -> frozenset[int]:
    """The nodes that the broker at an address knows; none if it does not answer."""
    try:
        return frozenset(cluster_state(server).brokers)
    except OSError:
        return frozenset()
