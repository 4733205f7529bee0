"""What `kafka_assignors.aio` relies on of aiokafka is what it was when that was tried."""

import ast
import re
from pathlib import Path

import aiokafka
import pytest

from kafka_assignors.aio import _relied_on
from kafka_assignors.aio._coordinator import CooperativeCoordinator, EagerCoordinator, RevokingCoordinator
from kafka_assignors.aio._partitions import (
    ConsumerSubscriptionState,
    LastingState,
    LastingSubscription,
    WithheldPartitionState,
)
from kafka_assignors.aio._relied_on import REPLACED, TRIED, check, check_parts
from tests.support.sources import AIOKAFKA, private_names


def test_functions_are_those_that_were_tried() -> None:
    installed = ".".join(aiokafka.__version__.split(".")[:2])
    assert AIOKAFKA.hashes(Path(aiokafka.__file__).parents[1]) == AIOKAFKA.record()[installed]


def test_each_release_that_was_tried_is_recorded_with_all_functions() -> None:
    recorded = {release: functions.keys() for release, functions in AIOKAFKA.record().items()}
    assert recorded == dict.fromkeys(TRIED, AIOKAFKA.names)
    assert len(AIOKAFKA.names) == 82  # one that is lost would not be missed


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


OURS = (
    EagerCoordinator,
    RevokingCoordinator,
    CooperativeCoordinator,
    ConsumerSubscriptionState,
    LastingState,
    LastingSubscription,
    WithheldPartitionState,
)


def test_all_methods_that_are_replaced_are_looked_for() -> None:
    replaced: dict[str, set[str]] = {}
    for kind in OURS:
        theirs = next(one for one in kind.__mro__ if one.__module__.startswith("aiokafka."))
        named = replaced.setdefault(f"{theirs.__module__.rpartition('.')[2]}.{theirs.__name__}", set())
        named |= {name for name in vars(kind) if not name.startswith("__") and hasattr(theirs, name)}
    assert {kind: set(names) for kind, names in REPLACED.items()} == replaced


@pytest.mark.parametrize("kind", ["GroupCoordinator", "NoSuchCoordinator"])
def test_a_method_that_is_missing_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_relied_on, "REPLACED", {f"group_coordinator.{kind}": ("_join",)})
    with pytest.raises(
        ImportError, match=rf"needs group_coordinator\.{kind}\._join, which is not in aiokafka 0"
    ):
        check_parts()


def test_no_private_method_of_aiokafka_is_used_that_is_not_recorded() -> None:
    ours = private_names(Path(_relied_on.__file__).parent)
    theirs = private_names(Path(aiokafka.__file__).parent, methods_only=True)
    # Attributes of the classes here have the names of methods of classes that are not used.
    attributes = {"_group_subscription", "_reassignment_in_progress"}
    assert (ours & theirs) - {name.rpartition(".")[2] for name in AIOKAFKA.names} == attributes
