"""`kafka-assignors demo`: a group of real consumers on a real Kafka, step by step."""
# The function imports what takes time itself: help and completion do not need it.
# ruff: noqa: PLC0415

from collections.abc import Sequence
from typing import Any, Final

import click

from kafka_assignors._cli.options import Command, as_json, flag, number, option, refuse, servers
from kafka_assignors._common.strategies import ASSIGNORS, COMPARED

CLIENTS: Final = ("kafka-python", "aiokafka")
"""The clients that take these assignors."""


@click.command(
    "demo",
    cls=Command,
    short_help="show a consumer group through joins, a crash, a leave and a grown topic",
)
@option(
    "--assignor",
    multiple=True,
    type=click.Choice([*ASSIGNORS]),
    metavar="NAME",
    help=f"the strategy: {', '.join(ASSIGNORS)} (default: cooperative-sticky); with --compare repeatable",
)
@flag("--compare", f"run several strategies and print one table (default: {', '.join(COMPARED)})")
@option(
    "--client",
    type=click.Choice(CLIENTS),
    default=CLIENTS[0],
    help=f"what members are made of: {' or '.join(CLIENTS)} (default: {CLIENTS[0]})",
)
@servers(
    "a running Kafka to use. The topics of the demo are deleted afterwards "
    "(default: $KAFKA_BOOTSTRAP, else one brought by pip for the time of the demo)"
)
@number(
    "--heartbeat-interval-ms",
    "the consumers' heartbeat interval; pauses depend on it (default: 300; kafka-python's is 3000)",
    default=300,
    metavar="MS",
)
@as_json("print the results as JSON on stdout")
def demo(*, assignor: Sequence[str], compare: bool, **how: Any) -> int:
    """Run a group of real consumers on a real Kafka, under load.

    Three members join, a fourth joins, one is killed, one leaves, a topic gets more partitions. Shows each
    rebalance as it happens. Exits with 0 only if no message was lost and no partition had two owners at once.
    """
    if len(assignor) > 1 and not compare:
        refuse("to run several assignors, add --compare")
    from kafka_assignors._cli.demo_story import run_demo

    return run_demo(assignor or (COMPARED if compare else ["cooperative-sticky"]), **how)
