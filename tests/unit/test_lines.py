"""The package's limits of size, on a tiny tree."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Any]:
    for path, text in (
        ("kafka_assignors/a/m.py", SOURCE),
        ("kafka_assignors/b.py", "\n" * 3),
        ("docs/api.md", PAGE),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return sizes(tmp_path, ["kafka_assignors/a/m.py", "kafka_assignors/b.py"])


def test_lines_of_rooms_and_of_what_is_too_long_and_names_are_counted(found: dict[str, Any]) -> None:
    assert found == THERE
    assert faults(found, THERE) == []


@pytest.mark.parametrize(("table", "name"), [(table, name) for table in THERE for name in THERE[table]])
def test_what_is_larger_than_its_limit_or_has_none_is_a_fault(
    found: dict[str, Any], table: str, name: str
) -> None:
    size = THERE[table][name]
    limits = THERE | {table: THERE[table] | {name: size - 1}}
    assert faults(found, limits) == [f"{table}: {name} has {size}, more than {size - 1}"]
    del limits[table][name]
    assert faults(found, limits) == [f"{table}: {name} has {size}, and no limit"]


def test_limits_are_lowered_never_raised_and_taken_out_with_what_they_were_for(found: dict[str, Any]) -> None:
    limits = THERE | {"rooms": {"a": 300, "b.py": 9, "gone": 5}}
    assert faults(found, limits) == [
        "rooms: a has 306, more than 300",
        "rooms: gone has a limit, and needs none: --lower takes it out",
    ]
    lower = lowered(found, limits)
    assert lower == THERE | {"rooms": {"a": 300, "b.py": 3}}
    assert tomllib.loads(as_toml(lower)) == lower
