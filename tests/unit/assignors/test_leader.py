"""A leader on bytes: what it sends, beside what an assignor sends that kafka-python drives."""

from collections.abc import Collection
from random import Random
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    lead,
)
from kafka_assignors._model.members import Member
from kafka_assignors._model.racks import RacksOfTopic
from kafka_assignors._wire import codec
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from kafka_assignors.planners._exact import flow
from tests.support.by_hand import cluster_of, joined
from tests.support.random_groups import RACKS, Case, Racks, random_case
from tests.support.scale import sampled
from tests.support.wire import ODD, partition_list, subscription

Joined = list[tuple[str, str | None, bytes]]
"""Member id, instance id and subscription."""

ASSIGNORS: list[Any] = [
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    CooperativeStickyAssignor,
    BroadcastAssignor,
]
NAMES = ["broadcast", "cooperative-sticky", "load-aware", "random", "range", "roundrobin", "sticky"]
compiled_or_not = pytest.mark.usefixtures("way")


def sent(topics: Collection[str], owned: Any = None, *, version: int = 3, **fields: Any) -> bytes:
    return subscription(version, sorted(topics), owned=partition_list([*(owned or {}).items()]), **fields)


def said_by(member: Member, rng: Random) -> bytes:
    """What a member may send to say this: in any version, in any layout, eager or cooperative."""
    prior = encode_sticky(member.claims, member.generation, member.weight)
    told = [
        None,
        b"",
        b"unreadable",
        prior,
        prior,
        prior,
        encode_sticky(member.claims, member.generation),
        encode_sticky(member.claims, member.generation)[:-4],
        b"\0\1" + encode_sticky(member.claims, member.generation),
        encode_generation(member.generation, member.weight),
        encode_sticky({}, member.generation),
    ]
    return sent(
        member.topics,
        member.claims if rng.random() < 0.5 else {},
        version=rng.choice([0, 1, 2, 3, 3, 3]),
        user_data=rng.choice(told),
        generation=member.generation,
        rack=member.rack,
    )


def told_by(case: Case, rng: Random) -> Joined:
    return [(member.member_id, member.instance_id, said_by(member, rng)) for member in case.members]


def driven(assignor: Any, case: Case, members: Joined) -> dict[str, bytes]:
    """As kafka-python does it: it decodes, the assignor assigns, it encodes."""
    racks = case.replica_racks or {}
    cluster = cluster_of(
        case.topics,
        racks=dict(enumerate(RACKS)),
        replicas={
            (topic, number): [RACKS.index(rack) for rack in racks.get((topic, number), ())]
            for topic, ids in case.topics.items()
            for number in ids
        },
    )
    assigned = assignor.assign(
        cluster, [joined(member_id, raw, instance_id) for member_id, instance_id, raw in members]
    )
    return {member_id: assignment.encode() for member_id, assignment in assigned.items()}


def function_of(racks: Racks) -> RacksOfTopic:
    return lambda topic, ids: [racks.get((topic, number), frozenset()) for number in ids]


def partitions_in(assignment: bytes) -> list[tuple[str, int]]:
    return [(topic, number) for topic, number in ConsumerProtocolAssignment.decode(assignment).partitions()]


