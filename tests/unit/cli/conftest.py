"""The command line, run as a shell would."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_assignors._cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: its exit status, and what it wrote to both streams."""

    def _run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(arguments)
        except SystemExit as wrong_command_line:
            status = int(wrong_command_line.code or 0)
        return status, *capsys.readouterr()

    return _run
