"""How `kafka-assignors` starts: what it imports, what it needs, and how bash asks it for completions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.group_files import GROUP_AS_YAML
from tests.support.pages import ROOT, listing

SLOW = (
    *("aiokafka", "confluent_kafka", "kafka", "matplotlib", "numpy", "numpy.ma", "numpy.random"),
    *("pyarrow", "pyspark", "rich", "yaml"),
)

IMPORTED = """
import sys
from kafka_assignors._cli.main import main
sys.stdout = open({null!r}, "w")
statuses = {{main(arguments) for arguments in {commands!r}}}
sys.stdout = sys.__stdout__
ours = sorted(name for name in sys.modules if name.startswith("kafka_assignors._cli."))
print(*(name.removeprefix("kafka_assignors._cli.") for name in ours))
print(*(name for name in {slow!r} if name in sys.modules))
planners = sorted(name for name in sys.modules if name.startswith("kafka_assignors.planners._"))
print(*(name.removeprefix("kafka_assignors.planners.") for name in planners if name.count(".") == 2))
sys.exit(statuses != {{0}})
"""


class Imported(NamedTuple):
    """The modules of the command that command lines import, the slow ones of others, and the planners."""

    ours: set[str]
    slow: set[str]
    planners: set[str]


def imported(*commands: list[str]) -> Imported:
    """What command lines import."""
    code = IMPORTED.format(null=os.devnull, commands=commands, slow=SLOW)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours, slow, planners = done.stdout.splitlines()
    return Imported({*ours.split()}, {*slow.split()}, {*planners.split()})


COMMANDS = {"demo", "group", "history", "placement", "plan"}
BASE = {"arguments", "command_line", "errors", "main", "options", "output"}


def test_help_imports_the_commands_and_nothing_slow() -> None:
    helps = ([], *([command] for command in sorted(COMMANDS)), ["group", "explain"], ["history", "capture"])
    found = imported(["--version"], *([*words, "--help"] for words in helps))
    assert found == (BASE | COMMANDS, set(), set())


def test_a_command_imports_what_it_needs_and_nothing_of_another(tmp_path: Path) -> None:
    (tmp_path / "group.yaml").write_text(GROUP_AS_YAML, encoding="utf-8")
    ours, slow, planners = imported(["plan", str(tmp_path / "group.yaml")])
    assert ours == BASE | COMMANDS | {"group_parts", "plan_text"}
    assert slow == {"numpy", "yaml"}
    assert planners == {"_cooperative", "_exact"}


def test_numpy_starts_no_threads_for_a_command() -> None:
    code = (
        "import os; os.environ.pop('OPENBLAS_NUM_THREADS', None)\n"
        "from kafka_assignors._cli.main import main; main(['--version'])\n"
        "import numpy, sys; print(len(os.listdir('/proc/self/task')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"


PAGE = "docs/how-to/complete-commands.md"
SHELLS = {
    "bash": (
        ("--norc",),
        f"""{listing(PAGE, "eval", "bash")}
COMP_WORDS=(kafka-assignors plan --assignor r)
COMP_CWORD=3
complete -p kafka-assignors
_kafka_assignors_completion kafka-assignors
printf '%s\\n' "${{COMPREPLY[@]}}"
""",
        ("complete -o nosort -F _kafka_assignors_completion kafka-assignors",),
    ),
    "fish": (
        ("--no-config",),
        f"""{listing(PAGE, "fish_source", "fish")}
complete -C "kafka-assignors plan --assignor r"
""",
        (),
    ),
    # `compadd` works on a terminal only; its last argument is the name of the array to offer.
    "zsh": (
        ("-f",),
        f"""autoload -U compinit && compinit -u -D
{listing(PAGE, "zsh_source", "zsh")}
print -r -- "${{_comps[kafka-assignors]}}"
compadd() {{ print -rl -- "${{(@P)@[-1]}}" }}
words=(kafka-assignors plan --assignor r)
CURRENT=4
_kafka_assignors_completion
""",
        ("_kafka_assignors_completion",),
    ),
}
"""Of each shell its options, a script that completes, and what that prints before what it completes to."""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_by_the_line_of_the_page(shell: str, tmp_path: Path) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    command = tmp_path / "kafka-assignors"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kafka_assignors "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    options, script, before = SHELLS[shell]
    done = subprocess.run(
        [path, *options, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [*before, "range", "roundrobin"]
