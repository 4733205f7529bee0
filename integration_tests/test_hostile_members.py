"""Members that send anything: a group that we lead goes on beside them.

Our members join first, so one of them leads. The hostile one speaks the protocol by hand (`raw_member`).
What it can be: a client with a defect, of another language, of a later version, or of somebody who means it.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor

from integration_tests.support.raw_member import RawMember
from integration_tests.support.scene import Scene
from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    LoadAwareAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._model.claims import Extra
from kafka_assignors._timelines.events import Failed
from kafka_assignors._wire.measured import MOST, Measured, encode_measured
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from kafka_assignors.testing import ConsumerGroup
from tests.support.wire import NULL, partition_list, subscription

if TYPE_CHECKING:
    from kafka_assignors.testing._groups.specs import Sharing

ALL = [
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    CooperativeStickyAssignor,
    LoadAwareAssignor,
    RandomAssignor,
    BroadcastAssignor,
]
SOME = [RangeAssignor, StickyAssignor, CooperativeStickyAssignor]
"""One for each way to claim: not at all, in user data, as owned partitions."""

PARTITIONS = 6
NEWEST = 2**31 - 1


def undecodable(topic: str) -> dict[str, bytes]:
    """What kafka-python cannot decode, and Kafka 4.3.1's coordinator can.

    That reads topics and user data as well, and fails for the whole group where a length there is beyond the
    end, or a null is a topic (KAFKA-20570).
    """
    whole = subscription(3, [topic], generation=5)
    return {
        "no bytes": b"",
        "half a version": b"\0",
        "no topics": b"\0\3",
        "half a number": whole[:5],
        "negative version": b"\xff\xff" + whole[2:],
        "topic not UTF-8": subscription(0, [b"\xff\xfe"]),
        "owned topic not UTF-8": subscription(1, [], owned=partition_list([(b"\xff", [1])])),
    }


def unreadable_behind_topics(topic: str) -> dict[str, bytes]:
    """The same, but for the topics: by them a leader of ours serves the member."""
    whole = subscription(3, [topic], generation=5)
    return {
        "no owned partitions": subscription(1, [topic])[:-4],
        "half a generation": subscription(2, [topic])[:-2],
        "no rack": whole[:-2],
        "random behind topics and user data": b"\0\3"
        + subscription(0, [topic])[2:]
        + Random(4).randbytes(200),
        "rack not UTF-8": subscription(3, [topic], rack=b"\xff"),
        "negative length of user data": whole.replace(NULL, b"\xff\xff\xff\xf0", 1),
    }


def huge(topic: str) -> dict[str, bytes]:
    """Up to a third of what the group's record may have."""
    absent = [f"absent-{number}" for number in range(10_000)]
    return {
        "100 kB of noise": subscription(3, [topic], user_data=Random(1).randbytes(100_000)),
        "300 kB of noise": subscription(3, [topic], user_data=Random(2).randbytes(300_000)),
        "300 kB of claims": subscription(3, [topic], user_data=encode_sticky({topic: range(75_000)}, 9)),
        "300 kB of owned partitions": subscription(
            3, [topic], owned=partition_list([(topic, range(75_000))]), generation=9
        ),
        "50,000 owned topics without a name": subscription(
            3, [topic], owned=partition_list([("", [])] * 50_000), generation=9
        ),
        "100,000 times the topic ''": subscription(3, [*[""] * 100_000, topic]),
        "10,000 topics that do not exist": subscription(3, [*absent, topic]),
        "bytes of a later version": subscription(9_999, [topic]) + Random(3).randbytes(100_000),
    }


