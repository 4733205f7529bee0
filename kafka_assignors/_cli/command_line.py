"""The command line: what there is to run, and how what was typed is read."""

import os
import sys
from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import shell_complete

from kafka_assignors._cli.commands import PROGRAM, LazyGroup, Place

COMPLETE: Final = "_KAFKA_ASSIGNORS_COMPLETE"
"""The environment variable by which a shell asks for completions, or for the script that asks."""

COMMANDS: Final = LazyGroup(
    name=PROGRAM,
    help="Partition assignors for kafka-python consumer groups.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    places={
        "demo": Place(
            "show a consumer group through joins, a crash, a leave and a grown topic", "demo_options:DEMO"
        ),
        "plan": Place("plan a group that a file describes, without a consumer", "plan_options:PLAN"),
        "group": Place(
            "a consumer group's coordinator: find it, explain what it decided", "group_options:GROUP"
        ),
        "placement": Place(
            "replicas on brokers: create, describe, infer, expand, reassign", "placement_options:PLACEMENT"
        ),
        "history": Place(
            "the history of all groups: captured from __consumer_offsets, kept, analysed",
            "history_options:HISTORY",
        ),
    },
)

click.version_option(package_name=PROGRAM, prog_name=PROGRAM, message="%(prog)s %(version)s")(COMMANDS)


def run(arguments: Sequence[str]) -> int:
    """Run what a command line asks for, or complete it for a shell.

    Returns:
        The exit status.

    Raises:
        SystemExit: With 2, for a wrong command line.
    """
    if instruction := os.environ.get(COMPLETE):
        return shell_complete(COMMANDS, {}, PROGRAM, COMPLETE, instruction)
    try:
        with COMMANDS.make_context(PROGRAM, [*arguments]) as context:
            return int(COMMANDS.invoke(context))
    except click.exceptions.Exit as done:  # help or the version was shown
        return done.exit_code
    except click.UsageError as error:
        error.show()
        sys.exit(error.exit_code)
