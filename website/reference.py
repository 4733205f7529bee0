"""Pages of the reference that are made of the code: of its packages, parsers, plug-in and answers."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click
import griffe

from kafka_assignors._cli.command_line import COMMANDS
from kafka_assignors._cli.options import PROGRAM
from kafka_assignors.testing import _plugin, _plugin_options
from website.answers import answers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

API: Final = Path(__file__).parents[1] / "docs" / "api.md"

_WIDTH: Final = 84
"""The width of a listing."""

_RESULTS: Final = "Their attributes are promised. The modules that define them are not."
_SECTION: Final = re.compile(
    r"^## `(?P<module>kafka_assignors[\w.]*)`\n\n(?P<what>.*?)\n\n(?P<names>.*?)\n\n",
    re.DOTALL | re.MULTILINE,
)
_FIXTURES: Final = ("kafka_cluster", "topic_factory", "consumer_group")
_FACTORIES: Final = (
    "TopicFactory",
    "GroupFactory",
    "kafka_cluster_factory",
    "topic_factory_factory",
    "consumer_group_factory",
)


def pages() -> dict[str, str]:
    """Path of a page -> its Markdown."""
    return {
        **_module_pages(),
        "reference/commands.md": _commands_page(),
        "reference/pytest.md": _pytest_page(),
        "reference/json.md": answers(),
    }


def public_modules() -> list[str]:
    """The modules that docs/api.md promises, in its order."""
    return [match["module"] for match in _SECTION.finditer(API.read_text(encoding="utf-8"))]


def with_links(text: str) -> str:
    """The page of promises, each name a link to its reference."""

    def linked(match: re.Match[str]) -> str:
        module = match["module"]
        names = re.sub(r"`(\w+)`", rf"[`\1`][{module}.\1]", match["names"])
        return f"## `{module}`\n\n{match['what']} [Reference](reference/{module}.md)\n\n{names}\n\n"

    return _SECTION.sub(linked, text)


def _module_pages() -> dict[str, str]:
    """A page for each public module, with the results of its functions where they come first."""
    modules = {name: importlib.import_module(name) for name in public_modules()}
    homes = {
        name: [f"{getattr(getattr(module, one), '__module__', name)}.{one}" for one in module.__all__]
        for name, module in modules.items()
    }
    shown = {_canonical(path) for paths in homes.values() for path in paths}
    texts: dict[str, str] = {}
    for name, module in modules.items():
        results = sorted(_results(homes[name], shown), key=lambda path: path.rpartition(".")[2])
        shown |= {*results}
        names = sorted(module.__all__, key=lambda one: (one.isupper(), one))
        texts[f"reference/{name}.md"] = "\n\n".join(
            [
                f"# {name}",
                inspect.cleandoc(module.__doc__ or ""),
                *(f"::: {name}.{one}" for one in names),
                *(["## Results", _RESULTS] if results else []),
                *(f"::: {path}" for path in results),
            ]
        )
    return texts


@functools.cache
def _source() -> griffe.Module:
    return cast("griffe.Module", griffe.load("kafka_assignors"))


def _results(homes: Iterable[str], shown: Collection[str]) -> set[str]:
    """Where the classes of values are defined that these return, and those in the fields of such values."""
    results: set[str] = set()
    left = [one for home in homes if (one := _defined(home))]
    while left:
        for one in filter(None, map(_defined, _returned(left.pop()))):
            if _is_value(one) and one.canonical_path not in results | {*shown}:
                results.add(one.canonical_path)
                left.append(one)
    return results


def _is_value(one: griffe.Object) -> bool:
    tuples = isinstance(one, griffe.Class) and any("NamedTuple" in str(base) for base in one.bases)
    return not one.name.startswith("_") and ("dataclass" in one.labels or tuples)


def _canonical(path: str) -> str:
    return one.canonical_path if (one := _defined(path)) else path


def _defined(path: str) -> griffe.Object | None:
    try:
        found = _source()[path.removeprefix("kafka_assignors.")]
    except KeyError:  # of another package
        return None
    return found.final_target if isinstance(found, griffe.Alias) else found


def _returned(one: griffe.Object) -> Iterator[str]:
    """The paths of all names in what it returns; in a class's public fields and what its methods return."""
    parts = [part for part in one.all_members.values() if part.is_public] if one.is_class else [one]
    for part in parts:
        shown = getattr(part, "returns", None) or getattr(part, "annotation", None)
        if isinstance(shown, griffe.Expr):
            yield from (name.canonical_path for name in shown.iterate() if isinstance(name, griffe.ExprName))


