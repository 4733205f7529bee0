"""How pages are written: their sentences, and what docs/style.md has against them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
MOST_WORDS: Final = 25

_NO_PROSE: Final = re.compile(
    r"^(````?)\w*\n.*?^\1$|<!--.*?-->|^    [^\n]*$|^#[^\n]*$|^\[[^\]]+\]: [^\n]*$", re.DOTALL | re.MULTILINE
)
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=\|)|(?<!\\)\|")
_END: Final = re.compile(r"(?<=[.!?])(?:\*\*|\))?\s+(?=[A-Z0-9`*(\"'\[]|kafka|franz|librdkafka|aiokafka)")


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page, of paragraphs, list items and table cells, without listings and headings."""
    text = _NO_PROSE.sub("\n\n", page)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    for block in _BLOCK.split(text):
        for sentence in _END.split(" ".join(block.split())):
            if re.search(r"\w", sentence.replace("Code", "")):
                yield sentence.strip()


def words(sentence: str) -> int:
    """How many words a sentence has; code counts as one."""
    return sum(re.search(r"\w", word) is not None for word in sentence.split())


def long_sentences(page: str) -> list[str]:
    """The sentences that are too long."""
    return [sentence for sentence in sentences(page) if words(sentence) > MOST_WORDS]


def forbidden() -> list[str]:
    """The phrases that docs/style.md forbids."""
    rows = (
        (ROOT / "docs" / "style.md").read_text(encoding="utf-8").split("| phrase | instead |\n|---|---|\n")[1]
    )
    return [phrase for row in rows.splitlines() for phrase in re.findall(r"`([^`]+)`", row.split("|")[1])]


def forbidden_phrases(page: str) -> list[str]:
    """Each use of one of them."""
    any_of = re.compile(rf"\b({'|'.join(map(re.escape, forbidden()))})\b", re.IGNORECASE)
    return [f"{match[0]}: {sentence}" for sentence in sentences(page) for match in any_of.finditer(sentence)]
