"""The command line, run as a shell would."""

import json
from typing import Any

import pytest

from kafka_assignors._cli.main import main


class Cli:
    """Runs commands, or those that begin with the words given."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        self._capsys, self._words = capsys, words

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Its exit status, and what it wrote to both streams."""
        try:
            status = main([*self._words, *arguments])
        except SystemExit as wrong_command_line:
            status = int(wrong_command_line.code or 0)
        return status, *self._capsys.readouterr()

    def shown(self, *arguments: str, status: int = 0) -> str:
        """The output of a command that ends with this status."""
        found, out, error = self.run(*arguments)
        assert found == status, error
        return out

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self.shown(*arguments, "--json", status=status))

    def refused(self, *arguments: str, status: int = 2) -> str:
        """The error of a command that ends with this status."""
        found, out, error = self.run(*arguments)
        assert (found, out) == (status, "")
        return error


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)
