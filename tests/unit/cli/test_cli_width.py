"""Every text fits a terminal of 80 columns, also with names as long as people make them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kafka_assignors import groups, placement
from kafka_assignors._cli import history_text, history_watch, placement_text
from kafka_assignors._cli.group_tables import listed_lines, restarts_lines
from kafka_assignors._cli.group_text import explained_lines
from kafka_assignors._cli.output import joined
from kafka_assignors._groups.lag import GroupLag
from kafka_assignors.history._info import ArchiveInfo
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS
from kafka_assignors.placement._quality import measure
from kafka_assignors.placement._topics import Description
from tests.support.history_reports import joined as a_member, rebalance, summary, what_if
from website import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAME = "a-group-with-a-name-of-fifty-letters-as-people-have-it"
PLACED = {NAME: {partition: [partition % 4, (partition + 1) % 4] for partition in range(8)}}


def explained() -> Iterable[str]:
    found = examples.explained_classic()
    return explained_lines(replace(found, account=replace(found.account, group_id=NAME)))


def listed() -> Iterable[str]:
    (one,) = examples.listed()
    assert one.lag is not None
    lag = GroupLag(partitions=tuple(replace(each, end=None) for each in one.lag.partitions))
    return listed_lines([replace(one, group_id=NAME, lag=lag)])


def described() -> Iterable[str]:
    racks = {0: NAME, 1: NAME, 2: "b", 3: None}
    return placement_text.described_lines(Description(PLACED, measure(PLACED, racks), None), in_full=True)


def counted() -> Iterable[str]:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    found = ArchiveInfo(
        archive="a",
        version=1,
        files=1,
        bytes=1,
        cluster_id=None,
        topic="__consumer_offsets",
        partitions=None,
        topics=0,
        sources={},
        since=now,
        until=now,
        groups={5 * NAME: 1},
    )
    return history_text.info_lines("a", found)


TEXTS: dict[str, Callable[[], Iterable[str]]] = {
    "explain": explained,
    "explain, KIP-848": lambda: explained_lines(examples.explained_consumer()),
    "list": listed,
    "restarts": lambda: restarts_lines(groups.what_if({"orders": 6}, 3, down_seconds=2)),
    "replays": lambda: history_text.what_if_lines(
        [what_if(assignor, how, group=NAME) for assignor in ("actual", *ASSIGNORS) for how in SCENARIOS]
    ),
    "metrics": lambda: history_text.metrics_lines([summary(NAME, flapping=[NAME, NAME])]),
    "info": counted,
    "captured": lambda: history_text.captured_lines(examples.captured()),
    "watch": lambda: history_watch.watched_lines(rebalance(1, a_member(NAME), group=NAME)),
    "describe": described,
    "infer": lambda: placement_text.inference_lines(
        NAME, placement.infer(placement.Placements(PLACED, dict.fromkeys(range(4))))[NAME]
    ),
    "verify": lambda: placement_text.under_way_lines(examples.under_way()),
}


@pytest.mark.parametrize("lines", TEXTS.values(), ids=[*TEXTS])
def test_a_text_fits_80_columns(lines: Callable[[], Iterable[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert [line for line in joined(lines()).split("\n") if len(line) > 80] == []


def test_names_of_groups_are_whole_where_there_is_no_terminal() -> None:
    assert 5 * NAME in joined(counted())
    assert 5 * NAME in joined(history_text.metrics_lines([summary(5 * NAME)]))
