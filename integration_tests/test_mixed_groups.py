"""Groups of our assignors and other clients' own, each side leading.

The first member of a group leads it, and goes on leading until it leaves. Member ids begin with the members'
names, so a plan that goes by the order of ids is the same for members of the same names.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from integration_tests.support.scene import Scene, moved_for_nothing
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, RoundRobinAssignor, StickyAssignor
from kafka_assignors.testing import Cluster, ConsumerGroup, GroupNotStableError, Load

if TYPE_CHECKING:
    from kafka_assignors.testing._groups.runners import Place
    from kafka_assignors.testing._groups.stability import StableGroup

MakeGroup = Callable[..., ConsumerGroup]
MakeTopic = Callable[..., str]

OURS = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
OTHERS = ["kafka-python", "confluent-kafka", "aiokafka", "java"]
WITHOUT = {("confluent-kafka", "sticky")}
"""What a client does not have."""


def pairs(*strategies: str) -> list[tuple[str, str]]:
    return [
        (client, strategy)
        for strategy in strategies
        for client in OTHERS
        if (client, strategy) not in WITHOUT
    ]


class Mixed:
    """A group of one strategy in which each member is of ours or of another client."""

    def __init__(self, group: ConsumerGroup, client: str, strategy: str) -> None:
        self.group = group
        self.stable: StableGroup | None = None
        self._how: Mapping[str, Mapping[str, Any]] = {
            "ours": {"assignors": [OURS[strategy]], "place": "thread"},
            "other": {
                "client": client.removeprefix("our "),
                "assignors": [OURS[strategy] if client.startswith("our ") else strategy],
                "place": "process" if client == "java" else "thread",
            },
        }

    def join(self, *members: tuple[str, str]) -> None:
        """Let members ("ours" or "other", name) join, and wait until the group is stable."""
        for side, name in members:
            self.group.join(name, **self._how[side])
        self.stable = self.group.wait_stable()

    def leave(self, name: str) -> None:
        self.group.members[name].leave()
        self.stable = self.group.wait_stable()

    def parts(self) -> dict[str, frozenset[Any]]:
        assert self.stable is not None
        return dict(self.stable.assignments)

    def leader_is_ours(self) -> bool:
        """Whether one of ours made the newest plan; only kafka-python's members tell that they lead."""
        leader = self.group.timeline.rebalances[-1].leader
        return leader is not None and leader in self.group.members and self._is_ours(leader)

    def _is_ours(self, name: str) -> bool:
        return self.group.members[name].client == "kafka-python" and name.startswith("o")


