"""What `kafka_assignors.aio` relies on of aiokafka is what it was when that was tried."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import aiokafka
import pytest

from kafka_assignors.aio import _relied_on
from kafka_assignors.aio._relied_on import KEPT, RELIED_ON, TRIED, check, functions, release
from tests.support.sources import AIOKAFKA, private_names


def test_functions_are_those_that_were_tried() -> None:
    installed = ".".join(aiokafka.__version__.split(".")[:2])
    assert AIOKAFKA.hashes(Path(aiokafka.__file__).parents[1]) == AIOKAFKA.record()[installed]


def test_each_release_that_was_tried_is_recorded_with_all_functions() -> None:
    names = {name for names in RELIED_ON.values() for name in names}
    assert {release: functions.keys() for release, functions in AIOKAFKA.record().items()} == dict.fromkeys(
        TRIED, names
    )


def test_each_release_that_was_tried_is_tried_by_nox() -> None:
    noxfile = Path(__file__).parents[3] / "noxfile.py"
    (tried,) = re.findall(r"^TRIED = (.*)$", noxfile.read_text(encoding="utf-8"), re.MULTILINE)
    assert ast.literal_eval(tried) == TRIED


@pytest.mark.parametrize("version", ["0.12.0", "0.15.0", "1.0", "0.1"])
def test_a_release_that_was_not_tried_is_refused(version: str) -> None:
    with pytest.raises(
        ImportError, match=rf"goes with 0\.13 and 0\.14, and aiokafka {re.escape(version)} is installed: pip"
    ):
        check(f"aiokafka {version}")


@pytest.mark.parametrize("version", ["0.13.0", "0.14.2"])
def test_one_that_was_tried_is_taken(version: str) -> None:
    check(f"aiokafka {version}")


def test_a_function_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_relied_on, "RELIED_ON", {"aiokafka.client": ("AIOKafkaClient.send_all",)})
    with pytest.raises(
        ImportError, match=r"needs aiokafka\.client\.AIOKafkaClient\.send_all, which is not in"
    ):
        functions.__wrapped__()
    assert release().startswith("aiokafka ")


@pytest.mark.parametrize("kind", ["AIOKafkaClient", "NoSuchClient"])
def test_what_an_object_does_not_keep_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_relied_on, "KEPT", {"aiokafka.client": {kind: ("_sockets",)}})
    with pytest.raises(
        ImportError, match=rf"needs aiokafka\.client\.{kind} with _sockets, not that of aiokafka"
    ):
        functions.__wrapped__()


def test_no_private_name_of_aiokafka_is_used_that_is_not_listed() -> None:
    ours = private_names(Path(_relied_on.__file__).parent)
    theirs = private_names(Path(aiokafka.__file__).parent)
    functions_ = {name.rpartition(".")[2] for names in RELIED_ON.values() for name in names}
    kept = {name for classes in KEPT.values() for names in classes.values() for name in names}
    assert (ours & theirs) - functions_ - kept == set()
    assert {name for name in kept if name.startswith("_")} <= ours
