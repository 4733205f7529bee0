"""`kafka-assignors group`: consumer groups and their coordinators."""
# Functions import what takes time themselves: help and completion do not need it.
# ruff: noqa: PLC0415

from __future__ import annotations

import math
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_assignors import groups as library
from kafka_assignors._cli.arguments import seconds, up_to, whole
from kafka_assignors._cli.errors import FailedError, WrongError
from kafka_assignors._cli.options import (
    FILE,
    Group,
    Read,
    as_json,
    flag,
    number,
    option,
    refuse,
    running_cluster,
    value,
)
from kafka_assignors._cli.output import show, show_result
from kafka_assignors._common.escaping import block
from kafka_assignors._common.strategies import CLIENTS, RESTARTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_assignors.groups import Cluster

_DIGITS: Final = 10  # so many partitions are no topic's
_port: Final = up_to(65535, "ports")


def _observe(what: str, default: float = 5.0) -> Callable[[Any], Any]:
    text = f"how long to look at {what} in a rebalance before that is an error (default: {default:g})"
    return value("--observe", text, read=seconds, metavar="SECONDS", default=default)


_MAX_LAG_SECONDS: Final = value(
    "--max-lag-seconds",
    "records waiting for longer are an error; inf: only show how long. Reads a record of each partition"
    " that lags",
    read=lambda text: math.inf if text == "inf" else seconds(text),
    metavar="SECONDS",
)


def _groups(*, observe: float) -> Callable[[Any], Any]:
    """Which groups of a cluster are meant, and what is wrong with one."""
    ids = click.argument(
        "groups",
        metavar="[GROUP]...",
        nargs=-1,
        help="an id, or a pattern such as 'billing-*' (default: all)",
    )
    lag = number("--max-lag", "more records behind are an error", read=whole)
    looks = _observe("groups that are", observe)
    return lambda function: ids(lag(_MAX_LAG_SECONDS(looks(function))))


@click.group(
    "group",
    cls=Group,
    short_help="a consumer group's coordinator: find it, explain what it decided",
    help="What the coordinator of a consumer group decides, and why.",
    epilog="""\
exit status: 0 done; 1 the cluster did not say, or --check and something is wrong; 2 a wrong command line, or
no such group. After Ctrl-C it is 130, after SIGTERM 143. More: docs/coordinator.md""",
)
def group() -> None:
    pass


@group.command("explain")
@click.argument("group")
@running_cluster()
@as_json()
@flag("--check", "exit with 1 if there is an error or a warning")
@option(
    "--leader-client",
    type=click.Choice(CLIENTS),
    metavar="CLIENT",
    help=f"the client that leads it, one of {', '.join(CLIENTS)} (default: guessed by what it sent)",
)
@_MAX_LAG_SECONDS
@_observe("a group that is")
def explain(*, group: str, cluster: Cluster, as_json: bool, check: bool, **how: Any) -> int:
    """Show who has what in a group, why, and what is wrong."""
    from kafka_assignors._cli.group_text import explained_lines

    watch = _say_how_far if sys.stderr.isatty() else None
    explained = library.explain(cluster, group, **how, watch=watch)
    show_result(explained, explained_lines(explained), as_json=as_json)
    return _status(explained.problems, check=check)


@group.command("list")
@_groups(observe=5.0)
@running_cluster()
@as_json()
@flag("--check", "exit with 1 if a group has an error or a warning")
def list_all(*, cluster: Cluster, as_json: bool, check: bool, **wanted: Any) -> int:
    """List all groups of a cluster with their lags and what is wrong, the worst first."""
    from kafka_assignors._cli.group_text import listed_lines

    found = library.list_groups(cluster, **wanted)
    show_result(found, listed_lines(found), as_json=as_json)
    return _status((problem for group in found for problem in group.problems), check=check)


@group.command("export")
@_groups(observe=0.0)
@running_cluster()
@option("--output", type=FILE, metavar="FILE", help="write a file in place of stdout, all at once")
@number("--listen", "serve them until Ctrl-C; 0 for any free port", read=_port, metavar="PORT")
@option(
    "--address",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="serve them on this address, 0.0.0.0 for all (default: 127.0.0.1)",
)
def export(*, cluster: Cluster, output: str | None, listen: int | None, address: str, **wanted: Any) -> None:
    """Print lags, members, states and problems of all groups as Prometheus reads them.

    Once, or whenever they are asked for (--listen).
    """
    if output is not None and listen is not None:
        refuse("give either --output or --listen")
    try:
        if listen is None:
            errors: list[Exception] = []
            text = library.export_metrics(cluster, **wanted, output=output, failed=errors.append)
            if output is None:
                show(text.rstrip("\n"))
            for error in errors:
                raise error
            return
        serving = library.serve_metrics(cluster, **wanted, port=listen, address=address, failed=_say_why)
        with serving as port, suppress(KeyboardInterrupt):
            print(f"serving http://{address}:{port}/metrics; Ctrl-C ends it", file=sys.stderr)
            threading.Event().wait()
    except OSError as error:
        raise FailedError(str(error)) from error


