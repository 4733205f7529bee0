"""Snapshots of classic groups: all members at once say what they say one by one, whatever their bytes."""

from __future__ import annotations

import struct

from hypothesis import given, strategies as st

from kafka_assignors._groups import classic
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import read_subscriptions
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    RecordError,
    decode_assignment,
    decode_subscription,
)
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from tests.support.scale import examples
from tests.support.wire import NULL, partition_list, subscription

TOPICS = ["a", "b", "\u00e9\u4e2d", ""]


@st.composite
def partition_lists(draw: st.DrawFn) -> bytes:
    rows = draw(
        st.lists(st.tuples(st.sampled_from(TOPICS), st.lists(st.integers(-1, 9), max_size=3)), max_size=3)
    )
    return partition_list(rows)


@st.composite
def blobs(draw: st.DrawFn) -> bytes | None:
    made: bytes | None = draw(
        st.one_of(
            st.none(),
            st.just(b""),
            st.builds(encode_generation, st.integers(-1, 5), st.integers(1, 3)),
            st.builds(
                encode_sticky,
                st.dictionaries(st.sampled_from(TOPICS), st.lists(st.integers(0, 9), max_size=3), max_size=2),
                st.integers(-1, 5),
            ),
            partition_lists(),
            partition_lists().map(lambda data: b"\0\1" + data + b"\0\0\0\7"),
            st.binary(max_size=12),
        )
    )
    return made


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


@st.composite
def subscriptions(draw: st.DrawFn) -> bytes:
    return subscription(
        draw(st.sampled_from([0, 1, 2, 3, 3, 3, 4])),
        draw(st.lists(st.sampled_from([*TOPICS, *TOPICS, None]), max_size=3)),
        user_data=draw(blobs()),
        owned=draw(partition_lists() | st.just(NULL)),
        generation=draw(st.integers(-1, 5)),
        rack=draw(st.sampled_from([None, "", "r1"])),
    )


@st.composite
def assignments(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return b""
    return (
        struct.pack(">h", draw(st.sampled_from([0, 1, 3]))) + draw(partition_lists()) + sized(draw(blobs()))
    )


def cut(data: bytes, at: int) -> bytes:
    return data[: at % (len(data) + 1)]


@st.composite
def values(draw: st.DrawFn) -> GroupMetadataValue:
    members = [
        MemberMetadata(
            member_id=f"m{number}",
            group_instance_id=None,
            client_id="c",
            client_host="/h",
            rebalance_timeout=1,
            session_timeout=1,
            subscription=draw(subscriptions()),
            assignment=draw(assignments()),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    if members and draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, 200))
        spoilt = members[0]
        members[0] = MemberMetadata(
            **{
                **{name: getattr(spoilt, name) for name in MemberMetadata.__slots__},
                "subscription": cut(spoilt.subscription, place),
                "assignment": cut(spoilt.assignment, place),
            }
        )
    return GroupMetadataValue(
        version=3,
        protocol_type="consumer",
        generation=1,
        protocol=draw(st.sampled_from(["sticky", "cooperative-sticky", "range"])),
        leader=None,
        current_state_timestamp=-1,
        members=tuple(members),
    )


def strictly(member: MemberMetadata, strategy: str | None) -> classic._Decoded:
    """One member by the decoders of records, which take nothing that Kafka does not write."""
    said = classic._Decoded()
    try:
        read = decode_subscription(member.subscription)
    except RecordError:
        pass
    else:
        claimed, _ = claims_of(strategy, read_subscriptions([member.subscription]))
        said = classic._Decoded(
            rack=read.rack_id or None,
            topics=frozenset(read.topics),
            claims=classic._by_topic(claimed.table)[0],
            claimed_generation=int(claimed.generations[0]),
        )
    try:
        assigned = decode_assignment(member.assignment)
    except RecordError:
        return said
    if assigned is None:
        return said
    return said._replace(assignment=classic._flat(assigned.assigned_partitions))


@given(value=values())
@examples(150)
def test_all_at_once_is_as_one_by_one(value: GroupMetadataValue) -> None:
    assert classic._read(value) == [strictly(member, value.protocol) for member in value.members]


def test_what_is_usual_is_read() -> None:
    assignment = b"\0\0" + partition_list([("a", [0])]) + NULL
    member = MemberMetadata(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=1,
        subscription=subscription(3, ["a"], user_data=encode_sticky({"a": [0, 1]}, 4), generation=4),
        assignment=assignment,
    )
    value = GroupMetadataValue(
        version=3,
        protocol_type="consumer",
        generation=5,
        protocol="sticky",
        leader="m",
        current_state_timestamp=-1,
        members=(member,),
    )

    assert classic._read(value) == [
        classic._Decoded(
            topics=frozenset({"a"}),
            claims={"a": (0, 1)},
            claimed_generation=4,
            assignment=frozenset({("a", 0)}),
        )
    ]
