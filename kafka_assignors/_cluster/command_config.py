"""How to reach a cluster, from the properties file that Kafka's own tools take as `--command-config`.

Names of Java's clients and of librdkafka are known. Java's key stores are not readable from Python:
certificates must be PEM files.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafka import KafkaAdminClient

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.properties import parse_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_DIGITS: Final = 9  # of a time in milliseconds

CALL_TIMEOUT: Final = "default_api_timeout_ms"
"""A setting of kafka-python's clients that follows from `request.timeout.ms`."""


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
    if name not in _KNOWN:
        raise CommandConfigError(f"property {name!r} is not known: known are {', '.join(sorted(_KNOWN))}")
    return _KNOWN[name](name, value)


def _text(setting: str) -> Callable[[str, str], dict[str, Any]]:
    def read(name: str, value: str) -> dict[str, Any]:
        if not value:
            raise CommandConfigError(f"{name} has no value")
        return {setting: value}

    return read


def _number(setting: str) -> Callable[[str, str], dict[str, Any]]:
    def read(name: str, value: str) -> dict[str, Any]:
        if not value.isdecimal() or len(value) > _DIGITS:
            raise CommandConfigError(f"{name} is {value!r}, not a number of up to {_DIGITS} digits")
        return {setting: int(value)}

    return read


def _request_timeout(name: str, value: str) -> dict[str, Any]:
    settings = _number("request_timeout_ms")(name, value)
    # From 3.1 on kafka-python limits a whole call, too, and refuses a limit below that of a request.
    if settings["request_timeout_ms"] > KafkaAdminClient.DEFAULT_CONFIG.get(CALL_TIMEOUT, math.inf):
        settings[CALL_TIMEOUT] = settings["request_timeout_ms"]
    return settings


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


def _pem_type(name: str, value: str) -> dict[str, Any]:
    if value.upper() != "PEM":
        raise CommandConfigError(
            f"{name} is {value!r}, which Python cannot read: export the certificates as PEM"
            " (keytool -exportcert -rfc) and say PEM"
        )
    return {}


def _pem_file(setting: str) -> Callable[[str, str], dict[str, Any]]:
    def read(name: str, value: str) -> dict[str, Any]:
        if value.endswith((".jks", ".p12", ".pfx")):
            _pem_type(name, value)
        if not Path(value).is_file():
            raise CommandConfigError(f"{name} is {value!r}: there is no such file")
        return {setting: value}

    return read


def _identification(name: str, value: str) -> dict[str, Any]:
    if value not in {"", "none", "https"}:
        raise CommandConfigError(f"{name} is {value!r}, not https, none or empty")
    return {"ssl_check_hostname": value == "https"}


_AS_IT_IS: Final = frozenset({"sasl.password", "ssl.key.password"})

_KNOWN: Final[Mapping[str, Callable[[str, str], dict[str, Any]]]] = {
    "client.id": _text("client_id"),
    "request.timeout.ms": _request_timeout,
    "sasl.jaas.config": _jaas,
    "sasl.mechanism": _text("sasl_mechanism"),
    "sasl.password": _text("sasl_plain_password"),
    "sasl.username": _text("sasl_plain_username"),
    "security.protocol": _text("security_protocol"),
    "ssl.ca.location": _pem_file("ssl_cafile"),
    "ssl.certificate.location": _pem_file("ssl_certfile"),
    "ssl.endpoint.identification.algorithm": _identification,
    "ssl.key.location": _pem_file("ssl_keyfile"),
    "ssl.key.password": _text("ssl_password"),
    "ssl.keystore.location": _pem_file("ssl_certfile"),
    "ssl.keystore.type": _pem_type,
    "ssl.truststore.location": _pem_file("ssl_cafile"),
    "ssl.truststore.type": _pem_type,
}
