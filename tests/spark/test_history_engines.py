"""The archive and its tables, read by other engines; the queries of docs/history_queries.md."""

from dataclasses import replace
from datetime import date
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._metrics import metrics
from kafka_assignors.history._tables.job import make_tables
from tests.support.archives import counted, group, member, row
from tests.support.delta_tables import HISTORY, in_order, read_by_us
from tests.support.object_store import ObjectStore
from tests.support.pages import defined, listings
from tests.support.small_archives import DAY, generation, kip848_dump
from tests.support.written_archives import append

pytestmark = pytest.mark.slow

PAGE = "docs/history_queries.md"
QUERIES = listings(PAGE, "sql")


def restless(number: int, offset: int) -> dict[str, Any]:
    """A group whose only client has another id in each generation."""
    one = replace(member(f"id-{number}", {"u": [0]}), client_id="worker")
    return row(group_metadata_key("restless"), group(number, one), offset=offset)


@pytest.fixture(scope="module", params=["folder", "object store"])
def home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, str]]:
    """A place with an archive, its tables and its metrics, and the options of the place's store."""
    folder = tmp_path_factory.mktemp("engines")
    where, options = str(folder), {}
    if request.param == "object store":
        store: ObjectStore = request.getfixturevalue("object_store")
        where, options = f"s3://{store.bucket()}", {**store.options, "AWS_ALLOW_HTTP": "true"}
    archive = Archive.create(f"{where}/archive", options)
    append(archive, [generation(1, 0, "a"), generation(2, 3600, "a", "b"), counted(1, 500)])
    append(archive, [restless(at, 7200 + 10 * at) for at in range(1, 5)])
    append(archive, [generation(3, DAY, "b", "a"), generation(4, DAY + 7200, "b")])
    import_dump(kip848_dump(folder / "dump"), archive)
    make_tables(archive, f"{where}/tables", options=options)
    metrics(archive, f"{where}/metrics", options=options)
    return where, options


def entry(one: Any) -> Any:
    return tuple(one.values()) if isinstance(one, dict) else one


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in order. Polars knows no maps: of the only one it lists the entries, as structs."""
    return in_order(
        [row | {"reasons": sorted(map(entry, row["reasons"]))} if "flapping" in row else row for row in rows]
    )


EMPTY = {"tables/claims", "tables/rejected"}


@pytest.mark.parametrize("name", HISTORY)
def test_other_engines_read_the_rows_that_this_package_reads(
    home: tuple[str, dict[str, str]], name: str
) -> None:
    where, options = home
    expected = plain(read_by_us(where, name, options))
    assert bool(expected) == (name not in EMPTY)

    seen = DeltaTable(f"{where}/{name}", storage_options=options)
    assert plain(seen.to_pyarrow_table().to_pylist()) == expected
    read = pl.read_delta(f"{where}/{name}", storage_options=options)
    assert plain(read.to_arrow().to_pylist()) == expected
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("here", seen.to_pyarrow_dataset())
        assert plain(db.sql("FROM here").to_arrow_table().to_pylist()) == expected


@pytest.fixture
def db(home: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the page makes; it names places in the folder that one is in."""
    where, _ = home
    if "://" in where:
        pytest.skip("the page's places are in a folder")
    monkeypatch.chdir(where)
    names = defined(*listings(PAGE))
    with names["db"]:
        yield names


NEW_YEAR, NEXT, OLD = date(2026, 1, 1), date(2026, 1, 2), date(2023, 11, 14)


@pytest.mark.parametrize(
    ("query", "columns", "rows"),
    [
        (
            0,
            ["group", "day", "rebalances", "moved"],
            [
                ("restless", NEW_YEAR, 3, 3),
                ("orders", NEXT, 2, 9),
                ("g", OLD, 1, 2),
                ("orders", NEW_YEAR, 1, 3),
            ],
        ),
        (1, ["group", "client", "day", "ids"], [("restless", "worker", NEW_YEAR, 4)]),
        (
            2,
            ["group", "hour", "generations", "members"],
            [
                ("restless", "2026-01-01 02:00", 4, 1),
                ("g", "2023-11-14 22:00", 2, None),
                ("orders", "2026-01-01 00:00", 1, 1),
                ("orders", "2026-01-01 01:00", 1, 2),
                ("orders", "2026-01-02 00:00", 1, 2),
                ("orders", "2026-01-02 02:00", 1, 1),
            ],
        ),
        (
            3,
            ["group", "topic", "moved_partition", "moves", "owners"],
            [
                *(("orders", "t", partition, 3, 2) for partition in (1, 3, 5)),
                ("restless", "u", 0, 3, 3),
                *(("g", "t", partition, 1, 1) for partition in (2, 3)),
                *(("orders", "t", partition, 1, 1) for partition in (0, 2, 4)),
            ],
        ),
        (
            4,
            ["day", "type", "records", "kept"],
            [(NEW_YEAR, 1, 500, 0), (NEW_YEAR, 2, 6, 6), (NEXT, 2, 2, 2)],
        ),
    ],
)
def test_a_query_of_the_page_answers(db: Any, query: int, columns: list[str], rows: list[Any]) -> None:
    answer = db["db"].sql(QUERIES[query])
    assert answer.columns == columns
    assert answer.fetchall() == rows


@pytest.mark.core
def test_every_query_of_the_page_is_run(db: Any) -> None:
    assert len(QUERIES) == 5
    slowest = db["slowest"]
    assert slowest.columns == ["group", "strategy", "rebalances", "longest"]
    assert slowest.rows() == [
        ("g", "uniform", 1, 4.0),
        ("orders", "range", 3, 0.0),
        ("restless", "range", 3, 0.0),
    ]
