"""How to reach a cluster, from the properties file that Kafka's own tools take as `--command-config`.

Names of Java's clients and of librdkafka are known. Java's key stores are not readable from Python:
certificates must be PEM files.
"""

import math
import re
from pathlib import Path
from typing import Any, Final

from kafka import KafkaAdminClient

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.properties import parse_properties

_DIGITS: Final = 9  # of a time in milliseconds

CALL_TIMEOUT: Final = "default_api_timeout_ms"
"""A setting of kafka-python's clients that follows from `request.timeout.ms`."""

SETTINGS: Final = {
    "client.id": "client_id",
    "request.timeout.ms": "request_timeout_ms",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.truststore.location": "ssl_cafile",
}
"""Properties that are settings of kafka-python's clients; librdkafka has all but those of stores, too,
and another for `request.timeout.ms`."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TYPES: Final = frozenset({"ssl.keystore.type", "ssl.truststore.type"})
_AS_IT_IS: Final = frozenset({"sasl.password", "ssl.key.password"})


class CommandConfigError(KafkaAssignorsError, ValueError):
    """A properties file that cannot be used; the message names the property and the way out."""


def read_command_config(path: Path) -> dict[str, Any]:
    """Settings of kafka-python's clients from a properties file, by the rules of Java's properties.

    Raises CommandConfigError if a property is not known or cannot be used from Python, or the file cannot be
    read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandConfigError(f"cannot read {path}: {error}") from error
    return parse_command_config(text)


def parse_command_config(text: str) -> dict[str, Any]:
    """The same from the file's text; raises CommandConfigError, too."""
    try:
        properties = parse_properties(text)
    except ValueError as error:
        raise CommandConfigError(f"cannot read the properties: {error}") from error
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        # As Kafka does, but for passwords.
        settings |= _setting(name, value if name in _AS_IT_IS else value.strip())
    return settings


def _setting(name: str, value: str) -> dict[str, Any]:
    if name == "sasl.jaas.config":
        return _jaas(name, value)
    if name in _TYPES:
        return _check_pem(name, value)
    if name not in SETTINGS:
        known = ", ".join(sorted([*SETTINGS, *_TYPES, "sasl.jaas.config"]))
        raise CommandConfigError(f"property {name!r} is not known: known are {known}")
    settings = {SETTINGS[name]: _read(name, value)}
    # From 3.1 on kafka-python limits a whole call, too, and refuses a limit below that of a request.
    limit = KafkaAdminClient.DEFAULT_CONFIG.get(CALL_TIMEOUT, math.inf)
    if settings.get("request_timeout_ms", 0) > limit:
        settings[CALL_TIMEOUT] = settings["request_timeout_ms"]
    return settings


def _read(name: str, value: str) -> Any:
    """A property as a setting of kafka-python has it."""
    match name:
        case "request.timeout.ms":
            if not value.isdecimal() or len(value) > _DIGITS:
                raise CommandConfigError(f"{name} is {value!r}, not a number of up to {_DIGITS} digits")
            return int(value)
        case "security.protocol":
            # kafka-python takes any other for PLAINTEXT, and would send passwords as they are.
            if value.upper() not in _PROTOCOLS:
                raise CommandConfigError(f"{name} is {value!r}, not {', '.join(_PROTOCOLS)}")
            return value.upper()
        case "ssl.endpoint.identification.algorithm":
            if value.lower() not in {"", "none", "https"}:
                raise CommandConfigError(f"{name} is {value!r}, not https, none or empty")
            return value.lower() == "https"
        case _ if name.endswith(".location"):
            return _file(name, value)
    if not value:
        raise CommandConfigError(f"{name} has no value")
    return value


def _jaas(name: str, value: str) -> dict[str, Any]:
    """The user's name and password of `...LoginModule required username="..." password="...";`."""
    options = {
        key: re.sub(r"\\(.)", r"\1", quoted)
        for key, quoted in re.findall(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"', value)
    }
    if not {"username", "password"} <= options.keys():
        # Its value is a secret: not in the message.
        raise CommandConfigError(f'{name} needs username="..." and password="...": others are not supported')
    return {"sasl_plain_username": options["username"], "sasl_plain_password": options["password"]}


def _check_pem(name: str, value: str) -> dict[str, Any]:
    if value.upper() != "PEM":
        raise CommandConfigError(
            f"{name} is {value!r}, which Python cannot read: export the certificates as PEM"
            " (keytool -exportcert -rfc) and say PEM"
        )
    return {}


def _file(name: str, value: str) -> str:
    if value.endswith((".jks", ".p12", ".pfx")):
        _check_pem(name, value)
    if not Path(value).is_file():
        raise CommandConfigError(f"{name} is {value!r}: there is no such file")
    return value
