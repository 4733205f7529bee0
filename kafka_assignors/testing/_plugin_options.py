"""The settings of the pytest plug-in: declared, read and checked. See `kafka_assignors.testing._plugin`."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.testing._brokers.cluster import How
    from kafka_assignors.testing._brokers.credentials import Level
    from kafka_assignors.testing._groups.runners import Place

WAYS: Final = ("given", "docker", "embedded")
NODES: Final = ("1", "3")
LEVELS: Final = ("plaintext", "tls", "sasl", "sasl_tls")
PLACES: Final = ("process", "thread")


class Options(NamedTuple):
    """What is configured.

    `keep` and `timeout` are seconds. `client` is a library, or the path of a function.
    """

    how: How | None
    bootstrap: str | None
    nodes: int
    image: str | None
    broker_settings: Mapping[str, str]
    security: Level
    timeout: float
    client: str
    place: Place
    consumer_settings: Mapping[str, Any]
    keep: float
    timelines: Path | None


class _Setting(NamedTuple):
    name: str
    metavar: str
    text: str
    several: bool = False


_SETTINGS: Final = (
    _Setting("kafka", "|".join(WAYS), "insist on one way of having Kafka (default: the first that there is)"),
    _Setting("kafka_bootstrap", "HOST:PORT[,...]", "use this running cluster (default: $KAFKA_BOOTSTRAP)"),
    _Setting("kafka_nodes", "|".join(NODES), "number of Kafka brokers (default: 1)"),
    _Setting("kafka_image", "IMAGE", "container image of Kafka (default: $KAFKA_IMAGE, or apache/kafka)"),
    _Setting(
        "kafka_broker_settings", "KEY=VALUE", "a setting of the Kafka brokers; may be repeated", several=True
    ),
    _Setting("kafka_security", "|".join(LEVELS), "what the Kafka brokers require (default: plaintext)"),
    _Setting(
        "kafka_keep",
        "SECONDS",
        "keep the embedded Kafka for the next run, until unused for so long (default: 0)",
    ),
    _Setting("kafka_timeout", "SECONDS", "how long to wait for consumer groups at most (default: 30)"),
    _Setting("kafka_client", "NAME", "client library of groups' members (default: kafka-python)"),
    _Setting("kafka_place", "|".join(PLACES), "what groups' members run in (default: process)"),
    _Setting(
        "kafka_consumer_settings",
        "KEY=VALUE",
        "a setting of all groups' consumers, its value JSON or text; may be repeated",
        several=True,
    ),
    _Setting(
        "kafka_timelines", "FOLDER", "draw failed tests' groups into this folder, beside their members' logs"
    ),
)

_DEFAULT_TIMEOUT: Final = 30.0


def declare(parser: pytest.Parser) -> None:
    group = parser.getgroup("kafka", "a real Kafka cluster (kafka-assignors)")
    for name, metavar, text, several in _SETTINGS:
        action = "append" if several else "store"
        group.addoption(f"--{name.replace('_', '-')}", dest=name, metavar=metavar, help=text, action=action)
        if several:
            parser.addini(name, text, type="linelist", default=[])
        else:
            parser.addini(name, text, default="")


def read(config: pytest.Config) -> Options:
    """What command line, ini file and environment say.

    Raises pytest.UsageError if a value is none of those allowed, or two contradict each other.
    """
    how = _option(config, "kafka", WAYS)
    bootstrap = _option(config, "kafka_bootstrap")
    image = _option(config, "kafka_image")
    running = f"kafka_bootstrap={bootstrap} names a running cluster"
    _refuse(bootstrap and how not in {"", "given"}, f"{running}, but kafka={how} is to start one")
    _refuse(
        image and how not in {"", "docker"},
        f"kafka_image={image} names a container image, but kafka={how} runs no containers: leave one of the"
        " two out, or say kafka=docker",
    )
    _refuse(
        image and bootstrap,
        f"kafka_image={image} is to be started, but {running}: leave one of the two out",
    )
    # Who names an image wants that one, whatever the environment offers.
    if how in {"", "given"} and not image:
        bootstrap = bootstrap or os.environ.get("KAFKA_BOOTSTRAP", "")
    how = "docker" if image else how
    broker_settings = _pairs(config, "kafka_broker_settings", "log.retention.ms=60000")
    security = _option(config, "kafka_security", LEVELS) or "plaintext"
    keep = _seconds(config, "kafka_keep", 0)
    other = "kafka=docker" if how == "docker" else f"kafka_security={security}"
    there = "is running already; have one started (kafka=embedded or kafka=docker), or leave"
    _refuse(
        how == "given" and not bootstrap,
        "kafka=given needs a running cluster: --kafka-bootstrap=host:port or $KAFKA_BOOTSTRAP",
    )
    _refuse(
        bootstrap and broker_settings,
        f"kafka_broker_settings={', '.join(broker_settings)}: the cluster at {bootstrap} {there} them out",
    )
    _refuse(
        bootstrap and security != "plaintext",
        f"kafka_security={security}: the cluster at {bootstrap} {there} it out",
    )
    _refuse(
        keep and (how == "docker" or security != "plaintext"),
        f"kafka_keep={keep:g} keeps the embedded Kafka without security, and {other} asks for another:"
        " leave one of the two out",
    )
    return Options(
        how=cast("How", how) if how else None,
        bootstrap=bootstrap or None,
        nodes=int(_option(config, "kafka_nodes", NODES) or "1"),
        image=image or None,
        broker_settings=broker_settings,
        security=cast("Level", security),
        timeout=_seconds(config, "kafka_timeout", _DEFAULT_TIMEOUT),
        client=_client(config),
        place=cast("Place", _option(config, "kafka_place", PLACES) or "process"),
        consumer_settings=_consumer_settings(config),
        keep=keep,
        timelines=_folder(config, "kafka_timelines"),
    )


def _refuse(wrong: object, text: str) -> None:
    if wrong:
        raise pytest.UsageError(text)


def _option(config: pytest.Config, name: str, allowed: Sequence[str] = ()) -> str:
    """The option, else the ini value, else an empty string."""
    value = str(config.getoption(name) or config.getini(name)).strip()
    if value and allowed and value not in allowed:
        raise pytest.UsageError(f"{name}={value}: must be one of {', '.join(allowed)}")
    return value


def _client(config: pytest.Config) -> str:
    """A client library, or the path of a function."""
    value = _option(config, "kafka_client")
    if not value:
        return "kafka-python"
    from kafka_assignors.testing._groups.clients import check_client  # noqa: PLC0415 - who chooses needs it

    try:
        check_client(value)
    except ValueError as error:
        raise pytest.UsageError(f"kafka_{error}") from None
    return value


def _pairs(config: pytest.Config, name: str, example: str) -> dict[str, str]:
    """The ini's lines and the options, which come later and so win key by key."""
    found: dict[str, str] = {}
    for line in (*config.getini(name), *(config.getoption(name) or ())):
        key, equals, value = line.partition("=")
        if not (key.strip() and equals):
            raise pytest.UsageError(f"{name}={line}: must be KEY=VALUE, as in {example}")
        found[key.strip()] = value.strip()
    return found


