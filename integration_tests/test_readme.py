"""The README's code does what it says."""

import re
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def block(containing: str) -> str:
    """The one block of Python in the README that contains this."""
    (found,) = (code for code in BLOCKS if containing in code)
    return str(found)


@pytest.mark.patient
def test_a_plan_in_code_moves_the_least_and_proves_itself(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block("plan_exact(Group.of("), names)  # noqa: S102 - the README's code is ours
    assert names["plan"].assignments() == {"c1": {"orders": [0, 1, 2]}, "c2": {"orders": [3, 4, 5]}}
    assert names["plan"].moves == 1
    assert "optimal: no valid plan does better" in capsys.readouterr().out


@pytest.mark.patient
@pytest.mark.parametrize("line", ["c2           2     5", "6 of 10 owned partitions", "optimal: no valid"])
def test_the_plan_shown_is_that_of_the_documented_file(line: str) -> None:
    shown = (README.parent / "docs" / "plan-file.md").read_text(encoding="utf-8")
    (documented,) = (each for each in shown.splitlines() if each.startswith(line))
    assert documented in README.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def default_cluster(kafka_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that name no brokers use the session's."""
    monkeypatch.setitem(KafkaConsumer.DEFAULT_CONFIG, "bootstrap_servers", kafka_cluster.bootstrap_servers)


@pytest.mark.patient
@pytest.mark.usefixtures("default_cluster")
def test_passing_a_class_makes_a_consumer() -> None:
    names: dict[str, Any] = {}
    exec(block('KafkaConsumer("orders"'), names)  # noqa: S102 - the README's code is ours
    names["consumer"].close()


@pytest.mark.patient
@pytest.mark.usefixtures("default_cluster")
def test_passing_instances_with_options_makes_a_consumer() -> None:
    names: dict[str, Any] = {}
    exec("from kafka_assignors import RangeAssignor, StickyAssignor", names)  # noqa: S102 - as above
    exec(block("StickyAssignor(rack="), names)  # noqa: S102 - as above
    strategies = names["partition_assignment_strategy"]
    KafkaConsumer(group_id="readme", partition_assignment_strategy=strategies).close()


@pytest.mark.patient
def test_an_assignor_of_ones_own_assigns(
    consumer_group: Any, topic_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first_come.py").write_text(block("class FirstComeAssignor"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    topics = [topic_factory(3), topic_factory(2)]
    group = consumer_group(topics, ["first_come:FirstComeAssignor"])
    for name in "ab":
        group.join(name, instance_id=name)
    assert {name: len(owned) for name, owned in group.wait_stable().assignments.items()} == {"a": 5, "b": 0}


def test_a_group_under_test(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block("with kafka_cluster() as kafka"), names)  # noqa: S102 - as above
    printed = capsys.readouterr().out
    assert printed.count("TopicPartition") == 6
    assert all(repr(TopicPartition(names["topic"], number)) in printed for number in range(6))


def test_a_whole_test(consumer_group: Any) -> None:
    names: dict[str, Any] = {}
    exec(block("consumer_group(members=3)"), names)  # noqa: S102 - as above
    names["test_a_crash_leaves_no_partition_without_an_owner"](consumer_group)
