"""Records of the offsets topic. What holds of damaged bytes is in tests/unit/test_fuzz.py."""

import pickle
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from kafka_assignors._model.group import NO_GENERATION
from kafka_assignors._wire.offsets_topic import (
    Assignment,
    GroupMetadataValue,
    OffsetCommit,
    Record,
    RecordError,
    UnknownRecord,
    decode_assignment,
    decode_group_metadata,
    decode_offset_commit,
    decode_prior_assignment,
    decode_record,
    decode_subscription,
    encode_group_metadata,
    group_metadata_key,
    record_type,
)
from kafka_assignors._wire.user_data import StickyUserData, encode_generation, encode_sticky
from tests.support.effort import assert_takes, with_memory
from tests.support.offsets_topic import WRITTEN, groups
from tests.support.wire import (
    ODD,
    partition_list,
    string,
    subscription,
)

GROUP_KEY = group_metadata_key("g")
VARINT = b"\0\4\xff\xff\xff\xff"  # the length of the protocol type begins so, in version 4
NO_GROUPS = [
    (b"", "0 of 0: the version needs 2 bytes, 0 are left"),
    (b"\0\5", "2 of 2: version 5 is not known, only 0 to 4 are"),
    (b"\xff\xff", "2 of 2: version -1 is not known, only 0 to 4 are"),
    (b"\0\3\0\1\xff", "5 of 5: the protocol type is not UTF-8"),
    (b"\0\3\xff\xfe", "4 of 4: the protocol type is negative (-2)"),
    (VARINT + b"\xff\1", "7 of 8: the length of the protocol type is a varint of more than 5"),
    (VARINT + b"\x10", "7 of 7: the length of the protocol type (4563402751) takes"),
]
GROUPS = [raw for key, raw, _ in WRITTEN if key == "0002000167"]


