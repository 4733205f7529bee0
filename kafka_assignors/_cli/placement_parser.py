"""What `kafka-assignors placement` can be told, and its help; imports nothing that takes time."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kafka_assignors._cli.arguments import add_client, positive, whole

GENERATORS: Final = ("rack-aware", "rack-unaware", "striped")
"""The generators that can make a topic, the default one first."""

_EPILOG: Final = """\
the cluster is a running one, --bootstrap-servers, or what files say: --placements (Kafka's reassignment
JSON) with --brokers. Nothing is changed but by `create`, and by `expand` and `reassign` with --execute.

exit status: 0 done; 1 the cluster did not do it, or no generator fits; 2 a wrong command line, a file that
cannot be used, or a placement that cannot be; 130 after Ctrl-C. More: docs/placement.md"""


def add_placement(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    run: Callable[[argparse.Namespace], int],
) -> None:
    """Add the command and its own commands."""
    parser = commands.add_parser(
        "placement",
        help="replicas on brokers: create, describe, infer, expand, reassign",
        description="Where a topic's replicas are, how they were placed, and how to move few of them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="verb")
    for add in (_add_create, _add_describe, _add_infer, _add_expand, _add_reassign):
        verb = add(verbs)
        verb.set_defaults(run=run, parser=verb)


def _add_verb(verbs: Any, name: str, text: str, *, offline: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=f"{text.capitalize()}.")
    where = parser.add_argument_group("the cluster")
    add_client(where, required=False)
    if offline:
        where.add_argument(
            "--placements", type=Path, metavar="FILE", help="placements instead: Kafka's reassignment JSON"
        )
        where.add_argument(
            "--brokers",
            type=_racks,
            metavar="ID[=RACK][,...]",
            help="with --placements: the brokers and their racks (default: those that the file names)",
        )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _add_create(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(verbs, "create", "create a topic, its replicas placed as you say", offline=False)
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
    parser.add_argument("--dry-run", action="store_true", help="show the placement and create nothing")
    return parser


def _add_draws(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--start-index", type=whole, metavar="N", help="where leaders begin (default: drawn)")
    parser.add_argument(
        "--shift",
        type=whole,
        metavar="N",
        help="how far followers are (default: the start index, else drawn)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="what is drawn is drawn from this")


def _add_describe(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(verbs, "describe", "show where replicas are, and how good that is")
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
    return parser


def _add_infer(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(verbs, "infer", "find the generator, start index and shift that made a placement")
    _add_topics(parser)
    return parser


def _add_expand(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(verbs, "expand", "add partitions to a topic, placed as the ones that it has")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--partitions", type=positive, required=True, metavar="N", help="how many there are to be in all"
    )
    parser.add_argument(
        "--balanced", action="store_true", help="balance the brokers, whatever the topic's pattern"
    )
    parser.add_argument("--execute", action="store_true", help="do it; else it is only shown")
    return parser


def _add_reassign(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(verbs, "reassign", "move as few replicas as possible to where they should be")
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
    parser.add_argument("--execute", action="store_true", help="do it; else it is only shown")
    parser.add_argument("--cancel", action="store_true", help="break off what is under way in these topics")
    parser.add_argument(
        "--at-once", type=positive, default=10, metavar="N", help="partitions to move at once (default: 10)"
    )
    return parser


def _add_topics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="all but internal topics if none is named")


def check_placement_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    offline = getattr(options, "placements", None)
    if (options.bootstrap_servers is None) == (offline is None):
        parser.error(
            "say --bootstrap-servers" + ("" if options.verb == "create" else " or --placements, one of them")
        )
    if offline is not None and (options.command_config is not None or getattr(options, "execute", False)):
        parser.error("--command-config and --execute need --bootstrap-servers")
    if offline is None and getattr(options, "brokers", None) is not None:
        parser.error("--brokers goes with --placements: a running cluster knows its own")
    if options.verb == "create":
        _check_create(parser, options)
    if options.verb == "reassign":
        _check_reassign(parser, options)


def _check_create(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
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
    planned = options.to_brokers or options.replication_factor or options.per_topic or options.count_replicas
    if options.file is not None and (planned or options.topics):
        parser.error("--file says what is to be where: leave out topics and the options of planning")
    if options.cancel and (planned or options.file or options.execute or options.output or options.rollback):
        parser.error("--cancel goes with topics only")
    if options.cancel and options.bootstrap_servers is None:
        parser.error("--cancel needs --bootstrap-servers")


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
