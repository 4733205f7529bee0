"""docs/history_tables.md says of every table and column what the schemas say."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from kafka_assignors._groups.saving import WhatIf
from kafka_assignors.history import _schemas as schemas, make_tables
from tests.support.local_archives import story
from tests.support.pages import defined, listing, read

PAGE = "docs/history_tables.md"
SHOWN = {
    **schemas.TABLES,
    "rebalances": schemas.REBALANCES,
    "groups": schemas.GROUPS,
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_tables_columns_are_those_on_the_page(name: str) -> None:
    assert [(column, comment, "may be null" in kind) for column, kind, comment in rows_of(name)] == [
        (field.name, field.metadata[b"comment"].decode(), field.nullable) for field in SHOWN[name]
    ]


def test_the_fields_of_what_if_are_those_on_the_page() -> None:
    assert [(column, "may be null" in kind) for column, kind, _ in rows_of("what_if")] == [
        (field.name, "None" in str(field.type)) for field in fields(WhatIf)
    ]


def rows_of(name: str) -> list[tuple[str, str, str]]:
    """Name, type and text of each column of a table on the page."""
    section = read(PAGE).split(f"\n## `{name}`\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| ([^|]*) \| (.*) \|$", section, re.MULTILINE)


def test_the_listing_reads_a_table(tmp_path: Path) -> None:
    make_tables(story(tmp_path / "archive"), tmp_path / "tables")
    names = defined(listing(PAGE, "read_table").replace("/srv/history-tables", str(tmp_path / "tables")))
    assert names["moves"].schema == schemas.TABLES["moves"]
    assert names["moves"].num_rows > 0
