"""Records of the archive to rows of the tables, every way."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_assignors._wire import codec
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from kafka_assignors.history import _arrow as native
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._tables import one_by_one
from kafka_assignors.history._tables.one_by_one import DECODED
from tests.support.archives import archived, batch_of, group, member, random_records, row, time_of
from tests.support.decoded_tables import compiled, decoded_fast, each_decoder
from tests.support.offsets_topic import WRITTEN
from tests.support.wire import partition_list, subscription

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""UUID 1 as Java prints it."""
KEY = group_metadata_key("g")


def of_values(*values: bytes) -> Any:
    """A batch of records of one group."""
    return archived([(KEY, value) for value in values])


def taken_at_once(batch: Any) -> list[int]:
    decoded = native.decode(batch["key"], batch["value"])
    assert decoded is not None
    columns, _ = decoded
    return native.numbers(columns["record"]).tolist()  # type: ignore[no-any-return]


def rows(decoded: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = decoded[name].to_pylist()
    return found


def cells(decoded: dict[str, Any], name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(one[column] for column in columns) for one in rows(decoded, name)]


@each_decoder
class TestClassicGroups:
    def test_a_record_has_a_row_in_each_table(self, decode: Any) -> None:
        said = subscription(
            3,
            ["t", "u"],
            user_data=encode_sticky({"t": [1]}, 4),
            owned=partition_list([("t", [1]), ("u", [])]),
            generation=5,
            rack="r",
        )
        value = group(6, member("m", {"t": [2, 1], "u": []}, instance_id="i", said=said), protocol="sticky")
        decoded = decode(batch_of([row(KEY, value, partition=7, offset=9)]), {})
        place = {"group": "g", "partition": 7, "offset": 9, "time": time_of(9), "generation": 6}
        size = len(KEY) + len(value)
        counts = {"records": 1, "generations": 1, "members": 1, "assignments": 2, "claims": 3}
        for name, count in counts.items():
            assert cells(decoded, name, *place) == [tuple(place.values())] * count
        of_record = ("leader_epoch", "type", "name", "member_id", "tombstone", "size")
        assert cells(decoded, "records", *of_record) == [(3, 2, "GroupMetadata", None, False, size)]
        of_generation = ("leader_epoch", "protocol", "leader", "records", "first_time", "state_time", "size")
        assert cells(decoded, "generations", *of_generation) == [
            (3, "sticky", "m", 1, time_of(9), time_of(0), size)
        ]
        of_member = (
            "member_id",
            "instance_id",
            "client_id",
            "host",
            "rack",
            "topics",
            "topic_regex",
            "problem",
        )
        assert cells(decoded, "members", *of_member) == [
            ("m", "i", "client-m", "/10.0.0.1", "r", ["t", "u"], None, None)
        ]
        assert cells(decoded, "assignments", "member_id", "stage", "topic", "topic_id", "partitions") == [
            ("m", "assigned", "t", None, [2, 1]),
            ("m", "assigned", "u", None, []),
        ]
        assert cells(decoded, "claims", "source", "claimed_generation", "topic", "partitions") == [
            ("owned", 5, "t", [1]),
            ("owned", 5, "u", []),
            ("sticky", 4, "t", [1]),
        ]
        assert rows(decoded, "rejected") == []

    @pytest.mark.parametrize(
        ("protocol", "user_data", "claims"),
        [
            ("sticky", encode_sticky({"t": [0, 1]}, 4), [("sticky", 4, "t", [0, 1])]),
            ("sticky", encode_sticky({"t": [0, 1]}, 4)[:-4], [("sticky", -1, "t", [0, 1])]),
            ("sticky", encode_sticky({"t": [0, 1]}, 4, weight=9), [("sticky", 4, "t", [0, 1])]),
            ("sticky", b"\0\1" + encode_sticky({"t": [0, 1]}, 4), [("sticky", 4, "t", [0, 1])]),
            ("sticky", encode_sticky({}, 4), [("sticky", 4, None, [])]),
            ("sticky", encode_sticky({}, -1), []),
            ("sticky", partition_list([("t", [0]), ("t", [2])]), [("sticky", -1, "t", [0, 2])]),
            ("cooperative-sticky", encode_generation(4), [("sticky", 4, None, [])]),
            ("cooperative-sticky", encode_generation(4, 9), [("sticky", 4, None, [])]),
            ("cooperative-sticky", encode_sticky({}, 4), [("sticky", 4, None, [])]),
            ("cooperative-sticky", encode_sticky({"t": [1]}, 4), [("sticky", 4, "t", [1])]),
            ("range", encode_sticky({"t": [0, 1]}, 4), []),
            ("sticky", None, []),
            ("sticky", b"", []),
        ],
    )
    def test_every_layout_of_user_data_is_a_claim(
        self, decode: Any, protocol: str, user_data: bytes | None, claims: list[Any]
    ) -> None:
        said = subscription(1, ["t"], user_data=user_data)
        decoded = decode(of_values(group(5, member("m", said=said), protocol=protocol)), {})
        assert cells(decoded, "claims", "source", "claimed_generation", "topic", "partitions") == claims
        assert cells(decoded, "members", "user_data", "problem") == [(user_data, None)]

    def test_a_generation_is_a_claim_without_partitions(self, decode: Any) -> None:
        said = subscription(2, ["t"], generation=5)
        decoded = decode(of_values(group(6, member("m", said=said))), {})
        assert cells(decoded, "claims", "source", "claimed_generation", "topic", "partitions") == [
            ("owned", 5, None, [])
        ]

    @pytest.mark.parametrize(
        ("said", "assigned", "problem"),
        [
            (b"\0", None, "ConsumerProtocolSubscription, byte 0 of 1: the version needs 2 bytes, 1 are left"),
            (
                subscription(1, ["t", None]),
                None,
                "ConsumerProtocolSubscription: a topic's name is null",
            ),
            (
                subscription(1, ["t"], user_data=b"x"),
                None,
                "sticky user data, byte 0 of 1: 1 bytes are no sticky user data (",
            ),
            (None, b"\0\1\0", "ConsumerProtocolAssignment, byte 2 of 3: the number of topics needs 4 bytes"),
            (
                b"\0",
                b"\0",
                "ConsumerProtocolSubscription, byte 0 of 1: the version needs 2 bytes, 1 are left; C",
            ),
        ],
    )
    def test_a_member_that_cannot_be_read_is_there_with_its_problem(
        self, decode: Any, said: bytes | None, assigned: bytes | None, problem: str
    ) -> None:
        one = replace(member("m", said=said), assignment=assigned or b"")
        decoded = decode(of_values(group(1, one, member("n", {"t": [0]}), protocol="sticky")), {})
        (first, _), (second, none) = cells(decoded, "members", "member_id", "problem")
        assert (first, second, none) == ("m", "n", None)
        assert cells(decoded, "members", "problem")[0][0].startswith(problem)
        assert cells(decoded, "assignments", "member_id") == [("n",)]
        assert rows(decoded, "rejected") == []

    def test_members_of_connect_are_no_consumers(self, decode: Any) -> None:
        decoded = decode(of_values(group(1, member("w", said=b"\0\1any"), protocol_type="connect")), {})
        assert cells(decoded, "generations", "protocol_type", "members") == [("connect", 1)]
        assert cells(decoded, "members", "topics", "user_data", "subscription_version", "problem") == [
            (None, None, None, None)
        ]
        assert rows(decoded, "assignments") == rows(decoded, "claims") == []

    def test_a_tombstone_is_a_record(self, decode: Any) -> None:
        decoded = decode(archived([(KEY, None)]), {})
        assert cells(decoded, "records", "group", "generation", "tombstone", "size") == [
            ("g", None, True, len(KEY))
        ]
        assert rows(decoded, "generations") == rows(decoded, "members") == []

    @pytest.mark.parametrize(
        ("told", "shown"), [(0, time_of(0)), (-1, None), (2**48, None), (2**63 - 1, None), (-(2**63), None)]
    )
    def test_a_state_time_that_no_clock_shows_is_null(self, decode: Any, told: int, shown: Any) -> None:
        raw = bytearray(group(1, version=2))
        at = raw.index((1_767_225_600_000).to_bytes(8))
        raw[at : at + 8] = (told or 1_767_225_600_000).to_bytes(8, signed=True)
        decoded = decode(of_values(bytes(raw)), {})
        assert cells(decoded, "generations", "state_time") == [(shown,)]


@each_decoder
class TestKip848:
    def decoded(self, decode: Any, kind: int, names: dict[str, str] | None = None) -> dict[str, Any]:
        pairs = [
            (bytes.fromhex(key), bytes.fromhex(value))
            for key, value, _ in WRITTEN
            if int(key[:4], 16) == kind
        ]
        found: dict[str, Any] = decode(archived(pairs), names or {})
        return found

    def test_epochs_are_generations(self, decode: Any) -> None:
        for kind, made in ((3, None), (6, 9)):
            decoded = self.decoded(decode, kind)
            columns = ("group", "generation", "protocol_type", "protocol", "leader", "members", "version")
            assert cells(decoded, "generations", *columns) == [("g", 5, "kip848", None, None, None, 0)]
            ((state_time,),) = cells(decoded, "generations", "state_time")
            assert (state_time and state_time.timestamp() * 1000) == made

    def test_what_members_say_is_a_member(self, decode: Any) -> None:
        decoded = self.decoded(decode, 5)
        columns = ("member_id", "instance_id", "rack", "topics", "topic_regex", "session_timeout_ms")
        assert cells(decoded, "members", *columns) == [
            ("m", "i", "r", ["t", "u"], None, None),
            ("m", None, None, [], "t.*", 45),
        ]

    @pytest.mark.parametrize("names", [{}, {TOPIC_ID: "t"}])
    def test_targets_and_what_members_have_are_assignments(self, decode: Any, names: dict[str, str]) -> None:
        columns = ("generation", "member_id", "stage", "topic", "topic_id", "partitions")
        topic = names.get(TOPIC_ID)
        assert cells(self.decoded(decode, 7, names), "assignments", *columns) == [
            (None, "m", "target", topic, TOPIC_ID, [0, 3])
        ]
        assert cells(self.decoded(decode, 8, names), "assignments", *columns) == [
            (5, "m", "current", topic, TOPIC_ID, [0, 3]),
            (5, "m", "revoking", topic, TOPIC_ID, [1]),
        ]

    def test_every_type_is_a_record_with_its_name_and_member(self, decode: Any) -> None:
        pairs = [(bytes.fromhex(key), bytes.fromhex(value)) for key, value, _ in WRITTEN]
        decoded = decode(archived([*pairs, *((key, None) for key, _ in pairs)]), {})
        expected = [
            (type(record).__name__, getattr(record, "member_id", None), int(key[:4], 16), tombstone)
            for tombstone in (False, True)
            for key, _, record in WRITTEN
        ]
        assert cells(decoded, "records", "name", "member_id", "type", "tombstone") == expected
        assert rows(decoded, "rejected") == []


@each_decoder
class TestRejected:
    @pytest.mark.parametrize(
        ("key", "value", "reason"),
        [
            (None, b"x", "a record's key, byte 0 of 0: it is null; all records of the offsets topic"),
            (None, None, "a record's key, byte 0 of 0: it is null; all records of the offsets topic"),
            (b"\0", b"x", "a record's key, byte 0 of 1: it is too short for the type of record"),
            (b"\0\x0a\0\1g", b"x", "records of type 10 (ShareGroupMemberMetadata) are not read here"),
            (b"\xff\xfe", b"", "records of type -2 are not read here"),
            (KEY + b"\0", None, "GroupMetadataKey, byte 5 of 6: 1 bytes are left over"),
            (KEY, b"\0\5", "GroupMetadataValue, byte 2 of 2: version 5 is not known, only 0 to 4 are"),
            (KEY, b"\0\3\0\1\xff", "GroupMetadataValue, byte 5 of 5: the protocol type is not UTF-8"),
            (KEY, group(1) + b"\0", "1 bytes are left over"),
        ],
    )
    def test_bytes_that_are_no_record_are_kept_with_the_reason(
        self, decode: Any, key: bytes | None, value: bytes | None, reason: str
    ) -> None:
        decoded = decode(batch_of([row(key, value, partition=2, offset=3)]), {})
        (found,) = rows(decoded, "rejected")
        assert reason in found.pop("reason")
        assert found == {"partition": 2, "offset": 3, "time": time_of(3), "key": key, "value": value}
        assert all(batch.num_rows == 0 for name, batch in decoded.items() if name != "rejected")

    def test_a_text_that_is_longer_than_kafka_s_are_is_none(self, decode: Any) -> None:
        whole = group(1, member("m" * 9, {"t": [0]}), version=4)
        # In v4 a string's length is a varint: one more than it has.
        values = [
            whole.replace(b"\x0a" + b"m" * 9, length + b"m" * size)
            for size, length in (
                (9, b"\x0a"),
                (32_767, b"\x80\x80\x02"),
                (32_768, b"\x81\x80\x02"),
                (70_000, b"\xf1\xa2\x04"),
            )
        ]
        decoded = decode(of_values(*values), {})
        assert [len(name) for (name,) in cells(decoded, "members", "member_id")] == [9, 32_767]
        assert [reason.partition(": ")[2] for (reason,) in cells(decoded, "rejected", "reason")] == [
            f"{what} has {size:,} bytes: Kafka's strings have 32,767 at most"
            for what, size in (("the leader", 32_768), ("the leader", 70_000))
        ]

    def test_an_empty_batch_has_no_rows(self, decode: Any) -> None:
        decoded = decode(pa.RecordBatch.from_pylist([], schema=ARCHIVE), {})
        assert {name: batch.num_rows for name, batch in decoded.items()} == dict.fromkeys(DECODED, 0)


class TestEveryWay:
    def every(self, batch: Any, names: dict[str, str] | None = None) -> dict[str, Any]:
        slow = one_by_one.decode(batch, names or {})
        if codec.compiled() is not None:
            for name, rows in decoded_fast(batch, names or {}).items():
                rows.validate(full=True)
                assert rows.equals(pa.Table.from_batches([slow[name]])), name
        assert slow["records"].num_rows + slow["rejected"].num_rows == batch.num_rows
        return slow

    @pytest.mark.parametrize("seed", range(40))
    def test_random_and_damaged_records_give_the_same_rows(self, seed: int) -> None:
        batch = archived(random_records(Random(seed), 120))
        decoded = self.every(batch, {TOPIC_ID: "t"})
        assert min(decoded[name].num_rows for name in DECODED) > 0
        # A batch need not begin where its buffers do.
        self.every(batch.slice(37, 50))

    def test_records_cut_short_anywhere_give_the_same_rows(self) -> None:
        said = subscription(3, ["t", "ü"], user_data=encode_sticky({"t": [1]}, 4), generation=3, rack="r")
        value = group(6, member("m", {"t": [2, 1]}, instance_id="i", said=said), protocol="sticky")
        self.every(of_values(*(value[:end] for end in range(len(value) + 1))))

    def test_what_members_say_and_get_damaged_anywhere_gives_the_same_rows(self) -> None:
        prior = encode_sticky({"t": [1], "ü": []}, 4)
        whole = member("m", {"t": [2, 1], "u": []}).assignment
        values = []
        for version in range(4):
            said = subscription(
                version, ["t"], user_data=prior, owned=partition_list([("t", [3])]), generation=3, rack="r"
            )
            cut = [(said[:end], whole) for end in range(len(said))]
            cut += [(said, whole[:end]) for end in range(len(whole) + 1)]
            cut += [
                (subscription(version, ["t"], user_data=prior[:end]), whole) for end in range(len(prior) + 1)
            ]
            cut += [(b"\xff\xff" + said[2:], whole), (said, b"\xff\xff" + whole[2:])]
            for one, assigned in cut:
                # What comes next in the record could be taken for the end of what was cut.
                some = [replace(member("m", said=one), assignment=assigned), member("n", {"t": [7]})]
                values += [group(6, *some, protocol=name) for name in ("sticky", "cooperative-sticky")]
        self.every(of_values(*values))

    def test_a_member_that_stands_twice_in_a_record_has_both_unless_they_cannot_be_read(self) -> None:
        twice = group(1, member("m", {"t": [0]}), member("m", {"t": [1], "u": [2]}))
        bad = twice.replace(b"\0\1t\0\0\0\1\0\0\0\1", b"\0\1\x9c\0\0\0\1\0\0\0\1")
        assert bad != twice
        self.every(of_values(twice, bad, twice))

    def test_records_as_brokers_write_them_are_taken_at_once(self) -> None:
        values = [group(1, member("m", {"t": [0]}), version=version) for version in range(4)]
        if codec.compiled() is not None:
            assert taken_at_once(of_values(*values)) == [0, 1, 2, 3]

    def test_whatever_members_say_that_is_normal_is_taken_at_once(self) -> None:
        prior = encode_sticky({"t": [1], "ü": []}, 4)
        for protocol, user_data in (
            ("range", b"anything"),
            ("sticky", prior),
            ("sticky", prior[:-4]),
            ("sticky", encode_sticky({"t": [1]}, 4, weight=9)),
            ("sticky", b"\0\1" + prior),
            ("cooperative-sticky", encode_generation(4)),
            ("cooperative-sticky", encode_generation(4, 9)),
            ("cooperative-sticky", encode_sticky({}, 4)),
            ("cooperative-sticky", None),
        ):
            values = [
                group(
                    6,
                    member(
                        "m",
                        {"t": [0], "ü": [1, 2]},
                        instance_id="i",
                        said=subscription(
                            version,
                            ["t", "ü"],
                            user_data=user_data,
                            owned=partition_list([("t", [1])]),
                            generation=5,
                            rack="r",
                        ),
                    ),
                    member("n"),
                    protocol=protocol,
                )
                for version in range(5)
            ]
            batch = of_values(*values)
            self.every(batch)
            if codec.compiled() is not None:
                assert taken_at_once(batch) == [0, 1, 2, 3, 4]

    def test_an_odd_record_leaves_the_others_to_be_taken_at_once(self) -> None:
        normal = group(1, member("m", {"t": [0]}))
        odd = [
            normal[:-1],
            group(1, member("m", said=b"\0")),
            group(1, member("m", said=subscription(1, ["t"], user_data=b"\1")), protocol="sticky"),
            group(1, member("m", {"t": [0]})).replace(b"client-m", b"client-\xff"),
            group(
                1, member("m", said=subscription(1, ["t"], owned=partition_list([("u", [0]), ("u", [1])])))
            ),
        ]
        pairs = [(KEY, value) for one in odd for value in (normal, one)]
        batch = archived([*pairs, (KEY, None), (None, None), (KEY, normal)])
        self.every(batch)
        if codec.compiled() is not None:
            assert taken_at_once(batch) == [0, 2, 4, 6, 8, 12]

    def test_a_group_larger_than_all_others_gives_the_same_rows(self) -> None:
        def of_size(count: int) -> bytes:
            return group(1, *(member(f"m{number}", {"t": [number]}) for number in range(count)))

        values = [of_size(2), of_size(2_000), *(of_size(number % 7) for number in range(60))]
        self.every(of_values(*values))

    @pytest.mark.parametrize("where", ["subscribed", "owned", "assigned"])
    def test_a_member_with_more_topics_than_all_others_gives_the_same_rows(self, where: str) -> None:
        def of_topics(count: int) -> bytes:
            topics = [f"t{number}" for number in range(count)]
            said = subscription(
                1,
                topics if where == "subscribed" else [],
                owned=partition_list([(topic, [1]) for topic in topics] if where == "owned" else []),
            )
            assigned = {topic: [2] for topic in topics} if where == "assigned" else {}
            return group(1, member("m", assigned, said=said), member("n", said=said))

        values = [of_topics(2), of_topics(2_000), *(of_topics(number % 7) for number in range(60))]
        self.every(of_values(*values))

    def test_members_of_one_group_subscribe_to_the_same_topics_or_to_others(self) -> None:
        long = "t" * 400
        said = [["t", "u"], ["t", "u"], ["u", "t"], ["t"], [], ["t", "u", "v"], ["t", "u"]]
        values = [
            group(
                1, *(member(f"m{number}", said=subscription(1, topics)) for number, topics in enumerate(some))
            )
            for some in (said, said[::-1], said[2:], [[long], [], ["t"], [long]])
        ]
        self.every(of_values(*values))

    @pytest.mark.parametrize("count", [2**31 - 1, 50_000, 1_000, 100, -1, -(2**31)])
    @pytest.mark.parametrize(
        "place", ["members", "topics", "owned topics", "owned partitions", "assigned topics"]
    )
    def test_counts_that_lie_give_the_same_rows(self, place: str, count: int) -> None:
        lie = count.to_bytes(4, signed=True)
        said = subscription(1, ["t"], owned=partition_list([("t", [3])]))
        one = member("m", {"t": [5]}, said=said)
        value = group(1, one)
        before = {
            "members": value.index(b"\0\1m", value.index(b"\0\1m") + 3),
            "topics": value.index(said) + 6,
            "owned topics": value.index(said) + 17,
            "owned partitions": value.index(said) + 24,
            "assigned topics": value.index(one.assignment) + 6,
        }[place]
        assert value[before - 4 : before] == b"\0\0\0\1"
        lying = value[: before - 4] + lie + value[before:]
        padded = lying + bytes(60_000)
        self.every(of_values(value, lying, padded))

    @pytest.mark.parametrize("pair", [(None, None), (KEY, None), (None, group(1))])
    def test_a_batch_of_nulls_gives_the_same_rows(self, pair: tuple[bytes | None, bytes | None]) -> None:
        for batch in (archived([pair] * 3), archived([pair]).slice(1), archived([])):
            self.every(batch)

    @compiled
    def test_buffers_that_do_not_fit_are_refused(self) -> None:
        module = codec.compiled()
        bounds = np.array([0, 9], dtype=np.int32)
        column = (0, None, bounds, b"123")
        with pytest.raises(ValueError, match="the buffers are no Arrow array"):
            module.decode(1, column, column)
