"""How large the package may be, by .ci/lines.toml: `python -m tests.support.lines [--lower]`.

The exit status is 1 if something is larger than its limit. `--lower` lowers the limits to what is there.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LIMITS: Final = ROOT / ".ci" / "lines.toml"
PACKAGE: Final = "kafka_assignors"
LONGEST: Final = {"functions": 60, "classes": 300}

_NODES: Final = {"functions": (ast.FunctionDef, ast.AsyncFunctionDef), "classes": (ast.ClassDef,)}
_SECTION: Final = re.compile(r"^## `[\w.]+`\n\n.*?\n\n(.*?)\n\n", re.DOTALL | re.MULTILINE)


def sizes(root: Path, files: Iterable[str]) -> dict[str, Any]:
    """What has limits: lines of rooms and of what is too long, and how many names are promised."""
    rooms: Counter[str] = Counter()
    found: dict[str, Any] = {"rooms": rooms, "functions": {}, "classes": {}}
    for file in files:
        text = (root / file).read_text(encoding="utf-8")
        rooms[Path(file).parts[1]] += text.count("\n")
        if file.endswith(".py"):
            module = Path(file).relative_to(PACKAGE).as_posix()
            for kind, name, lines in _long(ast.parse(text)):
                found[kind][f"{module}: {name}"] = lines
    page = (root / "docs" / "api.md").read_text(encoding="utf-8")
    found["names"] = {"promised": sum(len(re.findall(r"`\w+`", names)) for names in _SECTION.findall(page))}
    return found


def _long(node: ast.AST, inside: str = "") -> Iterator[tuple[str, str, int]]:
    """Kind, qualified name and lines of each function and class that is too long."""
    for one in ast.iter_child_nodes(node):
        name = f"{inside}{one.name}." if isinstance(one, sum(_NODES.values(), ())) else inside
        for kind, nodes in _NODES.items():
            if isinstance(one, nodes):
                lines = (one.end_lineno or one.lineno) - one.lineno + 1
                if lines > LONGEST[kind]:
                    yield kind, name.removesuffix("."), lines
        yield from _long(one, name)


def faults(found: dict[str, Any], limits: dict[str, Any]) -> list[str]:
    """What is larger than its limit, or has none; and limits of what is not there any more."""
    wrong = []
    for table, most in limits.items():
        for name, size in found[table].items():
            if name not in most:
                wrong.append(f"{table}: {name} has {size}, and no limit")
            elif size > most[name]:
                wrong.append(f"{table}: {name} has {size}, more than {most[name]}")
        wrong += [
            f"{table}: {name} has a limit, and needs none: --lower takes it out"
            for name in most.keys() - found[table].keys()
        ]
    return wrong


def lowered(found: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """The limits, none higher than what is there, and without those that nothing needs."""
    return {
        table: {name: min(size, most[name]) for name, size in found[table].items() if name in most}
        for table, most in limits.items()
    }


def as_toml(limits: dict[str, Any]) -> str:
    """Limits as a file has them."""
    tables = (
        [f"[{table}]", *(f'"{name}" = {most}' for name, most in sorted(limits[table].items()))]
        for table in limits
    )
    return "\n\n".join("\n".join(table) for table in tables) + "\n"


def main(lower: bool) -> int:
    """Compare what is there with the limits, or lower them to it."""
    command = ["git", "-C", str(ROOT), "ls-files", PACKAGE]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    limits = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    found = sizes(ROOT, files)
    if lower:
        limits = lowered(found, limits)
        LIMITS.write_text(as_toml(limits), encoding="utf-8")
    wrong = faults(found, limits)
    sys.stdout.write("\n".join([*wrong, f"{PACKAGE} has {sum(found['rooms'].values()):,} lines\n"]))
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main(lower="--lower" in sys.argv[1:]))
