"""An admin client that outlives brokers."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.cluster import collect_hosts
from kafka.errors import AuthorizationError, KafkaError, NodeNotReadyError, UnknownBrokerIdError

from kafka_assignors._cluster.reaching import Address, look
from kafka_assignors._cluster.requests import answered_within, known_brokers, leave_out
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.waiting import Deadline

LOOK_SECONDS: Final = 0.2
"""How long to wait between two looks at a cluster that is at work."""

CONTROLLER: Final = -1
"""In place of a broker's id: the controller, which brokers pass requests on to."""

_log = get_logger(__name__)

_Answer = TypeVar("_Answer")
_PATIENCE_SECONDS: Final = 60.0
_ONE_BROKER_SECONDS: Final = 3.0  # of patience with a broker that alone can answer
_STILL_SECONDS: Final = 5.0  # for which a broker that did not answer is not asked again
_ANSWER_SECONDS: Final = 1.5  # for a first answer; then it is looked who answers at all
_SUCCESSOR_SECONDS: Final = 15.0
"""For which another broker may take over from one that does not answer. It is missed after 9 s by default."""


class ClusterError(KafkaAssignorsError, RuntimeError):
    """A cluster did not do what it was asked for; the message says what, and what it answered."""


class SilentBrokerError(ClusterError):
    """A broker does not answer that alone could; the message says why it does not."""


def reason(error: KafkaError) -> str:
    """Why a cluster did not do something. Of a missing right brokers say nothing, or repeat the request."""
    if not isinstance(error, AuthorizationError):
        return str(error)
    on = type(error).__name__.removesuffix("AuthorizationFailedError").lower()
    return f"the user lacks a right on the {on}; docs/permissions.md names what each command needs"


class Admin:
    """An admin client of kafka-python that outlives brokers: where one went away, another is asked.

    A context manager: close it after use. kafka-python's own client keeps asking the broker that it first
    took for the controller, also when that is gone, and waits for a server that hangs. Servers and brokers
    that do not answer are left out, with a warning in the log. Servers are "host:port" each. Settings are in
    kafka-python's spelling, see `command_config.read_command_config`. Raises ClusterError if no broker
    answers.
    """

    def __init__(self, bootstrap_servers: Sequence[str], settings: Mapping[str, Any] | None = None) -> None:
        self.settings = {**(settings or {}), "bootstrap_servers": list(bootstrap_servers)}
        """Those of its client: the servers are the ones that answered."""
        self._named = [*bootstrap_servers]
        self.left_out: dict[int, str] = {}
        """Brokers that it does not ask, and why."""
        self._looked = 0.0
        self._warned: set[str] = set()
        self._client = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def once(self, request: Callable[[KafkaAdminClient], _Answer]) -> _Answer:
        """Send what must not be sent twice; raises KafkaError if the cluster does not say that it did it."""
        return request(self._client)

    def ask(self, request: Callable[[KafkaAdminClient], _Answer], *, node: int | None = None) -> _Answer:
        """Send what may be sent twice; again, and to others, while brokers come and go.

        A first answer is waited for briefly. Then it is looked at which brokers hang; one that is slow gets
        the usual time. `node` is the broker that alone can answer, or the controller, if there is one.

        Raises:
            ClusterError: No broker answers any more; `SilentBrokerError` if only that one does not.
            KafkaError: The cluster does not do it.
        """
        deadline = Deadline(_PATIENCE_SECONDS if node is None else _ONE_BROKER_SECONDS)
        successor = Deadline(_SUCCESSOR_SECONDS)
        seconds = _ANSWER_SECONDS
        while True:
            began = time.monotonic()
            try:
                with answered_within(self._client, seconds):
                    return request(self._client)
            except KafkaError as error:
                if not (error.retriable or isinstance(error, UnknownBrokerIdError)):
                    raise
                late = time.monotonic() - began >= seconds
                over = deadline.passed and not late
                still = node in self.left_out and time.monotonic() - self._looked < _STILL_SECONDS
                if node is not None and (still or over):
                    raise SilentBrokerError(self.left_out.get(node, str(error))) from error
                silent = error.args[0] if isinstance(error, NodeNotReadyError) and error.args else None
                if successor.passed and silent in self.left_out:
                    raise SilentBrokerError(
                        f"only broker {silent} can answer, and no other has taken over from it within"
                        f" {_SUCCESSOR_SECONDS:.0f} s: {self.left_out[silent]}; start it again, or ask later"
                    ) from error
                if over:
                    raise
                seconds = math.inf if late else seconds
            time.sleep(LOOK_SECONDS)
            self.reconnect()

    def reconnect(self) -> None:
        """Begin again, also by brokers that were not named: after Ctrl-C during a request.

        Raises ClusterError if no broker answers. The client stays the one that it was.
        """
        advertised = [_text((one.host, one.port)) for one in known_brokers(self._client)]
        before, self._client = self._client, self._connect(advertised)
        before.close()

    def consumer(self, **settings: Any) -> KafkaConsumer:
        """A consumer by the same way to the cluster, with further settings; close it after use."""
        consumer = KafkaConsumer(**{**self.settings, **settings})
        leave_out(consumer, self.left_out)
        return consumer

    def _connect(self, known: Sequence[str] = ()) -> KafkaAdminClient:
        reached = _reach([*dict.fromkeys([*self._named, *known])], self.settings)
        if reached.missed.keys() - self._warned:
            _log.warning("left out: %s", _reasons(reached.missed))
        self._warned |= reached.missed.keys()
        self.left_out, self._looked = reached.silent, time.monotonic()
        self.settings["bootstrap_servers"] = reached.servers
        try:
            client = KafkaAdminClient(**self.settings)
        except KafkaError as error:
            raise ClusterError(f"no broker answers at {', '.join(reached.servers)}: {error}") from error
        leave_out(client, reached.silent)
        return client


