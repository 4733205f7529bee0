"""docs/history.md says of every table and column what the schemas say."""

import re
from pathlib import Path

import pytest

from kafka_assignors.history import _schemas as schemas

PAGE = (Path(__file__).parents[3] / "docs" / "history.md").read_text(encoding="utf-8")
SHOWN = {
    **schemas.TABLES,
    "rebalances": schemas.REBALANCES,
    "groups": schemas.GROUPS,
    "what_if": schemas.WHAT_IF,
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_tables_columns_are_those_on_the_page(name: str) -> None:
    section = PAGE.split(f"\n### `{name}`\n")[1].split("\n### ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \| (.*) \|$", section, re.MULTILINE)
    assert [(column, comment, "may be null" in kind) for column, kind, comment in rows] == [
        (field.name, field.metadata[b"comment"].decode(), field.nullable) for field in SHOWN[name]
    ]
