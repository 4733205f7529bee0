"""Hashes of the functions of aiokafka that `kafka_assignors.aio` relies on, from its sources.

    python -m tests.support.aiokafka_sources 0.14 /path/of/site-packages

records those of a release, after somebody has read what has changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from pathlib import Path
from typing import Final

from kafka_assignors.aio._relied_on import RELIED_ON

RECORD: Final = Path(__file__).parents[1] / "unit" / "aio" / "relied_on.json"
"""Release -> function -> hash."""


def hashes(packages: Path) -> dict[str, str]:
    """The functions' hashes: of their syntax, without docstrings, comments and layout.

    Args:
        packages: The folder that has `aiokafka`.
    """
    found = {}
    for module, names in RELIED_ON.items():
        tree = ast.parse((packages / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        kinds = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        for name in names:
            kind, _, method = name.partition(".")
            function = _method(kinds[kind], method.removeprefix(f"_{kind}"))
            found[name] = hashlib.sha256(_text(function).encode()).hexdigest()[:16]
    return found


def _text(part: object) -> str:
    """A part of a syntax tree, the same by all versions of Python: what is empty is left out.

    `ast.dump` has fields that only some versions know, and not all leave out the same.
    """
    if isinstance(part, ast.AST):
        fields = (
            f"{name}={_text(value)}" for name, value in ast.iter_fields(part) if value not in ([], None)
        )
        return f"{type(part).__name__}({', '.join(fields)})"
    if isinstance(part, list):
        return f"[{', '.join(map(_text, part))}]"
    return repr(part)


def _method(kind: ast.ClassDef, name: str) -> ast.AST:
    for node in kind.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            return node
    raise LookupError(f"{kind.name} has no {name}")


def record() -> dict[str, dict[str, str]]:
    """What is recorded."""
    known: dict[str, dict[str, str]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return known


if __name__ == "__main__":
    known = record() if RECORD.exists() else {}
    known[sys.argv[1]] = hashes(Path(sys.argv[2]))
    RECORD.write_text(f"{json.dumps(known, indent=2, sort_keys=True)}\n", encoding="utf-8")
