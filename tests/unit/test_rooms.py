"""The table of rooms in docs/design.md has the layers that import-linter holds, in their order."""

import re
import tomllib
from pathlib import Path

import grimp
import kafka

ROOT = Path(__file__).parents[2]


def test_the_table_of_rooms_agrees_with_the_contract_and_has_every_room() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (rooms,) = [one for one in settings["tool"]["importlinter"]["contracts"] if one["id"] == "rooms"]
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = page.split("| rooms | what is in them |\n|---|---|\n")[1].split("\n\n")[0]
    described = [re.findall(r"`(\w+)`", row.split(" | ")[0]) for row in table.splitlines()]
    assert described == [layer.split(" | ") for layer in rooms["layers"]]
    package = ROOT / "kafka_assignors"
    there = {one.stem for one in package.iterdir() if one.suffix == ".py" or (one / "__init__.py").exists()}
    assert {room for row in described for room in row} == there - {"__init__"}


def test_commands_import_public_packages_only() -> None:
    """What a command does, a Python caller can do. For types alone a command may look into a room."""
    graph = grimp.build_graph("kafka_assignors", exclude_type_checking_imports=True)
    private = {
        (module.removeprefix("kafka_assignors._cli."), imported)
        for module in graph.find_descendants("kafka_assignors._cli")
        for imported in graph.find_modules_directly_imported_by(module)
        if re.match(r"kafka_assignors\.(?!_cli\b|_common\b)(\w+\.)*_", imported)
    }
    assert private == {
        ("demo_story", "kafka_assignors.testing._groups.clients"),
        ("history_text", "kafka_assignors._groups.saving"),
    }


def test_no_member_of_kafka_python_reads_the_clock_on_the_wall() -> None:
    """A clock that is set by an hour changes no timeout, heartbeat or claim: all time is monotonic."""
    own = [
        ROOT / "kafka_assignors" / room
        for room in ("_assignors", "_model", "_wire", "aio", "planners", "proofs")
    ]
    client = [Path(kafka.__file__).parent / part for part in ("coordinator", "consumer", "net")]
    files = [file for folder in (*own, *client) for file in folder.rglob("*.py")]
    files = [file for file in files if file.parent.name != "sasl"]  # a signature has a date
    assert len(files) > 100
    wall = re.compile(r"time\.time(_ns)?\(|\bnow\(|from time import time\b")
    assert [file for file in files if wall.search(file.read_text(encoding="utf-8"))] == []
