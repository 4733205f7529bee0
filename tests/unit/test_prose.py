"""Pages are written as docs/style.md says."""

import pytest

from tests.support.pages import pages, read
from tests.support.prose import forbidden, forbidden_phrases, long_sentences, sentences, words

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
