"""The report of a history: its words to the letter, what it leaves out, and that names stay names."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from benchmarks.history_report import random_report
from benchmarks.sample_history import sample_report
from kafka_assignors._cli.history_text import metrics_lines
from kafka_assignors._groups.advice import REASONS, reason_words
from kafka_assignors._groups.reasons import Change, Kind, ReasonCounter
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.saving import Saving, WhatIf, best_saving, savings
from kafka_assignors._groups.snapshots import Snapshot
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._metrics import GroupSummary
from kafka_assignors.history._report import page, words
from kafka_assignors.history._report.drawing import (
    Column,
    Drawing,
    ReportedGroup,
    consumer_names,
    draw,
    listed_rebalances,
    restlessness,
)
from kafka_assignors.history._report.sentences import change, group_sentences, headline, saved, spared
from kafka_assignors.history._report.timeline_svg import COLOURS, Colouring, bar_step, strip, timeline, told
from tests.support.history_reports import (
    HOSTILE,
    MIDNIGHT,
    gone,
    hostile_report,
    html_of,
    joined,
    rebalance,
    small_report,
    snapshot,
    summary,
    what_if,
)

END = MIDNIGHT + timedelta(days=1)
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """A page's elements with their attributes, and its text; every end tag must fit."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in {"script", "style"}:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(f"{text} " for text in self.texts).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


# Words


