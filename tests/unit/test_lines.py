"""The package's limits of size, on a tiny tree."""

import tomllib
from pathlib import Path
from typing import Any

from tests.support.lines import as_toml, faults, lowered, sizes

SOURCE = (
    "class Large:\n    def short(self):\n        pass\n\n    def long(self):\n"
    + "        x = 1\n" * 60
    + "\n" * 240
    + "    y = 2\n"
)
PAGE = """
## `kafka_assignors.a`

What `it` is.

`One`, `two`

## `kafka_assignors.b`

B.

`three`

"""
THERE: dict[str, Any] = {
    "rooms": {"a": 306, "b.py": 3},
    "functions": {"a/m.py: Large.long": 61},
    "classes": {"a/m.py: Large": 306},
    "names": {"promised": 3},
}


def test_what_is_larger_than_its_limit_or_has_none_is_a_fault_and_limits_are_lowered(tmp_path: Path) -> None:
    files = {"kafka_assignors/a/m.py": SOURCE, "kafka_assignors/b.py": "\n" * 3, "docs/api.md": PAGE}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    found = sizes(tmp_path, ["kafka_assignors/a/m.py", "kafka_assignors/b.py"])
    assert found == THERE
    assert faults(found, THERE) == []
    limits = THERE | {"rooms": {"a": 300, "gone": 5}, "functions": {}}
    assert faults(found, limits) == [
        "rooms: a has 306, more than 300",
        "rooms: b.py has 3, and no limit",
        "rooms: gone has a limit, and needs none: --lower takes it out",
        "functions: a/m.py: Large.long has 61, and no limit",
    ]
    lower = lowered(found, THERE | {"rooms": {"a": 300, "b.py": 9, "gone": 5}})
    assert lower == THERE | {"rooms": {"a": 300, "b.py": 3}}
    assert tomllib.loads(as_toml(lower)) == lower
