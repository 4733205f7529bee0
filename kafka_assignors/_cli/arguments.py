"""What options say, as values: those that belong together, and how their texts are read."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple


class ClusterClient(NamedTuple):
    """How to reach a cluster; no servers if none is meant."""

    bootstrap_servers: list[str] | None
    command_config: Path | None


class Where(NamedTuple):
    """The cluster of placements: a running one; or a file of placements, and its brokers with their racks."""

    client: ClusterClient
    placements: Path | None
    brokers: Mapping[int, str | None] | None


class Store(NamedTuple):
    """Where an archive is, how to reach its store, and the master of the Spark to work on it."""

    archive: str
    store_config: Path | None
    master: str | None


class Selection(NamedTuple):
    """Which records of an archive are meant, as for `Archive.read`."""

    since: datetime | None
    until: datetime | None
    groups: Sequence[str]


class Replayed(NamedTuple):
    """What to replay histories with; empty for what is replayed by default."""

    assignors: Sequence[str]
    scenarios: Sequence[str]


class Draws(NamedTuple):
    """What a generator of placements would draw, if it is not said; as for `place_rack_aware`."""

    start_index: int | None
    shift: int | None
    seed: int | None


class WantedReplicas(NamedTuple):
    """Where replicas should be, as for `plan_moves`; and whether to count replicas instead of bytes."""

    to_brokers: list[int] | None
    replication_factor: int | None
    per_topic: bool
    count_replicas: bool


class Pace(NamedTuple):
    """How gently to move replicas: as for `Pacing`; `no_throttle` says that none is wanted."""

    throttle: int | None
    no_throttle: bool
    at_once: int
    stalled_after: int


_TOGETHER: Final[Mapping[str, Any]] = {
    "client": ClusterClient,
    "where": Where,
    "store": Store,
    "selection": Selection,
    "replayed": Replayed,
    "draws": Draws,
    "goal": WantedReplicas,
    "pacing": Pace,
}


def gather(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as keyword arguments: those that belong together as one argument."""
    gathered = dict(options)
    for name, kind in _TOGETHER.items():
        if gathered.keys() >= {*kind._fields}:
            gathered[name] = kind(**{field: gathered.pop(field) for field in kind._fields})
    return gathered


def whole(text: str) -> int:
    """A whole number from 0 on.

    Raises:
        ValueError: The text is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on.

    Raises:
        ValueError: The text is none.
    """
    number = whole(text)
    if number == 0:
        raise ValueError("0 is too few")
    return number


def seconds(text: str) -> float:
    """A number of seconds, from 0 on.

    Raises:
        ValueError: The text is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{text!r} is no number of seconds from 0 on")
    return number


def data_size(text: str) -> int:
    """Bytes, at least one: "1048576", "1MiB", "1.5 GB".

    Raises:
        ValueError: The text is no such number.
    """
    found = _SIZE.fullmatch(text.strip())
    number = 0 if found is None else int(float(found["number"]) * _UNITS[found["unit"].lower()])
    if number < 1:
        raise ValueError(f"{text!r} is no number of bytes, as in 10485760 or 10MiB")
    return number


_UNITS: Final = {"": 1, "b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgt", 1)
    for unit, base in (("b", 1000), ("ib", 1024))
}
_SIZE: Final = re.compile(
    rf"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>{'|'.join(_UNITS)})", re.IGNORECASE | re.ASCII
)
