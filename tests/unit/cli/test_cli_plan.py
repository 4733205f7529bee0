"""`kafka-assignors plan`: what it reads, refuses, plans and prints."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._common.tree import describe
from tests.support.group_files import GROUP, GROUP_AS_YAML, large
from tests.unit.cli.conftest import Cli

DOCS = Path(__file__).parents[3] / "docs" / "plan-file.md"

SHOWN = """\
member  load  kept  gained                   given up
c1         3     3  -                        2: 1 to c3, 1 to c4
c2         3     3  -                        1 to c3
c3         2     0  2: 1 from c1, 1 from c2  -
c4         2     0  2: 1 free, 1 from c1     -

10 partitions of 2 topics, 4 members: loads 2 to 3, imbalance 1
3 of 9 owned partitions move (the least possible: 3), 1 had no owner
planned by exact in # ms, certified in # ms

who gets what (+ is new to the member):
  c1  orders 0 1; payments 0
  c2  orders 3 4; payments 2
  c3  payments +1 +4
  c4  orders +2 +5

optimal: no valid plan does better
1. balance: 2 to 3 partitions a member, sum of load^2 / weight 26 - proved
2. moves: 3 of 10 partitions move - proved
"""

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file, text or something to make JSON of, and gives its name."""

    def _write(content: object, name: str = "group.json") -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return _write


@pytest.fixture
def run(cli: Cli) -> Run:
    """Runs `plan`; times are taken out."""

    def _run(*arguments: str) -> tuple[int, str, str]:
        status, out, err = cli.run("plan", *arguments)
        return status, re.sub(r"\d+\.\d ms", "# ms", out), err

    return _run


def changed(path: str, value: object) -> dict[str, Any]:
    """The group with another value somewhere."""
    group = json.loads(json.dumps(GROUP))
    *way, last = path.split(".")
    target = group
    for step in way:
        target = target[step]
    target[last] = value
    return dict(group)


def test_a_small_group_is_shown_in_full(write: Write, run: Run) -> None:
    status, shown, errors = run(write(GROUP))
    assert (status, errors) == (0, "")
    assert shown.startswith(SHOWN)
    assert shown.removeprefix(SHOWN).startswith("searched 2 kinds of partitions")


def test_the_json_has_everything(write: Write, run: Run) -> None:
    status, shown, _ = run(write(GROUP), "--json")
    found = json.loads(shown)
    certificate, members = found.pop("certificate"), found.pop("members")
    assert (found.pop("plan_ms") > 0, found.pop("certificate_ms") > 0) == (True, True)
    assert (status, certificate["optimal"]) == (0, True)
    assert [goal["name"] for goal in certificate["goals"]] == ["balance", "moves"]
    assert [*members] == ["c1", "c2", "c3", "c4"]
    assert members["c3"] == {
        "load": 2,
        "weight": 1,
        "priority": 0,
        "rack": None,
        "kept": 0,
        "free": 0,
        "gained": {"c1": 1, "c2": 1},
        "given_up": {},
        "in_rack": None,
        "assignment": {"payments": [1, 4]},
    }
    assert found == {
        "strategy": "exact",
        "max_skew": None,
        "max_moves": None,
        "topics": 2,
        "partitions": 10,
        "lowest_load": 2,
        "highest_load": 3,
        "imbalance": 1.0,
        "moves": 3,
        "least_moves": 3,
        "free": 1,
        "first_round": None,
        "notes": [],
    }


@pytest.mark.parametrize("name", ["group.yaml", "group.yml", "group.YAML", "group"])
def test_yaml_says_the_same_as_json(name: str, write: Write, run: Run) -> None:
    assert run(write(GROUP_AS_YAML, name))[:2] == run(write(GROUP))[:2]


