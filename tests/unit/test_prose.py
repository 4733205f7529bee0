"""Pages, docstrings, errors, logs and help texts are written as docs/style.md says."""

import pytest

from tests.support.pages import pages, read
from tests.support.prose import forbidden, forbidden_phrases, long_sentences, sentences, words
from tests.support.said import modules, rooms, said

OTHERS = ["CONTRIBUTING.md", "SECURITY.md"]


def test_sentences_are_found_in_paragraphs_lists_and_tables() -> None:
    page = """\
# A heading. It is none

One is here. Two
is there, as `a. B`, too. `c` is, too.

- Three. 10 is four.
- Five

```python
not("a sentence. At all")
```

| six | seven. Eight |
|---|---|
| [nine](a.md "x") | |
"""
    found = [*sentences(page)]
    assert found == [
        "One is here.",
        "Two is there, as Code, too.",
        "Code is, too.",
        "- Three.",
        "10 is four.",
        "- Five",
        "six",
        "seven.",
        "Eight",
        "nine",
    ]
    assert [words(one) for one in found] == [3, 6, 3, 1, 3, 1, 1, 1, 1, 1]


def test_a_sentence_of_26_words_is_too_long() -> None:
    assert long_sentences("word " * 25 + ".") == []
    assert len(long_sentences("word " * 26 + ".")) == 1


def test_a_forbidden_phrase_is_found_whatever_its_case() -> None:
    assert "anew" in forbidden()
    assert forbidden_phrases("Anew, and `anew`.") == ["Anew: Anew, and Code."]


@pytest.mark.parametrize("page", [*pages(), *OTHERS])
def test_a_page_has_no_long_sentence_and_no_forbidden_phrase(page: str) -> None:
    assert long_sentences(read(page)) == []
    assert forbidden_phrases(read(page)) == []


SOURCE = '''
"""A module."""

LIMIT = 1
"""A limit."""

class Public:
    """A class.

    It has ``attributes``.

    ===== =====
    a     table
    ===== =====

    Attributes:
        name: What it is
            called.
        _size, rest: How much.
    """

    def work(self) -> int:
        """Works.

        Returns:
            A number: one.

        Raises:
            ValueError: Never.
        """
        log.warning("%s waits for " "long", self)
        yield Problem(text="it is slow")
        raise ValueError(f"name must be a word, not {self.name!r}: name it")

    def _hidden(self):
        """No reader sees it."""
        self._log.info("done in " + f"{self.size} s")
        parser.add_argument("name", help="the name")
        raise KeyError

class _Private:
    """No reader sees it."""
'''


def test_what_a_module_says_is_found() -> None:
    assert sorted(sentence for piece in said(SOURCE) for sentence in sentences(piece)) == [
        "- How much.",
        "- Never.",
        "- What it is called.",
        "A class.",
        "A limit.",
        "A module.",
        "A number: one.",
        "Code s",
        "Code waits for long",
        "It has Code.",
        "Works.",
        "done in",
        "it is slow",
        "name must be a word, not Code: name it",
        "the name",
    ]


@pytest.mark.parametrize("room", rooms())
def test_a_room_says_no_long_sentence_and_no_forbidden_phrase(room: str) -> None:
    pieces = [
        (path.stem, piece) for path in modules(room) for piece in said(path.read_text(encoding="utf-8"))
    ]
    assert [(module, one) for module, piece in pieces for one in long_sentences(piece)] == []
    assert [(module, one) for module, piece in pieces for one in forbidden_phrases(piece)] == []
