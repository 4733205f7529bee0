"""What `kafka-assignors group` can be told, and its help; imports nothing that takes time."""

import argparse
from typing import Any, Final

from kafka_assignors._cli.arguments import add_client, add_command, add_commands, add_json, positive

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
no such group; 130 after Ctrl-C, 143 after SIGTERM. More: docs/coordinator.md"""


def add_group(commands: Any) -> None:
    """Add the command and its own commands."""
    add_commands(
        commands,
        "group",
        "a consumer group's coordinator: find it, explain what it decided",
        description="What the coordinator of a consumer group decides, and why.",
        epilog=_EPILOG,
        verbs=(_add_explain, _add_what_if, _add_find, _add_elect),
    )


def _add_elect(verbs: Any) -> None:
    parser = add_command(
        verbs,
        "elect",
        "elect the strategy of a group from what its members know, with the votes",
        "group:elect",
        more=". The coordinator of a running group does not tell what its members know beside the strategy"
        " that was taken.",
    )
    parser.add_argument(
        "members",
        nargs="+",
        metavar="MEMBER=STRATEGY[,...]",
        help="a member's partition.assignment.strategy in its order; members in the order of joining",
    )
    add_json(parser)


def _add_explain(verbs: Any) -> None:
    parser = add_command(
        verbs,
        "explain",
        "show who has what in a group, why, and what is wrong",
        "group_explain:explain_group",
    )
    parser.add_argument("group", metavar="GROUP")
    add_client(parser, required=True)
    add_json(parser)
    parser.add_argument("--check", action="store_true", help="exit with 1 if there is an error or a warning")
    parser.add_argument(
        "--observe",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="how long to look at a group that is in a rebalance (default: 5)",
    )


def _add_what_if(verbs: Any) -> None:
    parser = add_command(
        verbs,
        "what-if",
        "say what a rolling restart would cost with each assignor, from a simulation",
        "group_what_if:what_if",
        more=": of a running group (GROUP and --bootstrap-servers), or of one that is described (--members"
        " and --topic). Nothing is restarted.",
        check=_check_what_if,
    )
    parser.add_argument("group", metavar="GROUP", nargs="?")
    add_client(parser, required=False)
    add_json(parser)
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


def _check_what_if(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    described = options.members is not None and bool(options.topic)
    running = options.group is not None and options.bootstrap_servers is not None
    if described == running:
        parser.error("give GROUP and --bootstrap-servers, or --members and --topic")


def _add_find(verbs: Any) -> None:
    parser = add_command(
        verbs, "find", "find the partition of __consumer_offsets that a group belongs to", "group:find"
    )
    parser.add_argument("group", metavar="GROUP")
    add_client(parser, required=False)
    add_json(parser)
    parser.add_argument(
        "--partitions",
        type=positive,
        default=50,
        metavar="N",
        help="how many that topic has, where there is no cluster to ask (default: 50)",
    )
