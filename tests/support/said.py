"""What the library says, read in its source: docstrings, and strings such as errors, logs and help texts."""

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
    """What a module says, each piece as a page: public docstrings, and all other strings."""
    tree = ast.parse(source)
    yield from _docstrings(tree)
    yield from _strings(tree)


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


def _strings(node: ast.AST) -> Iterator[str]:
    """Strings of words that are no docstrings; what is put into them is code."""
    for one in ast.iter_child_nodes(node):
        match one:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Constant(value=str(text)) if " " in text:
                yield re.sub(r"%[\w.]+", "`it`", text)
            case ast.JoinedStr(values=parts):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "`it`" for part in parts)
                yield from (text for part in parts for text in _strings(part))
            case _:
                yield from _strings(one)
