"""How commands are added, and what several take; imports nothing that takes time."""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

Check = Callable[[ArgumentParser, Namespace], None]
"""Refuses options that do not go together, by `ArgumentParser.error`, before anything is imported."""


class Command(NamedTuple):
    """A command as its parser describes it.

    Attributes:
        name: With its verb: "history capture".
        run: "module:function" of `kafka_assignors._cli`, imported when the command is run: many are slow to
            import, or need an extra. Its keyword arguments are the command's options.
        parser: The parser.
        check: See `Check`.
    """

    name: str
    run: str
    parser: ArgumentParser
    check: Check | None


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
    groups: list[str]


class Replayed(NamedTuple):
    """What to replay histories with; empty for what is replayed by default."""

    assignors: list[str]
    scenarios: list[str]


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


class Pacing(NamedTuple):
    """How gently to move replicas: as for `reassign`; `no_throttle` says that none is wanted."""

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
    "pacing": Pacing,
}


def gather(options: Namespace) -> dict[str, Any]:
    """Options as keyword arguments: those that belong together as one argument."""
    gathered = dict(vars(options))
    for name, kind in _TOGETHER.items():
        if gathered.keys() >= {*kind._fields}:
            gathered[name] = kind(**{field: gathered.pop(field) for field in kind._fields})
    return gathered


def add_command(
    commands: Any,
    name: str,
    text: str,
    run: str,
    *,
    more: str = ".",
    check: Check | None = None,
    **settings: Any,
) -> ArgumentParser:
    """Add a command that does what `text` says; `more` ends its description, if `settings` has no other."""
    description = f"{text[0].upper()}{text[1:]}{more}"
    parser: ArgumentParser = commands.add_parser(name, help=text, **{"description": description, **settings})
    command = Command(parser.prog.removeprefix("kafka-assignors "), run, parser, check)
    parser.set_defaults(command=command)
    return parser


def add_commands(
    commands: Any,
    name: str,
    text: str,
    *,
    description: str,
    epilog: str,
    verbs: Iterable[Callable[[Any], object]],
) -> None:
    """Add a command that has commands of its own, each of which one of `verbs` adds."""
    parser = commands.add_parser(
        name,
        help=text,
        description=description,
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )
    own = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in verbs:
        add(own)


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = whole(text)
    if number == 0:
        raise ArgumentTypeError("0 is too few")
    return number


def data_size(text: str) -> int:
    """Bytes, at least one: "1048576", "1MiB", "1.5 GB"."""
    found = _SIZE.fullmatch(text.strip())
    number = 0 if found is None else int(float(found["number"]) * _UNITS[found["unit"].lower()])
    if number < 1:
        raise ArgumentTypeError(f"{text!r} is no number of bytes, as in 10485760 or 10MiB")
    return number


_UNITS: Final = {"": 1, "b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgt", 1)
    for unit, base in (("b", 1000), ("ib", 1024))
}
_SIZE: Final = re.compile(
    rf"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>{'|'.join(_UNITS)})", re.IGNORECASE | re.ASCII
)


def add_json(parser: ArgumentParser, what: str = "print the result as JSON", *, itself: bool = False) -> None:
    """Add --json. A command that prints by `itself`, as it goes, has it as the argument `as_json`."""
    parser.add_argument("--json", action="store_true", dest="as_json" if itself else "json", help=what)


def add_client(parser: Any, *, required: bool) -> None:
    """Add the options of a `ClusterClient`, to a parser or a group of its arguments."""
    parser.add_argument(
        "--bootstrap-servers",
        type=lambda text: text.split(","),
        metavar="HOST:PORT[,...]",
        required=required,
        help="a running Kafka",
    )
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="properties of the client, as for Kafka's own tools: security.protocol=SASL_SSL ...",
    )
