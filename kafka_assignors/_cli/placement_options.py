"""What `kafka-assignors placement` takes, and its help; imports nothing that takes time."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Final

import click

from kafka_assignors._cli.arguments import data_size, whole
from kafka_assignors._cli.commands import (
    FILE,
    Check,
    Command,
    Group,
    Option,
    Read,
    as_json,
    client,
    flag,
    number,
    refuse,
)

GENERATORS: Final = ("rack-aware", "rack-unaware", "striped")
"""The generators that can make a topic, the default one first."""

_EPILOG: Final = """\
the cluster is a running one, --bootstrap-server, or what files say: --placements (Kafka's reassignment
JSON) with --brokers. Nothing is changed but by `create`, and by `expand` and `reassign` with --execute;
`reassign --cancel` breaks moves off, and with --verify or --cancel throttles are removed.

exit status: 0 done; 1 the cluster did not do it, no generator fits, something is not in order
(`describe --check`), or is under way (`reassign --verify`). It is 2 for a wrong command line, a
file that cannot be used, or a placement that cannot be. After Ctrl-C it is 130, after SIGTERM 143.
More: docs/placement.md"""

_CLUSTER: Final = "The cluster"
_TARGET: Final = "Where they should be"
_PACE: Final = "How gently"
_BEGUN: Final = "What is under way in these topics"


def _ids(text: str) -> list[int]:
    return [whole(one.strip()) for one in text.split(",")]


def _racks(text: str) -> dict[int, str | None]:
    racks: dict[int, str | None] = {}
    for entry in text.split(","):
        broker, separator, rack = entry.strip().partition("=")
        racks[whole(broker)] = rack if separator and rack else None
    return racks


def _config(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise ValueError(f"{text!r} is not name=value")
    return name, value


def _check_where(options: SimpleNamespace) -> None:
    if (options.bootstrap_servers is None) == (options.placements is None):
        refuse("say --bootstrap-server or --placements, one of them")
    if options.placements is not None and (
        options.command_config is not None or getattr(options, "execute", False)
    ):
        refuse("--command-config and --execute need --bootstrap-server")
    if options.placements is None and options.brokers is not None:
        refuse("--brokers goes with --placements: a running cluster knows its own")


def _check_describe(options: SimpleNamespace) -> None:
    _check_where(options)
    if options.check and options.bootstrap_servers is None:
        refuse("--check needs --bootstrap-server: files do not say what is up")


def _check_create(options: SimpleNamespace) -> None:
    if options.bootstrap_servers is None:
        refuse("say --bootstrap-server")
    counts = options.partitions, options.replication_factor
    draws = options.start_index, options.shift, options.seed, options.generator
    if options.replica_assignment is not None:
        if any(value is not None for value in (*counts, *draws)):
            refuse("--replica-assignment says all by itself: leave out the generator and its options")
    elif None in counts:
        refuse("say --partitions and --replication-factor, or --replica-assignment")
    elif options.generator == "striped" and (options.start_index is not None or options.shift is not None):
        refuse("the striped generator has no --start-index and no --shift: it draws, from --seed if given")


def _check_reassign(options: SimpleNamespace) -> None:
    _check_where(options)
    planned = options.to_brokers or options.replication_factor or options.per_topic or options.count_replicas
    if options.file is not None and (planned or options.topics):
        refuse("--file says what is to be where: leave out topics and the options of planning")
    moves = planned or options.file or options.execute or options.output or options.rollback
    for name in ("cancel", "verify"):
        if getattr(options, name) and (moves or options.throttle):
            refuse(f"--{name} goes with topics only")
        if getattr(options, name) and options.bootstrap_servers is None:
            refuse(f"--{name} needs --bootstrap-server")
    if options.cancel and options.verify:
        refuse("say --cancel or --verify, one of them")
    if options.remove_throttles and not (options.cancel or options.verify):
        refuse("--remove-throttles goes with --verify or --cancel")
    if options.throttle is not None and options.no_throttle:
        refuse("say --throttle or --no-throttle, one of them")


def _on_cluster(
    name: str,
    text: str,
    run: str,
    params: Sequence[click.Parameter],
    *,
    check: Check | None = None,
    itself: bool = False,
) -> Command:
    """A command on a running cluster, or on files."""
    where = [
        *client(required=False, section=_CLUSTER),
        Option(
            ["--placements"],
            type=FILE,
            metavar="FILE",
            section=_CLUSTER,
            help="placements instead: Kafka's reassignment JSON",
        ),
        Option(
            ["--brokers"],
            type=Read(_racks),
            metavar="ID[=RACK][,...]",
            section=_CLUSTER,
            help="with --placements: the brokers and their racks (default: those that the file names)",
        ),
    ]
    everything = [*where, as_json(itself=itself), *params]
    return Command(name, run, everything, text=text, check=check or _check_where)


_TOPIC: Final = click.Argument(["topic"])
_TOPICS: Final = click.Argument(
    ["topics"], nargs=-1, metavar="[TOPIC]...", help="all but internal topics if none is named"
)

_CREATE: Final = Command(
    "create",
    "placement:create",
    [
        *client(required=False, section=_CLUSTER),
        as_json(),
        _TOPIC,
        number("--partitions"),
        number("--replication-factor"),
        Option(
            ["--generator"],
            type=click.Choice(GENERATORS),
            help="what places them (default: rack-aware if brokers have racks, else rack-unaware)",
        ),
        number("--start-index", "where leaders begin (default: drawn)", read=whole),
        number("--shift", "how far followers are (default: the start index, else drawn)", read=whole),
        Option(["--seed"], type=int, metavar="N", help="what is drawn is drawn from this"),
        Option(
            ["--replica-assignment"],
            metavar="A:B,C:D,...",
            help="instead of a generator: the brokers of each partition, the preferred leader first",
        ),
        Option(
            ["--config"],
            multiple=True,
            type=Read(_config),
            metavar="NAME=VALUE",
            help="a setting of the topic; repeatable",
        ),
        flag(
            "--allow-fenced",
            "let fenced brokers have replicas, if the others are too few or --replica-assignment says so",
        ),
        flag("--dry-run", "show the placement and create nothing"),
    ],
    text="create a topic, its replicas placed as you say",
    check=_check_create,
)

_DESCRIBE: Final = _on_cluster(
    "describe",
    "show where replicas are, how good that is, and what is not in order",
    "placement:describe",
    [
        _TOPICS,
        number(
            "--min-insync",
            "count partitions with fewer replicas left as read-only when a rack is lost (default: 1)",
            default=1,
        ),
        flag("--partitions", "list all partitions, however many"),
        Option(["--draw"], type=FILE, metavar="FILE", help="draw brokers by rack: .png, .svg, .pdf"),
        flag(
            "--check",
            "exit with 1 if a broker is not up, or a partition is offline or lacks an in-sync replica",
        ),
    ],
    check=_check_describe,
)

_INFER: Final = _on_cluster(
    "infer",
    "find the generator, start index and shift that made a placement",
    "placement:infer_generators",
    [_TOPICS],
)

_EXPAND: Final = _on_cluster(
    "expand",
    "add partitions to a topic, placed as the ones that it has",
    "placement:expand_topic",
    [
        _TOPIC,
        number("--partitions", "how many there are to be in all", required=True),
        flag("--balanced", "balance the brokers, and do not continue the topic's pattern"),
        flag("--execute", "do it; else it is only shown"),
    ],
)

_REASSIGN: Final = _on_cluster(
    "reassign",
    "move as few replicas as possible to where they should be",
    "placement:reassign",
    [
        _TOPICS,
        Option(
            ["--to-brokers"],
            type=Read(_ids),
            metavar="ID[,...]",
            section=_TARGET,
            help="the brokers that may have replicas (default: all)",
        ),
        number("--replication-factor", "another than now", section=_TARGET),
        flag("--per-topic", "balance each topic by itself (default: all together)", section=_TARGET),
        flag("--count-replicas", "move the fewest replicas; else the fewest bytes if known", section=_TARGET),
        Option(
            ["--file"],
            type=FILE,
            metavar="FILE",
            section=_TARGET,
            help="instead: what a file says, Kafka's reassignment JSON",
        ),
        Option(["--output"], type=FILE, metavar="FILE", help="write the plan, Kafka's reassignment JSON"),
        Option(
            ["--rollback"],
            type=FILE,
            metavar="FILE",
            help="write the placements as they are, in the same format",
        ),
        flag(
            "--allow-fenced",
            "count fenced brokers as up: they keep replicas and get new ones, once they are started",
        ),
        flag("--execute", "do it; else it is only shown"),
        Option(
            ["--throttle"],
            type=Read(data_size),
            metavar="BYTES",
            section=_PACE,
            help="per second, what each broker may send and may get for it: 10MiB; removed in the end",
        ),
        flag("--no-throttle", "as fast as brokers can; to be said from 1 GiB on", section=_PACE),
        number("--at-once", "partitions to move at once (default: 10)", default=10, section=_PACE),
        number(
            "--stalled-after",
            "say why, if there was no progress for so long (default: 30)",
            metavar="SECONDS",
            default=30,
            section=_PACE,
        ),
        flag(
            "--verify",
            "show it and why it waits (status 1); if there is none, remove a killed run's throttle",
            section=_BEGUN,
        ),
        flag("--cancel", "break it off; also a killed run's throttle", section=_BEGUN),
        flag(
            "--remove-throttles",
            "with --verify or --cancel: remove replication throttles, also those of others",
            section=_BEGUN,
        ),
    ],
    check=_check_reassign,
    itself=True,
)

PLACEMENT: Final = Group(
    "placement",
    description="Where a topic's replicas are, how they were placed, and how to move few of them.",
    epilog=_EPILOG,
    commands=[_CREATE, _DESCRIBE, _INFER, _EXPAND, _REASSIGN],
)
