"""The code of the README and of the how-to guides does what it says."""

from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from integration_tests.support.patience import QUICK
from kafka_assignors.testing import consumer_group_factory
from tests.support.pages import HOME, defined, listing, listings

CHOOSING = "docs/how-to/which-assignor.md"
IN_CI = "docs/how-to/test-a-rebalance-in-ci.md"
MIGRATING = "docs/how-to/migrate-to-cooperative-sticky.md"
PLANNING = "docs/how-to/plan-without-a-consumer.md"
WRITING = "docs/how-to/write-an-assignor.md"


def test_a_plan_in_code_moves_the_least_and_proves_itself(capsys: pytest.CaptureFixture[str]) -> None:
    made = defined(listing(PLANNING, "plan(Group.of("))["planned"].plan
    assert made.assignments() == {"c1": {"orders": [0, 1, 2]}, "c2": {"orders": [3, 4, 5]}}
    assert made.moves == 1
    assert "optimal: no valid plan does better" in capsys.readouterr().out


@pytest.fixture
def default_cluster(kafka_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that name no brokers use the session's."""
    monkeypatch.setitem(KafkaConsumer.DEFAULT_CONFIG, "bootstrap_servers", kafka_cluster.bootstrap_servers)


@pytest.mark.usefixtures("default_cluster")
def test_passing_a_class_makes_a_consumer() -> None:
    defined(listing(HOME, '    "orders",'))["consumer"].close()


@pytest.mark.usefixtures("default_cluster")
def test_passing_instances_with_options_makes_a_consumer() -> None:
    imports = "from kafka_assignors import RangeAssignor, StickyAssignor"
    names = defined(imports, listing(CHOOSING, "StickyAssignor(rack="))
    strategies = names["partition_assignment_strategy"]
    KafkaConsumer(group_id="readme", partition_assignment_strategy=strategies).close()


def test_an_assignor_of_ones_own_assigns(
    consumer_group: Any, topic_factory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first_come.py").write_text(listing(WRITING, "class FirstComeAssignor"), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    topics = [topic_factory(3), topic_factory(2)]
    group = consumer_group(topics, ["first_come:FirstComeAssignor"])
    for name in "ab":
        group.join(name, instance_id=name)
    assert {name: len(owned) for name, owned in group.wait_stable().assignments.items()} == {"a": 5, "b": 0}


def test_a_group_under_test(capsys: pytest.CaptureFixture[str]) -> None:
    names = defined(listing(IN_CI, "with kafka_cluster() as kafka"))
    printed = capsys.readouterr().out
    assert printed.count("TopicPartition") == 6
    assert all(repr(TopicPartition(names["topic"], number)) in printed for number in range(6))


quick_group = consumer_group_factory(settings=QUICK)


@pytest.mark.parametrize(
    ("page", "containing"), [(HOME, "consumer_group(members=3)"), (IN_CI, "# test_rebalance.py")]
)
def test_a_whole_test(page: str, containing: str, quick_group: Any) -> None:
    names = defined(listing(page, containing))
    names["test_a_crash_leaves_no_partition_without_an_owner"](quick_group)


def test_the_lists_of_the_migration_lead_from_range_to_cooperative_sticky(consumer_group: Any) -> None:
    lists = [defined(code)["partition_assignment_strategy"] for code in listings(MIGRATING)]
    group = consumer_group(assignors=["range"], members=2)
    strategies = [group.wait_stable().protocol]
    members = [*group.members.values()]
    for assignors in lists:
        for place, member in enumerate(members):
            members[place] = member.restart(assignors=assignors)
            strategies.append(group.wait_stable().protocol)
    assert strategies == ["range", "range", "cooperative-sticky", "cooperative-sticky", "cooperative-sticky"]
    group.timeline.assert_never_owned_twice()
