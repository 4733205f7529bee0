"""Which tests a run leaves out unless it is a whole one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.kinds import ROOT, left_out

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(eq=False)
class Collected:
    """What the rule looks at of a collected test."""

    nodeid: str
    path: Path
    marks: Collection[str]
    callspec: SimpleNamespace | None

    def get_closest_marker(self, name: str) -> bool:
        return name in self.marks


def item(
    test: str,
    file: str = "integration_tests/test_some.py",
    *,
    marks: Collection[str] = (),
    **params: Any,
) -> Any:
    """A test of these arguments."""
    nodeid = f"{file}::{test}" + (f"[{'-'.join(params.values())}]" if params else "")
    return Collected(nodeid, Path(ROOT, file), marks, SimpleNamespace(params=params) if params else None)


def kept(items: list[Any], *, slow: bool = True) -> list[str]:
    """Names and arguments of those that run."""
    others = left_out(items, slow=slow)
    return [one.nodeid.partition("::")[2] for one in items if one not in others]


def test_a_test_with_brokers_runs_for_one_assignor_or_client() -> None:
    assignors = [item("test_a", assignor=name) for name in ("range", "sticky", "random")]
    clients = [item("test_b", client=client, strategy=strategy) for client in "jk" for strategy in "rs"]
    assert len(kept([*assignors, *clients])) == 2


def test_other_arguments_are_all_kept() -> None:
    listings = [item("test_a", name=name) for name in "abc"]
    kinds = [item("test_b", kind=kind, assignor=assignor) for kind in "xy" for assignor in "rs"]
    assert kept(listings) == ["test_a[a]", "test_a[b]", "test_a[c]"]
    assert [name[:8] for name in kept(kinds)] == ["test_b[x", "test_b[y"]


def test_each_assignor_has_its_turn_among_many_tests() -> None:
    names = ("range", "sticky", "random")
    chosen = [kept([item(f"test_{number}", assignor=name) for name in names]) for number in range(30)]
    assert all(len(one) == 1 for one in chosen)
    assert {one[0].split("[")[1] for one in chosen} == {f"{name}]" for name in names}


def test_tests_without_brokers_are_all_kept() -> None:
    unit = [item("test_a", "tests/unit/test_some.py", assignor=name) for name in "ab"]
    assert len(kept(unit)) == 2


def test_slow_tests_are_left_out_where_that_is_wished_but_for_the_core_of_their_files() -> None:
    items = [item("test_slow", marks={"slow"}), item("test_core", marks={"slow", "core"}), item("test_quick")]
    assert kept(items) == ["test_core", "test_quick"]
    assert kept(items, slow=False) == ["test_slow", "test_core", "test_quick"]


def test_each_test_that_is_left_out_has_a_reason() -> None:
    slow, *others = items = [
        item("test_slow", marks={"slow"}),
        *(item("test_a", assignor=name) for name in "abc"),
    ]
    found = left_out(items, slow=True)
    assert found[slow] == "slow: --whole runs them"
    assert [found[one] for one in others if one in found] == ["repetitions: --whole runs them"] * 2


def test_each_file_that_scripts_name_is_there() -> None:
    """A file that is gone would be noticed by the gate only after all other tests."""
    containers = Path(ROOT, ".ci/containers.sh").read_text(encoding="utf-8")
    (names,) = re.findall(r"in_containers=\((.*?)\)", containers, re.DOTALL)
    (ignored,) = re.findall(
        r"test_%s\.py ' (.*?)\)", Path(ROOT, ".ci/pythons.sh").read_text(encoding="utf-8")
    )
    files = [f"integration_tests/test_{name}.py" for name in names.split()]
    files += [f"tests/unit/test_{name}.py" for name in ignored.split()]
    assert [file for file in files if not Path(ROOT, file).is_file()] == []
