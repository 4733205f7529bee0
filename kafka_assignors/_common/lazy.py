"""Names of a package that are imported when they are first used."""

import ast
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """The names that a package offers, and the `__getattr__` that imports them (PEP 562).

    They are listed once, as imports in the stub beside the package's `__init__.py`, where type checkers and
    editors read them, too. `package` and `file` are the package's `__name__` and `__file__`.
    """
    homes = _homes(Path(file).with_suffix(".pyi"))

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return sorted(homes), look_up


def _homes(stub: Path) -> Mapping[str, str]:
    """Name -> the module that the stub imports it from."""
    statements = ast.parse(stub.read_text(encoding="utf-8")).body
    return {
        alias.name: str(statement.module)
        for statement in statements
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
