"""Text for people: what a terminal is not to obey is escaped."""

import logging

import pytest

from kafka_assignors._cli.errors import ended
from kafka_assignors._cli.group_parts import fitted
from kafka_assignors._cli.output import coloured, filled, joined, screen_width, show_result
from kafka_assignors._cli.placement_text import health_lines
from kafka_assignors._common.escaping import escaped
from kafka_assignors.placement._cluster.health import Health


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("日本 \N{GRINNING FACE}", "日本 \N{GRINNING FACE}"),
        ("no-break\xa0space", "no-break\xa0space"),
        ("\x1b[2Jx", r"\x1b[2Jx"),
        ("\0\t\r\n\x7f", r"\x00\t\r\n\x7f"),
        ("\x85\x9b2J", r"\x85\x9b2J"),
        ("\u202eabc\u2066\u200b\ufeff", r"\u202eabc\u2066\u200b\ufeff"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\U000e0041", r"\U000e0041"),
        ("\udc80", r"\udc80"),
    ],
)
def test_characters_that_a_terminal_obeys_are_escaped_once(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert escaped(shown) == shown


def test_json_is_left_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (True, False):
        show_result({"client_id": "\x1b[2Jx"}, ["\x1b[2Jx"], as_json=as_json)
    assert capsys.readouterr().out == '{\n  "client_id": "\\u001b[2Jx"\n}\n\\x1b[2Jx\n'


@pytest.mark.parametrize(("columns", "width"), [(200, 200), (80, 80), (40, 80)])
def test_tables_take_the_terminal_s_columns_and_80_at_the_least(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert screen_width() == 80  # a pipe
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert screen_width() == width


def test_errors_and_warnings_are_coloured_where_they_begin_a_line_or_a_cell() -> None:
    text = "error: a\n  warning: b\ng  Stable  error (+2): c\nnote: d\nan error: e"
    assert coloured(text) == (
        "\x1b[1;31merror\x1b[0m: a\n  \x1b[1;35mwarning\x1b[0m: b\n"
        "g  Stable  \x1b[1;31merror (+2)\x1b[0m: c\nnote: d\nan error: e"
    )


def test_colours_are_for_terminals_that_want_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    show_result(None, ["error: a"], as_json=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_result(None, ["error: a"], as_json=False)
    monkeypatch.setenv("NO_COLOR", "1")
    show_result(None, ["error: a"], as_json=False)
    assert capsys.readouterr().out == "error: a\n\x1b[1;31merror\x1b[0m: a\nerror: a\n"


def test_names_and_options_are_not_broken_at_their_hyphens() -> None:
    text = f"{'x' * 70} billing-0000000001, then {'y' * 60} --remove-throttles"
    assert filled(text, "", "  ") == [
        "x" * 70,
        "  billing-0000000001, then",
        f"  {'y' * 60}",
        "  --remove-throttles",
    ]


def test_a_terminal_gets_as_many_partitions_as_its_line_has_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Health(
        brokers={1: "up"},
        silent={},
        untold={},
        offline=tuple(("orders", number) for number in range(10)),
        under_replicated=(),
        under_min_isr=(),
        led_by_others=(),
        reassigned=(),
    )

    def offline() -> str:
        line = next(line for line in health_lines(found) if line.startswith("offline"))
        assert line.startswith("offline (no leader)              10  orders-0")
        return line.partition("10  ")[2]

    monkeypatch.setenv("COLUMNS", "80")
    assert offline() == "orders-0, orders-1, orders-2 and 7 more"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert offline() == "orders-0, orders-1, orders-2 and 7 more"
    monkeypatch.setenv("COLUMNS", "200")
    assert offline() == ", ".join(f"orders-{number}" for number in range(10))


def test_an_error_is_one_line_for_programs_and_whole_words_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise ValueError(f"{'a' * 40} {'b' * 40}")

    assert ended("group list", fail, (ValueError,)) == 2
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert ended("group list", fail, (ValueError,)) == 2
    whole = f"kafka-assignors group list: {'a' * 40}"
    assert capsys.readouterr().err == f"{whole} {'b' * 40}\n{whole}\n  {'b' * 40}\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError("no", name="x"), "needs x: pip install 'kafka-assignors[placement]'"),
        (ImportError("x is too old"), "cannot run: x is too old: pip install 'kafka-assignors[placement]'"),
        (ImportError("plans need x: pip install x"), "cannot run: plans need x: pip install x"),
    ],
)
def test_what_to_install_is_said_once(
    error: ImportError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    assert ended("placement reassign", fail, ()) == 1
    assert capsys.readouterr().err == f"kafka-assignors placement {said}\n"


def test_prose_is_wrapped_on_a_terminal_and_rows_and_pipes_are_left_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prose, row = "  " + "word " * 20 + "end", "cell  " * 20
    assert joined([prose, row]) == f"{prose}\n{row}"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert joined([prose, row]).split("\n") == [
        "  " + "word " * 14 + "word",
        "    " + "word " * 5 + "end",
        row,
    ]


@pytest.mark.parametrize(
    ("group", "problem", "widths"), [(60, 100, (37, 36)), (20, 100, (20, 53)), (60, 20, (53, 20))]
)
def test_a_long_name_takes_no_more_room_than_what_is_wrong_with_it(
    group: int, problem: int, widths: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    cells = {"group": ["g" * group, "b"], "lag": ["1", "22"], "problem": ["p" * problem, ""]}
    rows = fitted(cells, left={"group", "problem"}, cut=("problem", "group"))
    first = list(rows)[1].split()
    assert (len(first[0]), len(first[2])) == widths


def test_what_the_library_warns_of_is_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        logging.getLogger("kafka_assignors.room").warning("left out: %s", "a\x1b[2J\nb")

    assert ended("group list", warn, ()) == 0
    assert capsys.readouterr().err == "left out: a\\x1b[2J\\nb\n"
