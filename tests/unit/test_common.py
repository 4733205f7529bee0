"""Waiting, times, files that are too large, and how commands end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_assignors._cli.errors import ended
from kafka_assignors._common import tree
from kafka_assignors._common.plain import to_json
from kafka_assignors._common.times import moment
from kafka_assignors._common.waiting import Deadline, wait_until


class BusyError(Exception):
    pass


def test_a_wait_ends_when_nothing_is_wrong() -> None:
    looks = iter([["a", "b"], ["b"], []])
    wait_until(lambda: next(looks), 60, "all to be well", every=0)
    assert next(looks, None) is None


def test_a_wait_that_times_out_says_what_is_wrong() -> None:
    with pytest.raises(BusyError) as raised:
        wait_until(lambda: ["a is down", "b is down"], 0, "all to be up", error=BusyError)
    assert str(raised.value) == (
        "timed out after 0 s waiting for all to be up:\n  - a is down\n  - b is down"
    )


def test_a_condition_is_asked_once_however_short_the_time() -> None:
    wait_until(list, -1, "nothing")


def test_a_deadline_without_faults_is_one_line() -> None:
    assert Deadline(1.5).text("it", ()) == "timed out after 1.5 s waiting for it"
    assert (Deadline(-1).passed, Deadline(60).passed) == (True, False)


def test_a_moment_is_exact_to_the_microsecond() -> None:
    # A float of seconds would round it into the next year.
    assert moment(253_402_300_799_999_999) == datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


@dataclass
class Answered:
    colour: Colour
    parts: frozenset[int]
    when: datetime


class Counted(NamedTuple):
    answers: Mapping[int, Answered]


class Summed:
    def to_json(self) -> object:
        return {"sum": (1, None)}


def test_a_result_is_plain_json() -> None:
    answered = Answered(Colour.RED, frozenset({3, 1, 2}), datetime(2026, 3, 2, tzinfo=UTC))
    assert to_json([Counted({7: answered}), Summed()]) == [
        {"answers": {"7": {"colour": "red", "parts": [1, 2, 3], "when": "2026-03-02 00:00:00+00:00"}}},
        {"sum": [1, None]},
    ]


def test_a_file_that_is_too_large_is_named_so_wherever_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_MOST_BYTES", 2**20)
    file = tmp_path / "group.yaml"
    file.write_text("a" * 2**20 + "é", encoding="utf-8")
    with pytest.raises(tree.FileError, match=r"group\.yaml: larger than 1 MiB$"):
        tree.read_text(str(file))


@pytest.mark.parametrize(
    ("error", "status"), [(None, 7), (ValueError("no such thing"), 2), (BusyError("not now"), 1)]
)
def test_errors_become_a_line_and_a_status(
    error: Exception | None, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        if error is not None:
            raise error
        return 7

    assert ended("group find", work, (ValueError, BusyError)) == status
    said = "" if error is None else f"kafka-assignors group find: {error}\n"
    assert capsys.readouterr() == ("", said)


def test_an_error_that_is_not_foreseen_comes_out() -> None:
    def work() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ended("plan", work, (ValueError,))
