"""What the packages offer is what docs/api.md promises, and nothing else looks public."""

import builtins
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_assignors import InvalidPlanError, KafkaAssignorsError
from kafka_assignors.testing._groups.clients import CommitError
from tests.support.pages import listings, pages

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")

PROMISED = [
    "kafka_assignors",
    "kafka_assignors.aio",
    "kafka_assignors.coordinator",
    "kafka_assignors.groups",
    "kafka_assignors.history",
    "kafka_assignors.offsets_topic",
    "kafka_assignors.placement",
    "kafka_assignors.planners",
    "kafka_assignors.proofs",
    "kafka_assignors.testing",
    "kafka_assignors.testing.events",
]

IMPORT = re.compile(r"^ *from (kafka_assignors[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
"""Some listings are parts of a function."""


def listed() -> dict[str, list[str]]:
    """Module -> the names that the page lists for it, below the line that says what it is."""
    sections = re.findall(
        r"^## `(kafka_assignors[\w.]*)`\n\n.*?\n\n(.*?)\n\n", PAGE, re.DOTALL | re.MULTILINE
    )
    return {name: re.findall(r"`(\w+)`", names) for name, names in sections}


def in_order(names: list[str]) -> list[str]:
    """Constants, classes, functions, each sorted, as ruff sorts `__all__`."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


BUILT_IN_KINDS = {
    one for one in vars(builtins).values() if isinstance(one, type) and issubclass(one, Exception)
} - {Exception}


def test_the_page_lists_the_modules_that_are_promised() -> None:
    assert [*listed()] == PROMISED


@pytest.mark.parametrize("name", PROMISED)
def test_public_names_are_listed_sorted_and_there(name: str) -> None:
    module = importlib.import_module(name)
    assert [*module.__all__] == in_order(module.__all__)
    assert len({*module.__all__}) == len(module.__all__)
    assert listed()[name] == sorted(module.__all__)
    assert [public for public in module.__all__ if not hasattr(module, public)] == []


@pytest.mark.parametrize("name", PROMISED)
def test_each_error_is_an_error_of_the_library(name: str) -> None:
    module = importlib.import_module(name)
    offered = [getattr(module, public) for public in module.__all__]
    errors = [one for one in offered if isinstance(one, type) and issubclass(one, Exception)]
    assert [error for error in errors if not issubclass(error, KafkaAssignorsError)] == []


def test_each_error_is_of_a_built_in_kind_too() -> None:
    for name in PROMISED:
        importlib.import_module(name)
    errors = [
        one for one in classes_below(KafkaAssignorsError) if one.__module__.startswith("kafka_assignors.")
    ]
    assert {InvalidPlanError, CommitError} <= {*errors}
    assert [error for error in errors if not BUILT_IN_KINDS.intersection(error.__mro__)] == []


def classes_below(base: type) -> Iterator[type]:
    below: list[type] = base.__subclasses__()
    yield from below
    for one in below:
        yield from classes_below(one)


@pytest.mark.parametrize("page", [page for page in pages() if listings(page)])
def test_listings_import_what_is_promised(page: str) -> None:
    imports = [found for code in listings(page) for found in IMPORT.findall(code)]
    imported = [(module, name) for module, names in imports for name in re.findall(r"\w+", names)]
    promised = listed()
    assert [(module, name) for module, name in imported if name not in promised.get(module, ())] == []


def test_every_other_module_is_private_by_name() -> None:
    modules = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "kafka_assignors").rglob("*.py")]
    assert len(modules) > 200
    public = {
        ".".join(part for part in module.parts if part != "__init__")
        for module in modules
        if not any(part.startswith("_") and part != "__init__" for part in module.parts)
    }
    assert public == {*PROMISED}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'kafka_assignors.testing' has no attribute 'nonsense'"):
        importlib.import_module("kafka_assignors.testing").nonsense  # noqa: B018 - to look it up is the test