@pytest.mark.parametrize("content", [json.dumps(GROUP), GROUP_AS_YAML], ids=["json", "yaml"])
def test_a_group_may_come_from_the_standard_input(
    content: str, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert run("-") == run(write(GROUP))


def test_the_example_of_the_docs_comes_out_as_shown(write: Write, run: Run) -> None:
    text = DOCS.read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    output = re.search(r"```console\n\$ kafka-assignors plan group.yaml\n(.*?)```", text, re.DOTALL)
    assert example
    assert output
    status, shown, _ = run(write(example[1], "group.yaml"))
    assert (status, shown) == (0, re.sub(r"\d+\.\d ms", "# ms", output[1]))


def test_the_example_of_the_help_is_planned_without_a_note(write: Write, run: Run) -> None:
    status, shown, _ = run("--help")
    example = re.search(r"^  topics:\n.*?(?=^exit)", shown, re.DOTALL | re.MULTILINE)
    assert example
    assert status == 0
    status, shown, errors = run(write(example[0], "group.yaml"), "--check")
    assert (status, errors, "note:" in shown) == (0, "", False)


STANDBYS = """\
topics: {orders: 6}
members:
  a: {priority: 1, owns: {orders: [0, 1]}}
  b: {priority: 1}
  c: {owns: {orders: [2, 3]}}
  d: {priority: -1000}
"""


def test_standbys_are_counted_and_their_loads_left_out(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(STANDBYS, encoding="utf-8")
    status, shown, _ = run(str(file), "--cooperative")
    assert status == 0
    for line in (
        "member  priority  load  kept  gained  given up",
        "b              1     3     0  3 free  -",
        "c              0     0     0  -       -",
        "6 partitions of 1 topic, 4 members (2 standbys): loads 3 to 3, imbalance 0",
        "cooperative, round 1: 2 partitions revoked; loads 1 to 3",
        "cooperative, round 2: given away; loads 3 to 3",
        "optimal: no valid plan does better",
        "note: c owned partitions, and stands by for a higher priority: not counted",
    ):
        assert line in shown.splitlines()
    found = json.loads(run(str(file), "--json")[1])
    assert (found["lowest_load"], found["highest_load"], found["imbalance"]) == (3, 3, 0)
    assert found["members"]["d"]["priority"] == -1000


def test_every_json_key_stands_in_the_docs(write: Write, run: Run) -> None:
    text = DOCS.read_text(encoding="utf-8")
    found = json.loads(run(write(GROUP), "--json", "--cooperative")[1])
    keys = {*found, *found["members"]["c1"], *found["first_round"], *found["certificate"]["goals"][0]}
    assert [key for key in keys if f"`{key}`" not in text] == []


WRONG: dict[str, list[tuple[object, str]]] = {
    "topic": [({}, "topic: unknown field, with the value an empty mapping; allowed: topics, members")],
    "topics": [
        (None, "topics is missing: a mapping of topics by name"),
        ({"../../etc/x": 1}, 'topics."../../etc/x": Kafka has no topic named'),
        ([], "topics: must be a mapping of topics by name, not an empty list"),
    ],
    "topics.orders": [
        (0, "must be a mapping with partitions and racks, or a number of partitions from 1 to 1000000"),
        (1_000_001, "from 1 to 1000000, not 1000001"),
        (True, "from 1 to 1000000, not true"),
        ({}, "topics.orders: partitions is missing: their number, or a list of their ids"),
        ({"partitions": []}, "topics.orders.partitions: must be a list of at least one"),
        (
            {"partitions": {}},
            "partitions: must be a list of partition ids, or a number of partitions from 1 to 1000000, not",
        ),
        (
            {"partitions": [0, -2]},
            "topics.orders.partitions[1]: must be a partition id from 0 to 2147483647, not -2",
        ),
        ({"partitions": [3, 3]}, "partitions[1]: 3 is in the list more than once"),
        ({"partitions": 2, "rack": []}, "topics.orders.rack: unknown field"),
        (
            {"partitions": 2, "racks": [["a"]]},
            "orders.racks: must be a list of 2 lists of racks, one for each partition, not a list of 1",
        ),
        ({"partitions": 1, "racks": "a"}, "topics.orders.racks: must be a list of 1 lists"),
        (
            {"partitions": 1, "racks": ["a"]},
            'topics.orders.racks[0]: must be a list of the racks of replicas, not "a"',
        ),
        (
            {"partitions": 1, "racks": [["a", 1]]},
            "topics.orders.racks[0][1]: must be the name of a rack, not 1",
        ),
    ],
    "members": [
        (None, "members is missing"),
        ({}, "members: must be a mapping of at least one member, not an empty mapping"),
        ({"": {}}, 'members: a name must be text of printable characters, not ""'),
        (
            {"c1": {"instance_id": "i"}, "c2": {"instance_id": "i"}},
            "members.c2: instance_id must differ from the others', but i is c1's already",
        ),
    ],
    "members.c1": [("x", 'c1: must be a mapping of what there is to say about the member, not "x"')],
    "members.c1.wieght": [
        (2, "wieght: unknown field, with the value 2; allowed: topics, rack, weight, priority, instance_id")
    ],
    "members.c1.weight": [
        (0, "members.c1.weight: must be a whole number from 1 to 1000, not 0"),
        (1001, "members.c1.weight: must be a whole number from 1 to 1000, not 1001"),
    ],
    "members.c1.priority": [
        (-1001, "members.c1.priority: must be a whole number from -1000 to 1000, not -1001")
    ],
    "members.c1.topics": [
        ("orders", 'members.c1.topics: must be a list of topics, not "orders"'),
        ([7], "members.c1.topics[0]: must be the name of a topic, not 7"),
    ],
    "members.c1.rack": [("a\x1b[1m", r'members.c1.rack: must be the name of a rack, not "a\u001b[1m"')],
    "members.c1.instance_id": [(5, "members.c1.instance_id: must be an instance id, not 5")],
    "members.c1.owns": [
        ([0], "c1.owns: must be a mapping of partition ids by topic, not a list of 1"),
        ({"orders": 3}, "members.c1.owns.orders: must be a list of partition ids, not 3"),
        ({"orders": ["a"]}, "members.c1.owns.orders[0]: must be a partition id from 0 to"),
        ({"a b.c": 3}, 'members.c1.owns."a b.c": must be a list of partition ids, not 3'),
    ],
    "members.c1.generation": [(-1, "members.c1.generation: must be a whole number from 0 to 2147483647")],
    "members.c1.holds": [(1, "members.c1.holds: must be true or false, not 1")],
}
"""What stands in another place of the group, and what is said of it."""


@pytest.mark.parametrize(
    ("path", "value", "message"), [(path, *one) for path, each in WRONG.items() for one in each]
)
def test_what_is_wrong_in_a_file_is_named(
    path: str, value: object, message: str, write: Write, run: Run
) -> None:
    name = write(changed(path, value))
    status, shown, error = run(name)
    assert (status, shown) == (2, "")
    assert error.startswith(f"kafka-assignors plan: {name}: ")
    assert message in error
    assert error.count("\n") == 1


UNREADABLE = {
    "g.json": [
        ('{"topics": {"a": 1, "a": 2}, "members": {}}', "topics.a: is there more than once"),
        ('{"topics": {', "not JSON: line 1, column 13: Expecting property name"),
        (f'{{"topics": {"9" * 5000}}}', "not JSON: Exceeds the limit"),
        ('{"topics": {"a": NaN}, "members": {"c": {}}}', "topics.a: must be"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must be a mapping with topics and members, not an empty list"),
    ],
    "g.yaml": [
        ("topics: {a: 1, a: 2}\nmembers: {c: }", "topics.a: is there more than once"),
        ("topics: {1: 1, '1': 2}\nmembers: {c: }", "topics.1: is there more than once"),
        ("", "must be a mapping with topics and members, not null"),
        ("a: [", "not YAML: line "),
        ("a: \x07", "not YAML"),
        ("a: 1\n---\nb: 2", "not YAML: line 2, column 1"),
        ("topics: {a: 1}\nmembers: &m {c: *m}", "line 2, column 10: found unconstructable rec"),
        ("topics: {a: 1}\nmembers: {c: {<<: {rack: a}}}", "line 2, column 15: could not"),
        ("topics: {[a]: 1}", "line 1, column 10: a name must be text"),
        ("topics: !!python/object:os.system {}", "for the tag 'tag:yaml.org,2002:python/object"),
        ("topics: {a, a: !!set {b}}", "for the tag 'tag:yaml.org,2002:set'"),
        ("topics: !!map text", "line 1, column 9: expected a mapping"),
        (
            "topics: {a: 1}\nmembers: {c: {weight: 010}}",
            "from 1 to 1000, not 010 (as YAML reads it without quotes)",
        ),
        ("topics: {a: 1}\nmembers: {c: {weight: 1:30}}", "not 1:30 (as"),
        ("topics: {a: '6'}\nmembers: {c: }", 'not "6"'),
        ("topics: {a: 1}\nmembers: {c: {topics: [~]}}", "c.topics[0]: must be the name of a"),
    ],
}


@pytest.mark.parametrize(
    ("name", "content", "message"), [(name, *one) for name, each in UNREADABLE.items() for one in each]
)
def test_what_is_no_json_or_yaml_or_says_things_twice_is_refused(
    name: str, content: str, message: str, write: Write, run: Run
) -> None:
    status, shown, error = run(write(content, name))
    assert (status, shown) == (2, "")
    assert message in error
    assert error.count("\n") == 1


def test_a_file_that_cannot_be_read_is_an_error_in_words(tmp_path: Path, run: Run) -> None:
    assert run(str(tmp_path / "none.json")) == (
        2,
        "",
        f"kafka-assignors plan: {tmp_path / 'none.json'}: No such file or directory\n",
    )
    assert "Is a directory" in run(str(tmp_path))[2]
    (tmp_path / "latin.json").write_bytes(b'{"\xe9": 1}')
    assert "byte 2 is not UTF-8" in run(str(tmp_path / "latin.json"))[2]


def test_what_yaml_takes_for_something_else_is_text_where_text_is_meant(write: Write, run: Run) -> None:
    group = """
topics: {no: 1, 2024: 1, 1.50: 1, 2024-01-01: 1}
members:
  on: {topics: [no, 2024, 1.50, 2024-01-01], rack: no, instance_id: 0x10, holds: no}
  12: {rack: ~}
  ~: {topics: [no]}
"""
    found = json.loads(run(write(group, "group.yaml"), "--json")[1])
    assert found["members"]["on"]["rack"] == "no"
    topics = {topic for member in found["members"].values() for topic in member["assignment"]}
    assert set(found["members"]) == {"on", "12", "~"}
    assert topics == {"no", "2024", "1.50", "2024-01-01"}


def test_an_alias_stands_for_what_it_names(write: Write, run: Run) -> None:
    group = "topics: {a: 1, b: 1, c: 1}\nmembers: {c1: {topics: &t [a, b]}, c2: {topics: *t}}"
    found = json.loads(run(write(group, "group.yaml"), "--json")[1])
    assert [member["load"] for member in found["members"].values()] == [1, 1]


def test_what_may_be_a_slip_is_noted(write: Write, run: Run) -> None:
    group = {
        "topics": {"a": {"partitions": 3, "racks": [["x"], ["y"], ["z"]]}, "b": 1},
        "members": {
            "c1": {"topics": ["a"], "owns": {"a": [0, 1, 7], "b": [0], "gone": [0]}},
            "c2": {"topics": ["a", "c"], "owns": {"a": [0, 1]}, "generation": 2},
            "c3": {"topics": ["a"], "owns": {"a": [1, 2]}, "generation": 2},
        },
    }
    found = json.loads(run(write(group), "--json")[1])
    assert found["notes"] == [
        "no member subscribes to topic b: it is not planned",
        "c1 owned partitions of topic a that are gone: 7; not counted",
        "c1 owned partitions of topic b, which it does not subscribe to: not counted",
        "c1 owned partitions of topic gone, which is not in the file: not counted",
        "c2 subscribes to topic c, which is not in the file",
        "topic a 0: owned by c1, c2; taken to belong to c2",
        "topic a 1: owned by c1, c2, c3; taken to belong to nobody",
        "no member has racks: the others' are not looked at",
    ]
    shown = run(write(group))[1]
    assert "note: c1 owned partitions of topic a that are gone: 7; not counted" in shown


def test_only_some_of_many_notes_are_shown(write: Write, run: Run) -> None:
    group = changed("members.c1.topics", [f"topic{number}" for number in range(15)])
    shown = run(write(group))[1]
    assert shown.count("note: ") == 10
    assert shown.endswith("more notes: see --json\n")


UNEVEN = {
    "topics": {"a": 1, "b": 1, "c": 1},
    "members": {"c1": {"owns": {"a": [0], "b": [0]}}, "c2": {"owns": {"c": [0]}}, "c3": {}},
}


@pytest.mark.parametrize(
    ("strategy", "optimal", "loads"),
    [
        ("exact", True, [1, 1, 1]),
        ("kip54", True, [1, 1, 1]),
        ("range", False, [3, 0, 0]),
        ("roundrobin", False, [1, 1, 1]),
    ],
)
def test_a_strategy_shows_its_faults_and_check_makes_them_an_error(
    strategy: str, *, optimal: bool, loads: list[int], write: Write, run: Run
) -> None:
    name = write(UNEVEN)
    status, shown, _ = run(name, "--json", "--assignor", strategy)
    found = json.loads(shown)
    assert (status, found["strategy"], found["certificate"]["optimal"]) == (0, strategy, optimal)
    assert [member["load"] for member in found["members"].values()] == loads
    assert found["least_moves"] == 1
    assert run(name, "--check", "--assignor", strategy)[0] == (0 if optimal else 1)


def test_a_plan_that_is_not_optimal_is_shown_beside_one_that_is(write: Write, run: Run) -> None:
    status, shown, _ = run(write(UNEVEN), "--assignor", "range")
    assert status == 0
    assert "1 of 3 owned partitions move (in an optimal plan: 1)" in shown
    assert "not optimal: the first goal that it misses is balance" in shown


def test_the_options_of_the_exact_planner_are_handed_on(write: Write, run: Run) -> None:
    name = write({"topics": {"a": 8}, "members": {"c1": {"owns": {"a": [*range(8)]}}, "c2": {}}})
    assert json.loads(run(name, "--json")[1])["moves"] == 4
    skewed = json.loads(run(name, "--json", "--max-skew", "1")[1])
    assert (skewed["moves"], skewed["max_skew"], skewed["certificate"]["optimal"]) == (3, 1, True)
    limited = json.loads(run(name, "--json", "--max-moves", "2")[1])
    assert (limited["moves"], limited["max_moves"], limited["least_moves"]) == (2, 2, 2)


def test_a_cooperative_group_hands_over_in_two_rounds(write: Write, run: Run) -> None:
    name = write(GROUP)
    shown = run(name, "--cooperative")[1]
    assert (
        "\ncooperative, round 1: 3 partitions revoked; loads 0 to 3\n"
        "  c1  revokes orders 2; payments 1\n"
        "  c2  revokes payments 4\n"
        "cooperative, round 2: given away; loads 2 to 3\n"
        "  c3  gets payments 1 4\n"
        "  c4  gets orders 2\n\n"
    ) in shown
    assert json.loads(run(name, "--cooperative", "--json")[1])["first_round"] == {
        "loads": {"c1": 3, "c2": 3, "c3": 0, "c4": 1},
        "let_go": {"c1": {"orders": [2], "payments": [1]}, "c2": {"payments": [4]}},
        "awaited": {"c3": {"payments": [1, 4]}, "c4": {"orders": [2]}},
    }


def test_members_that_hold_nothing_hand_over_in_one_round(write: Write, run: Run) -> None:
    group = json.loads(json.dumps(GROUP))
    for name in ("c1", "c2"):
        group["members"][name]["holds"] = False
    shown = run(write(group), "--cooperative")[1]
    assert "cooperative: one round is enough, as nothing has to be revoked" in shown


def test_a_table_with_all_columns_fits(write: Write, run: Run) -> None:
    group = large(100)
    for number, member in enumerate(group["members"].values()):
        member |= {"rack": "xy"[number % 2], "weight": 1 + number % 3}
    group["topics"] |= {"topic0": {"partitions": 100, "racks": [["x"], ["y"]] * 50}}
    lines = run(write(group))[1].splitlines()
    assert all("in rack" in lines[0] and len(line) <= 80 for line in lines[:101])
    assert len({line.split()[0] for line in lines[1:101]}) == 100


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        (["x" * 40, "y" * 40], ["x" * 13 + "..." + "x" * 12, "y" * 13 + "..." + "y" * 12]),
        (["x" * 20 + c + "x" * 20 for c in "ab"], ["x" * 20 + "axxxx...", "x" * 20 + "bxxxx..."]),
        (["x" * 60 + c + "x" * 20 for c in "ab"], ["..." + c + "x" * 20 for c in ("xxxxa", "xxxxb")]),
        (["x" * 60 + c + "x" * 60 for c in "ab"], ["x" * 60 + c + "x" * 60 for c in "ab"]),
    ],
    ids=["both ends", "beginning", "end", "neither"],
)
def test_long_names_are_cut_where_they_do_not_differ(
    ids: list[str], shown: list[str], write: Write, run: Run
) -> None:
    out = run(write({"topics": {"a": 2}, "members": dict.fromkeys(ids)}))[1]
    assert [line.split()[0] for line in out.splitlines()[1:3]] == shown


def test_a_member_may_be_called_free(write: Write, run: Run) -> None:
    group = {"topics": {"a": 4}, "members": {"free": {"owns": {"a": [0, 1, 2]}}, "new": {}}}
    lines = run(write(group))[1].splitlines()
    assert lines[2] == "new        2     0  2: 1 free, 1 from free  -"


def test_without_a_certificate_nothing_is_said_about_the_best_plan(write: Write, run: Run) -> None:
    status, shown, _ = run(write(GROUP), "--no-certify")
    assert status == 0
    assert "3 of 9 owned partitions move, 1 had no owner\n" in shown
    assert not re.search("least|optimal|certified", shown)
    found = json.loads(run(write(GROUP), "--no-certify", "--json")[1])
    assert (found["certificate"], found["certificate_ms"], found["least_moves"]) == (None, None, None)


@pytest.mark.parametrize("arguments", [(), ("--assignor", "kip54"), ("--json", "--cooperative")])
def test_a_group_without_partitions_is_planned(arguments: tuple[str, ...], write: Write, run: Run) -> None:
    status, shown, _ = run(write({"topics": {}, "members": {"c1": {}}}), *arguments)
    assert (status, bool(shown)) == (0, True)


def test_a_large_group_is_planned_in_little_space(write: Write, run: Run) -> None:
    name = write(large(1000))
    status, shown, _ = run(name, "--check", "--cooperative")
    lines = shown.splitlines()
    assert status == 0
    assert max(map(len, lines)) <= 80
    assert "who gets what" not in shown
    assert "20,000 partitions of 20 topics, 100 members: loads 200 to 200, imbalance 0" in lines
    assert len(lines) < 350
    assert "who gets what (+ is new to the member):" in run(name, "--assignments")[1]


def test_a_long_value_is_cut_in_an_error() -> None:
    assert describe("x" * 100) == f'"{"x" * 59}...'


WORK: dict[str, Any] = {
    "topics": {"orders": {"partitions": [4, 0, 1, 2], "rate": [100, 600, 100, 100], "lag": 9, "cost": 900}},
    "members": {"c1": {"owns": {"orders": [0, 1, 2, 4]}}, "c2": None},
}


def test_load_aware_goes_by_what_the_file_says_of_the_work(write: Write, run: Run) -> None:
    status, out, _ = run(write(WORK), "--assignor", "load-aware", "--json")
    told = json.loads(out)
    assert status == 0
    # 0.54 s of work a second are partition 0's, wherever it stands in the list; the others have 0.09 each.
    loads = {name: member["assignment"] for name, member in told["members"].items()}
    assert sorted(map(len, (ids["orders"] for ids in loads.values()))) == [1, 3]
    assert [0] in [ids["orders"] for ids in loads.values()]
    assert told["certificate"] is None
    assert told["notes"] == ["the slowest member is done in 32.4 s; no plan takes less than 32.4 s"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("rate", [1, 2], "must be a number, or a list of 4 numbers, one for each partition, not a list of 2"),
        ("lag", -1, "from 0 to 2147483647, not -1"),
        ("cost", [1, 2, 3, "x"], "topics.orders.cost[3]: must be a whole number"),
    ],
)
def test_work_that_cannot_be_is_named(write: Write, run: Run, field: str, value: object, said: str) -> None:
    topic = {**WORK["topics"]["orders"], field: value}
    status, _, error = run(write({**WORK, "topics": {"orders": topic}}), "--assignor", "load-aware")
    assert status == 2
    assert f"topics.orders.{field}" in error
    assert said in " ".join(error.split())


def test_load_aware_has_no_certificate_to_check(write: Write, run: Run) -> None:
    status, _, error = run(write(WORK), "--assignor", "load-aware", "--check")
    assert status == 2
    assert "load-aware has a bound in its notes" in " ".join(error.split())
