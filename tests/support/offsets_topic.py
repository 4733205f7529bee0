"""Records of the offsets topic: one of each type as Kafka 4.3.1 wrote them, and any number of groups."""

from uuid import UUID

from hypothesis import strategies as st

from kafka_assignors._wire.offsets_topic import (
    AssignedPartitions,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadata,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpression,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMetadataValue,
    EpochMemberState,
    GroupMetadata,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommit,
    OffsetCommitValue,
    PartitionMetadata,
    Record,
    TopicMetadata,
    TopicPartitions,
)
from tests.support.wire import ENTRIES, INT32, SUBSCRIPTIONS, partition_list

TOPIC_ID = UUID(int=1)


def _group(version: int) -> GroupMetadata:
    member = MemberMetadata(
        member_id="m-1",
        group_instance_id="i" if version >= 3 else None,
        client_id="m",
        client_host="/h",
        rebalance_timeout=300 if version >= 1 else -1,
        session_timeout=45,
        subscription=b"\0\1",
        assignment=b"",
    )
    value = GroupMetadataValue(
        version=version,
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="m-1",
        current_state_timestamp=99 if version >= 2 else -1,
        members=(member,),
    )
    return GroupMetadata(group_id="g", value=value)


def _commit(version: int) -> OffsetCommit:
    value = OffsetCommitValue(
        version=version,
        offset=5,
        leader_epoch=4 if version >= 3 else -1,
        metadata="é",
        commit_timestamp=9,
        expire_timestamp=8 if version == 1 else -1,
        topic_id=TOPIC_ID if version == 4 else None,
    )
    return OffsetCommit(group_id="g", topic="t", partition=2, value=value)