def _consumer_settings(config: pytest.Config) -> dict[str, Any]:
    found = _pairs(config, "kafka_consumer_settings", "session_timeout_ms=3000")
    if found:
        from kafka_assignors.testing._groups.clients import check_settings  # noqa: PLC0415 - as in _client
        from kafka_assignors.testing._groups.config import is_by_epochs  # noqa: PLC0415

        try:
            check_settings(found)
            is_by_epochs(found)
        except ValueError as error:
            raise pytest.UsageError(f"kafka_consumer_settings: {error}") from None
    return {key: _json_or_text(value) for key, value in found.items()}


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _seconds(config: pytest.Config, name: str, default: float) -> float:
    value = _option(config, name)
    try:
        seconds = float(value) if value else default
    except ValueError:
        seconds = math.nan
    # What is 0 by default can be switched off.
    if not (0 < seconds < math.inf or seconds == default):
        raise pytest.UsageError(f"{name}={value}: must be a number of seconds above 0, as in {name}=60")
    return seconds


def _folder(config: pytest.Config, name: str) -> Path | None:
    """A folder as seen from where the command line was written, or from the ini file's place."""
    if option := config.getoption(name):
        folder = config.invocation_params.dir / option
    elif ini := config.getini(name):
        folder = config.rootpath / ini
    else:
        return None
    if folder.exists() and not folder.is_dir():
        raise pytest.UsageError(f"{name}={folder}: this is a file; name a folder, which need not exist")
    return Path(folder)
