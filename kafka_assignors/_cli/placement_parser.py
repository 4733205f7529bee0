"""What `kafka-assignors placement` can be told, and its help; imports nothing that takes time."""

import argparse
from pathlib import Path
from typing import Any, Final

from kafka_assignors._cli.arguments import (
    Check,
    add_client,
    add_command,
    add_commands,
    add_json,
    data_size,
    positive,
    whole,
)

GENERATORS: Final = ("rack-aware", "rack-unaware", "striped")
"""The generators that can make a topic, the default one first."""

_EPILOG: Final = """\
the cluster is a running one, --bootstrap-servers, or what files say: --placements (Kafka's reassignment
JSON) with --brokers. Nothing is changed but by `create`, and by `expand` and `reassign` with --execute.

exit status: 0 done; 1 the cluster did not do it, no generator fits, something is not in order
(`describe --check`), or is under way (`reassign --verify`); 2 a wrong command line, a file that cannot be
used, or a placement that cannot be; 130 after Ctrl-C, 143 after SIGTERM. More: docs/placement.md"""


def add_placement(commands: Any) -> None:
    """Add the command and its own commands."""
    add_commands(
        commands,
        "placement",
        "replicas on brokers: create, describe, infer, expand, reassign",
        description="Where a topic's replicas are, how they were placed, and how to move few of them.",
        epilog=_EPILOG,
        verbs=(_add_create, _add_describe, _add_infer, _add_expand, _add_reassign),
    )


def _add_verb(
    verbs: Any, name: str, text: str, run: str, *, check: Check | None = None, itself: bool = False
) -> argparse.ArgumentParser:
    """A command on a running cluster, or on files."""
    parser = add_command(verbs, name, text, run, check=check or _check_where)
    where = parser.add_argument_group("the cluster")
    add_client(where, required=False)
    where.add_argument(
        "--placements", type=Path, metavar="FILE", help="placements instead: Kafka's reassignment JSON"
    )
    where.add_argument(
        "--brokers",
        type=_racks,
        metavar="ID[=RACK][,...]",
        help="with --placements: the brokers and their racks (default: those that the file names)",
    )
    add_json(parser, itself=itself)
    return parser


def _add_create(verbs: Any) -> None:
    text = "create a topic, its replicas placed as you say"
    parser = add_command(verbs, "create", text, "placement:create", check=_check_create)
    add_client(parser.add_argument_group("the cluster"), required=False)
    add_json(parser)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--partitions", type=positive, metavar="N")
    parser.add_argument("--replication-factor", type=positive, metavar="N")
    parser.add_argument(
        "--generator",
        choices=GENERATORS,
        help="what places them (default: rack-aware if brokers have racks, else rack-unaware)",
    )
    _add_draws(parser)
    parser.add_argument(
        "--replica-assignment",
        metavar="A:B,C:D,...",
        help="instead of a generator: the brokers of each partition, the preferred leader first",
    )
    parser.add_argument(
        "--config",
        action="append",
        type=_config,
        metavar="NAME=VALUE",
        help="a setting of the topic; repeatable",
    )
    parser.add_argument(
        "--allow-fenced",
        action="store_true",
        help="let fenced brokers have replicas, if the others are too few or --replica-assignment says so",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the placement and create nothing")


def _add_draws(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--start-index", type=whole, metavar="N", help="where leaders begin (default: drawn)")
    parser.add_argument(
        "--shift",
        type=whole,
        metavar="N",
        help="how far followers are (default: the start index, else drawn)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="what is drawn is drawn from this")


def _add_describe(verbs: Any) -> None:
    parser = _add_verb(
        verbs,
        "describe",
        "show where replicas are, how good that is, and what is not in order",
        "placement:describe",
        check=_check_describe,
    )
    _add_topics(parser)
    parser.add_argument(
        "--min-insync",
        type=positive,
        default=1,
        metavar="N",
        help="count partitions with fewer replicas left as read-only when a rack is lost (default: 1)",
    )
    parser.add_argument("--partitions", action="store_true", help="list all partitions, however many")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw brokers by rack: .png, .svg, .pdf")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if a broker is not up, or a partition is offline or lacks an in-sync replica",
    )


def _add_infer(verbs: Any) -> None:
    parser = _add_verb(
        verbs,
        "infer",
        "find the generator, start index and shift that made a placement",
        "placement:infer_generators",
    )
    _add_topics(parser)


def _add_expand(verbs: Any) -> None:
    parser = _add_verb(
        verbs, "expand", "add partitions to a topic, placed as the ones that it has", "placement:expand_topic"
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--partitions", type=positive, required=True, metavar="N", help="how many there are to be in all"
    )
    parser.add_argument(
        "--balanced", action="store_true", help="balance the brokers, whatever the topic's pattern"
    )
    parser.add_argument("--execute", action="store_true", help="do it; else it is only shown")


def _add_reassign(verbs: Any) -> None:
    parser = _add_verb(
        verbs,
        "reassign",
        "move as few replicas as possible to where they should be",
        "placement_moves:reassign",
        check=_check_reassign,
        itself=True,
    )
    _add_topics(parser)
    target = parser.add_argument_group("where they should be")
    target.add_argument(
        "--to-brokers",
        type=_ids,
        metavar="ID[,...]",
        help="the brokers that may have replicas (default: all)",
    )
    target.add_argument("--replication-factor", type=positive, metavar="N", help="another than now")
    target.add_argument(
        "--per-topic", action="store_true", help="balance each topic by itself (default: all together)"
    )
    target.add_argument(
        "--count-replicas",
        action="store_true",
        help="move the fewest replicas; else the fewest bytes if known",
    )
    target.add_argument("--file", type=Path, help="instead: what a file says, Kafka's reassignment JSON")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the plan, Kafka's reassignment JSON"
    )
    parser.add_argument(
        "--rollback", type=Path, metavar="FILE", help="write the placements as they are, in the same format"
    )
    parser.add_argument(
        "--allow-fenced",
        action="store_true",
        help="count fenced brokers as up: they keep replicas and get new ones, once they are started",
    )
    parser.add_argument("--execute", action="store_true", help="do it; else it is only shown")
    pace = parser.add_argument_group("how gently")
    pace.add_argument(
        "--throttle",
        type=data_size,
        metavar="BYTES",
        help="per second, what each broker may send and may get for it: 10MiB; removed in the end",
    )
    pace.add_argument(
        "--no-throttle", action="store_true", help="as fast as brokers can; to be said from 1 GiB on"
    )
    pace.add_argument(
        "--at-once", type=positive, default=10, metavar="N", help="partitions to move at once (default: 10)"
    )
    pace.add_argument(
        "--stalled-after",
        type=positive,
        default=30,
        metavar="SECONDS",
        help="say why, if there was no progress for so long (default: 30)",
    )
    begun = parser.add_argument_group("what is under way in these topics")
    begun.add_argument(
        "--verify",
        action="store_true",
        help="show it and why it waits (status 1); if there is none, remove a killed run's throttle",
    )
    begun.add_argument("--cancel", action="store_true", help="break it off; also a killed run's throttle")
    begun.add_argument(
        "--remove-throttles",
        action="store_true",
        help="with --verify or --cancel: remove replication throttles, whoever set them",
    )


def _add_topics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="all but internal topics if none is named")