def _member(value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMemberMetadata:
    return ConsumerGroupMemberMetadata(group_id="g", member_id="m", value=value)


WRITTEN: list[tuple[str, str, Record]] = [
    (
        "0002000167",
        (
            "0000 0008 636f6e73756d6572 00000007 0005 72616e6765 0003 6d2d31 00000001"
            " 0003 6d2d31 0001 6d 0002 2f68 0000002d 00000002 0001 00000000"
        ),
        _group(0),
    ),
    (
        "0002000167",
        (
            "0001 0008 636f6e73756d6572 00000007 0005 72616e6765 0003 6d2d31 00000001"
            " 0003 6d2d31 0001 6d 0002 2f68 0000012c 0000002d 00000002 0001 00000000"
        ),
        _group(1),
    ),
    (
        "0002000167",
        (
            "0002 0008 636f6e73756d6572 00000007 0005 72616e6765 0003 6d2d31 0000000000000063 00000001"
            " 0003 6d2d31 0001 6d 0002 2f68 0000012c 0000002d 00000002 0001 00000000"
        ),
        _group(2),
    ),
    (
        "0002000167",
        (
            "0003 0008 636f6e73756d6572 00000007 0005 72616e6765 0003 6d2d31 0000000000000063 00000001"
            " 0003 6d2d31 0001 69 0001 6d 0002 2f68 0000012c 0000002d 00000002 0001 00000000"
        ),
        _group(3),
    ),
    (
        "0002000167",
        (
            "0004 09 636f6e73756d6572 00000007 06 72616e6765 04 6d2d31 0000000000000063 02"
            " 04 6d2d31 02 69 02 6d 03 2f68 0000012c 0000002d 03 0001 01 00 00"
        ),
        _group(4),
    ),
    (
        "0002000167",
        "0003 0008 636f6e73756d6572 00000008 ffff ffff 0000000000000063 00000000",
        GroupMetadata(
            group_id="g",
            value=GroupMetadataValue(
                version=3,
                protocol_type="consumer",
                generation=8,
                protocol=None,
                leader=None,
                current_state_timestamp=99,
                members=(),
            ),
        ),
    ),
    ("0000 0001 67 0001 74 00000002", "0000 0000000000000005 0002 c3a9 0000000000000009", _commit(0)),
    ("0001 0001 67 0001 74 00000002", "0000 0000000000000005 0002 c3a9 0000000000000009", _commit(0)),
    (
        "0001 0001 67 0001 74 00000002",
        "0001 0000000000000005 0002 c3a9 0000000000000009 0000000000000008",
        _commit(1),
    ),
    ("0001 0001 67 0001 74 00000002", "0002 0000000000000005 0002 c3a9 0000000000000009", _commit(2)),
    (
        "0001 0001 67 0001 74 00000002",
        "0003 0000000000000005 00000004 0002 c3a9 0000000000000009",
        _commit(3),
    ),
    (
        "0001 0001 67 0001 74 00000002",
        "0004 0000000000000005 00000004 03 c3a9 0000000000000009 01 00 10 00000000000000000000000000000001",
        _commit(4),
    ),
    (
        "0003 0001 67",
        "0000 00000005 01 00 08 0000000000000006",
        ConsumerGroupMetadata(group_id="g", value=ConsumerGroupMetadataValue(epoch=5, metadata_hash=6)),
    ),
    (
        "0004 0001 67",
        "0000 02 00000000000000000000000000000001 02 74 00000002 02 00000001 03 02 72 02 73 00 00 00",
        ConsumerGroupPartitionMetadata(
            group_id="g",
            value=ConsumerGroupPartitionMetadataValue(
                topics=(
                    TopicMetadata(
                        topic_id=TOPIC_ID,
                        topic_name="t",
                        num_partitions=2,
                        partition_metadata=(PartitionMetadata(partition=1, racks=("r", "s")),),
                    ),
                )
            ),
        ),
    ),
    (
        "0005 0001 67 0001 6d",
        "0000 02 69 02 72 02 63 03 2f68 03 02 74 02 75 00 0000012c 08 756e69666f726d 01 00 01 00",
        _member(
            ConsumerGroupMemberMetadataValue(
                instance_id="i",
                rack_id="r",
                client_id="c",
                client_host="/h",
                subscribed_topic_names=("t", "u"),
                subscribed_topic_regex=None,
                rebalance_timeout_ms=300,
                server_assignor="uniform",
            )
        ),
    ),
    (
        "0005 0001 67 0001 6d",
        (
            "0000 00 00 02 63 03 2f68 01 04 742e2a 0000012c 00"
            " 01 00 11 01 0000002d 02 06 72616e6765 03 0001 00 00"
        ),
        _member(
            ConsumerGroupMemberMetadataValue(
                instance_id=None,
                rack_id=None,
                client_id="c",
                client_host="/h",
                subscribed_topic_names=(),
                subscribed_topic_regex="t.*",
                rebalance_timeout_ms=300,
                server_assignor=None,
                classic_member_metadata=ClassicMemberMetadata(
                    session_timeout_ms=45,
                    supported_protocols=(ClassicProtocol(name="range", metadata=b"\0\1"),),
                ),
            )
        ),
    ),
    (
        "0006 0001 67",
        "0000 00000005 01 00 08 0000000000000009",
        ConsumerGroupTargetAssignmentMetadata(
            group_id="g",
            value=ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=5, assignment_timestamp=9),
        ),
    ),
    (
        "0007 0001 67 0001 6d",
        "0000 02 00000000000000000000000000000001 03 00000000 00000003 00 00",
        ConsumerGroupTargetAssignmentMember(
            group_id="g",
            member_id="m",
            value=ConsumerGroupTargetAssignmentMemberValue(
                topic_partitions=(TopicPartitions(topic_id=TOPIC_ID, partitions=(0, 3)),)
            ),
        ),
    ),
    (
        "0008 0001 67 0001 6d",
        (
            "0000 00000005 00000004 01"
            " 02 00000000000000000000000000000001 03 00000000 00000003 01 00 09 03 00000004 00000005"
            " 02 00000000000000000000000000000001 02 00000001 01 00 01 00 00"
        ),
        ConsumerGroupCurrentMemberAssignment(
            group_id="g",
            member_id="m",
            value=ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=5,
                previous_member_epoch=4,
                state=EpochMemberState.UNREVOKED_PARTITIONS,
                assigned_partitions=(
                    AssignedPartitions(topic_id=TOPIC_ID, partitions=(0, 3), assignment_epochs=(4, 5)),
                ),
                partitions_pending_revocation=(AssignedPartitions(topic_id=TOPIC_ID, partitions=(1,)),),
            ),
        ),
    ),
    (
        "0010 0001 67 0003 742e2a",
        "0000 02 02 74 0000000000000007 0000000000000009 00",
        ConsumerGroupRegularExpression(
            group_id="g",
            regular_expression="t.*",
            value=ConsumerGroupRegularExpressionValue(topics=("t",), version=7, timestamp=9),
        ),
    ),
]
"""Key and value, as hex, and what they say."""

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9) | st.just("n" * 300)


@st.composite
def groups(draw: st.DrawFn) -> GroupMetadataValue:
    """A group in any version; what that version does not have is as if nothing were told."""
    version = draw(st.integers(0, 4))
    members = st.builds(
        MemberMetadata,
        member_id=TEXTS,
        group_instance_id=st.none() | TEXTS if version >= 3 else st.none(),
        client_id=TEXTS,
        client_host=TEXTS,
        rebalance_timeout=INT32 if version >= 1 else st.just(-1),
        session_timeout=INT32,
        subscription=SUBSCRIPTIONS,
        assignment=st.just(b"")
        | ENTRIES.map(lambda entries: b"\0\1" + partition_list(entries) + b"\xff" * 4),
    )
    return GroupMetadataValue(
        version=version,
        protocol_type=draw(st.just("consumer") | TEXTS),
        generation=draw(INT32),
        protocol=draw(st.none() | TEXTS),
        leader=draw(st.none() | TEXTS),
        current_state_timestamp=draw(st.integers(-(2**63), 2**63 - 1)) if version >= 2 else -1,
        members=tuple(draw(st.lists(members, max_size=4))),
    )
