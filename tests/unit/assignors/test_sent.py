"""What members sent is read once where the client needs no more of it; and as before where it does.

The coordinator is kafka-python's own, made as its consumer makes it, and never connected.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors._assignors import _sent as sent
from kafka_assignors._assignors._topics import replica_racks
from kafka_assignors._wire.user_data import encode_sticky
from kafka_assignors.testing._groups.clients.observed_assignor import observe_assignor
from tests.support.by_hand import cluster_of
from tests.support.wire import partition_list, subscription

TOPICS = {"t": range(6), "u": range(3), "v": range(2)}
MEMBERS = {
    "plain": subscription(3, ["t", "u"], rack="b"),
    "holds": subscription(3, ["t"], owned=partition_list([("t", [4, 1])]), generation=3),
    "had": subscription(3, ["u", "v"], user_data=encode_sticky({"u": [2]}, 3), generation=3),
    "old": subscription(0, ["v", "t"]),
}
HOSTILE = {
    "no bytes": b"",
    "names no topic": subscription(3, ["t", "a/b", None, ""]),
    "owns what cannot be read": subscription(2, ["u"], owned=partition_list([(b"\xff", [1])]), generation=9),
    "not UTF-8": subscription(0, [b"\xff"]),
}
INSTANCES = {"holds": "i-1"}
STRATEGIES = [RangeAssignor, StickyAssignor, CooperativeStickyAssignor]


class Remembering:
    """A leader that remembers what it was given; a mixin."""

    given: Sequence[Any] = ()

    def assign(self, cluster: Any, members: Sequence[Any]) -> Any:
        """As the class that it is mixed with."""
        self.given = [*members]
        return super().assign(cluster, members)  # type: ignore[misc]


class OwnAssign(Remembering, StickyAssignor):
    """A user's class around ours."""


class Stock(Remembering, RangePartitionAssignor):
    """kafka-python's own."""

    name = "stock"


@pytest.fixture
def leader() -> Callable[..., Any]:
    """Makes a coordinator: leader(assignors); it subscribes to t."""

    def make(*assignors: Any, kind: type[ConsumerCoordinator] = ConsumerCoordinator) -> Any:
        client = KafkaNetClient(bootstrap_servers="localhost:1", api_version=(4, 0))
        cluster = client._manager.cluster
        known = cluster_of(TOPICS, racks={1: "a", 2: "b"}, replicas={("t", 0): [2], ("t", 1): [1, 2]})
        cluster._partitions, cluster._brokers = known._partitions, known._brokers
        subscribed = SubscriptionState()
        subscribed.subscribe(topics=["t"])
        made = kind(client, subscribed, group_id="g", assignors=assignors, enable_auto_commit=False)
        made.group_protocols()
        return made

    return make


def joined(said: Mapping[str, bytes]) -> list[Any]:
    """Members as a JoinGroupResponse brings them."""
    member = JoinGroupResponse.JoinGroupResponseMember
    return [
        member(member_id=name, group_instance_id=INSTANCES.get(name), metadata=raw)
        for name, raw in said.items()
    ]


def answer(coordinator: Any, strategy: str, said: Mapping[str, bytes] = MEMBERS) -> dict[str, bytes]:
    """The assignments that a leader sends."""
    made = coordinator._perform_assignment("plain", strategy, joined(said))
    return {name: assignment.encode() for name, assignment in made.items()}


