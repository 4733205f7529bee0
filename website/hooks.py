"""What mkdocs calls while it builds the site: it adds the pages that nobody writes by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel

from website.links import DOCS, HOME, place, rewrite, targets
from website.reference import API, pages, with_links

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]

log: Final = get_plugin_logger("website")

_FETCHED: Final = re.compile(
    r"""<(?:script|img|iframe|source|link(?![^>]*rel="?canonical))\b[^>]*(?:src|href)=["']?(?:https?:)?//[^>]*>"""
)
_LANGUAGES: Final = {".py": "python", ".c": "c", ".h": "c", ".toml": "toml", ".json": "json", ".yml": "yaml"}
_UNSEARCHED: Final = "---\nsearch:\n  exclude: true\n---\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the home page, the generated reference, and every file of the repository that a page links to."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    home = (ROOT / HOME).read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=rewrite(home, HOME, ROOT)))
    found = {*targets(home, HOME, ROOT)}
    for file in files.documentation_pages():
        if (ROOT / DOCS / file.src_uri).exists():
            found |= {*targets(file.content_string, f"{DOCS}/{file.src_uri}", ROOT)}
    seen: set[str] = set()
    while found:
        path = found.pop()
        if path in seen or path == HOME or path.startswith(f"{DOCS}/"):
            continue
        seen.add(path)
        if path.endswith(".md"):
            found |= {*targets((ROOT / path).read_text(encoding="utf-8"), path, ROOT)}
        files.append(_of_repository(path, config))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs passes all four
    """Let links of a page in docs/ lead to pages of the site."""
    source = f"{DOCS}/{page.file.src_uri}"
    if not (ROOT / source).exists():
        return markdown
    text = rewrite(markdown, source, ROOT)
    return with_links(text) if ROOT / source == API else text


def on_post_build(config: MkDocsConfig) -> None:
    """Warn of whatever a browser would fetch from elsewhere: `--strict` makes an error of that."""
    for page in Path(config.site_dir).rglob("*.html"):
        for element in _FETCHED.finditer(page.read_text(encoding="utf-8")):
            log.warning("%s fetches from elsewhere: %s", page.relative_to(config.site_dir), element[0])


def _of_repository(path: str, config: MkDocsConfig) -> File:
    """The page of a file or folder outside docs/; a picture as it is."""
    file, where = ROOT / path, place(path, ROOT)
    if not where.endswith(".md"):
        return File.generated(config, where, abs_src_path=str(file))
    if file.is_dir():
        names = sorted(
            f"- `{one.name}{'/' if one.is_dir() else ''}`"
            for one in file.iterdir()
            if not one.name.startswith(("_", ".")) and one.suffix != ".so"
        )
        text = f"{_UNSEARCHED}# `{path}`\n\nA folder of the repository:\n\n" + "\n".join(names) + "\n"
    elif file.suffix == ".md":
        text = rewrite(file.read_text(encoding="utf-8"), path, ROOT)
    else:
        listing = file.read_text(encoding="utf-8").rstrip()
        language = _LANGUAGES.get(file.suffix, "text")
        text = f"{_UNSEARCHED}# `{path}`\n\n````{language}\n{listing}\n````\n"
    return File.generated(config, where, content=text, inclusion=InclusionLevel.NOT_IN_NAV)