# --- commands


def _commands_page() -> str:
    return "\n\n".join(
        [
            "# Commands",
            "Made of the code: what `--help` prints, a table for each command.",
            "[Shells complete](../how-to/complete-commands.md) the options of `kafka-assignors`.",
            *(text for context in contexts() for text in _command(context)),
        ]
    )


def contexts(parent: click.Context | None = None) -> Iterator[click.Context]:
    """A context of each command of `kafka-assignors`, or of those below another one."""
    if parent is None:
        parent = click.Context(
            COMMANDS, info_name=PROGRAM, terminal_width=_WIDTH, **COMMANDS.context_settings
        )
        yield parent
    if not isinstance(parent.command, click.Group):
        return
    for name in parent.command.list_commands(parent):
        command = parent.command.get_command(parent, name)
        if command is not None:
            context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH)
            yield context
            yield from contexts(context)


def _command(context: click.Context) -> Iterator[str]:
    """A command of `kafka-assignors`."""
    command, level = context.command, min(2 + context.command_path.count(" "), 4)
    rows = [_row(param, context) for param in command.params]
    usage = command.get_usage(context)
    yield f"{'#' * level} {context.command_path}"
    yield _prose(command.help or "")
    yield f"```text\n{usage.rstrip()}\n```"
    if rows:
        yield _table(("argument", "meaning"), rows)
    if command.epilog:
        yield f"```text\n{command.epilog.rstrip()}\n```"


def _row(param: click.Parameter, context: click.Context) -> tuple[str, str]:
    metavar = param.make_metavar(context)
    if not isinstance(param, click.Option):
        return _cell(f"`{metavar}`"), _cell(param.help or "")
    value = "" if param.is_flag else f" {metavar}"
    names = "<br>".join(f"`{name}{value}`" for name in (*param.opts, *param.secondary_opts))
    return _cell(names), _cell(f"{param.help or ''}{' (required)' if param.required else ''}")


# --- the pytest plug-in


class _Declared:
    """Stands for pytest's parser: keeps what the plug-in declares."""

    def __init__(self) -> None:
        self.options: list[tuple[str, dict[str, Any]]] = []
        self.lines: dict[str, str | None] = {}

    def getgroup(self, *_names: str) -> _Declared:
        return self

    def addoption(self, name: str, **settings: Any) -> None:
        self.options.append((name, settings))

    def addini(self, name: str, _text: str, type: str | None = None, **_more: Any) -> None:  # noqa: A002 - pytest's name
        self.lines[name] = type


def _pytest_page() -> str:
    declared = _Declared()
    _plugin_options.declare(declared)  # type: ignore[arg-type]  # what it uses of pytest's parser
    rows = [
        (
            _cell(f"`{name}={settings['metavar']}`"),
            f"`{settings['dest']}`" + (", a line each" if declared.lines[settings["dest"]] else ""),
            _cell(settings["help"]),
        )
        for name, settings in declared.options
    ]
    introduction = inspect.cleandoc(_plugin.__doc__ or "").split("\n\n")[0]
    return "\n\n".join(
        [
            "# The pytest plug-in",
            introduction,
            "`pip install pytest-kafka-assignors`; the guide is [Testing](../testing.md).",
            "## Options and ini values",
            "An option of the command line wins over the ini value.",
            _table(("option", "ini value", "meaning"), rows),
            "## Fixtures",
            *(text for name in _FIXTURES for text in _fixture(name)),
            "## Fixtures of your own, and what fixtures return",
            "They are in `kafka_assignors.testing`:",
            _table(
                ("name", "meaning"),
                [
                    (
                        f"[`{name}`][kafka_assignors.testing.{name}]",
                        _cell(_first_line(getattr(_plugin, name))),
                    )
                    for name in _FACTORIES
                ],
            ),
        ]
    )


def _fixture(name: str) -> Iterator[str]:
    definition = getattr(_plugin, name)
    scope = definition._fixture_function_marker.scope  # noqa: SLF001 - pytest shows it nowhere else
    yield f"### {name}"
    yield f"Scope: {scope}. {_first_line(definition._get_wrapped_function())}"  # noqa: SLF001 - as above


# --- Markdown


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _prose(text: str) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace("__consumer_offsets", "`__consumer_offsets`")


def _cell(text: str) -> str:
    r"""A cell of a table: `|` is `\|`, except in code, where Python-Markdown takes it as it is."""
    one_line = text.replace("__consumer_offsets", "`__consumer_offsets`").replace("\n", " ")
    parts = one_line.split("`")
    parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
    return "`".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