@pytest.fixture(params=["as installed", "in Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(codec, "_compiled", None)
        monkeypatch.setattr(flow, "_compiled", None)


@compiled_or_not
@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
def test_a_leader_sends_byte_by_byte_what_an_assignor_in_kafka_python_sends(assignor: Any) -> None:
    for seed in sampled(300):
        case = random_case(seed)
        members = told_by(case, Random(seed))
        expected = driven(assignor(), case, members)
        assert lead(case.topics, members, assignor(), case.replica_racks) == expected, seed
        racks_of = None if (racks := case.replica_racks) is None else function_of(racks)
        assert lead(case.topics, members, assignor.name, racks_of) == expected, seed


@compiled_or_not
def test_so_does_a_random_one_with_the_same_seed() -> None:
    for seed in sampled(100):
        case = random_case(seed)
        members = told_by(case, Random(seed))
        expected = driven(RandomAssignor(seed=seed), case, members)
        assert lead(case.topics, members, RandomAssignor(seed=seed), case.replica_racks) == expected, seed


def test_members_and_topics_may_come_in_any_order() -> None:
    for seed in sampled(100):
        rng = Random(seed)
        case = random_case(seed)
        members = told_by(case, rng)
        topics = {name: case.topics[name][::-1] for name in rng.sample(list(case.topics), len(case.topics))}
        expected = lead(case.topics, members, replica_racks=case.replica_racks)
        shuffled = rng.sample(members, len(members))
        assert lead(topics, iter(shuffled), replica_racks=case.replica_racks) == expected, seed


@compiled_or_not
@pytest.mark.parametrize("strategy", NAMES)
def test_nothing_to_give(strategy: str) -> None:
    nothing = bytes.fromhex("0003 00000000 00000000")
    assert lead({}, [], strategy) == {}
    assert lead({"t": range(3)}, [], strategy) == {}
    without: list[dict[str, list[int]]] = [{}, {"t": []}, {"u": [0]}]
    for topics in without:
        members = [("a", None, sent({"t"})), ("b", "i", sent(set()))]
        assert lead(topics, members, strategy) == {"a": nothing, "b": nothing}


@compiled_or_not
@pytest.mark.parametrize("strategy", NAMES)
@pytest.mark.parametrize(
    "raw",
    [b"", b"\0", sent({"t"}, version=0)[:7], b"\xff\xff" + sent({"t"})[2:], b"\xff" * 40],
    ids=["no bytes", "half a version", "cut off in a name", "negative version", "noise"],
)
def test_an_unreadable_subscription_gets_nothing_and_a_warning(
    strategy: str, raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    members = [("k", None, sent({"t"})), ("broken", None, raw), ("m", None, sent({"t"}))]
    assigned = lead({"t": range(4)}, members, strategy)
    assert partitions_in(assigned["broken"]) == []
    shared = 2 if strategy == "broadcast" else 1
    given_away = sorted(partitions_in(assigned["k"]) + partitions_in(assigned["m"]))
    assert given_away == sorted([("t", number) for number in range(4)] * shared)
    assert [record.getMessage() for record in caplog.records] == [
        "Giving nothing to member broken, whose subscription cannot be read"
    ]


@compiled_or_not
@pytest.mark.parametrize("raw", [raw for raw, _ in ODD.values()], ids=list(ODD))
def test_a_member_is_served_by_its_topics_whatever_stands_behind_them(raw: bytes) -> None:
    for strategy in ("range", "sticky", "cooperative-sticky"):
        assigned = lead({"t": range(4)}, [("odd", None, raw), ("m", None, sent({"t"}))], strategy)
        assert len(partitions_in(assigned["odd"])) == 2, strategy


@compiled_or_not
def test_beside_an_unreadable_subscription_all_is_as_if_it_had_no_topics() -> None:
    for seed in sampled(200):
        case = random_case(seed)
        members = told_by(case, Random(seed))
        for strategy in ("sticky", "cooperative-sticky"):
            broken = lead(case.topics, [*members, ("broken", None, b"\0")], strategy, case.replica_racks)
            silent = lead(
                case.topics, [*members, ("broken", None, sent(set()))], strategy, case.replica_racks
            )
            assert broken == silent, seed


def test_an_unknown_strategy_is_an_error_that_names_the_known_ones() -> None:
    known = "range, roundrobin, sticky, cooperative-sticky, copartitioned, random, broadcast, load-aware"
    with pytest.raises(ValueError, match=f"there is no strategy 'best'; choose one of {known}"):
        lead({}, [], "best")


@pytest.mark.parametrize("strategy", NAMES)
def test_two_members_with_one_id_are_an_error_that_names_it(strategy: str) -> None:
    members = [(name, None, sent({"t"})) for name in "klk"]
    with pytest.raises(ValueError, match=r"member ids must differ, but \['k'\] is there more than once"):
        lead({"t": range(3)}, members, strategy)
