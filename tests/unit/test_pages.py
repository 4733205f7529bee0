"""What the pages show is what the library does."""

import configparser
import inspect
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import click
import pytest
import yaml

from kafka_assignors._cli.group_text import explained_lines
from kafka_assignors._cli.history_text import captured_lines
from kafka_assignors._cli.main import main
from kafka_assignors._cli.options import Command
from kafka_assignors._groups.advice import REASONS as WORDS
from kafka_assignors._groups.reasons import Kind
from kafka_assignors._timelines.events import KINDS
from kafka_assignors.groups import ExplainedGroup
from kafka_assignors.testing import events
from kafka_assignors.testing._groups.group import ConsumerGroup
from kafka_assignors.testing._plugin_options import _SETTINGS
from tests.support.pages import ROOT, listing, listings, pages, read
from website import examples
from website.drawings import FOLDER, pictures

COORDINATOR = "docs/coordinator.md"
IN_CI = "docs/how-to/test-a-rebalance-in-ci.md"
MOVING = "docs/how-to/move-replicas-off-a-broker.md"
PLACEMENT = "docs/placement.md"
PLANNING = "docs/how-to/plan-without-a-consumer.md"
TESTING = "docs/testing.md"
REASONS = "docs/how-to/why-did-my-group-rebalance.md"

DRAWN = pictures()

RUN_BY = {
    "README.md": "integration_tests/test_readme.py",
    "docs/aiokafka.md": "integration_tests/test_cooperative_aiokafka.py",
    "docs/bugs.md": "tests/unit/test_bugs_page.py",
    COORDINATOR: "tests/unit/test_pages.py",
    "docs/history.md": "integration_tests/test_history_cluster.py",
    "docs/history_tables.md": "tests/unit/history/test_history_page.py",
    "docs/history_queries.md": "tests/spark/test_history_engines.py",
    "docs/how-to/active-and-passive.md": "tests/unit/coordinator/test_standbys.py",
    "docs/how-to/migrate-to-cooperative-sticky.md": "integration_tests/test_readme.py",
    PLANNING: "integration_tests/test_readme.py",
    "docs/how-to/one-partition-is-hot.md": "integration_tests/test_load_aware.py",
    IN_CI: "integration_tests/test_readme.py",
    "docs/how-to/join-two-topics.md": "integration_tests/test_joins_of_topics.py",
    "docs/how-to/which-assignor.md": "integration_tests/test_readme.py",
    "docs/how-to/write-an-assignor.md": "integration_tests/test_readme.py",
    "docs/placement.md": "tests/unit/cli/test_cli_placement.py",
    "docs/testing.md": "integration_tests/test_docs.py",
    "docs/tutorials/first-assignor.md": "integration_tests/test_tutorials.py",
    "docs/tutorials/first-history.md": "integration_tests/test_tutorials.py",
    "docs/how-to/histories-on-spark-clusters.md": "integration_tests/test_history_cluster.py",
    "docs/tutorials/first-test.md": "integration_tests/test_tutorials.py",
}
"""Which file of tests runs the listings in Python of a page."""


def test_every_page_with_code_has_a_test_that_runs_it() -> None:
    assert {page for page in pages() if listings(page)} == RUN_BY.keys()
    for page, tests in RUN_BY.items():
        named = (ROOT / tests).read_text(encoding="utf-8")
        assert Path(page).name in named or "HOME" in named, page


@pytest.mark.parametrize("code", [code for code in listings(COORDINATOR) if "Cluster(" not in code])
def test_a_listing_runs(code: str) -> None:
    exec(compile(code, COORDINATOR, "exec"), {})  # noqa: S102 - the page is ours


@pytest.mark.parametrize("line", ["c2           2     5", "6 of 10 owned partitions", "optimal: no valid"])
def test_the_plan_shown_is_that_of_the_documented_file(line: str) -> None:
    (documented,) = (each for each in read("docs/plan-file.md").splitlines() if each.startswith(line))
    assert documented in read(PLANNING).splitlines()


def shown_commands() -> list[tuple[str, str]]:
    """(page, command line) of each use of the command that a page shows: of scripts and sessions."""
    found = []
    for page in pages():
        scripts = [*listings(page, "sh"), *listings(page, "bash")]
        sessions = listings(page, "console")
        for begin, codes in (("kafka-assignors ", scripts), ("$ kafka-assignors ", sessions)):
            lines = [line for code in codes for line in code.replace("\\\n", " ").splitlines()]
            found += [(page, line.removeprefix("$ ")) for line in lines if line.startswith(begin)]
    return found


def test_many_pages_show_commands() -> None:
    assert len({page for page, _ in shown_commands()}) >= 8