def contradictory(topic: str) -> dict[str, bytes]:
    """Claims that cannot be true, told in every way at once unless said otherwise."""
    all_of_it = {topic: range(PARTITIONS)}
    absurd = {topic: [-1, -(2**31), PARTITIONS, NEWEST, 0, 0, 0], "absent": [0]}

    def claiming(claims: Mapping[str, Any], generation: int, **changes: Any) -> bytes:
        settings: dict[str, Any] = {
            "owned": partition_list(list(claims.items())),
            "user_data": encode_sticky(claims, generation),
            "generation": generation,
        }
        return subscription(3, [topic], **{**settings, **changes})

    return {
        "everything": claiming(all_of_it, 1),
        "everything, in the newest generation there can be": claiming(all_of_it, NEWEST),
        "everything, in generation -2^31": claiming(all_of_it, -NEWEST - 1),
        "what does not exist": claiming(absurd, NEWEST),
        "a topic twice": claiming({}, 1, owned=partition_list([(topic, [0, 1]), (topic, [1, 2])])),
        "one thing here and another there": claiming(
            {topic: [0, 1]}, 2, user_data=encode_sticky({topic: [4, 5]}, NEWEST)
        ),
        "another generation in the user data": claiming(all_of_it, 1, user_data=encode_generation(NEWEST)),
        "a weight that is none": claiming({}, 1, user_data=encode_sticky({}, 1, weight=-5)),
        "a topic that it does not subscribe to": subscription(
            3,
            [],
            owned=partition_list([(topic, range(PARTITIONS))]),
            user_data=encode_sticky(all_of_it, NEWEST),
            generation=NEWEST,
        ),
        "names that are no topics": subscription(3, ["", ".", "..", "a/b", "ü", "x" * 250, "t\n", topic]),
    }


def measures(topic: str) -> dict[str, bytes]:
    """What no member can have measured, beside true claims and absurd ones."""
    most = Measured(*MOST)
    good = encode_measured({(topic, number): most for number in range(PARTITIONS)})
    raws = {
        "the most there can be": good,
        "not numbers": good.replace(struct.pack(">f", MOST[0]), b"\x7f\xc0\0\0"),
        "below 0": good.replace(struct.pack(">f", MOST[1]), struct.pack(">f", -7)),
        "cut off": good[:-7],
        "of topics that are not there": encode_measured({(f"no-{n}", n): most for n in range(90)}),
        "more partitions than bytes": good[:4] + good[4 : 6 + len(topic)] + bytes(12) + b"\x7f\xff",
        "far too many": b"\0\1" + bytes(300_000),
    }
    return {
        f"{what}, and {len(owned)} bytes of claims": subscription(
            3, [topic], user_data=encode_generation(5, 1, Extra(0, raw)), owned=owned, generation=5
        )
        for what, raw in raws.items()
        for owned in (partition_list([]), partition_list([(topic, range(PARTITIONS))]))
    }


KINDS = {
    "undecodable": undecodable,
    "unreadable behind topics": unreadable_behind_topics,
    "huge": huge,
    "contradictory": contradictory,
    "measures": measures,
}


def errors_of(group: ConsumerGroup) -> list[str]:
    return [str(event) for event in group.timeline.of(Failed)]


def never_two_owners(group: ConsumerGroup, hostile: RawMember) -> bool:
    """Among ours, and between ours and what the hostile one was assigned."""
    return (
        not group.timeline.double_assigned()
        and not group.timeline.overlaps("generation")
        and not any(
            owned & hostile.assigned.get(one.generation, frozenset())
            for one in group.timeline.rebalances
            for owned in one.assignments.values()
        )
    )


@pytest.fixture
def hostile_in(kafka_cluster: Any) -> Callable[..., RawMember]:
    """Makes members: hostile_in(group, assignor, the bytes that it sends, **RawMember's other arguments)."""

    def make(
        group: ConsumerGroup, assignor: Any, raw: bytes | Iterator[bytes], **behaviour: Any
    ) -> RawMember:
        return RawMember(
            kafka_cluster.bootstrap_servers[0],
            group.group_id,
            [assignor.name],
            lambda _: raw if isinstance(raw, bytes) else next(raw),
            **behaviour,
        )

    return make


