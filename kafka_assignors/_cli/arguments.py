"""Kinds of arguments that several commands take; imports nothing that takes time."""

import argparse
from pathlib import Path
from typing import Any


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = whole(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 is too few")
    return number


def add_client(parser: Any, *, required: bool) -> None:
    """The options that say how to reach a cluster.

    Args:
        parser: The parser, or a group of one's arguments.
        required: Whether the command needs a cluster.
    """
    parser.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT[,...]", required=required, help="a running Kafka"
    )
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="properties of the client, as for Kafka's own tools: security.protocol=SASL_SSL ...",
    )