class TestRecords:
    @pytest.mark.parametrize(("key", "value", "expected"), WRITTEN)
    def test_what_a_broker_wrote_is_read(self, key: str, value: str, expected: Record) -> None:
        assert decode_record(bytes.fromhex(key), bytes.fromhex(value)) == expected

    @pytest.mark.parametrize(("key", "_", "expected"), WRITTEN)
    def test_a_null_value_is_a_tombstone_of_its_key(self, key: str, _: str, expected: Any) -> None:
        assert decode_record(bytes.fromhex(key), None) == replace(expected, value=None)

    @pytest.mark.parametrize(
        ("number", "name"),
        [(10, "ShareGroupMemberMetadata"), (17, "StreamsGroupMetadata"), (9, None), (-1, None)],
    )
    def test_other_types_are_kept_as_they_are(self, number: int, name: str | None) -> None:
        key = struct.pack(">h", number) + b"\xff"
        assert decode_record(key, b"\1") == UnknownRecord(type=number, name=name, key=key, value=b"\1")
        assert decode_record(key, None) == UnknownRecord(type=number, name=name, key=key, value=None)
        assert record_type(key) == number

    def test_an_old_key_can_have_a_newer_value(self) -> None:
        """As brokers wrote it for offsets that clients of 0.8 had committed."""
        (raw,) = [raw for key, raw, _ in WRITTEN if (key[:4], raw[:4]) == ("0001", "0003")]
        record = decode_record(bytes.fromhex("0000 0001 67 0001 74 00000002"), bytes.fromhex(raw))
        assert isinstance(record, OffsetCommit)
        assert record.value == decode_offset_commit(bytes.fromhex(raw))

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            (None, b"", "a record's key, byte 0 of 0: it is null; all records of the offsets topic have one"),
            (b"", b"", "a record's key, byte 0 of 0: it is too short for the type of record"),
            (b"\0", None, "a record's key, byte 0 of 1: it is too short for the type of record"),
            (
                b"\0\2",
                None,
                "GroupMetadataKey, byte 2 of 2: the length of the group id needs 2 bytes, 0 are left",
            ),
            (b"\0\2\xff\xff", None, "GroupMetadataKey, byte 4 of 4: the group id is null"),
            (GROUP_KEY + b"\0", None, "GroupMetadataKey, byte 5 of 6: 1 bytes are left over"),
            (
                b"\0\3\0\1g",
                bytes.fromhex("0000 00000005 01 00 09 0000000000000006 00"),
                "ConsumerGroupMetadataValue, byte 17 of 18: the field with tag 0 does not have its 9 bytes",
            ),
            (
                b"\0\7\0\1g\0\1m",
                bytes.fromhex("0000 00"),
                "ConsumerGroupTargetAssignmentMemberValue, byte 3 of 3: the array of topic partitions is",
            ),
            *((GROUP_KEY, value, f"GroupMetadataValue, byte {message}") for value, message in NO_GROUPS),
        ],
    )
    def test_what_is_no_record_is_refused_with_place_and_reason(
        self, key: bytes | None, value: bytes | None, message: str
    ) -> None:
        with pytest.raises(RecordError) as caught:
            decode_record(key, value)
        assert str(caught.value).startswith(message)

    @pytest.mark.parametrize(("key", "value", "_"), WRITTEN)
    def test_a_record_cut_short_anywhere_is_refused(self, key: str, value: str, _: Record) -> None:
        whole_key, whole = bytes.fromhex(key), bytes.fromhex(value)
        for end in range(len(whole)):
            with pytest.raises(RecordError):
                decode_record(whole_key, whole[:end])
        for end in range(2, len(whole_key)):
            with pytest.raises(RecordError):
                decode_record(whole_key[:end], whole)
        with pytest.raises(RecordError, match="1 bytes are left over"):
            decode_record(whole_key, whole + b"\0")

    def test_errors_cross_processes(self) -> None:
        error = RecordError("GroupMetadataValue", 3, 9, "no reason")
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        assert str(again) == str(error) == "GroupMetadataValue, byte 3 of 9: no reason"
        assert (again.reading, again.offset, again.size, again.reason) == error.args

    @pytest.mark.parametrize(
        ("key", "head"),
        [
            (GROUP_KEY, "0003 0000 00000001 ffff ffff 0000000000000001 7fffffff"),
            (GROUP_KEY, "0003 0000 00000001 ffff ffff 0000000000000001 0000d000"),
            (GROUP_KEY, "0004 01 00000001 00 00 0000000000000001 ffffffff0f"),
            (GROUP_KEY, "0004 01 00000001 00 00 0000000000000001 01 ffffffff0f"),
            (GROUP_KEY, "0003 7fff"),
            (b"\0\7\0\1g\0\1m", "0000 ffffffff07"),
            (b"\0\7\0\1g\0\1m", "0000 02 00000000000000000000000000000001 ffffffff07"),
            (b"\0\5\0\1g\0\1m", "0000 00 00 01 01 ffffffff07"),
        ],
        ids=["members", "members v3", "members v4", "tags", "text", "topics", "partitions", "names"],
    )
    def test_an_absurd_count_takes_neither_memory_nor_time(self, key: bytes, head: str) -> None:
        value = bytes.fromhex(head).ljust(30_000, b"\1")

        def refused() -> None:
            with pytest.raises(RecordError):
                decode_record(key, value)

        assert with_memory(refused)[1] < 1_000_000
        assert_takes(refused, million_steps=100)

    @pytest.mark.parametrize(
        ("key", "head", "one", "tail"),
        [
            (
                GROUP_KEY,
                "0004 01 00000001 00 00 0000000000000001",
                "01 00 01 01 00000000 00000000 01 01 00",
                "00",
            ),
            (b"\0\4\0\1g", "0000", "00" * 16 + "01 00000000 01 00", "00"),
            (b"\0\4\0\1g", "0000 02" + "00" * 16 + "01 00000000", "00000000 01 00", "00 00"),
            (b"\0\7\0\1g\0\1m", "0000", "00" * 16 + "01 00", "00"),
            (b"\0\x10\0\1g\0\1r", "0000", "01", "00" * 17),
        ],
        ids=["members", "topics", "partitions", "partitions of topics", "names"],
    )
    def test_memory_is_in_proportion_to_the_bytes(self, key: bytes, head: str, one: str, tail: str) -> None:
        """However many small things they are: 4000 here, whose number, plus one, is the varint a11f."""
        value = bytes.fromhex(head + "a11f" + one * 4000 + tail)
        record, peak = with_memory(lambda: decode_record(key, value))
        assert record.value is not None
        assert peak < 40 * len(value)

    def test_a_topic_named_very_often_takes_time_in_proportion(self) -> None:
        often = 160_000
        raw = b"\0\1" + partition_list([("t", [1])] * often) + b"\xff" * 4
        assert decode_assignment(raw) == Assignment(
            version=1, assigned_partitions={"t": (1,) * often}, user_data=None
        )
        # 40 to 100 of them; a list that is copied for each name takes 4,000.
        assert_takes(lambda: decode_assignment(raw), million_steps=400)


