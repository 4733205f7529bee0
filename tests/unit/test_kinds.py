"""Which tests a run leaves out unless it is a whole one."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.kinds import ROOT, left_out


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


def kept(items: list[Any]) -> list[str]:
    """Names and arguments of those that run."""
    others = left_out(items, slow=True)
    return [one.nodeid.partition("::")[2] for one in items if one not in others]


def test_of_repetitions_with_brokers_one_for_each_other_argument_is_kept() -> None:
    repeated = [item("test_a", assignor=name) for name in ("range", "sticky", "random")]
    repeated += [item("test_b", client=client, strategy=strategy) for client in "jk" for strategy in "rs"]
    assert [name[:6] for name in kept(repeated)] == ["test_a", "test_b"]
    kinds = [item("test_b", kind=kind, assignor=assignor) for kind in "xy" for assignor in "rs"]
    assert [name[:8] for name in kept(kinds)] == ["test_b[x", "test_b[y"]
    each = [kept([item(f"test_{n}", assignor=name) for name in "abc"])[0].split("[")[1] for n in range(30)]
    assert set(each) == {"a]", "b]", "c]"}
    without = [item("test_a", "tests/unit/test_some.py", assignor=name) for name in "ab"]
    assert len(kept(without)) == 2


def test_slow_tests_are_left_out_where_that_is_wished_but_for_the_core_of_their_files() -> None:
    slow = item("test_slow", marks={"slow"})
    items = [slow, item("test_core", marks={"slow", "core"}), item("test_quick")]
    assert left_out(items, slow=True) == {slow: "slow: --whole runs them"}
    assert left_out(items, slow=False) == {}


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
