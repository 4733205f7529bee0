"""What all commands are made of: how they end, and options that many of them have."""

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click

from kafka_assignors import groups
from kafka_assignors._cli.arguments import positive
from kafka_assignors._cli.errors import ended
from kafka_assignors._common.errors import KafkaAssignorsError

PROGRAM: Final = "kafka-assignors"

FILE: Final = click.Path(readable=False, allow_dash=True)
"""A file's name, which shells complete; the command that opens the file says what is wrong with it. It may
stand for something else, as `-` and URIs do.
"""

PATH: Final = click.Path(path_type=Path, readable=False)
"""The same as a path."""

_OPTIONS: Final = "Options"

_Function = TypeVar("_Function", bound="Callable[..., Any]")


class Command(click.Command):
    """A command whose function returns its exit status, or None for 0; see `errors`.

    Errors that it does not foresee are defects and come out.
    """

    foreseen: tuple[type[Exception], ...] = (KafkaAssignorsError,)

    def invoke(self, ctx: click.Context) -> int:
        name = ctx.command_path.removeprefix(f"{PROGRAM} ")
        work = super().invoke
        return ended(name, lambda: work(ctx), self.foreseen)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes both
        """Add it as it is written: it has tables and listings."""
        if self.epilog:
            formatter.write(f"\n{self.epilog}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {_OPTIONS: []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                sections.setdefault(getattr(param, "section", _OPTIONS), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002 - click passes it
        """All of the first sentence: lists are wrapped."""
        return click.Command.get_short_help_str(self, limit=1000)


class Group(click.Group):
    """Commands in the order in which they are written."""

    command_class = Command
    format_epilog = Command.format_epilog
    get_short_help_str = Command.get_short_help_str

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return [*self.commands]


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
    """An option that takes no other option's name as its value, as in `--output --execute`.

    Arguments are as for click's; the help lists it in its section.
    """

    def __init__(self, *args: Any, section: str = _OPTIONS, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        names = {name for param in ctx.command.params for name in (*param.opts, *param.secondary_opts)}
        given = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(one, str) and one in names for one in given):
            raise click.BadOptionUsage(self.opts[0], f"Option {self.opts[0]!r} requires an argument.", ctx)
        return super().process_value(ctx, value)


option: Final = partial(click.option, cls=Option)
path: Final = partial(option, type=PATH, metavar="FILE")


def refuse(message: str) -> NoReturn:
    raise click.UsageError(message, click.get_current_context())


def value(
    name: str, text: str | None = None, *, read: Callable[[str], Any], metavar: str, **settings: Any
) -> Callable[[_Function], _Function]:
    """An option that a function reads; see `Read`."""
    return option(name, type=Read(read), metavar=metavar, help=text, **settings)


number: Final = partial(value, read=positive, metavar="N")
"""An option that is a whole number, by default from 1 on."""


def flag(name: str, text: str, **settings: Any) -> Callable[[_Function], _Function]:
    return option(name, is_flag=True, help=text, **settings)


def as_json(text: str = "print the result as JSON") -> Callable[[_Function], _Function]:
    return option("--json", "as_json", is_flag=True, help=text)


def servers(text: str = "a running Kafka", **settings: Any) -> Callable[[_Function], _Function]:
    """The option that names brokers, as Kafka's own tools have it."""
    return option("--bootstrap-server", "bootstrap_servers", metavar="HOST:PORT[,...]", help=text, **settings)


def running_cluster(*, required: bool = True, **settings: Any) -> Callable[[_Function], _Function]:
    """The options that name a running cluster: the function gets it as `cluster`, None if it is not named."""
    config = path(
        "--command-config",
        help="properties of the client, as for Kafka's own tools: security.protocol=SASL_SSL ...",
        **settings,
    )

    def decorate(function: Any) -> Any:
        @wraps(function)
        def run(*, bootstrap_servers: str | None, command_config: Path | None, **others: Any) -> Any:
            if bootstrap_servers is None:
                if command_config is not None:
                    refuse("--command-config needs --bootstrap-server")
                return function(cluster=None, **others)
            cluster = groups.Cluster(bootstrap_servers, command_config=command_config)
            return function(cluster=cluster, **others)

        return servers(required=required, **settings)(config(run))

    return decorate
