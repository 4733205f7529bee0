"""How clients reach a cluster: its servers, and what these require of who connects.

Every part of the kit takes a `Kafka`: a cluster that was started here, or the servers of one.
Each client library spells the same settings its own way; the spellings stand here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol as Structure, Self, TypeAlias, runtime_checkable

from kafka_assignors._cluster.librdkafka import librdkafka_settings


@runtime_checkable
class HasAccess(Structure):
    """What knows how clients reach it: a `Cluster`, a `Network`."""

    @property
    def access(self) -> "Access":
        """How clients reach it."""
        ...


Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
Mechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a cluster's client listener requires.

    Attributes:
        protocol: Whether connections are encrypted (SSL) and clients must say who they are (SASL).
        ca_file: PEM file of the authority that signed the brokers' certificates; for SSL.
        mechanism: How clients prove who they are; for SASL.
        username: Who they are; for SASL.
        password: For SASL.
    """

    protocol: Protocol = "PLAINTEXT"
    ca_file: str = ""
    mechanism: Mechanism = "SCRAM-SHA-512"
    username: str = ""
    password: str = ""

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def authenticated(self) -> bool:
        """Whether clients must say who they are."""
        return self.protocol.startswith("SASL")


OPEN = Security()
"""Anybody may connect, in plain text."""


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster's servers and what they require.

    Attributes:
        servers: "host:port" each.
        security: What they require of clients.
    """

    servers: tuple[str, ...]
    security: Security = OPEN

    @classmethod
    def to(cls, kafka: "Kafka") -> "Access":
        """The access to a cluster, however it is named."""
        if isinstance(kafka, Access):
            return kafka
        if isinstance(kafka, str):
            return cls(tuple(server.strip() for server in kafka.split(",")))
        return kafka.access if isinstance(kafka, HasAccess) else cls(tuple(kafka))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """From its fields, as `dataclasses.asdict` has them."""
        return cls(tuple(values["servers"]), Security(**values["security"]))

    def kafka_python(self) -> dict[str, Any]:
        security = self.security
        settings: dict[str, Any] = {
            "bootstrap_servers": list(self.servers),
            "security_protocol": security.protocol,
        }
        if security.encrypted:
            settings["ssl_cafile"] = security.ca_file
        if security.authenticated:
            settings |= {
                "sasl_mechanism": security.mechanism,
                "sasl_plain_username": security.username,
                "sasl_plain_password": security.password,
            }
        return settings

    def librdkafka(self) -> dict[str, Any]:
        return librdkafka_settings(self.kafka_python())

    def java(self) -> dict[str, str]:
        security = self.security
        settings = {"bootstrap.servers": ",".join(self.servers), "security.protocol": security.protocol}
        if security.encrypted:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": security.ca_file}
        if security.authenticated:
            settings |= {
                "sasl.mechanism": security.mechanism,
                "sasl.jaas.config": (
                    f'{LOGIN_MODULE} required username="{security.username}" password="{security.password}";'
                ),
            }
        return settings

    def aiokafka(self) -> dict[str, Any]:
        """Settings of aiokafka's clients, as of kafka-python's but for the certificates."""
        settings = self.kafka_python()
        if (ca_file := settings.pop("ssl_cafile", None)) is not None:
            import ssl  # noqa: PLC0415 - only this client wants a context

            settings["ssl_context"] = ssl.create_default_context(cafile=ca_file)
        return settings


Kafka: TypeAlias = str | Sequence[str] | Access | HasAccess
"""A cluster: `host:port[,host:port...]`, such addresses one by one, an `Access`, or a `Cluster`."""
