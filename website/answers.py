"""The page on JSON: what commands answer with `--json`, of the commands themselves.

Commands that need no Kafka are run. Of the others the result's fields are listed, or one that was made up is
shown.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_assignors._cli.main import main
from kafka_assignors._common.plain import to_json
from kafka_assignors.history._info import ArchiveInfo
from kafka_assignors.history._report.job import ReportPage
from kafka_assignors.history._schemas import GROUPS, REBALANCES
from kafka_assignors.history._tables.job import TableCounts
from kafka_assignors.placement._moving import Cancelled
from kafka_assignors.placement._topics import CreatedTopic
from website import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

ROOT: Final = Path(__file__).parents[1]


class _Example(NamedTuple):
    """A result that was made up."""

    result: Callable[[], Any]


class _Run(NamedTuple):
    """A command that is run; words in capitals are files of the guides."""

    arguments: tuple[str, ...]


class _Fields(NamedTuple):
    """A dataclass, all of it."""

    kind: type


class _Rows(NamedTuple):
    """A list of rows of a table."""

    table: pa.Schema


class _Described(NamedTuple):
    """A list of objects that a part of docs/history_tables.md describes."""

    part: str


_ANSWERS: Final[dict[str, tuple[str, _Example | _Run | _Fields | _Rows | _Described]]] = {
    "plan": ("One object.", _Run(("plan", "GROUP"))),
    "demo": ("A list with an object for each strategy.", _Example(examples.demo_runs)),
    "group explain": ("Of a classic group:", _Example(examples.explained_classic)),
    "group explain: a group of KIP-848": ("", _Example(examples.explained_consumer)),
    "group list": ("A list with an object for each group.", _Example(examples.listed)),
    "group what-if": (
        "A list with an object for each assignor, with dynamic and with static members.",
        _Run(("group", "what-if", "--members", "2", "--topic", "orders=4", "--assignor", "range")),
    ),
    "group find": ("With a cluster also its broker.", _Run(("group", "find", "billing"))),
    "group elect": ("One object.", _Run(("group", "elect", "a=range,sticky", "b=sticky,range"))),
    "placement create": ("One object.", _Fields(CreatedTopic)),
    "placement describe": (
        "One object.",
        _Run(("placement", "describe", "--placements", "ORDERS", *("--brokers", "0=a,1=b,2=c"))),
    ),
    "placement infer": ("By topic.", _Run(("placement", "infer", "--placements", "ORDERS"))),
    "placement expand": (
        "One object.",
        _Run(("placement", "expand", "orders", "--partitions", "7", "--placements", "ORDERS")),
    ),
    "placement reassign": (
        "One object.",
        _Run(("placement", "reassign", "--placements", "ORDERS", "--brokers", "0=a,1=b,2=c,3=a")),
    ),
    "placement cancel": ("One object.", _Fields(Cancelled)),
    "placement verify": ("One object.", _Example(examples.under_way)),
    "history capture": ("One object at the end.", _Example(examples.captured)),
    "history import": ("One object.", _Example(examples.imported)),
    "history info": ("One object.", _Fields(ArchiveInfo)),
    "history maintain": (
        "One object, with `executed` and `bad` (damaged files that were passed over) beside these.",
        _Example(examples.maintenance),
    ),
    "history tables": ("One object.", _Fields(TableCounts)),
    "history metrics": ("A list with an object for each group.", _Rows(GROUPS)),
    "history what-if": (
        "A list with an object for each group, assignor and scenario.",
        _Described("what_if"),
    ),
    "history watch": (
        "An object a line for each rebalance, with `quiet` (see the glossary) beside these.",
        _Rows(REBALANCES),
    ),
    "history report": ("One object.", _Fields(ReportPage)),
}


_INTRODUCTION: Final = """\
What commands print with `--json`. Times are in ISO 8601. Answers shown whole were given by the commands when
this page was built, for the example files of [plan](../plan-file.md) and [placement](../placement.md), or for
groups that were made up."""


def answers() -> str:
    """The page."""
    parts = [
        "# JSON",
        _INTRODUCTION,
    ]
    for command, (what, source) in _ANSWERS.items():
        parts += [f"## {command}", what]
        if isinstance(source, _Run):
            parts += [f"```json\n{_answer(source.arguments)}\n```"]
        elif isinstance(source, _Example):
            parts += [f"```json\n{_compact(to_json(source.result()))}\n```"]
        elif isinstance(source, _Rows):
            parts += [_columns(source.table)]
        elif isinstance(source, _Described):
            parts += [_description(source.part)]
        else:
            rows = _attributes(source.kind)
            parts += [
                "| key | value |\n|---|---|\n" + "\n".join(f"| `{key}` | {value} |" for key, value in rows)
            ]
    return "\n\n".join(part for part in parts if part)


def _answer(arguments: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for name, (page, language) in {
            "GROUP": ("plan-file.md", "yaml"),
            "ORDERS": ("placement.md", "json"),
        }.items():
            listing = re.search(
                rf"^```{language}\n(.*?)^```",
                (ROOT / "docs" / page).read_text(encoding="utf-8"),
                re.DOTALL | re.MULTILINE,
            )
            if listing is None:
                raise ValueError(f"docs/{page} has no listing in {language}, which the page on JSON needs")
            Path(folder, f"{name.lower()}.{language}").write_text(listing[1], encoding="utf-8")
        files = {"GROUP": f"{folder}/group.yaml", "ORDERS": f"{folder}/orders.json"}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = main([*(files.get(one, one) for one in arguments), "--json"])
    if status != 0:
        raise ValueError(f"kafka-assignors {' '.join(arguments)} ended with {status}")
    return _compact(json.loads(printed.getvalue()))


def _compact(value: Any, indent: str = "") -> str:
    """JSON with a line for each key, and what fits on a line on one."""
    whole = json.dumps(value)
    deeper = f"{indent}  "
    if len(whole) + len(indent) <= 100 or not isinstance(value, dict | list) or not value:  # noqa: PLR2004 - the width of a listing
        return whole
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_compact(one, deeper)}" for key, one in value.items()]
        return "{\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + _compact(one, deeper) for one in value) + f"\n{indent}]"


def _columns(table: pa.Schema) -> str:
    rows = [
        f"| `{field.name}` | {_kind(str(field.type))}{', or null' if field.nullable else ''} | "
        f"{field.metadata[b'comment'].decode().replace('__consumer_offsets', '`__consumer_offsets`')} |"
        for field in table
    ]
    return "| key | type | value |\n|---|---|---|\n" + "\n".join(rows)


def _description(part: str) -> str:
    page = (ROOT / "docs" / "history_tables.md").read_text(encoding="utf-8")
    table = page.split(f"\n## `{part}`\n")[1].split("\n## ")[0].split("|---|---|---|\n")[1].strip()
    rows = (line.strip("| ").split(" | ", 2) for line in table.splitlines())
    shown = (
        f"| {key} | {_kind(kind)}{', or null' if kind.endswith('may be null') else ''} | {value} |"
        for key, kind, value in rows
    )
    return "| key | type | value |\n|---|---|---|\n" + "\n".join(shown)


def _kind(arrow: str) -> str:
    names = {
        "string": "text",
        "double": "number",
        "int": "whole number",
        "timestamp": "time",
        "list": "list",
        "map": "object",
    }
    return next((kind for name, kind in names.items() if arrow.startswith(name)), arrow)


def _attributes(kind: type) -> Iterator[tuple[str, str]]:
    """The fields of a dataclass, each with what its docstring says, else with its type."""
    said = dict(
        re.findall(r"^    (\w+): (.*(?:\n      +.*)*)", inspect.cleandoc(kind.__doc__ or ""), re.MULTILINE)
    )
    for field in dataclasses.fields(kind):
        yield field.name, " ".join(said.get(field.name, f"`{field.type}`").split())
