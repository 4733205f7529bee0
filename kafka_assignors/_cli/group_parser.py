"""What `kafka-assignors group` can be told, and its help; imports nothing that takes time."""

import argparse
from collections.abc import Callable
from typing import Any, Final

from kafka_assignors._cli.arguments import add_client, positive

RESTARTED: Final = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "kip848-uniform",
    "kip848-range",
)
"""What a rolling restart is simulated with."""

_EPILOG: Final = """\
exit status: 0 done; 1 the cluster did not say, or --check and something is wrong; 2 a wrong command line, or
no such group; 130 after Ctrl-C. More: docs/coordinator.md"""


def add_group(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    run: Callable[[argparse.Namespace], int],
) -> None:
    """Add the command and its own commands."""
    parser = commands.add_parser(
        "group",
        help="a consumer group's coordinator: find it, explain what it decided",
        description="What the coordinator of a consumer group decides, and why.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="verb")
    for add in (_add_explain, _add_what_if, _add_find, _add_elect):
        verb = add(verbs)
        verb.set_defaults(run=run, parser=verb)


def _add_verb(verbs: Any, name: str, text: str, *, required: bool) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    parser.add_argument("group", metavar="GROUP")
    add_client(parser, required=required)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _add_elect(verbs: Any) -> argparse.ArgumentParser:
    text = "elect the strategy of a group from what its members know, with the votes"
    parser: argparse.ArgumentParser = verbs.add_parser(
        "elect",
        help=text,
        description=f"{text[0].upper()}{text[1:]}. The coordinator of a running group does not tell what its"
        " members know beside the strategy that was taken.",
    )
    parser.add_argument(
        "members",
        nargs="+",
        metavar="MEMBER=STRATEGY[,...]",
        help="a member's partition.assignment.strategy in its order; members in the order of joining",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _add_explain(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(
        verbs, "explain", "show who has what in a group, why, and what is wrong", required=True
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if there is an error or a warning")
    return parser


def _add_what_if(verbs: Any) -> argparse.ArgumentParser:
    text = "say what a rolling restart would cost with each assignor, from a simulation"
    parser: argparse.ArgumentParser = verbs.add_parser(
        "what-if",
        help=text,
        description=f"{text[0].upper()}{text[1:]}: of a running group (GROUP and --bootstrap-servers), or of"
        " one that is described (--members and --topic). Nothing is restarted.",
    )
    parser.add_argument("group", metavar="GROUP", nargs="?")
    add_client(parser, required=False)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--members", type=positive, metavar="N", help="how many members")
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME=PARTITIONS", help="a topic; may be repeated"
    )
    parser.add_argument(
        "--assignor",
        action="append",
        choices=RESTARTED,
        metavar="NAME",
        help=f"one of {', '.join(RESTARTED)}; may be repeated (default: all)",
    )
    parser.add_argument(
        "--down", type=float, default=10.0, metavar="SECONDS", help="how long each is away (default: 10)"
    )
    parser.add_argument("--crash", action="store_true", help="members are killed instead of closed")
    parser.add_argument(
        "--session-timeout-ms",
        type=positive,
        metavar="N",
        help="the members' (default: the running group's, or 45000)",
    )
    parser.add_argument(
        "--heartbeat-interval-ms", type=positive, default=3000, metavar="N", help="(default: 3000)"
    )
    return parser


def _add_find(verbs: Any) -> argparse.ArgumentParser:
    parser = _add_verb(
        verbs, "find", "find the partition of __consumer_offsets that a group belongs to", required=False
    )
    parser.add_argument(
        "--partitions",
        type=positive,
        default=50,
        metavar="N",
        help="how many that topic has, where there is no cluster to ask (default: 50)",
    )
    return parser