class TestGroups:
    @given(groups())
    def test_what_a_version_does_not_have_is_left_out(self, group: GroupMetadataValue) -> None:
        read = decode_group_metadata(encode_group_metadata(replace(group, version=0)))
        assert read == replace(
            group,
            version=0,
            current_state_timestamp=-1,
            members=tuple(
                replace(member, group_instance_id=None, rebalance_timeout=-1) for member in group.members
            ),
        )

    def test_there_is_no_version_5(self) -> None:
        group = decode_group_metadata(bytes.fromhex(GROUPS[0]))
        with pytest.raises(ValueError, match="GroupMetadataValue has no version 5, only 0 to 4"):
            encode_group_metadata(replace(group, version=5))

    @pytest.mark.parametrize("version", range(5))
    def test_a_name_has_at_most_32767_bytes(self, version: int) -> None:
        group = replace(decode_group_metadata(bytes.fromhex(GROUPS[3])), version=version)
        longest = replace(group, leader="ä" * 16_383 + "x")
        assert decode_group_metadata(encode_group_metadata(longest)).leader == longest.leader
        with pytest.raises(ValueError, match="a string of 32768 bytes is too long"):
            encode_group_metadata(replace(group, leader="ä" * 16_384))
        with pytest.raises(ValueError, match="a string of 32768 bytes is too long"):
            group_metadata_key("g" * 32_768)


PRIOR = encode_sticky({"t": [0, 1]}, 7)
PRIOR_ASSIGNMENTS = {
    "java": ("sticky", PRIOR, StickyUserData({"t": [0, 1]}, 7)),
    "java before KIP-341": ("sticky", PRIOR[:-4], StickyUserData({"t": [0, 1]})),
    "kafka-python": ("sticky", b"\0\1" + PRIOR, StickyUserData({"t": [0, 1]}, 7)),
    "weighted": ("sticky", encode_sticky({"t": [0, 1]}, 7, 3), StickyUserData({"t": [0, 1]}, 7, 3)),
    "java's generation": ("cooperative-sticky", encode_generation(7), StickyUserData({}, 7)),
    "weighted generation": ("cooperative-sticky", encode_generation(7, 3), StickyUserData({}, 7, 3)),
    "librdkafka": ("cooperative-sticky", PRIOR, StickyUserData({"t": [0, 1]}, 7)),
    "none": ("sticky", b"", None),
    "null": ("cooperative-sticky", None, None),
    "of range": ("range", b"anything", None),
    "of no protocol": (None, b"anything", None),
}


class TestWhatMembersSay:
    def test_newer_versions_are_read_as_far_as_they_are_known(self) -> None:
        raw = subscription(3, ["t"], generation=4, rack="r")
        newer = b"\0\7" + raw[2:] + b"more"
        assert decode_subscription(newer) == replace(decode_subscription(raw), version=7)
        assert decode_assignment(b"\0\7" + bytes(8) + b"more") == Assignment(
            version=7, assigned_partitions={}, user_data=b""
        )

    def test_no_bytes_are_no_assignment(self) -> None:
        assert decode_assignment(b"") is None

    @pytest.mark.parametrize(
        ("raw", "message"),
        [
            (b"", "byte 0 of 0: the version needs 2 bytes, 0 are left"),
            (b"\xff\xff", "byte 2 of 2: there is no version -1"),
            (subscription(0, ["t"])[:-5], "byte 8 of 8: a topic's name needs 1 bytes, 0 are left"),
            (subscription(0, [b"\xff"]), "byte 9 of 13: a topic's name b'\\xff' is not UTF-8"),
        ],
    )
    def test_what_is_no_subscription_is_refused(self, raw: bytes, message: str) -> None:
        with pytest.raises(RecordError) as caught:
            decode_subscription(raw)
        assert str(caught.value) == f"ConsumerProtocolSubscription, {message}"

    @pytest.mark.parametrize("name", ODD)
    def test_what_stands_behind_the_topics_never_makes_them_unreadable(self, name: str) -> None:
        raw, rest = ODD[name]
        read = decode_subscription(raw)
        assert read.topics == ("t",)
        assert (read.user_data or b"") == rest.get("user_data", b"")
        assert read.owned_partitions == {topic: tuple(ids) for topic, ids in rest.get("owned", ())}
        assert read.generation_id == rest.get("generation", NO_GENERATION)
        assert read.rack_id == rest.get("rack")
        assert read.fault is not None

    def test_what_is_no_assignment_is_refused(self) -> None:
        with pytest.raises(RecordError, match="ConsumerProtocolAssignment, byte 6 of 6: 1 topics do not fit"):
            decode_assignment(b"\0\1\0\0\0\1")

    @pytest.mark.parametrize(
        ("protocol", "user_data", "expected"), PRIOR_ASSIGNMENTS.values(), ids=PRIOR_ASSIGNMENTS
    )
    def test_a_prior_assignment_is_read_in_every_layout_in_use(
        self, protocol: str | None, user_data: bytes | None, expected: StickyUserData | None
    ) -> None:
        read = decode_prior_assignment(protocol, user_data)
        if read is not None:
            read = replace(read, claims={topic: list(ids) for topic, ids in read.claims.items()})
        assert read == expected

    def test_user_data_in_no_layout_is_refused(self) -> None:
        with pytest.raises(
            RecordError, match="sticky user data, byte 0 of 3: 3 bytes are no sticky user data"
        ):
            decode_prior_assignment("sticky", string("t"))
