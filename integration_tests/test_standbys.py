"""Active and passive members on a real Kafka: nothing is lost, has two owners, or goes back and forth."""

from typing import Any

import pytest

from integration_tests.support.commands import read_command
from integration_tests.support.patience import QUICK
from integration_tests.support.scene import Scene, sizes
from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._timelines.events import Assigned
from kafka_assignors.testing import ConsumerGroup


def join(group: ConsumerGroup, name: str, assignor: Any = CooperativeStickyAssignor, **options: Any) -> None:
    group.join(name, assignors=[(assignor, options)], settings=QUICK)


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
@pytest.mark.parametrize("kind", [CooperativeStickyAssignor, StickyAssignor])
def test_a_passive_member_takes_over_and_gives_back(client: str, kind: Any, scene: Scene) -> None:
    group = scene.group(client=client)
    with scene.load() as load:
        for name, priority in (("passive", 0), ("active", 1), ("second", 1)):
            join(group, name, kind, priority=priority)
        assert sizes(group) == {"passive": 0, "active": 3, "second": 3}
        explained = read_command(scene.cluster, "group", "explain", group.group_id)
        assert [one["name"] for one in explained["members"] if one["stands_by"]] == ["passive"]
        assert (explained["imbalance"], explained["would_move"]) == (0, [])
        group.members["second"].leave()
        assert sizes(group) == {"passive": 0, "active": 6}
        group.members["active"].crash()
        assert sizes(group) == {"passive": 6}
        group.members["active"].restart()
        assert sizes(group) == {"passive": 0, "active.2": 6}
        load.stop()
        group.wait_consumed(load)
    assert not group.timeline.double_assigned()
    assert group.timeline.overlaps("generation") == group.timeline.overlaps() == ()
    group.timeline.assert_all_consumed(load.produced)
    if kind is CooperativeStickyAssignor:
        back = [len(event.partitions) for event in group.timeline.of(Assigned, member="active.2")]
        assert [count for count in back if count] == [6]


@pytest.mark.parametrize(
    ("client", "strategy"),
    [
        ("kafka-python", "cooperative-sticky"),
        ("kafka-python", "sticky"),
        ("confluent-kafka", "cooperative-sticky"),
        ("java", "cooperative-sticky"),
        ("java", "sticky"),
    ],
)
def test_a_leader_of_another_client_lets_all_share(client: str, strategy: str, scene: Scene) -> None:
    """It reads what members send up to the generation, and not their priority."""
    ours = CooperativeStickyAssignor if strategy == "cooperative-sticky" else StickyAssignor
    group = scene.group()
    group.join("other", client=client, assignors=[strategy])
    group.wait_stable()
    join(group, "standby", ours, priority=-1)
    before = group.wait_stable(expect={"other": 3, "standby": 3})
    join(group, "second", ours, priority=-1)
    after = group.wait_stable(expect={"other": 2, "standby": 2, "second": 2})
    if client != "kafka-python" or strategy != "sticky":  # whose class does not read this layout
        assert after.assignments["standby"] <= before.assignments["standby"]
    group.members["other"].leave()
    assert sizes(group) == {"standby": 3, "second": 3}
    group.join("other2", client=client, assignors=[strategy])
    assert sizes(group) == {"standby": 0, "second": 0, "other2": 6}
    assert not group.timeline.double_assigned()
