"""The page on bugs shows services, and messages, that tests on real brokers have."""

import re
from pathlib import Path

import pytest

from integration_tests.support.says import SAYS, says

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "bugs.md").read_text(encoding="utf-8")
SERVICES = (ROOT / "integration_tests" / "support" / "services.py").read_text(encoding="utf-8")
TESTS = "".join(
    (ROOT / "integration_tests" / f"test_bugs_of_{what}.py").read_text(encoding="utf-8")
    for what in ("services", "records")
)
SECTIONS = re.findall(r"^## \d+\. [^\n]+\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)


def test_there_are_twenty_two() -> None:
    assert PAGE.startswith("# Twenty-two bugs, ")
    headings = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)
    assert headings == [str(number) for number in range(1, 23)]
    assert len(SAYS) == 22


@pytest.mark.parametrize(("section", "service"), [*zip(SECTIONS, SAYS, strict=True)], ids=SAYS)
def test_a_bug_is_quoted_with_what_its_test_expects_to_be_said(section: str, service: str) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert code in SERVICES
    assert f"def {service}(" in SERVICES
    (said,) = re.findall(r"^```text\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert says(service, re.sub(r"\s+", " ", said))
    assert re.search(rf'(says\(|SAYS\[)"{service}"|services\.{service}\b', TESTS)
