"""What makes a cluster safe, new for each: certificates of its brokers, and a user with a password."""

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import KafkaError

from kafka_assignors.testing._brokers.access import LOGIN_MODULE, Access, Protocol, Security
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError
from kafka_assignors.testing._brokers.waiting import START_TIMEOUT, wait_until
from kafka_assignors.testing._choices import check_choice

Level = Literal["plaintext", "tls", "sasl", "sasl_tls"]
"""What a cluster requires of clients: nothing, encryption, a user with a password (SCRAM), or both."""

PROTOCOLS: Mapping[Level, Protocol] = {
    "plaintext": "PLAINTEXT",
    "tls": "SSL",
    "sasl": "SASL_PLAINTEXT",
    "sasl_tls": "SASL_SSL",
}

_LOGIN_MS = 2000  # for one try


class Credentials:
    """An authority with certificates, and a user, as far as the level of security wants them.

    The authority's certificate, for clients, is in a folder that ends with the stack. Raises
    ClusterUnavailableError without trustme, which makes certificates, and ValueError if there is no such
    level.
    """

    def __init__(self, level: Level, stack: contextlib.ExitStack) -> None:
        check_choice("security", level, Level)
        security = Security(protocol=PROTOCOLS[level])
        if security.authenticated:
            security = replace(security, username="tester", password=secrets.token_urlsafe(16))
        if security.encrypted:
            self._authority = _new_authority()
            ca_file = Path(stack.enter_context(TemporaryDirectory())) / "authority.pem"
            ca_file.write_bytes(self._authority.cert_pem.bytes())
            security = replace(security, ca_file=str(ca_file))
        self.security = security

    def key_store(self, host: str) -> bytes:
        """A broker's key and certificate in PEM, the key in PKCS#8, which Kafka reads; empty without TLS.

        Clients reach the broker at the host, and at 127.0.0.1, as through a proxy.
        """
        if not self.security.encrypted:
            return b""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - comes with trustme

        issued = self._authority.issue_cert(*{"127.0.0.1", "localhost", host})
        key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
        pkcs8 = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return b"".join([pkcs8, *(certificate.bytes() for certificate in issued.cert_chain_pems)])

    def broker_settings(self, listener: str, key_store: str) -> dict[str, str]:
        """What makes a broker require it of those who come to a listener."""
        prefix = f"listener.name.{listener.lower()}"
        settings: dict[str, str] = {}
        if self.security.encrypted:
            settings |= {
                f"{prefix}.ssl.keystore.type": "PEM",
                f"{prefix}.ssl.keystore.location": key_store,
            }
        if self.security.authenticated:
            mechanism = self.security.mechanism
            settings |= {
                f"{prefix}.sasl.enabled.mechanisms": mechanism,
                f"{prefix}.{mechanism.lower()}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
            }
        return settings

    def create_user(self, bootstrap: str, servers: Sequence[str]) -> None:
        """Create the user on a new cluster, and wait until every broker accepts it. Nothing without SASL.

        Raises ClusterUnavailableError if a broker does not accept it.
        """
        if not self.security.authenticated:
            return
        name = self.security.username
        user = UserScramCredentialUpsertion(name, ScramMechanism.SCRAM_SHA_512, self.security.password)
        admin: Any = KafkaAdminClient(bootstrap_servers=bootstrap)
        with contextlib.closing(admin):
            refused = admin.alter_user_scram_credentials([user])[name]
        if refused is not None:
            raise ClusterUnavailableError(f"the brokers do not accept the user {name}: {refused}")
        for server in servers:
            access = Access((server,), self.security)
            wait_until(partial(_refusals, access), START_TIMEOUT, f"{server} to accept its user")


def _refusals(access: Access) -> list[str]:
    """Why a broker does not let a client in; empty if it does."""
    try:
        KafkaAdminClient(**access.kafka_python(), bootstrap_timeout_ms=_LOGIN_MS).close()
    except KafkaError as error:
        return [str(error)]
    return []


def _new_authority() -> Any:
    try:
        import trustme  # noqa: PLC0415 - optional, and needed for TLS only
    except ImportError as error:
        raise ClusterUnavailableError(
            f"trustme is not installed ({error}), which makes certificates: pip install "
            "'kafka-assignors[testing]', or take security='sasl' or 'plaintext'"
        ) from error
    return trustme.CA()
