"""What shells are answered when they ask for completions, in the protocol of click's scripts."""

import re
from collections.abc import Callable

import pytest

from kafka_assignors._cli.command_line import COMPLETE
from kafka_assignors._cli.main import main
from kafka_assignors._common.strategies import PLANNED, REPLAYED
from tests.support.pages import read
from website.reference import contexts

PAGE = "docs/how-to/complete-commands.md"

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """The lines with which a shell is answered after these words, the last of which is being typed."""

    def _complete(*words: str, by: str = "bash") -> list[str]:
        typed = ["kafka-assignors", *words]
        monkeypatch.setenv(COMPLETE, f"{by}_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(typed))
        monkeypatch.setenv("COMP_CWORD", typed[-1] if by == "fish" else str(len(typed) - 1))
        assert main([]) == 0
        return capsys.readouterr().out.splitlines()

    return _complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["p"], ["plain,plan", "plain,placement"]),
        (["group", "e"], ["plain,explain", "plain,export", "plain,elect"]),
        (["plan", "--max"], ["plain,--max-skew", "plain,--max-moves"]),
        (["plan", "--assignor", ""], [f"plain,{name}" for name in PLANNED]),
        (["demo", "--assignor", "r"], ["plain,range", "plain,roundrobin", "plain,random"]),
        (["demo", "--client", "a"], ["plain,aiokafka"]),
        (["group", "what-if", "--assignor", "kip"], ["plain,kip848:uniform", "plain,kip848:range"]),
        (["group", "explain", "g", "--leader-client", "j"], ["plain,java"]),
        (["placement", "create", "t", "--generator", "s"], ["plain,striped"]),
        (["history", "what-if", "a", "--assignor", ""], [f"plain,{name}" for name in REPLAYED]),
        (["plan", ""], ["file,"]),
        (["group", "list", "--command-config", "cl"], ["file,cl"]),
        (["placement", "reassign", "--rollback", "b"], ["file,b"]),
        (["history", "capture", "ar"], ["file,ar"]),
        (["group", "list", "--boot"], ["plain,--bootstrap-server"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and "," not in "".join(value) else "",
)
def test_commands_options_strategies_and_files_are_completed(
    words: list[str], expected: list[str], complete: Complete
) -> None:
    assert complete(*words) == expected


def test_zsh_shows_what_commands_do_beside_them(complete: Complete) -> None:
    lines = complete("pla", by="zsh")
    assert lines[:2] == ["plain", "plan"]
    assert lines[2] == "plan a group that a file describes, without a consumer"
    assert complete("plan", "--assignor", "r", by="zsh") == [
        *("plain", "range", "_"),
        *("plain", "roundrobin", "_"),
    ]


def test_fish_is_answered_too(complete: Complete) -> None:
    assert complete("plan", "--assignor", "k", by="fish") == ["plain,kip54"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])  # bash is started: tests/system/test_cli_start.py
def test_each_shell_of_the_page_has_a_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = re.findall(
        rf"```{shell}\n(.*{COMPLETE}={shell}_source kafka-assignors\b[^>\n]*)\n```", read(PAGE)
    )
    assert line
    monkeypatch.setenv(COMPLETE, f"{shell}_source")
    assert main([]) == 0
    script = capsys.readouterr().out
    assert "_kafka_assignors_completion" in script
    assert f"{COMPLETE}={shell}_complete" in script


def test_every_option_for_a_file_is_completed_with_files() -> None:
    found = [
        (context, param)
        for context in contexts()
        for param in context.command.params
        if param.metavar in {"FILE", "FOLDER"}
    ]
    assert len(found) > 20
    for context, param in found:
        (item,) = param.shell_complete(context, "x")
        assert (item.type, item.value) == ("file", "x"), (context.command_path, param.opts)
