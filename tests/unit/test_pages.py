"""What the page on the coordinator shows is what the library does."""

import re
from pathlib import Path

import pytest

from kafka_assignors._cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "coordinator.md").read_text(encoding="utf-8")
LISTINGS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", LISTINGS)
def test_a_listing_runs(code: str) -> None:
    exec(compile(code, "docs/coordinator.md", "exec"), {})  # noqa: S102 - the page is ours


def test_what_if_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assignors = ["range", "cooperative-sticky", "kip848-uniform"]
    named = [option for name in assignors for option in ("--assignor", name)]
    topics = ["--topic", "orders=30", "--topic", "payments=12"]
    assert main(["group", "what-if", "--members", "6", *topics, *named]) == 0
    assert capsys.readouterr().out in PAGE
