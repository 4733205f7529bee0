"""Ask Apache Kafka's own Java classes: the tests' side of `worker.py`."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

WORKER = Path(__file__).with_name("worker.py")


class OracleError(Exception):
    """The worker could not answer; that a Java assignor throws is an answer, not an error."""


class JavaOracle:
    """A running worker; leave the `with` block to end it."""

    def __init__(self, jars: Iterable[Path]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, jars)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="ascii",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def ask(self, verb: str, argument: object) -> Any:
        """Send one request and wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, argument]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise OracleError(f"the worker ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise OracleError(answer["error"])
        return answer["ok"]

    def assign(self, strategy: str, groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Java's answer for each group: {"assignment": ...} or {"exception": ...}; see the worker."""
        answers: list[dict[str, Any]] = self.ask("assign", {"strategy": strategy, "groups": groups})
        return answers