def decodings(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All subscriptions that kafka-python decodes from now on."""
    decoded: list[bytes] = []
    decode = ConsumerProtocolSubscription.decode

    def record(data: bytes, **settings: Any) -> Any:
        decoded.append(data)
        return decode(data, **settings)

    monkeypatch.setattr(ConsumerProtocolSubscription, "decode", record)
    return decoded


def todays(kind: Any) -> Any:
    """A class that plans as ours and is given the members one by one."""
    return type(f"Own{kind.__name__}", (Remembering, kind), {})


@pytest.mark.parametrize("hostile", [{}, HOSTILE], ids=["plain", "hostile"])
@pytest.mark.parametrize("kind", STRATEGIES)
def test_the_answer_is_the_same_as_of_members_decoded_by_kafka_python(
    leader: Callable[..., Any], kind: Any, hostile: dict[str, bytes]
) -> None:
    said = MEMBERS | hostile
    one_by_one = todays(kind)(rack="a")
    expected = answer(leader(one_by_one), kind.name, said)
    assert len(one_by_one.given) == len(said)
    assert answer(leader(kind(rack="a")), kind.name, said) == expected
    assert expected.keys() == said.keys()


def test_kafka_python_decodes_one_subscription_to_all_topics(
    leader: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = leader(StickyAssignor)
    decoded = decodings(monkeypatch)
    answer(coordinator, "sticky", MEMBERS | HOSTILE)
    (only,) = decoded
    assert only == subscription(0, ["t", "u", "v"])
    assert coordinator._subscription.group_subscription() == {"t", "u", "v"}
    assert coordinator._cluster._topics == {"t", "u", "v"}


def test_all_strategies_of_a_consumer_are_given_what_was_read(
    leader: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only the first, whose `metadata` changed the coordinator."""
    coordinator = leader(RangeAssignor, StickyAssignor)
    decoded = decodings(monkeypatch)
    for strategy in ("sticky", "range", "sticky"):
        answer(coordinator, strategy)
    assert len(decoded) == 3


@pytest.mark.parametrize("kind", STRATEGIES)
def test_an_observed_one_goes_the_same_way_and_reports_what_each_member_claims(
    leader: Callable[..., Any], kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test kit observes all its members: they are to do what an application's do."""
    reports: list[list[dict[str, Any]]] = []
    union = subscription(0, ["t", "u", "v"])
    for assignor, first in ((kind(), union), (todays(kind)(), MEMBERS["plain"])):
        told: list[dict[str, Any]] = []
        coordinator = leader(assignor)
        observe_assignor(assignor, lambda what, told=told, **details: told.append({"what": what, **details}))
        with monkeypatch.context() as patch:
            decoded = decodings(patch)
            answer(coordinator, kind.name, MEMBERS | HOSTILE)
        assert decoded[0] == first
        reports.append([{name: one[name] for name in one.keys() - {"seconds"}} for one in told])
    assert reports[0] == reports[1]
    assert [one["what"] for one in reports[0]] == ["assign"]
    assert reports[0][0]["claims"]["holds"]["owned"] == [("t", 1), ("t", 4)]


@pytest.mark.parametrize("strategy", ["stock", "sticky"])
def test_who_needs_the_members_sees_hostile_ones_repaired(
    leader: Callable[..., Any], strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    assignors = {"sticky": OwnAssign(), "stock": Stock()}
    coordinator = leader(*assignors.values())
    for _ in range(2):
        answer(coordinator, strategy, MEMBERS | HOSTILE)
    given = {member.member_id: member.metadata for member in assignors[strategy].given}
    assert [given[name].encode() for name in MEMBERS] == list(MEMBERS.values())
    assert [given[name].topics for name in HOSTILE] == [[], ["t"], ["u"], []]
    warnings = [text for text in caplog.messages if text.startswith("Member ")]
    null = "names a null as a topic, or cannot be read behind its topics: that does not count"
    assert warnings == [
        f"Member names no topic {null}",
        f"Member owns what cannot be read {null}",
        "Member no bytes gets nothing: its subscription (0 bytes) cannot be read",
        "Member not UTF-8 gets nothing: its subscription (13 bytes) cannot be read",
    ]


def test_an_instance_whose_assign_was_replaced_sees_the_members(leader: Callable[..., Any]) -> None:
    assignor, given = StickyAssignor(), list[Any]()
    ours = assignor.assign
    coordinator = leader(assignor)

    def traced(cluster: Any, members: Sequence[Any]) -> Any:
        given.extend(members)
        return ours(cluster, members)

    assignor.assign = traced  # type: ignore[method-assign]
    assert answer(coordinator, "sticky").keys() == MEMBERS.keys()
    assert [member.member_id for member in given] == list(MEMBERS)


class AsksMore(ConsumerCoordinator):
    """A later release whose method needs what members own, too."""

    owned: Any = None

    def _perform_assignment(self, leader_id: str, protocol_name: str, members: Any) -> Any:
        decoded = [ConsumerProtocolSubscription.decode(member.metadata) for member in members]
        self.owned = [each.owned_partitions for each in decoded]
        return super()._perform_assignment(leader_id, protocol_name, members)


def test_another_method_of_kafka_python_is_given_the_members(leader: Callable[..., Any]) -> None:
    coordinator = leader(CooperativeStickyAssignor, kind=AsksMore)
    assert answer(coordinator, "cooperative-sticky") == answer(
        leader(CooperativeStickyAssignor), "cooperative-sticky"
    )
    assert [[(each.topic, each.partitions) for each in owned] for owned in coordinator.owned] == [
        *([], [("t", [4, 1])], [], [])
    ]


def test_the_method_of_the_installed_release_needs_only_topics() -> None:
    """If this fails with a later release: see what its method needs of members, and add that to `_USED`."""
    assert sent.needs_only_topics(ConsumerCoordinator._perform_assignment)
    assert not sent.needs_only_topics(AsksMore._perform_assignment)
    assert not sent.needs_only_topics(len)


def test_members_that_kafka_python_has_decoded_already_are_left_alone() -> None:
    members = joined(MEMBERS)
    members[1].metadata = ConsumerProtocolSubscription.decode(members[1].metadata)
    assert sent.MembersReader()(members) is None


def test_the_time_from_the_first_byte_is_told_and_nothing_is_kept(
    leader: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []
    coordinator = leader(assignor := StickyAssignor())
    plan = assignor.plan

    def look(group: Any) -> Any:
        host = assignor._host()
        assert host is not None
        assert host.leading_since is not None
        seen.append(host.leading_since)
        return plan(group)

    monkeypatch.setattr(assignor, "plan", look)
    before, start = set(vars(coordinator)), time.monotonic()
    answer(coordinator, "sticky")
    assert start <= seen[0] <= time.monotonic()
    assert set(vars(coordinator)) == before


def test_what_is_logged_says_that_members_were_read_before(
    leader: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "kafka.coordinator.consumer")
    answer(leader(StickyAssignor), "sticky")
    (line,) = [text for text in caplog.messages if text.startswith("Performing assignment")]
    assert "<4 members, read before; together: ConsumerProtocolSubscription(version=0, topics=['t'," in line


def test_partitions_and_racks_come_by_public_methods_where_the_cluster_is_another(
    leader: Callable[..., Any],
) -> None:
    coordinator = leader(RangeAssignor(rack="a"))
    expected = answer(coordinator, "range")

    class Other(type(coordinator._cluster)):  # type: ignore[misc]
        """A class around kafka-python's own."""

    coordinator._cluster.__class__ = Other
    assert answer(coordinator, "range") == expected


def test_a_partition_that_has_gone_since_is_in_no_rack(leader: Callable[..., Any]) -> None:
    racks_of = replica_racks(leader(RangeAssignor)._cluster)
    there, gone = racks_of("t", [0, 99])
    assert (len(there), gone) == (1, frozenset())
