"""Requests over the connections of kafka-python's admin client, which has no public way to send one's own.

All that is relied on of that client's private parts is here. A test finds private names that are used
elsewhere. Other tests call these functions on a client of the release that is installed.
"""

import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import GroupAuthorizationFailedError

_LEFT_OUT_SECONDS: Final = 60.0
_TIMEOUTS: Final = ("request_timeout_ms", "socket_connection_setup_timeout_ms")


@contextmanager
def answered_within(client: KafkaAdminClient, seconds: float) -> Iterator[None]:
    """Let requests fail that are not answered in so many seconds, and so connections that are not made.

    A request that has a time of its own keeps it.
    """
    usual = {name: client._manager.config[name] for name in _TIMEOUTS}  # noqa: SLF001
    _limit(client, {name: min(limit, 1000 * seconds) for name, limit in usual.items()})
    try:
        yield
    finally:
        _limit(client, usual)


def _limit(client: KafkaAdminClient, limits: Mapping[str, float]) -> None:
    manager = client._manager  # noqa: SLF001
    manager.config.update(limits)
    for connection in [*manager._conns.values()]:  # noqa: SLF001 - those made from now on have it as well
        connection._timeout_secs = limits["request_timeout_ms"] / 1000  # noqa: SLF001


def ssl_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """What a client with such settings encrypts by; raises OSError if a certificate cannot be used."""
    from kafka.net.transport import KafkaSSLTransport  # noqa: PLC0415 - private: for TLS only

    config = {name: settings.get(name, usual) for name, usual in KafkaSSLTransport.DEFAULT_CONFIG.items()}
    context: ssl.SSLContext = KafkaSSLTransport._build_ssl_context(config)  # noqa: SLF001
    return context


def send(
    client: KafkaAdminClient, request: Any, node: int | None = None, seconds: float | None = None
) -> Any:
    """Send a request of `kafka.protocol` or `messages` to a broker, or any, and wait for its response.

    It is waited for so many seconds; None for what the client is set to. Raises KafkaError if the broker is
    not known, or does not answer.
    """
    limit = None if seconds is None else seconds * 1000
    return client._net.run(client._manager.send, request, node, limit)  # noqa: SLF001


def find_coordinators(
    client: KafkaAdminClient, group_ids: Sequence[str]
) -> dict[str, int | GroupAuthorizationFailedError]:
    """The coordinators of groups, as ids of brokers; of a group that the user may not describe, the error.

    Raises KafkaError if no broker says.
    """
    try:
        return dict(client._net.run(client._find_coordinator_ids, [*group_ids]))  # noqa: SLF001
    except GroupAuthorizationFailedError as error:  # of one of them
        if len(group_ids) == 1:
            return {group_ids[0]: error}
    return {
        one: found for group_id in group_ids for one, found in find_coordinators(client, [group_id]).items()
    }


def known_brokers(client: KafkaAdminClient) -> list[Any]:
    """The brokers that the client heard of last: a request for them may find nobody."""
    return list(client._manager.cluster.brokers())  # noqa: SLF001


def leave_out(client: KafkaAdminClient | KafkaConsumer, nodes: Iterable[int]) -> None:
    """Let a client connect to none of these brokers, as to a broker that has just refused it."""
    manager = client._manager  # noqa: SLF001
    for node in nodes:
        manager._backoff[node] = (1, time.monotonic() + _LEFT_OUT_SECONDS, 0)  # noqa: SLF001
