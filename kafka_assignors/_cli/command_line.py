"""The command line: what there is to run, and how what was typed is read."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import shell_complete

from kafka_assignors._cli.options import PROGRAM, Group

COMPLETE: Final = "_KAFKA_ASSIGNORS_COMPLETE"
"""The environment variable by which a shell asks for completions, or for the script that asks."""


class LazyGroup(Group):
    """Commands that are imported when they are asked for, by "module:name" of `kafka_assignors._cli`."""

    def __init__(self, *, places: Mapping[str, str], **settings: Any) -> None:
        super().__init__(**settings)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return [*self._places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"kafka_assignors._cli.{module}"), name)
        return command


COMMANDS: Final = LazyGroup(
    name=PROGRAM,
    help="Partition assignors for kafka-python consumer groups.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    places={
        "demo": "demo:demo",
        "plan": "plan:plan",
        "group": "group:group",
        "placement": "placement:placement",
        "history": "history:history",
    },
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
