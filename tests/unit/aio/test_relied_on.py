"""What `kafka_assignors.aio` relies on of aiokafka is what it was when that was tried."""

from __future__ import annotations

import re
from pathlib import Path

import aiokafka
import pytest

from kafka_assignors.aio import _relied_on
from kafka_assignors.aio._relied_on import RELIED_ON, TRIED, check, functions, release
from tests.support.aiokafka_sources import hashes, record


def test_functions_are_those_that_were_tried() -> None:
    installed = ".".join(aiokafka.__version__.split(".")[:2])
    assert hashes(Path(aiokafka.__file__).parents[1]) == record()[installed]


def test_each_release_that_was_tried_is_recorded_with_all_functions() -> None:
    names = {name for names in RELIED_ON.values() for name in names}
    assert {release: functions.keys() for release, functions in record().items()} == dict.fromkeys(
        TRIED, names
    )


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
