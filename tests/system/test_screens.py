"""Screens of commands: what is left on a terminal, and the picture of it."""

from __future__ import annotations

import re
import sys

import pytest

from integration_tests.support.screens import Screen, picture, run_on_terminal


@pytest.mark.parametrize("columns", [80, 200])
def test_a_command_has_a_terminal_of_so_many_columns(columns: int) -> None:
    code = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns); sys.exit(3)"
    screen = run_on_terminal([sys.executable, "-c", code], columns=columns, environment={}, timeout=60)
    assert (screen.status, screen.text) == (3, f"True {columns}\n")


def test_what_was_written_again_is_left_once() -> None:
    printed = ["a bar", "\r\x1b[Kan answer\n", "two\nlines", "\x1b[1A\r\x1b[2Kone\n"]
    code = f"for text in {printed}: print(text, end='')"
    screen = run_on_terminal([sys.executable, "-c", code], columns=80, environment={}, timeout=60)
    assert screen.text.split("\n")[:3] == ["an answer", "one", "lines"]


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
