"""What stands against a release is found before anything is built."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

COMMIT, OTHER = "a" * 40, "b" * 40
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-11-24

### Added

- Something.

## [0.1.0] - 2026-01-01

- The first.
"""


@pytest.fixture(scope="module")
def release() -> Any:
    path = Path(__file__).parents[2] / ".ci" / "release.py"
    spec = importlib.util.spec_from_file_location("release", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["release"] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    del sys.modules["release"]
    return module


@pytest.fixture
def good(release: Any) -> Any:
    return release.State(
        revision=COMMIT,
        changed=[],
        tags={"v0.1.0": OTHER},
        versions={"kafka-assignors": "0.2.0", "pytest-kafka-assignors": "0.2.0"},
        needs=["kafka-assignors[testing]==0.2.0"],
        changelog=CHANGELOG,
        passed=COMMIT,
    )


def test_a_state_in_order_can_be_released(release: Any, good: Any) -> None:
    assert release.faults("0.2.0", good) == []
    assert release.faults("0.2.0", replace(good, tags={"v0.2.0": COMMIT})) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"changed": [" M a.py", "?? b"]}, "2 files are not committed, ' M a.py' first: commit them"),
        (
            {"versions": {"kafka-assignors": "0.1.0", "pytest-kafka-assignors": "0.2.0"}},
            "kafka-assignors has the version 0.1.0: set 0.2.0 in its pyproject.toml",
        ),
        (
            {"needs": ["kafka-assignors[testing]==0.1.0"]},
            "pytest-kafka-assignors needs kafka-assignors[testing]==0.1.0: let it need 0.2.0",
        ),
        (
            {"tags": {"v0.2.0": OTHER}},
            f"the tag v0.2.0 names {OTHER}, and this is {COMMIT}: take another version",
        ),
        ({"passed": ""}, f"the gate has passed nothing, not {COMMIT}: run .ci/run"),
        ({"passed": OTHER}, f"the gate has passed {OTHER}, not {COMMIT}: run .ci/run"),
        (
            {"changelog": CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n")},
            "CHANGELOG.md has entries under Unreleased: move them under [0.2.0]",
        ),
        (
            {"changelog": CHANGELOG.replace("### Added\n\n- Something.\n", "")},
            "CHANGELOG.md says nothing under [0.2.0]: write what a user notices",
        ),
        (
            {"changelog": CHANGELOG.replace("0.2.0", "0.3.0")},
            "CHANGELOG.md has no heading '## [0.2.0] - YYYY-MM-DD': write it",
        ),
        (
            {"changelog": CHANGELOG.replace("2026-11-24", "soon")},
            "CHANGELOG.md dates [0.2.0] 'soon': write YYYY-MM-DD",
        ),
        (
            {"changelog": CHANGELOG.replace(" - 2026-11-24", "")},
            "CHANGELOG.md dates [0.2.0] None: write YYYY-MM-DD",
        ),
    ],
)
def test_what_stands_against_a_release_is_named(
    release: Any, good: Any, change: dict[str, Any], fault: str
) -> None:
    assert release.faults("0.2.0", replace(good, **change)) == [fault]


def test_what_is_no_version_is_refused(release: Any, good: Any) -> None:
    assert "'v0.2' is no version: give MAJOR.MINOR.PATCH" in release.faults("v0.2", good)


def test_provenance_names_each_file_by_its_hash_and_the_commit(release: Any) -> None:
    made = release.statement("0.2.0", COMMIT, {"b.whl": "2" * 64, "a.tar.gz": "1" * 64})
    assert made["subject"] == [
        {"name": "a.tar.gz", "digest": {"sha256": "1" * 64}},
        {"name": "b.whl", "digest": {"sha256": "2" * 64}},
    ]
    assert made["predicate"]["buildDefinition"]["resolvedDependencies"] == [
        {"name": "source", "digest": {"gitCommit": COMMIT}}
    ]
