"""What `kafka-assignors demo` takes, and its help; imports nothing that takes time."""

from types import SimpleNamespace
from typing import Final

import click

from kafka_assignors._cli.commands import Command, Option, Read, as_json, flag, refuse, servers

ASSIGNORS: Final = {
    "range": "kafka_assignors:RangeAssignor",
    "roundrobin": "kafka_assignors:RoundRobinAssignor",
    "sticky": "kafka_assignors:StickyAssignor",
    "cooperative-sticky": "kafka_assignors:CooperativeStickyAssignor",
    "random": "kafka_assignors:RandomAssignor",
    "broadcast": "kafka_assignors:BroadcastAssignor",
}
"""Where the assignor of each strategy is."""

COMPARED: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The strategies that --compare runs where none is named."""

CLIENTS: Final = ("kafka-python", "aiokafka")
"""The clients that take these assignors."""


def _milliseconds(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise ValueError(f"{text!r} is no positive number of milliseconds")
    return number


def _check(options: SimpleNamespace) -> None:
    if len(options.assignor) > 1 and not options.compare:
        refuse("to run several assignors, say --compare")


DEMO: Final = Command(
    "demo",
    "demo:demo",
    [
        Option(
            ["--assignor"],
            multiple=True,
            type=click.Choice([*ASSIGNORS]),
            metavar="NAME",
            help=f"the strategy: {', '.join(ASSIGNORS)} (default: cooperative-sticky);"
            " with --compare repeatable",
        ),
        flag("--compare", f"run several strategies and print one table (default: {', '.join(COMPARED)})"),
        Option(
            ["--client"],
            type=click.Choice(CLIENTS),
            default=CLIENTS[0],
            help=f"what members are made of: {' or '.join(CLIENTS)} (default: {CLIENTS[0]})",
        ),
        servers(
            help="a running Kafka to use. The topics of the demo are deleted afterwards "
            "(default: $KAFKA_BOOTSTRAP, else one brought by pip for the time of the demo)",
        ),
        Option(
            ["--heartbeat-interval-ms"],
            type=Read(_milliseconds),
            default=300,
            metavar="MS",
            help="the consumers' heartbeat interval; pauses depend on it (default: 300; kafka-python's is"
            " 3000)",
        ),
        as_json("print the results as JSON on stdout", itself=True),
    ],
    check=_check,
    description=(
        "Runs a group of real consumers on a real Kafka, under load. Three members join, a fourth joins, "
        "one is killed, one leaves, a topic gets more partitions. Shows each rebalance as it happens. "
        "Exits with 0 only if no message was lost and no partition had two owners at once."
    ),
)
