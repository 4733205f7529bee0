"""Classes and functions of the user's, named so that another process finds them."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def path_of(target: Any) -> str:
    """The path by which `imported` finds a class or function: "package.module:name", or "/a/file.py:name".

    Raises ValueError if no other process can find it. It was made within a function or on a command line, or
    has no name, as an object that can be called.
    """
    if not hasattr(target, "__qualname__"):
        raise ValueError(
            f"another process cannot import {target!r}: it is no function or class, but an object of"
            f" {type(target).__module__}.{type(target).__qualname__}. Define a function at the top of a"
            " module that calls it, and give what differs between members by name: (function, {'db': ...})"
        )
    module, name = target.__module__, target.__qualname__
    if "<" in name:
        raise ValueError(
            f"another process cannot import {module}:{name}; define it at the top of a module, or give a path"
            " ('package.module:name')"
        )
    file = getattr(sys.modules.get(module), "__file__", None)
    if module != "__main__" and _findable(module):
        return f"{module}:{name}"
    if file is None:
        raise ValueError(f"another process cannot import {module}:{name}; it is in no file")
    return f"{Path(file).resolve()}:{name}"


def imported(path: str) -> Any:
    """What a path names; raises ValueError if it has not the form "package.module:name" or "file.py:name"."""
    module, colon, name = path.rpartition(":")
    if not colon or not name:
        raise ValueError(f"{path!r} is no path of the form 'package.module:name' or 'file.py:name'")
    target: Any = _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target


def _from_file(file: Path) -> Any:
    """A module from its file, once for each process; its packages with it, for imports relative to them.

    They stand below a namespace of their own: a package `tests` may be another's.
    """
    folder, name = file.parent, file.stem
    while (folder / "__init__.py").exists():
        folder, name = folder.parent, f"{folder.name}.{name}"
    root = f"_from_{abs(hash(str(folder)))}"
    if root not in sys.modules:
        sys.modules[root] = ModuleType(root)
        sys.modules[root].__path__ = [str(folder)]
    return importlib.import_module(f"{root}.{name}")


def _findable(module: str) -> bool:
    """Whether a fresh process that has our path finds this very module by its name.

    Not so for what pytest or `runpy` loaded from a file whose folder is on no path.
    """
    parent: Any = None
    spec: Any = None
    for end in range(1, module.count(".") + 2):
        name = ".".join(module.split(".")[:end])
        spec = next((found for finder in sys.meta_path if (found := finder.find_spec(name, parent))), None)
        if spec is None:
            return False
        parent = spec.submodule_search_locations
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or spec.origin == file
