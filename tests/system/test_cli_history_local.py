"""`kafka-assignors history` on small archives: without Spark, pandas or Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._cli import history_read
from kafka_assignors._cli.main import main
from kafka_assignors.history import _local
from tests.support.local_archives import story

if TYPE_CHECKING:
    from pathlib import Path

ALONE = """
import json, subprocess, sys

def start(*arguments, **_):
    raise AssertionError(f"a process was started: {arguments}")

subprocess.Popen.__init__ = start
from kafka_assignors._cli.main import main

status = main(json.loads(sys.argv[1]))
print(json.dumps([name for name in ("pyspark", "py4j", "pandas") if name in sys.modules]), file=sys.stderr)
sys.exit(status)
"""


def alone(folder: Path, *arguments: str) -> tuple[Any, list[str]]:
    """A command's JSON where there is no Java, and what it imported of that which it has no use for."""
    env = {**os.environ, "JAVA_HOME": str(folder / "nowhere"), "PATH": str(folder / "nowhere")}
    code = [sys.executable, "-c", ALONE, json.dumps(["history", *arguments, "--json"])]
    done = subprocess.run(code, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), json.loads(done.stderr.splitlines()[-1])


def test_info_on_a_small_archive_imports_neither_spark_nor_pandas(tmp_path: Path) -> None:
    archive = story(tmp_path / "archive")
    found, imported = alone(tmp_path, "info", archive.where.uri)
    assert imported == []
    assert found["groups"] == {"odd": 90, "g": 37, "coop": 12, "range": 8}


class SparkWantedError(RuntimeError):
    pass


@pytest.mark.parametrize(
    "why",
    [
        (["--master", "local[1]"], _local.SMALL, {}),
        ([], 1_000, {}),
        ([], _local.SMALL, {"PYSPARK_GATEWAY_PORT": "1"}),
    ],
    ids=["master", "size", "spark-submit"],
)
@pytest.mark.parametrize("command", [["info"]], ids=" ".join)
def test_spark_is_for_large_archives_and_where_it_is_asked_for(
    command: list[str],
    why: tuple[list[str], int, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def running(*_: Any) -> Any:
        raise SparkWantedError

    more, limit, variables = why
    archive = story(tmp_path / "archive").where.uri
    monkeypatch.setattr(history_read, "running_spark", running)
    monkeypatch.setattr(_local, "SMALL", limit)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SparkWantedError):
        main(["history", *command, archive, *more])
