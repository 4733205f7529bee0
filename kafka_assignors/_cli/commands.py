"""Commands as click has them: what one is asked for, and when its code is imported.

The modules named `*_options` say what can be asked for; they import nothing that takes time. What a command
does is in another module, which is imported when the command is run: many are slow to import, or need an
extra.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from kafka_assignors._cli.arguments import gather, positive
from kafka_assignors._cli.errors import ended, exit_status
from kafka_assignors._cli.output import Answer

PROGRAM: Final = "kafka-assignors"

FILE: Final = click.Path(path_type=Path, readable=False)
"""A file's path, which shells complete; the command that opens the file says what is wrong with it."""

FILE_NAME: Final = click.Path(readable=False, allow_dash=True)
"""The same as text: it may stand for something else, as `-` and URIs do."""

Check = Callable[[SimpleNamespace], None]
"""Refuses options that do not go together, by `refuse`, before the command's code is imported."""

_OPTIONS: Final = "Options"


class Read(click.ParamType[Any]):
    """A value that a function reads; the function's ValueError says what is wrong with the text."""

    name = "value"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; a default is one already."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ValueError, OverflowError) as error:
            self.fail(str(error), param, ctx)


class Option(click.Option):
    """An option.

    Args:
        names: Its names, and that of the argument that it becomes if that is another.
        section: Where the help lists it.
        settings: As for click's.
    """

    def __init__(self, names: Sequence[str], *, section: str = _OPTIONS, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.section = section

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Read the value; another option's name is none, as in `--output --execute`."""
        names = {name for param in ctx.command.params for name in (*param.opts, *param.secondary_opts)}
        given = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(one, str) and one in names for one in given):
            raise click.BadOptionUsage(self.opts[0], f"Option {self.opts[0]!r} requires an argument.", ctx)
        return super().process_value(ctx, value)


class _WithEpilog(click.Command):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes both
        """Add it as it is written: it has tables and listings."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")


class Command(_WithEpilog):
    """A command that does something.

    Args:
        name: Its name, without the words before it.
        text: What it does, for the list that its group shows; a `LazyGroup` has its own.
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


def _done(name: str, run: str, options: Mapping[str, Any]) -> int:
    """Call the command's function, and print what it answers if it did not do so itself."""
    module_name, _, function = run.partition(":")
    module = import_module(f"kafka_assignors._cli.{module_name}")
    wanted = gather(options)
    as_json = wanted.pop("json", False)

    def work() -> int:
        answer = getattr(module, function)(**wanted)
        if isinstance(answer, Answer):
            answer.show(as_json=as_json)
        return answer.status if isinstance(answer, Answer) else int(answer)

    return exit_status(name, work, module.ERRORS)


class Group(_WithEpilog, click.Group):
    """A command that has commands of its own.

    Args:
        name: Its name.
        description: What it is about.
        epilog: What ends the help, as it is written.
        commands: They.
    """

    def __init__(self, name: str, *, description: str, epilog: str, commands: Sequence[Command]) -> None:
        super().__init__(name, commands=[*commands], help=description, epilog=epilog)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """Their names, in the order in which they were given."""
        return [*self.commands]


class Place(NamedTuple):
    """Where a command is.

    Attributes:
        text: What it does.
        where: "module:name" of `kafka_assignors._cli`.
    """

    text: str
    where: str


class LazyGroup(click.Group):
    """Commands each of which is imported when it is run, or its own help is asked.

    Args:
        places: Their names, and where they are.
        settings: As for click's groups.
    """

    def __init__(self, *, places: Mapping[str, Place], **settings: Any) -> None:
        super().__init__(**settings)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """Their names."""
        return [*self._places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        """Import one."""
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].where.partition(":")
        command: click.Command = getattr(import_module(f"kafka_assignors._cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes both
        """List them, and import none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.text) for name, place in self._places.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete their names, and import none."""
        return [
            *(
                CompletionItem(name, help=place.text)
                for name, place in self._places.items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def refuse(message: str) -> NoReturn:
    """Refuse the command line.

    Raises:
        click.UsageError: Always.
    """
    raise click.UsageError(message, click.get_current_context())


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
