"""Small archives are read without Spark: each command finds the same as with it."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_assignors._common.times import moment
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._info import info
from kafka_assignors.history._metrics import SCHEMAS, metrics
from kafka_assignors.history._report.job import report_archive
from kafka_assignors.history._schemas import TABLES
from kafka_assignors.history._tables.job import make_tables
from kafka_assignors.history._what_if.job import what_if
from tests.support.archives import BEGAN
from tests.support.delta_tables import in_order, rows_of
from tests.support.group_histories import START_US
from tests.support.local_archives import DAY, SINCE, chance, story

pytestmark = pytest.mark.slow

MADE = re.compile(r"\d+ [A-Z][a-z]+ 20(2[6-9]|[3-9]\d) \d\d:\d\d")
"""When a page was made, by its minute: the archive's own times are of 2023."""

SELECTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "since": {"since": SINCE},
    "since that time zone": {"since": SINCE.astimezone(UTC).replace(tzinfo=None)},
    "until": {"until": SINCE},
    "between": {"since": SINCE, "until": moment(START_US + (2 * DAY + 1) * 1_000_000)},
    "groups": {"groups": ["o*", "[!o]"]},
    "odd names": {"groups": ["", "ü"]},
    "one group since": {"since": SINCE, "groups": ["g"]},
    "nothing": {"since": datetime(2031, 1, 1, tzinfo=UTC)},
    "random, between": {"since": BEGAN + timedelta(seconds=40), "until": BEGAN + timedelta(seconds=170)},
}

MAKERS: dict[str, Callable[[Path], Archive]] = {
    "story": story,
    "seed 1": lambda folder: chance(folder, 1),
    "seed 2": lambda folder: chance(folder, 2),
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Archive]:
    return {name: make(tmp_path_factory.mktemp("archive")) for name, make in MAKERS.items()}


CASES = [
    *(("story", name) for name in SELECTIONS),
    *((seed, name) for seed in ("seed 1", "seed 2") for name in ("all", "odd names", "random, between")),
]


@pytest.fixture(params=CASES, ids=" ".join)
def case(request: pytest.FixtureRequest, archives: dict[str, Archive]) -> tuple[Archive, dict[str, Any]]:
    name, selection = request.param
    return archives[name], SELECTIONS[selection]


HERE = Engine.local()


def everything(archive: Archive, chosen: dict[str, Any], folder: Path, engine: Engine) -> dict[str, Any]:
    """What every command finds, and the rows of the tables that it makes."""
    folder.mkdir()
    found: dict[str, Any] = {
        "metrics": metrics(archive, folder / "metrics", **chosen, engine=engine),
        "what-if": {
            (row.group, row.assignor, row.scenario): row
            for row in what_if(archive, assignors=["range", "sticky"], **chosen, engine=engine)
        },
        "tables": make_tables(archive, folder / "tables", **chosen, engine=engine),
    }
    schemas = {"metrics": SCHEMAS, "tables": TABLES}
    for home, tables in schemas.items():
        for name, schema in tables.items():
            found[f"{home}/{name}"] = in_order(rows_of(folder / home / name, schema))
    page = folder / "page.html"
    for assignors in ((), ("range", "sticky")):
        with suppress(ValueError):  # there may be nothing to report on
            report_archive(archive, page, assignors=assignors, **chosen, engine=engine)
            found[f"page {assignors}"] = MADE.sub("", page.read_text(encoding="utf-8"))
    return found


def test_info_without_spark_is_that_of_spark(
    spark: SparkSession,  # noqa: ARG001 - Engine.spark() takes the session that is there
    case: tuple[Archive, dict[str, Any]],
) -> None:
    archive, chosen = case
    found, expected = info(archive, **chosen, engine=HERE), info(archive, **chosen, engine=Engine.spark())
    assert found == expected
    assert [*found.groups] == [*expected.groups]


@pytest.mark.parametrize(
    "case",
    [
        ("story", "all"),
        ("story", "since"),
        ("story", "between"),
        ("story", "groups"),
        ("seed 1", "all"),
        ("seed 2", "odd names"),
    ],
    ids=" ".join,
    indirect=True,
)
def test_every_command_finds_the_same_with_spark_and_without(
    spark: SparkSession,  # noqa: ARG001 - as above
    case: tuple[Archive, dict[str, Any]],
    tmp_path: Path,
) -> None:
    archive, chosen = case
    here = everything(archive, chosen, tmp_path / "here", HERE)
    there = everything(archive, chosen, tmp_path / "there", Engine.spark())
    for name, expected in there.items():
        assert here[name] == expected, name
    assert {*here} == {*there}


def test_there_is_something_to_find(archives: dict[str, Archive], tmp_path: Path) -> None:
    found = everything(archives["story"], {"since": SINCE}, tmp_path / "here", HERE)
    assert [(one.group, one.rebalances) for one in found["metrics"]] == [("coop", 6), ("range", 5), ("g", 2)]
    assert all(f">{group}<" in found["page ()"] for group in ("coop", "range", "g"))
    assert "What if" in found["page ('range', 'sticky')"]
    assert min(len(found[f"tables/{name}"]) for name in ("members", "assignments", "moves")) > 10
    moved = [move for row in found["metrics/rebalances"] if row["group"] == "g" for move in row["moves"]]
    moved += [row for row in found["tables/moves"] if row["group"] == "g"]
    assert {move["topic"] for move in moved} == {"t"}  # not an id


def test_the_selections_choose_different_records(archives: dict[str, Archive]) -> None:
    found = {name: info(archives["story"], **chosen, engine=HERE) for name, chosen in SELECTIONS.items()}
    sizes = {name: sum(one.groups.values()) for name, one in found.items()}
    assert sizes["all"] > sizes["since"] > sizes["one group since"] > 0
    assert sizes["all"] > sizes["between"] > sizes["nothing"] == 0
    assert sizes["since"] == sizes["since that time zone"]
    assert {*found["groups"].groups} == {"g", "odd"}
