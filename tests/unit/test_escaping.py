"""Names that others chose, on every way out: none commands a terminal, and none makes a line of its own."""

from __future__ import annotations

import io
import json
import logging
import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import kafka_assignors
from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._assignors._member_warnings import MemberWarnings
from kafka_assignors._cli.errors import ended
from kafka_assignors._cli.group_tables import listed_lines
from kafka_assignors._cli.group_text import explained_lines
from kafka_assignors._cli.history_text import metrics_lines
from kafka_assignors._cli.history_watch import watched_lines
from kafka_assignors._cli.output import show_result
from kafka_assignors._cli.placement import _warn
from kafka_assignors._cli.placement_text import described_lines
from kafka_assignors._cluster.groups import ClassicGroup, EpochGroup
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._groups.joining import Look
from kafka_assignors.coordinator import Simulation
from kafka_assignors.groups._explain import ExplainedGroup
from kafka_assignors.groups._metrics import _Groups
from kafka_assignors.placement import draw
from kafka_assignors.placement._quality import measure
from kafka_assignors.placement._topics import Description
from tests.support.history_reports import hostile_report, html_of, joined, rebalance, summary
from website import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_assignors.groups._status import GroupStatus

NAME = "e\nCRITICAL forged\r\x1b[2J\x07\u202ex\u2028\x85\0"
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


def shown(lines: Callable[[], object]) -> Callable[[Show], str]:
    """What a command prints for people, and as JSON."""

    def show(capsys: Show) -> str:
        show_result({"name": NAME, NAME: [NAME]}, lines(), as_json=False)  # type: ignore[arg-type]
        show_result({"name": NAME, NAME: [NAME]}, (), as_json=True)
        text = capsys.readouterr().out
        start = text.index("\n{") if "\n{" in text else 0
        assert json.loads(text[start:])["name"] == NAME
        return text

    return show


def classic() -> ExplainedGroup:
    group = Simulation({NAME: 3}, [RangeAssignor])
    group.join(NAME, instance_id=NAME)
    group.run_until_stable()
    live = replace(
        examples.live_group(),
        looks=(Look(0, ClassicGroup(NAME, "Stable", "consumer", "range", ())),),
        records=(examples.live_record(0, group.group.record()),),
        topics={NAME: examples.TOPICS["orders"]},
        committed={(NAME, 0): 3},
    )
    return ExplainedGroup.of(live, examples.extents)


def consumers() -> ExplainedGroup:
    live = examples.live_epoch_group()
    looks = []
    for look in live.looks:
        assert isinstance(look.group, EpochGroup)
        members = tuple(one._replace(client_id=NAME, topics=(NAME,)) for one in look.group.members)
        looks.append(look._replace(group=look.group._replace(group_id=NAME, members=members)))
    return ExplainedGroup.of(replace(live, looks=tuple(looks)), examples.extents)


def listed() -> list[GroupStatus]:
    found = classic()
    (one,) = examples.listed()
    return [replace(one, group_id=NAME, lag=found.lag, account=found.account, problems=found.problems)]


def exported(_: Show) -> str:
    registry = CollectorRegistry()
    registry.register(_Groups(lambda: tuple(listed()), print))
    return generate_latest(registry).decode()


def error(capsys: Show) -> str:
    def fail() -> int:
        raise ValueError(f"no group {NAME}")

    assert ended("group explain", fail, (ValueError,)) == 2
    _warn(f"broker 1 said {NAME}")
    return capsys.readouterr().err


def placements() -> Description:
    topics = {NAME: {0: [1, 2]}}
    return Description(topics, measure(topics, {1: NAME, 2: NAME}), None)


def picture(_: Show, tmp_path: Path) -> str:
    return draw(placements().quality, tmp_path / "a.svg", title=NAME).read_text(encoding="utf-8")


DOORS: dict[str, Callable[..., str]] = {
    "log": log_line,
    "exception": log_of_an_exception,
    "error": error,
    "explain": shown(lambda: explained_lines(classic())),
    "explain, KIP-848": shown(lambda: explained_lines(consumers())),
    "list": shown(lambda: listed_lines(listed())),
    "export": exported,
    "watch": shown(lambda: watched_lines(rebalance(1, joined(NAME), group=NAME, strategy=NAME))),
    "metrics": shown(lambda: metrics_lines([summary(NAME)])),
    "report": lambda _: html_of(hostile_report(NAME), source=NAME),
    "placement": shown(lambda: described_lines(placements(), in_full=True)),
}


def check(text: str) -> None:
    assert "CRITICAL" in text  # the name is there
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert [line for line in text.split("\n") if line.startswith("CRITICAL")] == []


@pytest.mark.parametrize("door", DOORS.values(), ids=[*DOORS])
def test_a_name_leaves_as_printable_characters_and_begins_no_line(
    door: Callable[[Show], str], capsys: Show
) -> None:
    check(door(capsys))


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
