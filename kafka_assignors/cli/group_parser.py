"""What `kafka-assignors group` can be told, and its help; imports nothing that takes time."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kafka_assignors.cli.arguments import positive

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
    for add in (_add_explain, _add_find, _add_elect):
        verb = add(verbs)
        verb.set_defaults(run=run, parser=verb)


def _add_verb(verbs: Any, name: str, text: str, *, required: bool) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT[,...]", required=required, help="a running Kafka"
    )
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="properties of the client, as for Kafka's own tools: security.protocol=SASL_SSL ...",
    )
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
