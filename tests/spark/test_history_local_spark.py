"""Small archives are read without Spark: each command finds the same as with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._common.times import moment
from kafka_assignors.history._info import describe, describe_here
from tests.support.archives import BEGAN
from tests.support.group_histories import START_US
from tests.support.local_archives import DAY, SINCE, chance, story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka_assignors.history._archive import Archive

pytestmark = pytest.mark.slow

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


def test_the_selections_choose_different_records(archives: dict[str, Archive]) -> None:
    found = {name: describe_here(archives["story"], **chosen) for name, chosen in SELECTIONS.items()}
    sizes = {name: sum(one.groups.values()) for name, one in found.items()}
    assert sizes["all"] > sizes["since"] > sizes["one group since"] > 0
    assert sizes["all"] > sizes["between"] > sizes["nothing"] == 0
    assert sizes["since"] == sizes["since that time zone"]
    assert {*found["groups"].groups} == {"g", "odd"}
