"""When each kind of tests last ran whole."""

from pathlib import Path

import pytest

from benchmarks import whole

ROOT = Path(__file__).parents[2]

REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="a" time="1.5"/>
<testcase classname="integration_tests.test_b" name="b" time="2">
<properties><property name="slow" value="yes"/></properties></testcase>
<testcase classname="integration_tests.test_b" name="c" time="3"><failure/></testcase>
</testsuite></testsuites>"""


def test_each_kind_has_a_row_and_runs_in_containers_have_one_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "whole.md"
    monkeypatch.setattr(whole, "PAGE", page)
    reports = [tmp_path / f"whole-{name}.xml" for name in ("tests", "containers")]
    for report in reports:
        report.write_text(REPORT)
    whole.main([*map(str, reports)])
    found = {kind: row.split(" | ")[3:] for kind, row in whole.last(page).items()}
    assert found == {
        "containers": ["2", "1", "0", "6 |"],
        "integration_tests": ["1", "1", "0", "5 |"],
        "slow": ["1", "0", "0", "2 |"],
        "tests/unit": ["1", "0", "0", "2 |"],
    }
    for kind in ("containers", "tests/spark"):
        whole.main([kind])
    said, never = capsys.readouterr().out.splitlines()
    assert said.endswith("(1 failed)")
    assert never == "never"
    # Reports are named so by the run.
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert 'f"whole-{name}.xml"' in noxfile
