"""Names that others chose, on every way out: none commands a terminal, or makes a line or a long one."""

import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import generate_latest

import kafka_assignors
from kafka_assignors import groups, placement
from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._assignors._member_warnings import MemberWarnings
from kafka_assignors._cli import history_text
from kafka_assignors._cli.errors import ended
from kafka_assignors._cli.group_text import explained_lines, listed_lines, restarts_lines
from kafka_assignors._cli.history_watch import watched_lines
from kafka_assignors._cli.output import joined
from kafka_assignors._cli.placement import _warn
from kafka_assignors._cli.placement_text import described_lines, inference_lines, under_way_lines
from kafka_assignors._cluster.groups import ClassicGroup, EpochGroup
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._groups.joining import Look
from kafka_assignors.coordinator import Simulation
from kafka_assignors.groups._explain import ExplainedGroup
from kafka_assignors.groups._metrics import _Groups
from kafka_assignors.groups._status import GroupStatus
from kafka_assignors.history._info import ArchiveInfo
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS
from kafka_assignors.placement import Placements, draw
from kafka_assignors.placement._quality import measure
from kafka_assignors.placement._topics import Description
from tests.support.history_reports import (
    hostile_report,
    html_of,
    joined as a_member,
    rebalance,
    summary,
    what_if,
)
from website import examples

NAME = "e\nCRITICAL forged\r\x1b[2J\x07\u202ex\u2028\x85\0"
LONG = "a-group-with-a-name-of-fifty-letters-as-people-have-it"
Show = pytest.CaptureFixture[str]


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """What a handler of the package's logger writes."""
    logger, stream = logging.getLogger("kafka_assignors"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    try:
        yield stream
    finally:
        logger.removeHandler(handler)


def log_line(_: Show) -> str:
    with logged() as stream:
        MemberWarnings("Giving nothing to %s: %s").warn({NAME: NAME})
    return stream.getvalue()


def log_of_an_exception(_: Show) -> str:
    def failed() -> None:
        raise ValueError(NAME)

    log = get_logger("kafka_assignors.escaping")
    with logged() as stream:
        try:
            failed()
        except ValueError:
            log.exception("%s failed", NAME)
    return stream.getvalue()


def classic(name: str) -> ExplainedGroup:
    group = Simulation({name: 3}, [RangeAssignor])
    group.join(name, instance_id=name)
    group.run_until_stable()
    live = replace(
        examples.live_group(),
        looks=(Look(0, ClassicGroup(name, "Stable", group.group.record())),),
        records=(examples.live_record(0, group.group.record()),),
        topics={name: examples.TOPICS["orders"]},
        committed={(name, 0): 3},
    )
    return ExplainedGroup.of(live, examples.extents)


def consumers(name: str) -> ExplainedGroup:
    live = examples.live_epoch_group()
    looks = []
    for look in live.looks:
        assert isinstance(look.group, EpochGroup)
        members = tuple(one._replace(client_id=name, topics=(name,)) for one in look.group.members)
        looks.append(look._replace(group=look.group._replace(group_id=name, members=members)))
    return ExplainedGroup.of(replace(live, looks=tuple(looks)), examples.extents)


def listed(name: str) -> list[GroupStatus]:
    found = classic(name)
    (one,) = examples.listed()
    return [replace(one, group_id=name, lag=found.lag, account=found.account, problems=found.problems)]


def placements(name: str) -> Description:
    topics = {name: {partition: [partition % 4, (partition + 1) % 4] for partition in range(8)}}
    return Description(topics, measure(topics, {0: name, 1: name, 2: "b", 3: None}), None)


def counted(name: str) -> Iterable[str]:
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
        groups={5 * name: 1},
    )
    return history_text.info_lines("a", found)


TEXTS: dict[str, Callable[[str], Iterable[str]]] = {
    "explain": lambda name: explained_lines(classic(name)),
    "explain, KIP-848": lambda name: explained_lines(consumers(name)),
    "list": lambda name: listed_lines(listed(name)),
    "restarts": lambda name: restarts_lines(groups.what_if({name: 6}, 3, down_seconds=2)),
    "replays": lambda name: history_text.what_if_lines(
        [what_if(assignor, how, group=name) for assignor in ("actual", *ASSIGNORS) for how in SCENARIOS]
    ),
    "metrics": lambda name: history_text.metrics_lines([summary(name, flapping=[name, name])]),
    "info": counted,
    "captured": lambda _: history_text.captured_lines(examples.captured()),
    "watch": lambda name: watched_lines(rebalance(1, a_member(name), group=name)),
    "describe": lambda name: described_lines(placements(name), in_full=True),
    "infer": lambda name: inference_lines(
        name, placement.infer(Placements(placements(name).placements, dict.fromkeys(range(4))))[name]
    ),
    "verify": lambda _: under_way_lines(examples.under_way()),
}
"""What commands print for people, of groups, members, topics and racks of a name."""


def exported(_: Show) -> str:
    return generate_latest(_Groups(lambda: tuple(listed(NAME)), print).registry).decode()


def error(capsys: Show) -> str:
    def fail() -> int:
        raise ValueError(f"no group {NAME}")

    assert ended("group explain", fail, (ValueError,)) == 2
    _warn(f"broker 1 said {NAME}")
    return capsys.readouterr().err


def picture(_: Show, tmp_path: Path) -> str:
    return draw(placements(NAME).quality, tmp_path / "a.svg", title=NAME).read_text(encoding="utf-8")


DOORS: dict[str, Callable[[Show], str]] = {
    "log": log_line,
    "exception": log_of_an_exception,
    "error": error,
    "export": exported,
    "watch": lambda _: joined(watched_lines(rebalance(1, a_member(NAME), group=NAME, strategy=NAME))),
    "report": lambda _: html_of(hostile_report(NAME), source=NAME),
}


def check(text: str) -> None:
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert [line for line in text.split("\n") if line.startswith("CRITICAL")] == []


@pytest.mark.parametrize("door", DOORS.values(), ids=[*DOORS])
def test_a_name_leaves_as_printable_characters_and_begins_no_line(
    door: Callable[[Show], str], capsys: Show
) -> None:
    text = door(capsys)
    assert "CRITICAL" in text  # the name is there
    check(text)


@pytest.mark.parametrize("lines", TEXTS.values(), ids=[*TEXTS])
def test_a_text_has_printable_characters_only_and_fits_80_columns_of_a_terminal(
    lines: Callable[[str], Iterable[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(joined(lines(NAME)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    assert [line for line in joined(lines(LONG)).split("\n") if len(line) > 80] == []


def test_names_of_groups_are_whole_where_there_is_no_terminal() -> None:
    assert 5 * LONG in joined(counted(LONG))
    assert 5 * LONG in joined(history_text.metrics_lines([summary(5 * LONG)]))


def test_a_name_in_a_picture_is_printable_too(tmp_path: Path, capsys: Show) -> None:
    check(picture(capsys, tmp_path))


def test_every_logger_of_the_package_escapes_names() -> None:
    root = Path(kafka_assignors.__file__).parent
    own = {"_common/escaping.py", "testing/_groups/worker.py"}  # a worker logs what its own process raises
    others = [
        name
        for path in root.rglob("*.py")
        if (name := path.relative_to(root).as_posix()) not in own
        and re.search(r"getLogger|logging\.(debug|info|warning|error|exception)\(", path.read_text("utf-8"))
    ]
    assert others == []
