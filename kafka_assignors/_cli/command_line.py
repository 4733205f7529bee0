"""The command line: what there is to run, and how what was typed is read."""

import os
import sys
from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import shell_complete

from kafka_assignors._cli.demo import demo
from kafka_assignors._cli.group import group
from kafka_assignors._cli.history import history
from kafka_assignors._cli.options import PROGRAM, Group
from kafka_assignors._cli.placement import placement
from kafka_assignors._cli.plan import plan

COMPLETE: Final = "_KAFKA_ASSIGNORS_COMPLETE"
"""The environment variable by which a shell asks for completions, or for the script that asks."""


COMMANDS: Final = Group(
    name=PROGRAM,
    help="Partition assignors for kafka-python consumer groups.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    commands=[demo, plan, group, placement, history],
)

click.version_option(package_name=PROGRAM, prog_name=PROGRAM, message="%(prog)s %(version)s")(COMMANDS)


def run(arguments: Sequence[str]) -> int:
    """Run what a command line asks for, or complete it for a shell; returns the exit status.

    Raises SystemExit(2) for a wrong command line.
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
