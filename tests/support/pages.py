"""The README and the pages of the documentation, as tests read them."""

import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
HOME: Final = "README.md"


def pages() -> list[str]:
    """The README and all pages in docs/, as paths from the repository's root."""
    return [HOME, *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def listings(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.DOTALL | re.MULTILINE)


def defined(*codes: str) -> dict[str, Any]:
    """What listings define, by name, when they are run one after the other."""
    names: dict[str, Any] = {}
    for code in codes:
        exec(code, names)  # noqa: S102 - the pages are ours
    return names


def listing(page: str, containing: str, language: str = "python") -> str:
    """The one listing of a page that contains this."""
    (found,) = (code for code in listings(page, language) if containing in code)
    return found