def _check_where(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if (options.bootstrap_servers is None) == (options.placements is None):
        parser.error("say --bootstrap-servers or --placements, one of them")
    if options.placements is not None and (
        options.command_config is not None or getattr(options, "execute", False)
    ):
        parser.error("--command-config and --execute need --bootstrap-servers")
    if options.placements is None and options.brokers is not None:
        parser.error("--brokers goes with --placements: a running cluster knows its own")


def _check_describe(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    _check_where(parser, options)
    if options.check and options.bootstrap_servers is None:
        parser.error("--check needs --bootstrap-servers: files do not say what is up")


def _check_create(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.bootstrap_servers is None:
        parser.error("say --bootstrap-servers")
    counts = options.partitions, options.replication_factor
    draws = options.start_index, options.shift, options.seed, options.generator
    if options.replica_assignment is not None:
        if any(value is not None for value in (*counts, *draws)):
            parser.error("--replica-assignment says all by itself: leave out the generator and its options")
    elif None in counts:
        parser.error("say --partitions and --replication-factor, or --replica-assignment")
    elif options.generator == "striped" and (options.start_index is not None or options.shift is not None):
        parser.error(
            "the striped generator has no --start-index and no --shift: it draws, from --seed if given"
        )


def _check_reassign(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    _check_where(parser, options)
    planned = options.to_brokers or options.replication_factor or options.per_topic or options.count_replicas
    if options.file is not None and (planned or options.topics):
        parser.error("--file says what is to be where: leave out topics and the options of planning")
    moves = planned or options.file or options.execute or options.output or options.rollback
    for name in ("cancel", "verify"):
        if getattr(options, name) and (moves or options.throttle):
            parser.error(f"--{name} goes with topics only")
        if getattr(options, name) and options.bootstrap_servers is None:
            parser.error(f"--{name} needs --bootstrap-servers")
    if options.cancel and options.verify:
        parser.error("say --cancel or --verify, one of them")
    if options.remove_throttles and not (options.cancel or options.verify):
        parser.error("--remove-throttles goes with --verify or --cancel")
    if options.throttle is not None and options.no_throttle:
        parser.error("say --throttle or --no-throttle, one of them")


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
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    return name, value