@pytest.mark.parametrize(
    ("seconds", "long", "short"),
    [
        (0, "0 seconds", "0 s"),
        (0.02, "0.02 seconds", "0.02 s"),
        (1, "1 second", "1 s"),
        (2.46, "2.5 seconds", "2.5 s"),
        (9.99, "10 seconds", "10 s"),
        (59.7, "1 minute", "1 min"),
        (61, "1 minute 1 second", "1 min 1 s"),
        (560, "9 minutes 20 seconds", "9 min 20 s"),
        (3600, "1 hour", "1 h"),
        (3605, "1 hour", "1 h"),
        (7260, "2 hours 1 minute", "2 h 1 min"),
        (86_399.9, "1 day", "1 d"),
        (86_400 + 3599, "1 day 1 hour", "1 d 1 h"),
        (86_400 + 900, "1 day", "1 d"),
        (90_000, "1 day 1 hour", "1 d 1 h"),
        (20 * 86_400 + 1900, "20 days 1 hour", "20 d 1 h"),
        (5000 * 86_400, "5,000 days", "5,000 d"),
        (-3, "0 seconds", "0 s"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, long: str, short: str) -> None:
    assert (words.duration(seconds), words.duration(seconds, short=True)) == (long, short)


def test_numbers_are_written_for_people() -> None:
    assert [words.number(value) for value in (0, 0.46, 3.0, 9.96, 12.4, 1234567)] == [
        "0",
        "0.5",
        "3",
        "10",
        "12",
        "1,234,567",
    ]
    assert [words.times(value) for value in (0, 1, 2, 3, 4100)] == [
        "never",
        "once",
        "twice",
        "3 times",
        "4,100 times",
    ]
    assert (words.count(1, "move"), words.count(1200, "move")) == ("1 move", "1,200 moves")
    assert words.count(2, "box", "boxes") == "2 boxes"
    assert words.moment(MIDNIGHT) == "20 Nov 2026 00:00"
    assert words.moment(MIDNIGHT, seconds=True) == "20 Nov 2026 00:00:00"


def test_each_kind_of_reason_has_its_words() -> None:
    assert {*get_args(Kind)} == {*REASONS}
    assert all(all(one) for one in REASONS.values())
    assert reason_words("moon phase changed").title == "Moon phase changed"


def sentences(
    row: GroupSummary, rebalances: Sequence[Rebalance] = (), saving: Saving | None = None
) -> list[str]:
    return group_sentences(row, draw(rebalances), saving)


def test_a_group_is_told_in_sentences_with_what_would_help_on_what_condition_and_at_what_price() -> None:
    avoided = tuple(MIDNIGHT + timedelta(minutes=minute) for minute in range(5))
    row = summary(
        "orders-billing",
        rebalances=41,
        moved=194,
        least_moved=80,
        needless=114,
        longest_seconds=6.6,
        flapping=["billing-4", "billing-5"],
        reasons={"member gone": 18, "member joined": 23, "member restarted": 36},
    )
    saving = best_saving(
        [
            what_if("actual", rebalances=41, moved=100),
            what_if("range", "static members", rebalances=36, moved=60, avoided=avoided),
        ]
    )
    assert sentences(row, [rebalance(1)], saving) == [
        (
            "orders-billing rebalanced 41 times in 1 day, 36 of them because a consumer was gone and came"
            " back. Static membership would have avoided 5 of these and 40 moves of partitions (20 Nov 2026"
            " 00:00:00, 20 Nov 2026 00:01:00, 20 Nov 2026 00:02:00 and 2 more), if the consumers were"
            " restarted, not lost or late to poll: their logs say which. Until a static member is back,"
            " nobody reads its partitions."
        ),
        "Partitions moved from one consumer to another 194 times. 114 of these moves were needless.",
        "The longest rebalance took at least 6.6 seconds.",
        "billing-4, billing-5 joined and left at least three times within an hour.",
    ]


RESTARTED = {"member joined": 2, "member gone": 2, "member restarted": 4}
CAUSES: dict[str, tuple[int, dict[str, int]]] = {
    "once in 1 day, because a consumer joined.": (1, {"member joined": 1}),
    "twice in 1 day, both of them because partitions added.": (2, {"partitions added": 2}),
    "3 times in 1 day, all of them without a reason on record.": (3, {"unknown": 3}),
    "4 times in 1 day, all of them because a consumer was gone and came back.": (4, RESTARTED),
    "4 times in 1 day, 2 of them because a consumer joined and 2 because topics changed.": (
        4,
        {"topics changed": 2, "member joined": 2},
    ),
    "once in 1 day, because a consumer joined and because topics changed.": (
        1,
        {"topics changed": 1, "member joined": 1},
    ),
}


@pytest.mark.parametrize("told", CAUSES)
def test_the_first_sentence_tells_the_main_cause(told: str) -> None:
    often, reasons = CAUSES[told]
    assert sentences(summary(rebalances=often, reasons=reasons))[0] == f"orders rebalanced {told}"


def test_many_that_flap_are_counted() -> None:
    row = summary(flapping=[f"c{number}" for number in range(7)], longest_seconds=0.1, moved=0)
    assert sentences(row)[1:] == [
        "c0, c1, c2, c3, c4 and 2 more joined and left at least three times within an hour."
    ]


def test_the_headline_names_the_most_restless() -> None:
    until = MIDNIGHT + timedelta(days=2)
    groups = [summary("a", rebalances=1), summary("b", rebalances=5)]
    assert headline(groups, MIDNIGHT, until) == (
        "2 consumer groups rebalanced 6 times between 20 Nov 2026 00:00 and 22 Nov 2026 00:00 UTC."
        " The most restless was b: 5 times."
    )
    assert headline(groups[:1], MIDNIGHT, until) == (
        "1 consumer group rebalanced once between 20 Nov 2026 00:00 and 22 Nov 2026 00:00 UTC."
    )
    assert headline([summary(rebalances=0)], MIDNIGHT, until) == (
        "No rebalance of 1 consumer group is on record between 20 Nov 2026 00:00 and 22 Nov 2026 00:00 UTC."
    )
    assert headline(groups[:1], MIDNIGHT, MIDNIGHT + timedelta(minutes=59)) == (
        "1 consumer group rebalanced once between 20 Nov 2026 00:00:00 and 20 Nov 2026 00:59:00 UTC."
    )


@pytest.mark.parametrize(
    ("rebalances", "expected"),
    [
        ([rebalance(0, gone("a/1")), rebalance(9, joined("a/2"))], 2),
        ([rebalance(0, gone("a/1")), rebalance(11, joined("a/2"))], 0),
        ([rebalance(0, gone("a/1")), rebalance(1, joined("b/1"))], 0),
        ([rebalance(0, joined("a/1")), rebalance(1, gone("a/1"))], 0),
        ([rebalance(0, gone("a/1"), joined("a/1"))], 1),
        (
            [
                rebalance(0, gone("a/1"), gone("a/2")),
                rebalance(1, joined("a/3")),
                rebalance(2, joined("a/4")),
            ],
            3,
        ),
        ([rebalance(0, gone("a/1")), rebalance(1, joined("a/1")), rebalance(2, joined("a/2"))], 2),
        # The first was gone too long ago; the second was not.
        ([rebalance(0, gone("a/1")), rebalance(20, gone("a/2")), rebalance(21, joined("a/3"))], 2),
        # The clock was set back.
        ([rebalance(1, gone("a/1")), rebalance(0, joined("a/2"))], 2),
        ([rebalance(0, Change(kind="member restarted", member="a/1", text="a/1 restarted"))], 1),
        ([rebalance(0, gone("team/orders/1")), rebalance(1, joined("team/billing/2"))], 0),
        ([rebalance(0, gone("team/orders/1")), rebalance(1, joined("team/orders/2"))], 2),
        ([rebalance(0, gone("shop/orders-1")), rebalance(1, joined("shop/billing-7"))], 0),
        ([rebalance(0, gone("a/fe80::1%eth0")), rebalance(1, joined("a/10.0.0.2"))], 2),
        ([rebalance(0, Change(kind="member lost", member="a/1", text="")), rebalance(1, joined("a/1"))], 2),
        (
            [rebalance(0, Change(kind="static member gone", member="a", text="")), rebalance(1, joined("a"))],
            2,
        ),
        ([rebalance(0, Change(kind="member removed", member="a", text="")), rebalance(1, joined("a"))], 0),
    ],
)
def test_a_restart_is_a_consumer_of_the_same_name_soon_after(
    rebalances: list[Rebalance], expected: int
) -> None:
    counter = ReasonCounter()
    for one in rebalances:
        counter.add(one.reasons, one.ended)
    assert counter.kinds["member restarted"] == expected


def test_reasons_are_counted_by_rebalances_and_not_by_members() -> None:
    counter = ReasonCounter()
    for one in (rebalance(0, joined("a/1"), joined("b/1"), joined("c/1")), rebalance(99, gone("a/1"))):
        counter.add(one.reasons, one.ended)
    assert counter.kinds == {"member joined": 1, "member gone": 1}


@pytest.mark.parametrize(
    ("reasons", "terminal", "overview"),
    [
        ({}, "-", ""),
        ({"member joined": 2, "topics changed": 1}, "member joined", "A consumer joined"),
        (
            {"topics changed": 2, "member joined": 2, "unknown": 1},
            "member joined and topics changed",
            "Equally often: A consumer joined, Topics changed",
        ),
        (
            {"member joined": 1, "member gone": 1, "member restarted": 1},
            "member restarted",
            "A consumer was gone and came back",
        ),
    ],
)
def test_metrics_and_overview_name_the_same_reasons_and_a_tie_as_one(
    reasons: dict[str, int], terminal: str, overview: str
) -> None:
    row = summary(reasons=reasons)
    assert [*metrics_lines([row])][1].endswith(f"  {terminal}")
    assert page._reason(row) == overview


def test_static_members_that_came_back_are_no_reason() -> None:
    told = "Static members came back twice without a rebalance."
    assert sentences(summary(rebalances=0, returned=2, reasons={})) == [
        "orders did not rebalance between 20 Nov 2026 00:00:00 and 21 Nov 2026 00:00:00 UTC.",
        told,
    ]
    assert told in sentences(summary(returned=2))
    assert not [one for one in sentences(summary()) if "Static" in one]


# What would have helped


def test_the_best_change_avoids_most_rebalances() -> None:
    actual = what_if("actual")
    sticky = what_if("sticky", moved=20)
    static = what_if("range", "static members", rebalances=8)
    broken = what_if("other", rebalances=0, failed=3)
    found = savings([sticky, broken, actual, static])
    assert [one.row for one in found] == [static, sticky, broken]
    assert [saved(one) for one in found] == [
        "33 rebalances",
        "80 moves of partitions",
        "41 rebalances",
    ]
    assert best_saving([sticky, broken, actual, static]) == found[0]


def test_nothing_is_recommended_that_does_not_help() -> None:
    actual = what_if("actual")
    assert best_saving([]) is None
    assert best_saving([what_if("sticky", rebalances=0)]) is None
    assert best_saving([actual]) is None
    assert best_saving([actual, what_if("sticky", moved=95)]) is None
    assert best_saving([actual, what_if("other", rebalances=0, failed=1)]) is None


def test_a_change_that_costs_something_says_so() -> None:
    worse = savings([what_if("actual"), what_if("range", "static members", rebalances=40, moved=102)])[0]
    assert spared(worse) == "1 rebalance, but 2 moves more"
    more = savings([what_if("actual"), what_if("roundrobin", moved=101)])[0]
    assert spared(more) == "nothing, but 1 move more"
    most = savings([what_if("actual"), what_if("x", rebalances=43, moved=400)])[0]
    assert spared(most) == "nothing, but 2 rebalances more and 300 moves more"


@pytest.mark.parametrize(
    ("assignor", "scenario", "expected"),
    [
        ("actual", "as it was", "what happened"),
        ("range", "as it was", "the range assignor, replayed"),
        ("sticky", "as it was", "the sticky assignor"),
        ("range", "static members", "static membership"),
        ("sticky", "static members", "static membership and the sticky assignor"),
        ("range", "twice the members", "twice the members"),
        (
            "kip848:uniform",
            "static members",
            "static membership and the new protocol (KIP-848) with its uniform assignor",
        ),
        ("kafka-python:sticky", "as it was", "kafka-python's own sticky assignor"),
        ("kip54", "as it was", "the sticky assignor of Kafka's Java clients"),
        ("my.module:Mine", "as it was", "the my.module:Mine assignor"),
    ],
)
def test_a_change_has_words(assignor: str, scenario: str, expected: str) -> None:
    assert change(what_if(assignor, scenario), "range") == expected


# Thinning


def columns(rebalances: Sequence[Rebalance], snapshots: Sequence[Snapshot] = ()) -> list[Column]:
    return draw(rebalances, snapshots).columns_until(END)


def picture(drawing: Drawing) -> ET.Element:
    svg = timeline(drawing.columns_until(END), drawing.partitions, key="g1", title="The course of orders")
    return ET.fromstring(svg)  # noqa: S314 - what has just been made


def test_consumers_keep_their_names_over_restarts() -> None:
    first = snapshot(0, {"a": (0,), "b": (1,)}, ids={"a": "a-1", "b": "b-1"})
    second = snapshot(1, {"a": (0,), "b": (1,)}, ids={"a": "a-2", "b": "b-1"})
    assert consumer_names([first, second]) == {
        "a-1": "a/10.0.0.1",
        "a-2": "a/10.0.0.1",
        "b-1": "b/10.0.0.1",
    }
    alike = snapshot(0, {"x-000001": (0,), "x-000002": (1,)}, client_id="x")
    assert consumer_names([alike]) == {
        "x-000001": "x/10.0.0.1 …000001",
        "x-000002": "x/10.0.0.1 …000002",
    }
    static = snapshot(0, {"s-1": (0,)}, instance_id="inst")
    assert consumer_names([static]) == {"s-1": "inst"}


def test_columns_part_where_the_most_time_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    rebalances = [rebalance(10), rebalance(100), rebalance(101, moved=5), rebalance(300)]
    snapshots = [
        snapshot(10, {"a": (0, 1)}),
        snapshot(100, {"a": (0,), "b": (1,)}),
        snapshot(101, {"b": (0, 1)}),
        snapshot(102, {"b": (0, 1)}),  # as before: nothing to draw
        snapshot(300, {"b": (0,)}),
    ]
    assert len(columns(rebalances, snapshots)) == 4
    monkeypatch.setattr(limits, "COLUMNS", 3)
    drawing = draw(rebalances, snapshots)
    found = drawing.columns_until(END)
    assert [one.begin for one in found] == [MIDNIGHT + timedelta(minutes=at) for at in (10, 100, 300)]
    assert [one.end for one in found] == [*(one.begin for one in found[1:]), END]
    assert [one.states for one in found] == [1, 2, 1]
    assert [one.moved for one in found] == [2, 7, 2]
    assert [one.loads for one in found] == [{"a/10.0.0.1": 2}, {"b/10.0.0.1": 2}, {"b/10.0.0.1": 1}]
    assert (drawing.partitions, found[2].owners) == (["t-0", "t-1"], ["b/10.0.0.1", ""])


@given(
    minutes=st.lists(st.integers(0, 1400), min_size=1, max_size=40),
    most=st.integers(1, 10),
    seen=st.lists(st.integers(0, 1400), max_size=10),
)
def test_thinning_keeps_all_sums(minutes: list[int], most: int, seen: list[int]) -> None:
    rebalances = [rebalance(at, moved=at % 7) for at in minutes]
    snapshots = [snapshot(at, {"a": (at % 3,)}) for at in sorted(seen)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "COLUMNS", most)
        found = columns(rebalances, snapshots)
    assert 1 <= len(found) <= most
    assert sum(one.moved for one in found) == sum(one.moved for one in rebalances)
    assert sum(len(one.ended) for one in found) == len(rebalances)
    times = [one.begin for one in found]
    assert times == sorted({*times})
    assert all(one.begin <= each for one in found for each in one.ended)


def test_of_many_rebalances_the_latest_and_the_costliest_are_listed() -> None:
    rebalances = [rebalance(at, moved=50 if at in {3, 5} else 1) for at in range(20)]
    listed = listed_rebalances(rebalances, 5)
    minutes = [(one.ended - MIDNIGHT).total_seconds() / 60 for one in listed]
    assert minutes[:2] == [19, 18]
    assert {3, 5} < {*minutes[2:]}
    assert minutes == sorted(minutes, reverse=True)
    assert listed_rebalances(rebalances[:3], 5) == rebalances[2::-1]


def test_ten_thousand_rebalances_are_thinned_and_the_page_says_so() -> None:
    html = html_of(random_report(1, 10_000))
    assert len(html) < 100_000
    text = Page(html).text
    assert re.search(r"10,000 changes are drawn as 64 columns: those nearest in time share one", text)
    assert "30 of 10,000 rebalances in detail" in text
    assert (
        "The 15 latest, and of the others those with the most moves. In the picture and in the sums only:"
        " 9,970." in text
    )


# Pictures


def drawn_group() -> tuple[ET.Element, list[tuple[str, str, str]]]:
    (group,) = small_report("orders")
    assert group.drawing is not None
    return picture(group.drawing), told(group.drawing.columns_until(END))


def classes(svg: ET.Element) -> set[str]:
    return {name for one in svg.iter() for name in one.get("class", "").split()}


def texts(svg: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in svg.iter("text")]


def test_few_partitions_have_a_lane_each_and_letters_of_their_owners() -> None:
    svg, text = drawn_group()
    found = texts(svg)
    assert {"t-0", "t-1", "t-2", "t-3", "a/10.0.0.1", "b/10.0.0.1"} <= {*found}
    assert found.count("AB") + found.count("A") >= 4
    assert {"c0", "c1", "moved", "needless", "sliver"} <= classes(svg)
    assert not {"none", "cz"} & classes(svg)
    assert text == [
        ("A", "a/10.0.0.1", "2 to 4 partitions; from 20 Nov 2026 00:00 to 20 Nov 2026 02:00"),
        ("B", "b/10.0.0.1", "2 to 4 partitions; from 20 Nov 2026 01:00 to the end"),
    ]


@pytest.mark.parametrize(
    ("changes", "slivers"),
    [
        ({"strategy": "cooperative-sticky", "moves": ()}, []),
        ({"strategy": "cooperative-sticky"}, ["v18"]),
        ({"strategy": "range", "unowned_seconds": 0.0}, ["v72"]),
        ({"strategy": "range", "members": 1, "joined": 1, "moves": ()}, []),
    ],
    ids=["none moved", "one moved", "eager members revoke all", "nobody was there"],
)
def test_slivers_are_where_nobody_had_a_partition(changes: dict[str, Any], slivers: list[str]) -> None:
    drawing = draw(
        [rebalance(60, **changes)],
        [snapshot(0, {"a": range(4)}), snapshot(60, {"b": range(4)})],
    )
    svg = picture(drawing)
    [path] = [one.get("d") or "" for one in svg.iter("path") if one.get("class") == "sliver"]
    assert re.findall(r"v\d+", path) == slivers


def test_many_partitions_are_stacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LANES", 3)
    svg, _ = drawn_group()
    found = texts(svg)
    assert "4 partitions, by who had them" in found
    assert "t-0" not in found
    assert "area" in classes(svg)


def test_consumers_without_a_row_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSUMERS", 1)
    svg, text = drawn_group()
    assert "1 other consumer" in texts(svg)
    assert "cz" in classes(svg)
    assert text[-1] == (
        "",
        "1 other consumer",
        "fewer partitions, or for a shorter time; grey in the picture",
    )


def test_partitions_that_nobody_has_are_hatched(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = draw([], [snapshot(0, {"a": (0, 1)}), snapshot(60, {"a": (0,)})])
    for lanes in (20, 1):
        monkeypatch.setattr(limits, "LANES", lanes)
        assert "none" in classes(picture(drawing))


def test_without_snapshots_rebalances_are_drawn_all_the_same() -> None:
    svg = picture(draw([rebalance(5), rebalance(50)]))
    assert "needless" in classes(svg)
    assert "Consumers and how many partitions each had" not in texts(svg)
    assert not timeline([], [], key="g", title="")


def test_a_column_tells_what_it_is_to_a_pointer() -> None:
    svg, _ = drawn_group()
    assert [one.text for one in svg.iter("title")][1:] == [
        "20 Nov 2026 01:00:00: 1 rebalance, 2 moved",
        "20 Nov 2026 02:00:00: 1 rebalance, 2 moved",
    ]


def test_a_strip_counts_by_a_round_time() -> None:
    assert bar_step(MIDNIGHT, MIDNIGHT + timedelta(hours=1)) == timedelta(minutes=1)
    assert bar_step(MIDNIGHT, END) == timedelta(minutes=30)
    assert bar_step(MIDNIGHT, MIDNIGHT + timedelta(days=6000)) == timedelta(days=100)
    svg = strip([rebalance(at).ended for at in (1, 2, 100)], MIDNIGHT, END)
    assert 'aria-label="3 rebalances, at most 2 within 30 minutes"' in svg
    assert not strip([], MIDNIGHT, END)


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 has it, of #rrggbb."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_letters_can_be_read_on_all_colours() -> None:
    style = html_of(small_report("orders")).partition("</style>")[0]
    colours = re.findall(r"^\.c(\d) { --c: (#[0-9a-f]{6}); }", style, flags=re.MULTILINE)
    assert [int(number) for number, _ in colours] == [*range(len(COLOURS))]
    names = [f"n{number}" for number in range(len(COLOURS))]
    colouring = Colouring(names=names, others=0)
    for name, (_, colour) in zip(names, colours, strict=True):
        ink = {"dark": "#101318", "light": "#ffffff"}[colouring.ink(name)]
        high, low = sorted((luminance(ink), luminance(colour)), reverse=True)
        assert (high + 0.05) / (low + 0.05) > 4.3, name


# The page


def test_every_group_is_there_with_what_it_takes_to_judge_it() -> None:
    groups = sample_report()
    page = Page(html_of(groups))
    ids = [attributes.get("id") for attributes in page.of("section")]
    assert ids == ["overview", "g1", "g2", "g3", "g4", "g5"]
    links = {attributes.get("href") for attributes in page.of("a")}
    assert {"#g1", "#g2", "#g3", "#g4", "#g5"} <= links
    for group in groups:
        assert page.text.count(group.summary.group) >= 3
    assert "5 consumer groups rebalanced" in page.text
    assert len([one for one in page.of("svg") if one.get("class") == "timeline"]) == 5
    headings = [int(tag[1]) for tag, _ in page.elements if tag in {"h1", "h2", "h3"}]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    assert all(one.get("scope") for one in page.of("th"))


def test_a_group_without_advice_is_told_what_its_rebalances_were_for() -> None:
    def advice(*kinds: str, rows: Sequence[WhatIf] = ()) -> str:
        group = summary(reasons=dict.fromkeys(kinds, 2))
        html = html_of([ReportedGroup(summary=group, what_if=rows)])
        (cell,) = re.findall(r'data-label="What would help">(.*?)</td>', html)
        return unescape(cell)

    tried = [what_if("actual"), what_if("sticky")]
    assert advice("member joined", rows=tried) == "Normal when you deploy or scale up."
    assert advice("topics changed") == "Nothing to do: this is how new partitions get an owner."
    assert advice("member restarted", "member gone") == (
        "Normal in a deployment; without one the consumer may be too slow between two polls."
    )
    assert advice("member removed") == "Nothing to do, if that was on purpose."
    assert advice("coordinator moved") == "Check if brokers were restarted at that time."
    assert advice("member left", "strategy changed") == (
        "Normal when you deploy or scale down. Normal once, in a deployment."
    )
    assert advice() == advice("a kind of another version") == ""
    assert all(words.verdict.endswith(".") and len(words.verdict) < 120 for words in REASONS.values())
    static = [what_if("actual"), what_if("sticky", "static members", rebalances=40)]
    assert advice("member joined", rows=static) == (
        "Static membership and the sticky assignor: 1 rebalance less, if the consumers were restarted, not"
        " lost or late to poll"
    )


def test_no_figure_of_the_page_is_a_time_without_an_owner() -> None:
    def page(seconds: float) -> str:
        drawing = draw([rebalance(60, moves=(), unowned_seconds=seconds)])
        return html_of([ReportedGroup(summary=summary(unowned_seconds=seconds), drawing=drawing)])

    assert page(2.0) == page(4.0)


def test_the_order_is_that_of_restlessness() -> None:
    long = summary("d", unowned_seconds=9000.0)
    groups = [summary("calm", rebalances=0), summary("b", moved=9), summary("a"), summary("c"), long]
    assert [one.group for one in sorted(groups, key=restlessness)] == ["b", "a", "c", "d", "calm"]


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROUPS_DRAWN", 2)
    monkeypatch.setattr(limits, "GROUPS_LISTED", 6)
    groups = [summary(f"g-{number:02}", rebalances=50 - number) for number in range(10)]
    drawing = draw([rebalance(60)])
    html = html_of([ReportedGroup(summary=one, drawing=drawing) for one in groups])
    text = Page(html).text
    assert "4 calmer groups left out here, with 170 rebalances in all." in text
    assert "8 groups of these without a part of their own below: the most restless have one." in text
    assert html.count('<section class="group-part"') == 2
    assert "g-05" in text
    assert "g-06" not in text


def test_moves_of_which_nobody_knows_whether_they_were_needed_are_not_called_needless() -> None:
    unknown = rebalance(60, moved=90, least_moved=None)
    known = rebalance(120, moved=10, least_moved=7)
    row = summary(moved=100, least_moved=7, needless=3)
    said = "Partitions moved from one consumer to another 100 times."
    assert f"{said} 3 of these moves were needless." in sentences(row, [unknown, known])
    page = Page(html_of([ReportedGroup(summary=row, drawing=draw([unknown, known]))]))
    assert re.findall(r"\d+ needless", page.text) == ["3 needless", "3 needless"]
    assert [one.needless for one in columns([unknown, known])] == [0, 3]
    none = summary(moved=90, least_moved=0, needless=0)
    assert said.replace("100", "90") in sentences(none, [unknown])
    assert "needless" not in Page(html_of([ReportedGroup(summary=none)])).text.replace("Needless are", "")


NAMES = st.text(min_size=1, max_size=12)
COUNTS = st.integers(0, 3) | st.integers(0, 10**6)
SECONDS = st.just(0.0) | st.floats(0, 1e7)


@st.composite
def groups(draw: st.DrawFn) -> tuple[GroupSummary, list[Rebalance], list[Snapshot]]:
    """A group of any name whose figures need not go together, as those of a broken source might not."""
    name = draw(NAMES)
    minutes = draw(st.lists(st.integers(0, 1400), max_size=6))
    kinds = st.lists(
        st.builds(Change, kind=st.sampled_from(get_args(Kind)), member=NAMES, text=NAMES), max_size=3
    )
    least = st.none() | COUNTS
    rebalances = [
        rebalance(
            at,
            group=name,
            reasons=tuple(draw(kinds)),
            strategy=draw(st.none() | NAMES),
            moved=draw(COUNTS),
            least_moved=draw(least),
            unowned_seconds=draw(SECONDS),
            seconds=draw(SECONDS),
        )
        for at in minutes
    ]
    owned = st.dictionaries(NAMES, st.lists(st.integers(0, 30), max_size=3), max_size=4)
    snapshots = [snapshot(at, draw(owned)) for at in draw(st.lists(st.integers(0, 1400), max_size=4))]
    told = summary(
        name,
        rebalances=draw(COUNTS),
        moved=draw(COUNTS),
        least_moved=draw(COUNTS),
        needless=draw(COUNTS),
        unowned_seconds=draw(SECONDS),
        members=draw(COUNTS),
        reasons=draw(st.dictionaries(st.sampled_from(get_args(Kind)), COUNTS, max_size=3)),
        flapping=draw(st.lists(NAMES, max_size=3)),
    )
    return told, rebalances, snapshots


@given(drawn=st.lists(groups(), min_size=1, max_size=3, unique_by=lambda one: one[0].group))
def test_any_groups_make_a_page(drawn: list[tuple[GroupSummary, list[Rebalance], list[Snapshot]]]) -> None:
    groups = [
        ReportedGroup(summary=told, drawing=draw(rebalances, snapshots))
        for told, rebalances, snapshots in drawn
    ]
    assert len(Page(html_of(groups)).of("section")) >= len(drawn)


@pytest.mark.parametrize("members", [1, 20, 5000])
def test_a_group_of_many_members_is_drawn(members: int) -> None:
    many = [snapshot(60, {f"member-{number}": [number] for number in range(members)})]
    page = Page(
        html_of([ReportedGroup(summary=summary(members=members), drawing=draw([rebalance(60)], many))])
    )
    assert (
        f"{members:,} consumers at the end" in page.text or f"consumers at the end {members:,}" in page.text
    )


def test_names_of_strangers_stay_text() -> None:
    html = html_of(hostile_report(), HOSTILE)
    page = Page(html)
    assert "<script>alert" not in html
    assert len(page.of("script")) == 1
    assert not page.of("img")
    assert page.text.count(HOSTILE) >= 8
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "49" not in page.text


def test_the_page_needs_nothing_from_elsewhere() -> None:
    html = html_of(sample_report())
    assert not re.findall(r"https?:|//\w|@import|\bsrc=", html)
    assert {*re.findall(r"url\((.)", html)} == {"#"}
    page = Page(html)
    assert all((one.get("href") or "#").startswith("#") for _, one in page.elements)
    ids = [one["id"] for _, one in page.elements if "id" in one]
    assert len(ids) == len({*ids})
    assert {one["href"] for one in page.of("a")} <= {f"#{one}" for one in ids}


def test_a_restless_group_takes_fifty_kilobytes_at_most() -> None:
    one, three = (len(html_of(random_report(count, 500))) for count in (1, 3))
    assert (three - one) / 2 < 50_000
