"""The settings of kafka-python's clients in librdkafka's spelling, for what confluent-kafka does faster."""

from collections.abc import Mapping
from typing import Any, Final

from kafka_assignors._cluster.command_config import CALL_TIMEOUT, SETTINGS

_NAMES: Final = {setting: name for name, setting in SETTINGS.items() if "store" not in name} | {
    "bootstrap_servers": "bootstrap.servers",
    "request_timeout_ms": "socket.timeout.ms",
}


def librdkafka_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings such as `command_config.read_command_config` gives, for clients of confluent-kafka.

    `bootstrap_servers` may be a list. Raises ValueError for a setting that properties files do not name.
    """
    if unknown := settings.keys() - _NAMES.keys() - {CALL_TIMEOUT}:
        known = ", ".join(sorted(_NAMES))
        raise ValueError(f"setting {min(unknown)!r} is not known to both clients: known are {known}")
    found = {_NAMES[name]: value for name, value in settings.items() if name != CALL_TIMEOUT}
    if "ssl_check_hostname" in settings:
        found[_NAMES["ssl_check_hostname"]] = "https" if settings["ssl_check_hostname"] else "none"
    if not isinstance(servers := found.get("bootstrap.servers", ""), str):
        found["bootstrap.servers"] = ",".join(servers)
    if "ssl.certificate.location" in found:
        # kafka-python reads the key from the certificate's file where no other is named.
        found.setdefault("ssl.key.location", found["ssl.certificate.location"])
    return found
