"""`kafka-assignors` in a pipe."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.group_files import large


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    name = tmp_path / "group.json"
    name.write_text(json.dumps(large(200)), encoding="utf-8")
    command = [sys.executable, "-m", "kafka_assignors._cli.main", "plan", str(name), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