@group.command("what-if")
@click.argument("group", required=False)
@running_cluster(required=False)
@as_json()
@number("--members", "how many members")
@option("--topic", multiple=True, metavar="NAME=PARTITIONS", help="a topic; may be repeated")
@option(
    "--assignor",
    "assignors",
    multiple=True,
    type=click.Choice(RESTARTED),
    default=RESTARTED,
    metavar="NAME",
    help=f"one of {', '.join(RESTARTED)}; may be repeated (default: all)",
)
@option(
    "--down",
    "down_seconds",
    type=Read(seconds),
    default=10.0,
    metavar="SECONDS",
    help="how long each is away (default: 10)",
)
@flag("--crash", "members are killed instead of closed")
@number("--session-timeout-ms", "the members' (default: the running group's, or 45000)")
@number("--heartbeat-interval-ms", "(default: 3000)", default=3000)
def what_if(
    *,
    group: str | None,
    cluster: Cluster | None,
    as_json: bool,
    members: int | None,
    topic: Sequence[str],
    **restart: Any,
) -> None:
    """Say what a rolling restart would cost with each assignor, from a simulation.

    Of a running group (GROUP and --bootstrap-server), or of one that is described (--members and --topic).
    Nothing is restarted.
    """
    given = group is not None, cluster is not None, members is not None, bool(topic)
    if given not in {(True, True, False, False), (False, False, True, True)}:
        refuse("give GROUP and --bootstrap-server, or --members and --topic")
    topics = dict(map(_topic, topic))
    if len(topics) < len(topic):
        raise WrongError("--topic names a topic twice")
    from kafka_assignors._cli.group_text import restarts_lines

    asked: tuple[Any, Any] = (topics, members) if topics else (cluster, group)
    found = library.what_if(*asked, **restart)
    show_result(found, restarts_lines(found), as_json=as_json)


@group.command("find")
@click.argument("group")
@running_cluster(required=False)
@as_json()
@number("--partitions", "how many that topic has, where there is no cluster to ask (default: 50)", default=50)
def find(*, group: str, cluster: Cluster | None, as_json: bool, partitions: int) -> None:
    """Find the partition of __consumer_offsets that a group belongs to."""
    if cluster is not None:
        found = library.find_coordinator(cluster, group)
        show_result(found, [str(found)], as_json=as_json)
        return
    partition = library.partition_for_group(group, partitions)
    told = {"partition": partition, "partitions": partitions}
    show_result(told, [f"__consumer_offsets-{partition}, of {partitions}"], as_json=as_json)


@group.command("elect")
@click.argument(
    "members",
    nargs=-1,
    required=True,
    metavar="MEMBER=STRATEGY[,...]...",
    help="a member's partition.assignment.strategy in its order; members in the order of joining",
)
@as_json()
def elect(*, members: Sequence[str], as_json: bool) -> None:
    """Elect the strategy of a group from what its members know, with the votes.

    The coordinator of a running group does not say what its members know beside the strategy that was taken.
    """
    preferences: dict[str, list[str]] = {}
    for text in members:
        member, equals, strategies = text.partition("=")
        if not (member and equals and strategies) or member in preferences:
            raise WrongError(f"{text!r} is not MEMBER=STRATEGY[,...], or names a member twice")
        preferences[member] = strategies.split(",")
    election = library.elect_strategy(preferences)
    lines = [*str(election).split("\n"), f"leader: {election.leader}, the first to join"]
    show_result(election, lines, as_json=as_json)


def _status(problems: Any, *, check: bool) -> int:
    return 1 if check and any(problem.severity != "note" for problem in problems) else 0


def _say_how_far(read: int, there_are: int) -> None:
    """One line, written again and again, and erased when all is read."""
    line = (
        "\x1b[K" if read == there_are else f"__consumer_offsets: looked at {read:,} of {there_are:,} records"
    )
    print(f"\r{line}", end="", file=sys.stderr, flush=True)


def _say_why(error: Exception) -> None:
    print(f"kafka-assignors group export: {block(str(error))}", file=sys.stderr)


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.rpartition("=")
    few = partitions.isascii() and partitions.isdigit() and len(partitions) < _DIGITS
    if not (name and few and int(partitions)):
        raise WrongError(f"{text!r} is not NAME=PARTITIONS")
    return name, int(partitions)
