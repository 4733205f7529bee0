"""Small archives are read without Spark: each command finds the same as with it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._common.times import moment
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_report import report_archive, zoned
from kafka_assignors.history._info import describe, describe_here
from kafka_assignors.history._local import read_groups
from kafka_assignors.history._metrics import groups_of, measure, write_metrics
from kafka_assignors.history._metrics_local import measure_here
from kafka_assignors.history._report_local import report_here
from kafka_assignors.history._schemas import GROUPS, REBALANCES
from kafka_assignors.history._store.reading import DamagedFileError
from tests.support.archives import BEGAN
from tests.support.delta_tables import rows_of
from tests.support.group_histories import START_US
from tests.support.local_archives import DAY, SINCE, chance, story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


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


def test_info_without_spark_is_that_of_spark(
    spark: SparkSession, case: tuple[Archive, dict[str, Any]]
) -> None:
    archive, chosen = case
    found, expected = describe_here(archive, **chosen), describe(spark, archive, **chosen)
    assert found == expected
    assert [*found.groups] == [*expected.groups]


def by_group(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told = [{**row, "reasons": dict(row["reasons"])} for row in rows]
    return sorted(told, key=lambda row: str(row["group"]))


@pytest.mark.parametrize(
    "case",
    [("story", "all"), ("story", "since"), ("story", "between"), ("seed 1", "all")],
    ids=" ".join,
    indirect=True,
)
def test_metrics_and_their_tables_without_spark_are_those_of_spark(
    spark: SparkSession, case: tuple[Archive, dict[str, Any]], tmp_path: Path
) -> None:
    archive, chosen = case
    write_metrics(archive.read_groups(spark, **chosen), archive.topics(), tmp_path / "spark")
    expected = by_group(rows_of(tmp_path / "spark" / "groups", GROUPS))
    records = read_groups(archive, **chosen)
    assert by_group(measure_here(records, archive.topics())) == expected
    assert len(expected) > 0
    assert by_group(measure_here(records, archive.topics(), tmp_path / "here")) == expected
    assert by_group(rows_of(tmp_path / "here" / "groups", GROUPS)) == expected
    here, there = (
        sorted(rows_of(tmp_path / name / "rebalances", REBALANCES), key=str) for name in ("here", "spark")
    )
    assert here == there


@pytest.mark.parametrize("assignors", [(), ("range", "sticky")], ids=["no what-if", "what-if"])
def test_a_report_without_spark_is_that_of_spark_to_the_letter(
    spark: SparkSession, assignors: tuple[str, ...], archives: dict[str, Archive], tmp_path: Path
) -> None:
    archive = archives["story"]
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    report_here(archive, read_groups(archive, since=SINCE), here, assignors=assignors)
    report_archive(archive, archive.read_groups(spark, since=SINCE), there, assignors=assignors)
    pages = [MADE.sub("", page.read_text(encoding="utf-8")) for page in (here, there)]
    assert pages[0] == pages[1]
    assert all(f">{group}<" in pages[0] for group in ("coop", "range", "g"))


@pytest.mark.parametrize("chosen", [{}, {"since": SINCE}], ids=["all", "since"])
def test_with_skip_bad_the_same_files_are_passed_over(
    spark: SparkSession, chosen: dict[str, Any], tmp_path: Path
) -> None:
    archive = story(tmp_path / "archive")
    damaged = max(archive.files(), key=lambda file: file.size)
    (tmp_path / "archive" / "records" / damaged.path).write_bytes(b"no Parquet")
    with pytest.raises(DamagedFileError, match="put it back from a backup"):
        describe_here(archive)
    with pytest.raises(DamagedFileError, match="put it back from a backup"):
        read_groups(archive)
    skipping = Archive(tmp_path / "archive", skip_bad=True)
    assert describe_here(skipping, **chosen) == describe(spark, skipping, **chosen)
    expected = groups_of(measure(skipping.read_groups(spark, **chosen), archive.topics())).collect()
    found = measure_here(read_groups(skipping, **chosen), archive.topics())
    told = [zoned(row, "since", "until") for row in expected]
    assert by_group(found) == by_group(told)


def test_the_selections_choose_different_records(archives: dict[str, Archive]) -> None:
    found = {name: describe_here(archives["story"], **chosen) for name, chosen in SELECTIONS.items()}
    sizes = {name: sum(one.groups.values()) for name, one in found.items()}
    assert sizes["all"] > sizes["since"] > sizes["one group since"] > 0
    assert sizes["all"] > sizes["between"] > sizes["nothing"] == 0
    assert sizes["since"] == sizes["since that time zone"]
    assert {*found["groups"].groups} == {"g", "odd"}
