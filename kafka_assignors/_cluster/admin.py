"""An admin client that outlives brokers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from kafka import KafkaAdminClient
from kafka.cluster import collect_hosts
from kafka.errors import KafkaError, UnknownBrokerIdError

from kafka_assignors._cluster.reaching import REACHED_SECONDS, look
from kafka_assignors._cluster.requests import known_brokers
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.waiting import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

LOOK_SECONDS: Final = 0.2
"""How long to wait between two looks at a cluster that is at work."""

_Answer = TypeVar("_Answer")
_PATIENCE_SECONDS: Final = 60.0


class ClusterError(KafkaAssignorsError, RuntimeError):
    """A cluster did not do what it was asked for; the message says what, and what it answered."""


class Admin:
    """An admin client of kafka-python that outlives brokers: where one went away, another is asked.

    A context manager: close it after use. kafka-python's own client keeps asking the broker that it first
    took for the controller, also when that is gone. Servers are "host:port" each. Settings are in
    kafka-python's spelling, see `command_config.read_command_config`; a consumer's may be the same. Raises
    ClusterError if no broker answers.
    """

    def __init__(self, bootstrap_servers: Sequence[str], settings: Mapping[str, Any] | None = None) -> None:
        self.settings = {**(settings or {}), "bootstrap_servers": list(bootstrap_servers)}
        if not any("proxy" in name for name in self.settings):
            _check_reachable(self.settings["bootstrap_servers"], self.settings)
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

    def ask(
        self, request: Callable[[KafkaAdminClient], _Answer], *, patience: float = _PATIENCE_SECONDS
    ) -> _Answer:
        """Send what may be sent twice; again, and to others, while brokers come and go.

        `patience` is for how many seconds to try again; less for what only one broker can answer.

        Raises:
            ClusterError: No broker answers any more.
            KafkaError: The cluster does not do it.
        """
        deadline = Deadline(patience)
        while True:
            try:
                return request(self._client)
            except KafkaError as error:
                passing = error.retriable or isinstance(error, UnknownBrokerIdError)
                if not passing or deadline.passed:
                    raise
            time.sleep(LOOK_SECONDS)
            self.reconnect()

    def reconnect(self) -> None:
        """Begin again, also by brokers that were not named: after Ctrl-C during a request.

        Raises ClusterError if no broker answers. The client stays the one that it was.
        """
        before, self._client = self._client, self._connect(_advertised(self._client))
        before.close()

    def _connect(self, known: Sequence[str] = ()) -> KafkaAdminClient:
        servers = [*dict.fromkeys([*self.settings["bootstrap_servers"], *known])]
        try:
            return KafkaAdminClient(**{**self.settings, "bootstrap_servers": servers})
        except KafkaError as error:
            raise ClusterError(f"no broker answers at {', '.join(servers)}: {error}") from error


def _advertised(client: KafkaAdminClient) -> list[str]:
    """The addresses that a cluster's brokers advertised when the client asked last."""
    return [
        f"[{one.host}]:{one.port}" if ":" in one.host else f"{one.host}:{one.port}"
        for one in known_brokers(client)
    ]


def _check_reachable(servers: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Refuse servers of which none can be used: kafka-python tries for 30 s, and does not say what failed.

    Nor can they if none of the addresses that their brokers advertise can. The message of the ClusterError
    says what is wrong with each, and names those with the same reason together.
    """
    end = time.monotonic() + REACHED_SECONDS
    hosts = [(host, port) for host, port, _ in collect_hosts(servers, randomize=False)]
    named = dict(zip(servers, hosts, strict=True))
    found = dict(zip(hosts, look(hosts, settings, end), strict=True))
    if all(one.wrong for one in found.values()):
        reasons = _reasons((server, found[host].wrong) for server, host in named.items())
        raise ClusterError(f"no broker answers at {reasons or 'no address'}")
    advertised = {node: address for one in found.values() for node, address in one.advertised.items()}
    if not advertised or any(not found[one].wrong for one in advertised.values() if one in found):
        return
    others = [one for one in advertised.values() if one not in found]
    found |= zip(others, look(others, settings, end), strict=True)
    if all(found[one].wrong for one in advertised.values()):
        reasons = _reasons(
            (f"broker {node} as {host}:{port}", found[host, port].wrong)
            for node, (host, port) in advertised.items()
        )
        reached = [server for server, host in named.items() if not found[host].wrong]
        raise ClusterError(
            f"{', '.join(reached)} can be reached, and none of the addresses that its brokers advertise:"
            f" {reasons}; let advertised.listeners name addresses that clients can reach"
        )


def _reasons(found: Iterable[tuple[str, str]]) -> str:
    """What is wrong with each server, by name; a reason of several is said once, after their names."""
    names: dict[str, list[str]] = {}
    for name, wrong in found:
        names.setdefault(wrong, []).append(name)
    return "; ".join(f"{', '.join(those)}: {wrong}" for wrong, those in names.items())