@pytest.mark.parametrize(("page", "line"), shown_commands())
def test_a_command_that_a_page_shows_can_be_called_so(
    page: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []

    def invoke(_: Command, context: click.Context) -> int:
        run.append(context.command_path)
        return 0

    monkeypatch.setattr(Command, "invoke", invoke)
    _, *arguments = shlex.split(line, comments=True)
    assert main(arguments) == 0
    assert len(run) == ("--help" not in arguments), page


@pytest.mark.parametrize(
    ("page", "line"),
    [
        (page, line)
        for page, line in shown_commands()
        if page in {COORDINATOR, MOVING, PLACEMENT} and not re.search("--(bootstrap-server|draw)", line)
    ],
)
def test_a_command_that_needs_no_cluster_prints_what_the_page_shows(
    page: str,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for placements in listings(page, "json"):
        Path("orders.json").write_text(placements, encoding="utf-8")
    assert main(shlex.split(line)[1:]) == 0
    printed = capsys.readouterr().out
    assert printed
    assert f"\n{printed}" in read(page)


@pytest.mark.parametrize(
    ("group", "explained"),
    [("billing", examples.explained_classic), ("shipping", examples.explained_consumer)],
)
def test_an_explained_group_is_shown_as_the_command_prints_it(
    group: str, explained: Callable[[], ExplainedGroup]
) -> None:
    printed = "\n".join(explained_lines(explained())).replace("billing", group)
    command = f"$ kafka-assignors group explain {group} --bootstrap-server kafka-1:9092"
    assert f"{command}\n{printed}\n```" in read(COORDINATOR)


def test_a_capture_is_shown_as_the_command_prints_it() -> None:
    printed = "\n".join(captured_lines(examples.captured()))
    command = "$ kafka-assignors history capture /srv/history --bootstrap-server kafka-1:9092"
    assert f"{command}\n{printed}\n$" in read("docs/history.md")


def test_the_readmes_two_commands_are_there() -> None:
    job, tests = (code for code in listings("README.md", "sh") if ".venv" in code)
    assert job.endswith(".venv/bin/kafka-assignors demo\n")
    assert tests.endswith(".venv/bin/pytest -n 5 --dist loadgroup --oracle-scale 0.2\n")
    assert len(read("README.md").splitlines()) <= 150


def test_the_defaults_of_members_are_those_of_the_kit() -> None:
    rows = read(TESTING).split("| | default | to change it |\n|---|---|---|\n")[1].split("\n\n")[0]
    shown = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", rows, re.MULTILINE))
    group = inspect.signature(ConsumerGroup).parameters
    arguments = {name: group[name].default for name in ("commit", "poll_ms", "work_ms", "timeout")}
    with ConsumerGroup("localhost:9092", "orders") as made:
        kits_own = made._usual.config("g", "m1", instance_id=None, held=False).common()
    kits = {**made.settings, "enable_auto_commit": kits_own["enable_auto_commit"], **arguments}
    assert shown == {name: str(value) for name, value in kits.items()}
    assert len(rows.splitlines()) == len(shown)


def test_the_kinds_of_events_are_all_in_the_table() -> None:
    rows = read(TESTING).split("| types | |\n|---|---|\n")[1].split("\n\n")[0]
    first = "".join(row.split(" | ")[0] for row in rows.splitlines())
    promised = [one.__name__ for one in KINDS.values() if hasattr(events, one.__name__)]
    assert sorted(re.findall(r"`(\w+)`", first)) == sorted(promised)
    assert len(KINDS) == len(promised) + 3  # the kit's own notes, as the page says
    (in_text,) = re.findall(r"^In the text of reports .*$", read(TESTING), re.MULTILINE)
    kinds = {one.__name__: one.kind for one in KINDS.values()}
    shown = re.findall(r"`(\w+)` is `(\w+)`", in_text)
    assert shown == [(name, kinds[name]) for name, _ in shown]


@pytest.mark.parametrize("page", ["README.md", *(page for page in pages() if "/tutorials/" in page)])
def test_a_page_says_how_to_install_from_a_checkout_until_a_release_is_out(page: str) -> None:
    assert ("No release is out yet." in read(page)) == ("the first release" in read("CHANGELOG.md"))


def test_the_names_in_the_glossary_are_in_the_code() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "kafka_assignors").rglob("*.py"))
    tables = read("docs/glossary.md").split("## Where a word means something else")[0]
    cells = re.findall(r"^\|.*\| ([^|]*) \|$", tables, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"\b\w+(?=`|\.)", cell)}
    assert len(names) > 30
    missing = [one for one in names if not re.search(rf"(class|def) {one}\b|^ *{one}:", code, re.MULTILINE)]
    assert missing == []


def test_the_workflow_runs_pytest_with_options_of_the_plug_in() -> None:
    (workflow,) = listings(IN_CI, "yaml")
    steps = yaml.safe_load(workflow)["jobs"]["rebalance"]["steps"]
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("pytest"))
    options = {f"--{one.name.replace('_', '-')}" for one in _SETTINGS}
    assert {word.split("=")[0] for word in command.split()[1:]} <= options


def test_the_ini_file_has_settings_of_the_plug_in() -> None:
    settings = configparser.ConfigParser()
    settings.read_string(listing(IN_CI, "[pytest]", "ini"))
    assert {*settings["pytest"]} <= {one.name for one in _SETTINGS}


def test_the_reasons_explained_are_those_that_are_found_in_the_words_of_reports() -> None:
    rows = read(REASONS).split("| reason | what it means | what to do |\n|---|---|---|\n")[1].split("\n\n")[0]
    assert rows.splitlines() == [
        f"| {kind} | {words.meaning} | {words.todo} |" for kind, words in WORDS.items()
    ]
    assert sorted(WORDS) == sorted(get_args(Kind))


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_a_picture_is_what_the_code_draws(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == DRAWN[name], "python -m website.drawings"


def test_every_stored_picture_is_drawn_and_shown() -> None:
    assert {path.name for path in FOLDER.iterdir()} == DRAWN.keys()
    shown = "".join(read(page) for page in pages())
    assert [name for name in DRAWN if f"../pictures/{name})" not in shown] == []


def test_a_screen_has_lines_of_its_columns_and_names_nobody_s_machine() -> None:
    for path in (ROOT / "docs" / "screens").iterdir():
        drawn = ET.parse(path).getroot()  # noqa: S314 - a test of ours wrote it
        texts = drawn.findall("{http://www.w3.org/2000/svg}text")
        columns = int(path.stem.rpartition("-")[2])
        assert all(len("".join(one.itertext())) <= columns for one in texts), path
        assert not [one.text for one in texts if one.text and re.search(r"/(tmp|home|root)\b", one.text)], (
            path
        )
