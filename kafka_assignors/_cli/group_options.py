"""What `kafka-assignors group` takes, and its help; imports nothing that takes time."""

from types import SimpleNamespace
from typing import Final

import click

from kafka_assignors._cli.arguments import seconds, whole
from kafka_assignors._cli.commands import (
    FILE_NAME,
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
no such group. After Ctrl-C it is 130, after SIGTERM 143. More: docs/coordinator.md"""


def _observe(what: str, default: float = 5.0) -> Option:
    return Option(
        ["--observe"],
        type=Read(seconds),
        default=default,
        metavar="SECONDS",
        help=f"how long to look at {what} in a rebalance before that is an error (default: {default:g})",
    )


def _groups(*, observe: float) -> list[click.Parameter]:
    """Which groups of a cluster are meant, and what is wrong with one."""
    return [
        click.Argument(
            ["groups"],
            metavar="[GROUP]...",
            nargs=-1,
            help="an id, or a pattern such as 'billing-*' (default: all)",
        ),
        number("--max-lag", "more records behind are an error", read=whole),
        _observe("groups that are", observe),
    ]


def _check_export(options: SimpleNamespace) -> None:
    if options.output is not None and options.listen is not None:
        refuse("say --output or --listen, one of them")


def _check_what_if(options: SimpleNamespace) -> None:
    described = options.members is not None and bool(options.topic)
    running = options.group is not None and options.bootstrap_servers is not None
    if described == running:
        refuse("give GROUP and --bootstrap-server, or --members and --topic")


_EXPLAIN: Final = Command(
    "explain",
    "group_explain:explain_group",
    [
        click.Argument(["group"]),
        *client(required=True),
        as_json(),
        flag("--check", "exit with 1 if there is an error or a warning"),
        Option(
            ["--leader-client"],
            type=click.Choice(LEADERS),
            metavar="CLIENT",
            help=f"the client that leads it, one of {', '.join(LEADERS)} (default: guessed by what it sent)",
        ),
        _observe("a group that is"),
    ],
    text="show who has what in a group, why, and what is wrong",
)

_LIST: Final = Command(
    "list",
    "group_list:list_all",
    [
        *_groups(observe=5.0),
        *client(required=True),
        as_json(),
        flag("--check", "exit with 1 if a group has an error or a warning"),
    ],
    text="list all groups of a cluster with their lags and what is wrong, the worst first",
)

_EXPORT: Final = Command(
    "export",
    "group_export:export",
    [
        *_groups(observe=0.0),
        *client(required=True),
        Option(
            ["--output"],
            type=FILE_NAME,
            metavar="FILE",
            help="write a file in place of stdout, all at once",
        ),
        number("--listen", "serve them until Ctrl-C; 0 for any free port", read=whole, metavar="PORT"),
        Option(
            ["--address"],
            default="127.0.0.1",
            metavar="ADDRESS",
            help="serve them on this address, 0.0.0.0 for all (default: 127.0.0.1)",
        ),
    ],
    text="print lags, members, states and problems of all groups as Prometheus reads them",
    more=": once, or whenever they are asked for (--listen).",
    check=_check_export,
)

_WHAT_IF: Final = Command(
    "what-if",
    "group_what_if:what_if",
    [
        click.Argument(["group"], required=False),
        *client(required=False),
        as_json(),
        number("--members", "how many members"),
        Option(["--topic"], multiple=True, metavar="NAME=PARTITIONS", help="a topic; may be repeated"),
        Option(
            ["--assignor"],
            multiple=True,
            type=click.Choice(RESTARTED),
            metavar="NAME",
            help=f"one of {', '.join(RESTARTED)}; may be repeated (default: all)",
        ),
        Option(
            ["--down"],
            type=Read(seconds),
            default=10.0,
            metavar="SECONDS",
            help="how long each is away (default: 10)",
        ),
        flag("--crash", "members are killed instead of closed"),
        number("--session-timeout-ms", "the members' (default: the running group's, or 45000)"),
        number("--heartbeat-interval-ms", "(default: 3000)", default=3000),
    ],
    text="say what a rolling restart would cost with each assignor, from a simulation",
    more=": of a running group (GROUP and --bootstrap-server), or of one that is described (--members"
    " and --topic). Nothing is restarted.",
    check=_check_what_if,
)

_FIND: Final = Command(
    "find",
    "group:find",
    [
        click.Argument(["group"]),
        *client(required=False),
        as_json(),
        number(
            "--partitions",
            "how many that topic has, where there is no cluster to ask (default: 50)",
            default=50,
        ),
    ],
    text="find the partition of __consumer_offsets that a group belongs to",
)

_ELECT: Final = Command(
    "elect",
    "group:elect",
    [
        click.Argument(
            ["members"],
            nargs=-1,
            required=True,
            metavar="MEMBER=STRATEGY[,...]...",
            help="a member's partition.assignment.strategy in its order; members in the order of joining",
        ),
        as_json(),
    ],
    text="elect the strategy of a group from what its members know, with the votes",
    more=". The coordinator of a running group does not say what its members know beside the strategy"
    " that was taken.",
)

GROUP: Final = Group(
    "group",
    description="What the coordinator of a consumer group decides, and why.",
    epilog=_EPILOG,
    commands=[_EXPLAIN, _LIST, _EXPORT, _WHAT_IF, _FIND, _ELECT],
)