@pytest.mark.parametrize(
    ("client", "assignor", "kind"),
    [
        *(("kafka-python", assignor, kind) for assignor in ALL for kind in [*KINDS][:2]),
        *(("kafka-python", assignor, kind) for assignor in SOME for kind in ("huge", "contradictory")),
        *(("aiokafka", assignor, kind) for assignor in SOME[1:] for kind in [*KINDS][:4]),
        *((client, LoadAwareAssignor, "measures") for client in ("kafka-python", "aiokafka")),
    ],
)
def test_a_group_goes_on_beside_a_member_whatever_its_subscription_is(
    *,
    client: str,
    assignor: Any,
    kind: str,
    scene: Scene,
    hostile_in: Callable[..., RawMember],
) -> None:
    # Nobody is to be expelled here, however laden the machine that decodes all this.
    group = scene.group([assignor], client=client, settings={"session_timeout_ms": 20_000})
    ownership: Sharing = "broadcast" if assignor is BroadcastAssignor else "exclusive"
    for name in "ab":
        group.join(name)
        group.wait_stable(ownership=ownership)
    with scene.load() as load:
        for what, raw in KINDS[kind](scene.topic).items():
            with hostile_in(group, assignor, raw) as hostile:
                hostile.wait_for(lambda hostile: bool(hostile.assigned))
                if kind == "undecodable":
                    assert set(hostile.assigned.values()) == {frozenset()}, what
                    group.wait_consumed(load)
                elif kind == "unreadable behind topics" and assignor is not RandomAssignor:
                    hostile.wait_for(lambda hostile: any(hostile.assigned.values()))
            group.wait_stable(ownership=ownership)
            assert errors_of(group) == [], what
            assert assignor is BroadcastAssignor or never_two_owners(group, hostile), what
        load.stop()
        group.wait_consumed(load)
    if kind == "undecodable":
        warnings = group.members["a"].log() + group.members["b"].log()
        assert "gets nothing: its subscription (1 bytes) cannot be read" in warnings


@pytest.mark.parametrize("syncs", [True, False], ids=["syncs", "does not sync"])
@pytest.mark.parametrize("assignor", SOME)
def test_what_a_silent_member_was_given_comes_back_when_it_is_expelled(
    *,
    assignor: Any,
    syncs: bool,
    scene: Scene,
    hostile_in: Callable[..., RawMember],
) -> None:
    group = scene.group([assignor])
    for name in "ab":
        group.join(name)
        group.wait_stable()
    raw = subscription(3, [scene.topic])
    silent = hostile_in(group, assignor, raw, session_timeout=1.0, syncs=syncs, lives=False)
    with scene.load() as load, silent as hostile:
        hostile.wait_for(lambda hostile: hostile.joins > 0 and (bool(hostile.assigned) or not syncs))
        # It never leaves, so only the coordinator can have made it go.
        assert sum(map(len, group.wait_stable().assignments.values())) == PARTITIONS
        load.stop()
        group.wait_consumed(load)
    given = group.timeline.rebalances[-1].generation
    assert group.describe().state == "Stable"
    assert all(generation < given for generation in hostile.assigned)
    assert errors_of(group) == []
    assert never_two_owners(group, hostile)


@pytest.mark.parametrize("assignor", SOME)
def test_a_group_goes_on_beside_a_member_that_rejoins_with_other_bytes_all_the_time(
    *,
    assignor: Any,
    scene: Scene,
    hostile_in: Callable[..., RawMember],
) -> None:
    group = scene.group([assignor])
    for name in "ab":
        group.join(name)
        group.wait_stable()
    bytes_of_all_kinds = [*undecodable(scene.topic).values(), *contradictory(scene.topic).values()]
    rng = Random(7)
    garbage = (rng.choice(bytes_of_all_kinds) for _ in count())
    with scene.load() as load:
        with hostile_in(group, assignor, garbage, rejoins=True) as hostile:
            hostile.wait_for(lambda hostile: len(hostile.assigned) >= 15, timeout=120)
        group.wait_stable()
        load.stop()
        group.wait_consumed(load)
    assert errors_of(group) == []
    assert never_two_owners(group, hostile)


def test_a_stock_leader_fails_for_as_long_as_a_member_is_there_whose_subscription_cannot_be_decoded(
    scene: Scene, hostile_in: Callable[..., RawMember]
) -> None:
    # A leader that fails again and again is expelled in the end. Only then the other can leave.
    # The session is not longer on a slow machine: a member of the kit ends after 100 errors, in 20 s.
    group = scene.group([RangePartitionAssignor], settings={"session_timeout_ms": 10_000})
    group.join("a")
    group.wait_stable()
    with hostile_in(group, RangePartitionAssignor, b"\0") as hostile:
        group.wait_for(lambda: len(errors_of(group)) >= 3, what="the leader's poll to raise")
        assert hostile.assigned == {}
    assert {(event.type, event.text) for event in group.timeline.of(Failed)} == {
        (struct.error.__name__, "unpack requires a buffer of 2 bytes")
    }
    group.wait_stable()
