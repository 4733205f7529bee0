"""The user of a cluster with SASL, made on its brokers."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import KafkaError

from kafka_assignors.testing._brokers.access import Access, Security
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError
from kafka_assignors.testing._brokers.waiting import START_TIMEOUT, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

__tracebackhide__ = True

_LOGIN_MS = 2000  # for one try


def create_user(
    security: Security, bootstrap: str, servers: Sequence[str], timeout: float = START_TIMEOUT
) -> None:
    """Create the user on a new cluster, and wait until every broker accepts it. Does nothing without SASL.

    Raises ClusterUnavailableError if a broker does not accept it.
    """
    if not security.authenticated:
        return
    user = UserScramCredentialUpsertion(security.username, ScramMechanism.SCRAM_SHA_512, security.password)
    admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)
    with contextlib.closing(admin):
        refused = admin.alter_user_scram_credentials([user])[user.user]
    if refused is not None:
        raise ClusterUnavailableError(f"the brokers do not accept the user {user.user}: {refused}")
    for server in servers:
        access = Access((server,), security)
        wait_until(partial(_refusals, access), timeout, f"{server} to accept its user")


def _refusals(access: Access) -> list[str]:
    """Why a broker does not let a client in; empty if it does."""
    try:
        KafkaAdminClient(**access.kafka_python(), bootstrap_timeout_ms=_LOGIN_MS).close()
    except KafkaError as error:
        return [str(error)]
    return []
