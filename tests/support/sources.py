"""Hashes of the functions of other libraries that this one relies on, from their sources.

    python -m tests.support.sources aiokafka 0.14 /path/of/site-packages

records those of a release, after somebody has read what has changed. What is relied on anew is added to the
oldest release of the record, by hand: a test that fails shows its hash.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

_UNIT: Final = Path(__file__).parents[1] / "unit"


@dataclass(frozen=True, slots=True)
class Sources:
    """The functions of one library, by name, as `module:Class.method`.

    The oldest release that is recorded has them all; of each later one is recorded what is not as before.
    """

    recorded: Path

    @property
    def names(self) -> set[str]:
        return set(next(iter(self.record().values())))

    def hashes(self, packages: Path) -> dict[str, str]:
        """The functions' hashes: of their syntax, without docstrings, comments and layout."""
        found = {}
        for module, names in groupby(sorted(self.names), lambda name: name.partition(":")[0]):
            tree = ast.parse((packages / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
            kinds = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
            for name in names:
                kind, _, method = name.partition(":")[2].partition(".")
                function = _method(kinds[kind], method.removeprefix(f"_{kind}"))
                found[name] = hashlib.sha256(_text(function).encode()).hexdigest()[:16]
        return found

    def record(self) -> dict[str, dict[str, str]]:
        """All hashes of each release that is recorded."""
        known: dict[str, dict[str, str]] = {}
        before: dict[str, str] = {}
        for release, changed in json.loads(self.recorded.read_text(encoding="utf-8")).items():
            known[release] = before = before | changed
        return known

    def add(self, release: str, hashes: Mapping[str, str]) -> None:
        """Record the newest release."""
        known = json.loads(self.recorded.read_text(encoding="utf-8"))
        before = [*self.record().values()][-1]
        known[release] = dict(sorted(hashes.items() - before.items()))
        self.recorded.write_text(f"{json.dumps(known, indent=2)}\n", encoding="utf-8")


def private_names(folder: Path, *, methods_only: bool = False) -> set[str]:
    """All private names of a package, of functions and attributes; `sys._getframe` is nobody's."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif (
                not methods_only and isinstance(node, ast.Attribute) and ast.unparse(node) != "sys._getframe"
            ):
                found.add(node.attr)
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


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


AIOKAFKA: Final = Sources(_UNIT / "aio" / "relied_on.json")
KAFKA_PYTHON: Final = Sources(_UNIT / "assignors" / "relied_on.json")

if __name__ == "__main__":
    library = {"aiokafka": AIOKAFKA, "kafka-python": KAFKA_PYTHON}[sys.argv[1]]
    library.add(sys.argv[2], library.hashes(Path(sys.argv[3])))
