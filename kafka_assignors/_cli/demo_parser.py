"""What `kafka-assignors demo` can be told, and its help; imports nothing that takes time."""

import argparse
from typing import Any, Final

from kafka_assignors._cli.arguments import add_command, add_json

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


def add_demo(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "demo",
        "show a consumer group through joins, a crash, a leave and a grown topic",
        "demo:demo",
        check=_check,
        description=(
            "Runs a group of real consumers on a real Kafka, under load: three members join, a fourth joins, "
            "one is killed, one leaves, a topic gets more partitions. Shows each rebalance as it happens. "
            "Exits with 0 only if no message was lost and no partition had two owners at once."
        ),
    )
    parser.add_argument(
        "--assignor",
        action="append",
        choices=ASSIGNORS,
        metavar="NAME",
        help=f"the strategy: {', '.join(ASSIGNORS)} (default: cooperative-sticky); with --compare repeatable",
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help=f"run several strategies and print one table (default: {', '.join(COMPARED)})",
    )
    parser.add_argument(
        "--client",
        choices=CLIENTS,
        default=CLIENTS[0],
        help=f"what members are made of: {' or '.join(CLIENTS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT[,...]",
        help="a running Kafka to use; its topics of the demo are deleted afterwards "
        "(default: $KAFKA_BOOTSTRAP, else one brought by pip for the time of the demo)",
    )
    parser.add_argument(
        "--heartbeat-interval-ms",
        type=_milliseconds,
        default=300,
        metavar="MS",
        help="the consumers' heartbeat interval; pauses depend on it (default: 300; kafka-python's is 3000)",
    )
    add_json(parser, "print the results as JSON on stdout", itself=True)


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.assignor and len(options.assignor) > 1 and not options.compare:
        parser.error("to run several assignors, say --compare")


def _milliseconds(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of milliseconds")
    return number
