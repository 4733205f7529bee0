"""What the library says of itself, read in its source: docstrings, errors, logs and help texts."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING, Final

from tests.support.prose import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE: Final = ROOT / "kafka_assignors"

_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_LOGGERS: Final = frozenset({"log", "logger", "_log", "_logger"})
_HELP: Final = frozenset({"help", "description", "epilog"})
_SECTION: Final = re.compile(r"^(\w+):\n((?:    .*(?:\n|\Z)|\n)+)", re.MULTILINE)
_TABLE: Final = re.compile(r"^=+ [= ]+$.*^=+ [= ]+$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"^    [\w*, .`]+(?: \([^)]*\))?: ", re.MULTILINE)


def rooms() -> list[str]:
    """The folders of the package, and the modules that are in none."""
    return sorted(
        path.name
        for path in PACKAGE.iterdir()
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__main__")
    )


def modules(room: str) -> list[Path]:
    """The modules of a room."""
    place = PACKAGE / room
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def said(source: str) -> Iterator[str]:
    """What a module says, each piece as a page: public docstrings, errors, logs and help texts."""
    tree = ast.parse(source)
    yield from _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _texts(node.exc.args)
        elif isinstance(node, ast.Call):
            if _logs(node.func):
                yield from _texts(node.args[:1])
            yield from _texts([one.value for one in node.keywords if one.arg in _HELP])


def _docstrings(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Those of a module or class and of what is public in it, with those of its attributes."""
    for one in node.body:
        if (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        ):
            yield _as_page(one.value.value)
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(one)
            if text is not None and not one.name.startswith("_"):
                yield _as_page(text)
        elif isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            yield from _docstrings(one)


def _as_page(docstring: str) -> str:
    """A docstring with its arguments, attributes and errors as a list, without tables."""
    text = _TABLE.sub("", inspect.cleandoc(docstring))
    return _SECTION.sub(_as_list, text.replace("``", "`"))


def _as_list(section: re.Match[str]) -> str:
    entries = section[2]
    if section[1] in {"Args", "Attributes", "Raises"}:
        entries = _ENTRY.sub("- ", entries)
    return re.sub("^ +", "", entries, flags=re.MULTILINE)


def _logs(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr not in _LEVELS:
        return False
    logger = function.value
    name = logger.attr if isinstance(logger, ast.Attribute) else getattr(logger, "id", "")
    return name in _LOGGERS


def _texts(arguments: list[ast.expr]) -> Iterator[str]:
    """The text in expressions; what is put into it is code."""
    for one in arguments:
        text = _text(one)
        if text:
            yield re.sub(r"%[sdr]", "`it`", text)


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) if isinstance(part, ast.Constant) else "`it`" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case _:
            return ""
