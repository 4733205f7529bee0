"""Pictures of the screens of commands; that they are run on a terminal is seen in a bad night."""

from __future__ import annotations

import re

from integration_tests.support.screens import Screen, picture


def test_a_picture_has_the_lines_that_the_terminal_has_and_their_colours() -> None:
    drawn = picture("x --check", Screen(1, f"\x1b[1;31merror\x1b[0m: a < b\n{'y' * 90}\n", 80))
    texts = re.findall(r'<text [^>]*y="(\d+)"[^>]*?(?: class="([^"]*)")?>([^<]*)</text>', drawn)
    assert texts == [
        ("24", "prompt", "$ x --check"),
        ("40", "red bold", "error"),
        ("40", "", ": a &lt; b"),
        ("56", "", "y" * 80),
        ("72", "", "y" * 10),
    ]
    assert "prefers-color-scheme:dark" in drawn
