"""Links of the repository's Markdown, as links of the site.

In the repository a page links to any file: a test, a stored result, the changelog. The site has a page for
each such file, so that it needs no address of the repository.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DOCS: Final = "docs"
HOME: Final = "README.md"
OTHERS: Final = "repository"
"""The folder of the site with pages of files outside docs/."""

_IMAGES: Final = frozenset({".png", ".svg"})
_FENCE: Final = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"(?<=\]\()(?P<inline>[^()\s]+)(?=\))|(?<=\]: )(?P<reference>\S+)$", re.MULTILINE)


class Target(NamedTuple):
    """What a link leads to.

    Attributes:
        path: The file or folder, from the repository's root.
        fragment: The anchor with its `#`, or nothing.
    """

    path: str
    fragment: str


def place(path: str, root: Path) -> str:
    """Where the site has a file or folder of the repository: a page, or a picture."""
    if path == HOME:
        return "index.md"
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    if (root / path).is_dir():
        return f"{OTHERS}/{path}/index.md"
    as_it_is = path.endswith(".md") or posixpath.splitext(path)[1] in _IMAGES
    return f"{OTHERS}/{path}" if as_it_is else f"{OTHERS}/{path}.md"


def resolve(link: str, source: str, root: Path) -> Target | None:
    """The file or folder that a link of a file means; None if it means nothing in the repository."""
    path, mark, anchor = link.partition("#")
    if not path or re.match(r"\w+:", path):
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    return Target(found, mark + anchor) if (root / found).exists() else None


def rewrite(text: str, source: str, root: Path) -> str:
    """The text of a file as that of its page: each link into the repository leads to a page of the site."""
    here = posixpath.dirname(place(source, root)) or "."

    def moved(link: str) -> str:
        target = resolve(link, source, root)
        return link if target is None else posixpath.relpath(place(target.path, root), here) + target.fragment

    return _outside_listings(text, lambda part: _LINK.sub(lambda match: moved(match[0]), part))


def targets(text: str, source: str, root: Path) -> Iterator[str]:
    """The files and folders of the repository that a text links to."""
    for part in _FENCE.split(text)[::2]:
        for match in _LINK.finditer(part):
            if (target := resolve(match[0], source, root)) is not None:
                yield target.path


def _outside_listings(text: str, change: Callable[[str], str]) -> str:
    parts = _FENCE.split(text)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)
