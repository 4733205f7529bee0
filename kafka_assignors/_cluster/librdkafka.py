"""The settings of kafka-python's clients in librdkafka's spelling, for what confluent-kafka does faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._cluster.command_config import CALL_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final = {
    "client_id": "client.id",
    "request_timeout_ms": "socket.timeout.ms",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_password": "sasl.password",
    "sasl_plain_username": "sasl.username",
    "security_protocol": "security.protocol",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}


def librdkafka_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings such as `command_config.read_command_config` gives, for clients of confluent-kafka.

    `bootstrap_servers` may be a list. Raises ValueError for a setting that properties files do not name.
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name == "bootstrap_servers":
            found["bootstrap.servers"] = value if isinstance(value, str) else ",".join(value)
        elif name == "ssl_check_hostname":
            found["ssl.endpoint.identification.algorithm"] = "https" if value else "none"
        elif name in _NAMES:
            found[_NAMES[name]] = value
        elif name != CALL_TIMEOUT:
            known = ", ".join(sorted([*_NAMES, "bootstrap_servers", "ssl_check_hostname"]))
            raise ValueError(f"setting {name!r} is not known to both clients: known are {known}")
    if "ssl.certificate.location" in found:
        # kafka-python reads the key from the certificate's file where no other is named.
        found.setdefault("ssl.key.location", found["ssl.certificate.location"])
    return found
