"""What `kafka-assignors group` can be told, and its help; imports nothing that takes time."""

import argparse
from typing import Any, Final

from kafka_assignors._cli.arguments import add_client, add_command, add_commands, add_json, positive, whole

RESTARTED: Final = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "kip848-uniform",
    "kip848-range",
)
"""What a rolling restart is simulated with."""

LEADERS: Final = ("java", "librdkafka", "kafka-python", "aiokafka")
"""Clients whose rules are known; assignors of this library go by Java's."""

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
        verbs=(_add_explain, _add_list, _add_export, _add_what_if, _add_find, _add_elect),
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
        "--leader-client",
        choices=LEADERS,
        metavar="CLIENT",
        help=f"the client that leads it, one of {', '.join(LEADERS)} (default: guessed by what it sent)",
    )
    _add_observe(parser, "a group that is")


def _add_observe(parser: argparse.ArgumentParser, what: str, default: float = 5.0) -> None:
    parser.add_argument(
        "--observe",
        type=float,
        default=default,
        metavar="SECONDS",
        help=f"how long to look at {what} in a rebalance before that is an error (default: {default:g})",
    )


def _add_list(verbs: Any) -> None:
    parser = add_command(
        verbs,
        "list",
        "list all groups of a cluster with their lags and what is wrong, the worst first",
        "group_list:list_all",
    )
    _add_groups(parser, observe=5.0)
    add_client(parser, required=True)
    add_json(parser)
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if a group has an error or a warning"
    )


def _add_export(verbs: Any) -> None:
    parser = add_command(
        verbs,
        "export",
        "print lags, members, states and problems of all groups as Prometheus reads them",
        "group_export:export",
        more=": once, or whenever they are asked for (--listen).",
    )
    _add_groups(parser, observe=0.0)
    add_client(parser, required=True)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--output", metavar="FILE", help="write a file in place of stdout, all at once")
    where.add_argument(
        "--listen",
        type=whole,
        metavar="PORT",
        help="serve them until Ctrl-C; 0 for any free port",
    )
    parser.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="serve them on this address, 0.0.0.0 for all (default: 127.0.0.1)",
    )


def _add_groups(parser: argparse.ArgumentParser, *, observe: float) -> None:
    """Which groups of a cluster are meant, and what is wrong with one."""
    parser.add_argument(
        "groups", metavar="GROUP", nargs="*", help="an id, or a pattern such as 'billing-*' (default: all)"
    )
    parser.add_argument("--max-lag", type=whole, metavar="N", help="more records behind are an error")
    _add_observe(parser, "groups that are", observe)


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
