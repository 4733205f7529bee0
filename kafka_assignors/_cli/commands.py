"""Commands whose options stand apart from what they do, in modules named `*_options`."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import click

from kafka_assignors._cli import options
from kafka_assignors._cli.arguments import gather, positive
from kafka_assignors._cli.errors import ended, exit_status
from kafka_assignors._cli.options import FILE as FILE_NAME, PROGRAM, Read, refuse
from kafka_assignors._cli.output import Answer

__all__ = [
    "FILE",
    "FILE_NAME",
    "Check",
    "Command",
    "Group",
    "Option",
    "Read",
    "as_json",
    "client",
    "flag",
    "number",
    "refuse",
    "servers",
]

FILE: Final = click.Path(path_type=Path, readable=False)
"""A file's path, which shells complete; the command that opens the file says what is wrong with it."""

Check = Callable[[SimpleNamespace], None]
"""Refuses options that do not go together, by `refuse`, before the command's code is imported."""

_OPTIONS: Final = "Options"
_TEXTS: Final = {
    "placement": "replicas on brokers: create, describe, infer, expand, reassign",
    "history": "the history of all groups: captured from __consumer_offsets, kept, analysed",
}


class Option(options.Option):
    """An option, with the section in which the help lists it."""

    def __init__(self, names: Sequence[str], *, section: str = _OPTIONS, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.section = section


class Command(options.Command):
    """A command that does something.

    Args:
        name: Its name, without the words before it.
        text: What it does, for the list that its group shows.
        run: "module:function" of `kafka_assignors._cli`. The function's keyword arguments are the options.
        params: What it takes.
        more: What ends the description that `text` makes.
        description: Another one.
        epilog: What ends the help, as it is written.
        check: See `Check`.
    """

    def __init__(
        self,
        name: str,
        run: str,
        params: Sequence[click.Parameter],
        *,
        text: str = "",
        more: str = ".",
        description: str | None = None,
        epilog: str | None = None,
        check: Check | None = None,
    ) -> None:
        described = description or f"{text[:1].upper()}{text[1:]}{more}"
        super().__init__(name, params=[*params], help=described, short_help=text, epilog=epilog)
        self._run = run
        self._check = check

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options, and refuse those that do not go together."""
        rest = super().parse_args(ctx, args)
        if self._check is not None and not ctx.resilient_parsing:
            self._check(SimpleNamespace(**ctx.params))
        return rest

    def invoke(self, ctx: click.Context) -> int:
        """Do it, and return the exit status."""
        name = ctx.command_path.removeprefix(f"{PROGRAM} ")
        return ended(name, lambda: _done(name, self._run, ctx.params))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options by their sections."""
        sections: dict[str, list[tuple[str, str]]] = {_OPTIONS: []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                sections.setdefault(getattr(param, "section", _OPTIONS), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _done(name: str, run: str, given: Mapping[str, Any]) -> int:
    """Call the command's function, and print what it answers if it did not do so itself."""
    module_name, _, function = run.partition(":")
    module = import_module(f"kafka_assignors._cli.{module_name}")
    wanted = gather(given)
    as_json = wanted.pop("json", False)

    def work() -> int:
        answer = getattr(module, function)(**wanted)
        if isinstance(answer, Answer):
            answer.show(as_json=as_json)
        return answer.status if isinstance(answer, Answer) else int(answer)

    return exit_status(name, work, module.ERRORS)


class Group(options.Group):
    """A command that has commands of its own."""

    def __init__(self, name: str, *, description: str, epilog: str, commands: Sequence[Command]) -> None:
        super().__init__(name, commands=[*commands], help=description, short_help=_TEXTS[name], epilog=epilog)


def flag(name: str, text: str, **settings: Any) -> Option:
    """An option without a value."""
    return Option([name], is_flag=True, help=text, **settings)


def number(
    name: str,
    text: str | None = None,
    *,
    read: Callable[[str], int] = positive,
    metavar: str = "N",
    **settings: Any,
) -> Option:
    """An option that is a whole number, by default from 1 on."""
    return Option([name], type=Read(read), metavar=metavar, help=text, **settings)


def as_json(text: str = "print the result as JSON", *, itself: bool = False) -> Option:
    """The option --json. A command that prints by `itself`, as it goes, has it as the argument `as_json`."""
    return Option(["--json", "as_json" if itself else "json"], is_flag=True, help=text)


def client(*, required: bool, section: str = _OPTIONS) -> list[Option]:
    """The options of a `ClusterClient`."""
    return [
        servers(
            type=Read(lambda text: text.split(",")),
            required=required,
            section=section,
            help="a running Kafka",
        ),
        Option(
            ["--command-config"],
            type=FILE,
            metavar="FILE",
            section=section,
            help="properties of the client, as for Kafka's own tools: security.protocol=SASL_SSL ...",
        ),
    ]


def servers(**settings: Any) -> Option:
    """The option that names brokers, as Kafka's own tools have it."""
    return Option(["--bootstrap-server", "bootstrap_servers"], metavar="HOST:PORT[,...]", **settings)