class _Reached(NamedTuple):
    """Servers that answer, brokers that do not, and who is missed, by name; each with why."""

    servers: list[str]
    silent: dict[int, str]
    missed: dict[str, str]


def _reach(servers: list[str], settings: Mapping[str, Any]) -> _Reached:
    """Find out who answers: kafka-python tries any one for 30 s, and does not say what failed.

    Raises ClusterError if none of the servers can be used, or no address that their brokers advertise. The
    message says what is wrong with each, and names those with the same reason together.
    """
    hosts = {server: _address(server) for server in servers}
    if any("proxy" in name for name in settings):
        return _Reached(servers, {}, {})
    found = look(hosts.values(), settings)
    wrong = {server: found[host].wrong for server, host in hosts.items() if found[host].wrong}
    if len(wrong) == len(servers):
        raise ClusterError(f"no broker answers at {_reasons(wrong) or 'no address'}")
    advertised = {node: address for one in found.values() for node, address in one.advertised.items()}
    silent = {node: found[address].wrong for node, address in advertised.items() if found[address].wrong}
    brokers = {f"broker {node} as {_text(advertised[node])}": why for node, why in silent.items()}
    reached = [server for server in servers if server not in wrong]
    if silent and len(silent) == len(advertised):
        raise ClusterError(
            f"{', '.join(reached)} can be reached, but none of the addresses that its brokers advertise:"
            f" {_reasons(brokers)}; let advertised.listeners name addresses that clients can reach"
        )
    others = {server: why for server, why in wrong.items() if hosts[server] not in advertised.values()}
    others_up = [_text(address) for node, address in advertised.items() if node not in silent]
    return _Reached([*dict.fromkeys([*reached, *others_up])], silent, {**others, **brokers})


def _address(server: str) -> Address:
    try:
        ((host, port, _),) = collect_hosts([server], randomize=False)
    except ValueError:
        raise ClusterError(f"{server!r} is no address of a broker: name it as HOST:PORT") from None
    return host, port


def _text(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reasons(found: Mapping[str, str]) -> str:
    """What is wrong with each server, by name; a reason of several is said once, after their names."""
    names: dict[str, list[str]] = {}
    for name, wrong in found.items():
        names.setdefault(wrong, []).append(name)
    return "; ".join(f"{', '.join(those)}: {wrong}" for wrong, those in names.items())
