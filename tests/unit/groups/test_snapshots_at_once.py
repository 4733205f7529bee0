"""Snapshots of classic groups: all members at once say what they say one by one, whatever their bytes."""

from hypothesis import given, strategies as st

from kafka_assignors._groups import classic
from kafka_assignors._groups.snapshots import SnapshotMember
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import read_subscriptions
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    RecordError,
    decode_assignment,
    decode_subscription,
)
from tests.support.scale import examples
from tests.support.wire import ASSIGNMENTS, SUBSCRIPTIONS, damaged

MEMBERS = st.builds(
    MemberMetadata,
    member_id=st.just("m"),
    client_id=st.just("c"),
    client_host=st.just("/h"),
    session_timeout=st.just(1),
    subscription=SUBSCRIPTIONS | damaged(SUBSCRIPTIONS),
    assignment=st.just(b"") | ASSIGNMENTS | damaged(ASSIGNMENTS),
)
VALUES = st.builds(
    GroupMetadataValue,
    version=st.just(3),
    protocol_type=st.just("consumer"),
    generation=st.just(1),
    protocol=st.sampled_from(["sticky", "cooperative-sticky", "range"]),
    leader=st.none(),
    members=st.lists(MEMBERS, max_size=3).map(tuple),
)


def strictly(member: MemberMetadata, strategy: str | None) -> tuple[SnapshotMember, int]:
    """One member by the decoders of records, which take nothing that Kafka does not write."""
    said, generation = SnapshotMember("m", client_id="c", host="/h", session_timeout_ms=1), NO_GENERATION
    try:
        read = decode_subscription(member.subscription)
    except RecordError:
        pass
    else:
        claimed, _ = claims_of(strategy, read_subscriptions([member.subscription]))
        said = said._replace(
            rack=read.rack_id or None,
            topics=frozenset(read.topics),
            claims={topic: tuple(ids) for topic, ids in claimed.claims.claims()[0].items()},
        )
        generation = int(claimed.generations[0])
    try:
        assigned = decode_assignment(member.assignment)
    except RecordError:
        return said, generation
    if assigned is None:
        return said, generation
    return said._replace(assignment=classic.flat(assigned.assigned_partitions)), generation


@given(value=VALUES)
@examples(150)
def test_all_at_once_is_as_one_by_one(value: GroupMetadataValue) -> None:
    found = zip(*classic.decode_members(value), strict=True)
    assert [*found] == [strictly(member, value.protocol) for member in value.members]
