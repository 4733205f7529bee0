"""`kafka-assignors history` on small archives: without Spark, pandas or Java."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors.history import _engine, _spark
from kafka_assignors.history._schemas import GROUPS
from tests.support.delta_tables import rows_of
from tests.support.local_archives import SINCE, story

METRICS = [("coop", 6, 1), ("range", 5, 2), ("g", 2, 2)]
"""Groups, how often they rebalanced, and their members; from SINCE on."""

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


def test_info_and_metrics_of_a_small_archive_import_neither_spark_nor_pandas(tmp_path: Path) -> None:
    archive = story(tmp_path / "archive").where.uri
    found, imported = alone(tmp_path, "info", archive)
    assert imported == []
    assert found["groups"] == {"odd": 92, "g": 37, "coop": 11, "range": 8}
    found, imported = alone(tmp_path, "metrics", archive, "--since", SINCE.isoformat())
    assert imported == []
    assert [(row["group"], row["rebalances"], row["members"]) for row in found] == METRICS
    into = ("--out", str(tmp_path / "out"))
    again, imported = alone(tmp_path, "metrics", archive, "--since", SINCE.isoformat(), *into)
    assert "pyspark" not in imported
    assert again == found
    assert len(rows_of(tmp_path / "out" / "groups", GROUPS)) == len(METRICS)


def test_a_report_on_a_small_archive_with_what_if_imports_no_spark(tmp_path: Path) -> None:
    archive = story(tmp_path / "archive")
    found, imported = alone(tmp_path, "report", archive.where.uri, str(tmp_path / "page.html"))
    assert "pyspark" not in imported
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert found == {"page": str(tmp_path / "page.html"), "bytes": len(page.encode())}
    assert all(f">{group}<" in page for group in ("coop", "range", "g", "odd"))


class SparkWantedError(RuntimeError):
    pass


WHY: dict[str, tuple[list[str], dict[str, int], dict[str, str]]] = {
    "master": (["--master", "local[1]"], {}, {}),
    "size": ([], {"SMALL": 1_000, "SMALL_TO_REPLAY": 1_000}, {}),
    "room": ([], {"_ROOM": 1_000}, {}),
    "work": ([], {"SMALL_TO_REPLAY": 1_000}, {}),
    "spark-submit": ([], {}, {"PYSPARK_GATEWAY_PORT": "1"}),
}
"""The options, limits and environment that ask for Spark."""
COMMANDS = ("info", "metrics", "report", "tables", "what-if")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        *((command, why) for why in ("master", "size", "spark-submit") for command in COMMANDS),
        *((command, why) for why in ("room", "work") for command in ("metrics", "report")),
    ],
)
def test_spark_is_for_large_archives_for_much_room_or_work_and_where_it_is_asked_for(
    command: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def running(*_: Any, **__: Any) -> Any:
        raise SparkWantedError

    more, limits, variables = WHY[why]
    archive = story(tmp_path / "archive").where.uri
    monkeypatch.setattr(_spark, "running_spark", running)
    for name, limit in limits.items():
        monkeypatch.setattr(_engine, name, limit)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = [str(tmp_path / "out")] if command in {"report", "tables"} else []
    # Where metrics are computed, nothing is replayed.
    with nullcontext() if (command, why) == ("metrics", "work") else pytest.raises(SparkWantedError):
        main(["history", command, archive, *out, *more])
