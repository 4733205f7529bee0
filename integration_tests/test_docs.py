"""The listings of docs/testing.md do what the page says."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from tests.support import plugin
from tests.support.pages import listings

pytestmark = pytest.mark.slow

CODES = listings("docs/testing.md")
LISTINGS = {code.partition("\n")[0].removeprefix("# "): code for code in CODES if code.startswith("# ")}
TESTS = sorted(name for name in LISTINGS if name.startswith("test_"))


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> tuple[Counter[tuple[str, bool]], str]:
    """How many tests of each listing passed (True) with each parameter or not, and what pytest printed."""
    folder = tmp_path_factory.mktemp("listings")
    for name, code in LISTINGS.items():
        (folder / name).write_text(code, encoding="utf-8")
    way = pytestconfig.getoption("kafka") or pytestconfig.getini("kafka")
    if way == "given":
        pytest.skip("the listings start clusters of their own")
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--junitxml=report.xml", "-p", "no:cacheprovider"),
            *plugin.LOADED,
            *([f"--kafka={way}"] if way else []),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=560,
    )
    passed: dict[tuple[str, str], bool] = {}
    for case in ET.parse(folder / "report.xml").iter("testcase"):  # noqa: S314 - pytest wrote it just now
        test = f"{case.attrib['classname']}.py", case.attrib["name"].partition("[")[0]
        passed[test] = passed.get(test, True) and len(case) == 0
    return Counter((name, well) for (name, _), well in passed.items()), run.stdout + run.stderr


@pytest.mark.parametrize("name", TESTS)
def test_a_listing_passes(name: str, outcomes: tuple[Counter[tuple[str, bool]], str]) -> None:
    counts, printed = outcomes
    assert counts[name, False] == 0, printed
    assert counts[name, True] == LISTINGS[name].count("def test_")


def test_every_listing_of_python_is_run() -> None:
    assert len(CODES) == len(LISTINGS) == len(TESTS) + 1  # the conftest
