"""Text for people: what a terminal is not to obey is escaped."""

from __future__ import annotations

import pytest

from kafka_assignors._cli.output import Answer, escaped, joined, table


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


def test_columns_have_the_width_of_what_is_shown() -> None:
    assert list(table([["member", "has"], ["\x1b[2Jx", "1"], ["a", "10"]])) == [
        "member    has",
        r"\x1b[2Jx    1",
        "a          10",
    ]


def test_lines_stay_lines_and_a_name_makes_none() -> None:
    assert joined(["a", "b\nc", ""]) == "a\nb\\nc\n"


def test_json_is_left_whole(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Answer(lambda: {"client_id": "\x1b[2Jx"}, ["\x1b[2Jx"])
    answer.show(as_json=True)
    answer.show(as_json=False)
    assert capsys.readouterr().out == '{\n  "client_id": "\\u001b[2Jx"\n}\n\\x1b[2Jx\n'
