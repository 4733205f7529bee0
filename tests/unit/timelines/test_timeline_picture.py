"""The picture of a timeline: what is in it, and that nothing in it is in the way of something else."""

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from kafka import TopicPartition
from matplotlib.image import imread

from kafka_assignors._timelines.picture import _LANES, COLOURS, _placed, _Scale, _text_width
from kafka_assignors._timelines.timeline import Timeline
from tests.support.timelines import P0, P1, event, history, start

SVG = "{http://www.w3.org/2000/svg}"


def root(path: Path) -> ET.Element:
    return ET.parse(path).getroot()  # noqa: S314 - what the test has just written


def texts(path: Path) -> list[str]:
    return ["".join(one.itertext()) for one in root(path).iter(f"{SVG}text")]


def many(partitions: int, members: int) -> Timeline:
    """A large group over ten minutes: members that join by and by, and crash by and by."""
    everything = [TopicPartition("st"[number % 2], number // 2) for number in range(partitions)]
    names = [f"m{number}" for number in range(members)]
    events = [event(number / 10, name, "started") for number, name in enumerate(names)]
    owned = {name: everything[number::members] for number, name in enumerate(names)}
    for name, mine in owned.items():
        events += [
            event(10, name, "assignment", *mine, generation=1),
            event(10, name, "assigned", *mine, generation=1),
        ]
    for number, name in enumerate(names[::4]):
        events.append(event(100 + 30 * number, name, "crashed"))
        events.append(event(106 + 30 * number, names[1], "assigned", *owned[name], generation=2 + number))
    return Timeline(events, end=600)


def test_a_picture_names_partitions_members_generations_and_what_was_done(tmp_path: Path) -> None:
    timeline = history({"alice": "01", "bob": "2"}, {"alice": "0", "bob": "12"})
    timeline = Timeline([*timeline.events, event(2.7, "alice", "crashed")], end=4)
    found = texts(timeline.draw(tmp_path / "group.svg", title="A group of two"))
    for wanted in ("t-0", "t-1", "t-2", "alice", "bob", "1", "2", "alice crashes", "alice, bob join"):
        assert wanted in found
    for wanted in ("generation", "seconds", "no owner", "two owners at once", "A group of two"):
        assert wanted in found


def test_dollars_in_names_and_title_are_no_formula(tmp_path: Path) -> None:
    title, name = "from $5_000 to $6_000", "$a_1$"
    assert {title, name, f"{name} joins"} <= {
        *texts(history({name: "0"}).draw(tmp_path / "group.svg", title=title))
    }


def test_commits_and_those_that_failed_are_drawn_where_there_are_any(tmp_path: Path) -> None:
    timeline = history({"alice": "01"})
    assert "commit" not in texts(timeline.draw(tmp_path / "without.svg"))
    events = [
        event(1 + number / 10, "alice", "committed", positions=[["t", 0, number]]) for number in range(5)
    ]
    failed = event(1.8, "alice", "commit_failed", positions=[["t", 0, 9]], text="no")
    picture = Timeline([*timeline.events, *events, failed], end=2).draw(tmp_path / "with.svg")
    assert {"commit", "alice cannot commit"} <= {*texts(picture)}
    # A tick for each, and none for what failed.
    with_ticks, without = (
        len(
            re.findall(
                r"<path d=\"M [\d.]+ [\d.]+ *\n? *L [\d.]+ [\d.]+ *\n? *\" clip-path", path.read_text("utf-8")
            )
        )
        for path in (picture, tmp_path / "without.svg")
    )
    assert with_ticks - without == len(events)


def test_gaps_and_overlaps_are_drawn_where_they_are(tmp_path: Path) -> None:
    plain = history({"a": "01"})
    gap = Timeline([*plain.events, event(1.5, "a", "revoked", P0)], end=2)
    overlap = Timeline([*plain.events, event(1.5, "b", "assigned", P1)], end=2)
    ink = [
        len(re.findall(r"#1a1a1a", one.draw(tmp_path / "group.svg").read_text(encoding="utf-8")))
        for one in (plain, gap, overlap)
    ]
    assert ink[1] > ink[0]
    assert ink[2] > ink[0]


def test_a_png_has_the_size_of_what_it_shows_and_its_colours(tmp_path: Path) -> None:
    few, more = (
        imread(history({"a": digits}).draw(tmp_path / f"{digits}.png")) for digits in ("012345", "0123456789")
    )
    # Rows of 0.3 inches of 150 dots.
    assert more.shape[0] - few.shape[0] == 4 * 45
    assert few.shape[1] > 1500
    blue = [int(COLOURS[0][at : at + 2], 16) / 255 for at in (1, 3, 5)]
    assert (abs(few[:, :, :3] - blue) < 0.01).all(axis=2).sum() > 100_000


def test_the_same_timeline_gives_the_same_file(tmp_path: Path) -> None:
    timeline = history({"a": "01", "b": "2"})
    first, second = (timeline.draw(tmp_path / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert first == second


def test_a_large_group_has_thin_rows_topics_for_names_and_all_members_that_fit(tmp_path: Path) -> None:
    path = many(200, 50).draw(tmp_path / "group.svg")
    found = texts(path)
    assert "s (100)" in found
    assert "t (100)" in found
    assert "s-0" not in found
    height = float(root(path).attrib["height"].removesuffix("pt")) / 72
    assert 12 < height < 15
    assert {f"m{number}" for number in range(50)} <= set(found)


def test_a_legend_without_room_for_all_counts_the_rest(tmp_path: Path) -> None:
    found = texts(many(20, 50).draw(tmp_path / "group.svg"))
    (rest,) = [text for text in found if text.startswith("…")]
    # Names stand in bars too, m0's and m1's among them.
    shown = {text for text in found if re.fullmatch(r"m\d+", text)}
    assert rest == f"… and {50 - len(shown)} more"
    assert 15 < len(shown) < 40


@pytest.mark.parametrize("count", [3, 30, 200])
def test_labels_are_in_nobodys_way(count: int) -> None:
    kinds = ["started", "crashed", "frozen", "thawed"]
    marks = [event(600 * number / count, f"member-{number}", kinds[number % 4]) for number in range(count)]
    scale = _Scale(begin=0, end=600, rows={P0: 0})
    labels = _placed(marks, scale)
    assert max(label.lane for label in labels) < _LANES
    for one, other in itertools.permutations(labels, 2):
        end = one.time + _text_width(one.text, 7) * scale.seconds
        if one.time <= other.time <= end:
            # Its line ends below the text.
            assert other.lane < one.lane, (one, other)
    assert sum(len(label.times) for label in labels) <= count


def test_marks_that_are_near_each_other_are_counted_in_one_label() -> None:
    marks = [event(number / 100, f"member-{number}", "started") for number in range(40)]
    (label,) = _placed(marks, _Scale(begin=0, end=600, rows={P0: 0}))
    assert label.text == "40 join"


@pytest.mark.parametrize("timeline", [Timeline([]), Timeline(start(0, "a", "t"))])
def test_a_group_in_which_nothing_happened_can_be_drawn(timeline: Timeline, tmp_path: Path) -> None:
    assert timeline.draw(tmp_path / "nothing.png").stat().st_size > 1000


def test_a_picture_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"group\.pdf: a timeline is drawn as \.png or \.svg"):
        Timeline([]).draw(tmp_path / "group.pdf")
    assert list(tmp_path.iterdir()) == []
