"""The chart of a timeline as text, column by column."""

from kafka import TopicPartition

from kafka_assignors._timelines.timeline import Timeline
from tests.support.timelines import P0, P1, P2, event, lived, start, told

GROUP = lived(
    *start(0, "a", "t"),
    *told(2, 1, {"a": "01"}),
    *start(4, "b", "t"),
    event(7, "a", "revoked", P1),
    *told(8, 2, {"b": "1"}),
    event(10, "a", "frozen"),
    *told(16, 3, {"b": "0"}),
    event(17, "a", "thawed"),
    event(18, "a", "lost", P0),
    event(18.1, "b", "crashed"),
    event(18.2, "b", "exited", status=-9),
    end=20,
)


def test_a_row_shows_who_has_a_partition_when() -> None:
    # 20 columns after a label of 10 letters and a space.
    assert GROUP.chart(31).splitlines() == [
        "seconds    |0        |10",
        "generation   1     2       3",
        "members    +   +     f      tx",
        "t-0        ..AAAAAAAAAAAAAA##..",
        "t-1        ..AAAAA.BBBBBBBBBB..",
        "A a   B b   . nobody",
        "# two owners at once   + joins",
        "x crashes   f freezes   t thaws",
        "& several of these",
    ]


def test_by_generation_a_frozen_member_has_its_partition_until_the_next_one() -> None:
    (row,) = [line for line in GROUP.chart(31, reading="generation").splitlines() if line.startswith("t-0")]
    assert row == "t-0        ..AAAAAA........BB.."


def test_an_overlap_is_shown_however_short_and_a_gap_if_it_lasts() -> None:
    timeline = lived(
        *told(0, 1, {"a": "01"}),
        event(10.5, "a", "revoked", P1),
        event(10.51, "b", "assigned", P0),
        event(10.52, "a", "revoked", P0),
        event(10.6, "b", "assigned", P1),
        event(14.1, "b", "revoked", P1),
        event(14.9, "b", "assigned", P1),
        end=20,
    )
    assert timeline.chart(31).splitlines()[2:4] == [
        "t-0        AAAAAAAAAA#BBBBBBBBB",
        "t-1        AAAAAAAAAAABBB.BBBBB",
    ]


def test_partitions_and_times_can_be_chosen() -> None:
    chart = GROUP.chart(31, partitions=[P1, P2], since=6, until=10)
    assert chart.splitlines()[:4] == [
        "seconds    |6        |8",
        "generation           2",
        "members                       f",
        "t-1        AAAAA.....BBBBBBBBBB",
    ]
    assert chart.splitlines()[4] == f"t-2        {20 * '.'}"


def test_rows_are_in_the_order_of_partitions_and_as_wide_as_asked() -> None:
    owned = [TopicPartition("orders", 10), TopicPartition("orders", 9), TopicPartition("events", 0)]
    timeline = Timeline([event(0, "a", "assigned", *owned)], end=60)
    lines = timeline.chart(80).splitlines()
    rows = [line for line in lines if line.endswith("A")]
    assert [row.split()[0] for row in rows] == ["events-0", "orders-9", "orders-10"]
    assert {len(row) for row in rows} == {80}
    assert lines[0].split() == ["seconds", "|0", "|10", "|20", "|30", "|40", "|50"]


def test_members_beyond_the_letters_share_one() -> None:
    events = [event(number, f"m{number}", "assigned", TopicPartition("t", number)) for number in range(70)]
    lines = Timeline(events, end=100).chart(120).splitlines()
    assert lines[2].endswith("A")
    assert lines[2 + 61].endswith("9")
    assert lines[2 + 62].endswith("*")
    assert "* 8 more members" in lines[-1]


def test_a_static_member_keeps_its_letter_when_it_restarts() -> None:
    timeline = lived(
        *start(0, "a", "t", instance_id="one"),
        *start(0, "b", "t"),
        *told(0, 1, {"a": "0"}),
        event(10, "a", "closed"),
        *start(12, "a.2", "t", instance_id="one"),
        *told(15, 1, {"a.2": "0"}),
        end=20,
    )
    lines = timeline.chart(31).splitlines()
    assert lines[3] == "t-0        AAAAAAAAAA.....AAAAA"
    assert lines[4].startswith("A a, a.2   . nobody")


def test_a_timeline_without_owners_has_no_chart() -> None:
    assert Timeline([]).chart() == "nobody had a partition"
    assert Timeline(start(0, "a", "t")).chart() == "nobody had a partition"