@pytest.mark.parametrize(("client", "strategy"), pairs("range", "roundrobin"))
def test_range_and_round_robin_give_the_same_plan_whoever_leads(
    client: str, strategy: str, topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    topics = [topic_factory(5), topic_factory(3)]
    members = [("ours", "o1"), ("other", "p1"), ("ours", "o2"), ("other", "p2")]
    plans = []
    for first in (0, 1):
        group = Mixed(consumer_group(topics, None), client, strategy)
        group.join(members[first])
        group.join(*members[:first], *members[first + 1 :])
        assert group.leader_is_ours() == (first == 0)
        plans.append(group.parts())
    assert plans[0] == plans[1]
    assert sorted(map(len, plans[0].values())) == ([1, 2, 2, 3] if strategy == "range" else [2, 2, 2, 2])


KEPT_BY = [pair for pair in pairs("sticky", "cooperative-sticky") if pair != ("kafka-python", "sticky")]
KEPT_BY += [("our aiokafka", "sticky")]


@pytest.mark.parametrize(("client", "kept_by"), KEPT_BY)
def test_ownership_survives_each_change_of_leader(
    client: str,
    kept_by: str,
    topic_factory: MakeTopic,
    consumer_group: MakeGroup,
    kafka_cluster: Cluster,
) -> None:
    topic = topic_factory(12)
    group = Mixed(consumer_group([topic], None), client, kept_by)
    steps: list[tuple[Callable[..., None], tuple[Any, ...], bool]] = [
        (group.join, (("ours", "o1"),), True),
        (group.join, (("other", "p1"),), True),
        (group.join, (("other", "p2"),), True),
        (group.leave, ("o1",), False),
        (group.join, (("ours", "o2"),), False),
        (group.leave, ("p1",), False),
        (group.leave, ("p2",), True),
        (group.join, (("other", "p3"), ("ours", "o3")), True),
    ]
    with Load(kafka_cluster.bootstrap_servers, topic) as load:
        for act, members, ours_leads in steps:
            before = {} if group.stable is None else group.parts()
            act(*members)
            after = group.parts()
            assert moved_for_nothing(before, after) == 0
            assert max(map(len, after.values())) - min(map(len, after.values())) <= 1
            if members != ("p1",):  # after which either of the two that are left may lead
                assert group.leader_is_ours() == ours_leads
        load.stop()
        group.group.wait_consumed(load)
    assert group.group.timeline.double_assigned() == {}


def test_stock_sticky_cannot_read_what_ours_tells_and_moves_more(
    topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    """kafka-python 3 reads only its own layout of user data, which Java's members do not read."""
    group = Mixed(consumer_group([topic_factory(12)], None), "kafka-python", "sticky")
    group.join(("other", "p1"))
    group.join(("ours", "o1"))
    group.join(("ours", "o2"))
    before = group.parts()
    group.join(("ours", "o3"))
    assert not group.leader_is_ours()
    assert sorted(map(len, group.parts().values())) == [3, 3, 3, 3]
    # The stock leader keeps its own partitions; to it ours have none.
    assert before["p1"] >= group.parts()["p1"]
    assert moved_for_nothing(before, group.parts()) > 0
    # Under our lead all are read again, the stock member's too.
    group.leave("p1")
    for newcomer in [("other", "p2"), ("ours", "o4")]:
        before = group.parts()
        group.join(newcomer)
        assert group.leader_is_ours()
        assert moved_for_nothing(before, group.parts()) == 0
    assert group.group.timeline.double_assigned() == {}


FIRST_BOUNCE = [CooperativeStickyAssignor, RangeAssignor]


def nothing_lost_or_doubled(group: ConsumerGroup, load: Load) -> bool:
    load.stop()
    group.wait_consumed(load)
    timeline = group.timeline
    return not (timeline.missing(load.produced) or timeline.double_assigned() or timeline.overlaps())


@pytest.mark.parametrize("other", ["kafka-python", "aiokafka", "java"])
def test_two_rolling_restarts_lead_from_range_to_cooperative_sticky_with_nothing_lost_or_doubled(
    other: str, scene: Scene
) -> None:
    auto = {"auto_commit_interval_ms": 500}
    group = scene.group([RangeAssignor], commit="auto", settings=auto)
    bounces: list[list[Any]] = [FIRST_BOUNCE, FIRST_BOUNCE[:1]]
    with scene.load(200) as load:
        members = [group.join("o1"), group.join("p1", client=other, assignors=["range"]), group.join("o2")]
        assert group.wait_stable().protocol == "range"
        for assignors in bounces:
            for place, member in enumerate(members):
                named = [one.name for one in assignors]
                members[place] = member.restart(assignors=named if member.client == "java" else assignors)
                stable = group.wait_stable()
                assert sorted(map(len, stable.assignments.values())) == [2, 2, 2]
            assert stable.protocol == "cooperative-sticky"
        assert nothing_lost_or_doubled(group, load)
    if other != "java":  # whose timer commits nothing when partitions are revoked
        assert group.timeline.duplicates() == {}


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_member_that_cannot_stand_beside_eager_stays_away_between_the_two_restarts(
    client: str, scene: Scene
) -> None:
    """kafka-python's own cooperative class and librdkafka's refuse a list with an eager one."""
    group = scene.group([RangeAssignor], place="thread")
    with scene.load() as load:
        group.join("o1")
        group.join("p1", client=client, assignors=["range"])
        group.wait_stable()
        group.members["o1"].restart(assignors=FIRST_BOUNCE)
        assert group.wait_stable().protocol == "range"
        group.members["p1"].leave()
        assert group.wait_stable().protocol == "cooperative-sticky"
        group.join("p1.2", client=client, assignors=["cooperative-sticky"])
        group.wait_stable()
        group.members["o1.2"].restart(assignors=FIRST_BOUNCE[:1])
        stable = group.wait_stable()
        assert stable.protocol == "cooperative-sticky"
        assert sorted(map(len, stable.assignments.values())) == [3, 3]
        assert nothing_lost_or_doubled(group, load)


def test_librdkafka_cannot_go_from_eager_to_cooperative_by_rolling_restarts(scene: Scene) -> None:
    group = scene.group(["range"], client="confluent-kafka")
    group.join("p1", assignors=["cooperative-sticky", "range"])
    with pytest.raises(GroupNotStableError, match=r"p1 ended by itself(.|\n)*cooperative"):
        group.wait_stable()


@pytest.mark.parametrize("client", OTHERS)
@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
def test_a_static_member_comes_back_with_another_client(leads: bool, client: str, scene: Scene) -> None:
    # Longer than Java takes to start on a laden machine.
    settings = {"session_timeout_ms": 120_000}
    group = scene.group([RangeAssignor], place="thread", settings=settings)
    with scene.load() as load:
        names = ["a", "b"] if leads else ["b", "a"]
        for name in names:
            group.join(name, instance_id=f"instance-{name}")
            group.wait_stable()
        before = group.wait_stable()
        place: Place = "process" if client == "java" else "thread"
        group.members["a"].restart(client=client, assignors=["range"], place=place)
        after = group.wait_stable()
        assert after.generation == before.generation
        assert after.assignments == {"a.2": before.assignments["a"], "b": before.assignments["b"]}
        # And back, as the member of ours that it was.
        group.members["a.2"].restart(client="kafka-python", assignors=[RangeAssignor], place="thread")
        again = group.wait_stable()
        assert again.generation == before.generation
        assert again.assignments["a.3"] == before.assignments["a"]
        load.stop()
        group.wait_consumed(load)
    assert group.timeline.double_assigned() == {}
