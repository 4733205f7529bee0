"""The documentation's site: what is made of the code, and where its links lead."""

import re
from pathlib import Path
from typing import Any

import click
import pytest

from kafka_assignors._cli.options import PROGRAM
from kafka_assignors.testing._plugin_options import _SETTINGS
from website.answers import answers
from website.links import resolve, rewrite, targets
from website.reference import contexts, pages, public_modules, with_links

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\(([^()\s]+)\)|^\[\d+\]: (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize(
    ("link", "source", "moved"),
    [
        ("docs/testing.md#chaos", "README.md", "testing.md#chaos"),
        ("../README.md", "docs/testing.md", "index.md"),
        ("design.md", "docs/testing.md", "design.md"),
        ("../tests/unit/test_site.py", "docs/testing.md", "repository/tests/unit/test_site.py.md"),
        ("../benchmarks/results/soak.md", "docs/testing.md", "repository/benchmarks/results/soak.md"),
        ("../benchmarks/results/soak.svg", "docs/testing.md", "repository/benchmarks/results/soak.svg"),
        ("../tests/unit", "docs/testing.md", "repository/tests/unit/index.md"),
        ("soak.svg", "benchmarks/results/soak.md", "soak.svg"),
        ("https://delta.io", "docs/history.md", "https://delta.io"),
        ("not-there.md", "docs/testing.md", "not-there.md"),
        ("#chaos", "docs/testing.md", "#chaos"),
    ],
)
def test_a_link_of_the_repository_leads_to_a_page_of_the_site(link: str, source: str, moved: str) -> None:
    assert rewrite(f"see [it]({link}), and", source, ROOT) == f"see [it]({moved}), and"
    assert rewrite(f"[1]: {link}\n", source, ROOT) == f"[1]: {moved}\n"


def test_links_in_listings_are_left_alone() -> None:
    listing = "```markdown\n[it](docs/testing.md)\n```\n"
    assert rewrite(listing, "README.md", ROOT) == listing
    assert [*targets(listing, "README.md", ROOT)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    source = page.relative_to(ROOT).as_posix()
    outside = "".join(
        re.split(r"^```.*?^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    )
    links = [inline or reference for inline, reference in LINK.findall(outside)]
    local = [link for link in links if not re.match(r"https?:|#", link)]
    assert [link for link in local if resolve(link, source, ROOT) is None] == []


COMMAND_LINES = [
    (context.command_path, context.command)
    for context in contexts()
    if not isinstance(context.command, click.Group)
]


def test_every_command_and_option_is_in_the_reference(made: dict[str, str]) -> None:
    page = made["reference/commands.md"]
    assert len(COMMAND_LINES) == 24
    for path, command in COMMAND_LINES:
        section = re.split(r"^#{2,4} ", page.split(f"# {path}\n")[1], flags=re.MULTILINE)[0]
        options = {
            name
            for param in command.params
            if isinstance(param, click.Option)
            for name in (*param.opts, *param.secondary_opts)
        }
        assert {*re.findall(r"`(--?[\w-]+)[` ]", section)} == options


def test_every_answer_in_json_has_its_shape_on_the_page() -> None:
    headings = {*re.findall(r"^## (.*)$", answers(), re.MULTILINE)}
    with_json = {
        path.removeprefix(f"{PROGRAM} ")
        for path, command in COMMAND_LINES
        if any("--json" in param.opts for param in command.params)
    }
    assert len(with_json) > 20
    assert with_json <= headings


def test_every_setting_and_fixture_of_the_plug_in_is_in_the_reference(made: dict[str, str]) -> None:
    page = made["reference/pytest.md"]
    assert re.findall(r"^\| `--([\w-]+)=", page, re.MULTILINE) == [
        one.name.replace("_", "-") for one in _SETTINGS
    ]
    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == [
        "kafka_cluster",
        "topic_factory",
        "consumer_group",
    ]


def test_every_public_name_has_one_entry(made: dict[str, str]) -> None:
    entries = [entry for page in made.values() for entry in re.findall(r"^::: (\S+)$", page, re.MULTILINE)]
    assert len(entries) == len({*entries})
    promises = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\[(kafka_assignors[\w.]*)\]", with_links(promises))
    assert {*linked} <= {*entries}
    assert [entry for entry in {*entries} - {*linked} if "._" not in entry] == []
    assert {f"reference/{module}.md" for module in public_modules()} <= made.keys()


def test_every_generated_page_has_a_place_in_the_navigation(made: dict[str, str]) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in made if f"- {page}\n" not in navigation] == []


def test_the_readme_on_a_registry_has_no_link_that_leads_nowhere() -> None:
    code = (ROOT / "setup.py").read_text(encoding="utf-8").split("\nsetup(")[0]
    names: dict[str, Any] = {}
    exec(code.replace("from setuptools import Extension, setup", ""), names)  # noqa: S102 - our own file
    text = names["standing_alone"]((ROOT / "README.md").read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    assert links != []
    assert [link for link in links if not link.startswith("https://")] == []
    assert "[Your first assignor" not in text
    assert "Your first assignor" in text
