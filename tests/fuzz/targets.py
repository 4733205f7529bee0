"""What holds for every decoder whatever bytes come: functions of bytes that raise where it does not."""

import json
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any, Final, NamedTuple, TypeVar
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.util import ensure_valid_topic_name

from kafka_assignors import Group, Member, lead
from kafka_assignors._assignors._measured_load import Known, learn, load_of
from kafka_assignors._common.tree import FileError
from kafka_assignors._model.claims import NO_EXTRA
from kafka_assignors._model.members import MAX_WEIGHT
from kafka_assignors._model.plan import check
from kafka_assignors._wire import codec
from kafka_assignors._wire.measured import MOST, Measured, decode_measured, encode_measured
from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    GroupMetadataValue,
    MemberMetadata,
    RecordError,
    decode_assignment,
    decode_prior_assignment,
    decode_record,
    decode_subscription,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors._wire.reader import UnreadableError
from kafka_assignors._wire.repair import read_repaired
from kafka_assignors._wire.user_data import (
    StickyUserData,
    decode_all,
    decode_generation,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from kafka_assignors.groups._file import read_group
from kafka_assignors.history._decoded import read_batch
from kafka_assignors.history._tables import one_by_one
from kafka_assignors.planners._load import plan_load
from tests.support.archives import archived, random_records
from tests.support.decoded_tables import decoded_fast
from tests.support.group_histories import read_snapshots
from tests.support.networks import WIDE, check_network
from tests.support.offsets_topic import WRITTEN
from tests.support.wire import (
    NULL,
    Subscription,
    partition_list,
    read_assignments,
    read_lists,
    read_subscriptions,
    subscription,
)

_T = TypeVar("_T")

SEPARATOR: Final = b"\xfa\xce\xb0\x0c"
"""Stands between blobs where a target takes several; a mutation can make one of two, and two of one."""
NEXT: Final = b"\xfa\xce\xb0\x0d"
"""Stands between things of several blobs."""

TOPICS: Final = {"t": range(3), "u": [0, 1, 5, 9]}
STRATEGIES: Final = (
    *("broadcast", "cooperative-sticky", "random", "range", "roundrobin", "sticky", "load-aware"),
)
RACKS: Final = {("t", 0): frozenset({"r"}), ("t", 1): frozenset({"r", "s"}), ("u", 9): frozenset({"s"})}


class Target(NamedTuple):
    """A property of bytes."""

    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def _both_ways(read: Callable[[], _T]) -> _T:
    """What something returns, which must not depend on whether the codec is compiled."""
    result = read()
    with patch.object(codec, "_compiled", None):
        assert read() == result
    return result


# What is read, put so that it can be compared.


def _user_data(blobs: list[bytes]) -> list[Any]:
    read, faults = decode_all(blobs)
    return [
        *([*claim.items()] for claim in read.claims.claims()),
        read.generations.tolist(),
        read.weights.tolist(),
        read.extras,
        {number: str(fault) for number, fault in faults.items()},
    ]


# The properties.


def check_partition_lists(data: bytes) -> None:
    """Both ways read the same; each list as if it were alone."""
    blobs = data.split(SEPARATOR)
    lists = _both_ways(lambda: read_lists(blobs))
    assert lists == [one for blob in blobs for one in read_lists([blob])]


def check_subscriptions(data: bytes) -> None:
    """Both ways read the same, each as if it were alone; what is left after repairs kafka-python decodes, and
    it says the same."""
    blobs = data.split(SEPARATOR)
    read = _both_ways(lambda: read_subscriptions(blobs))
    assert read == [one for blob in blobs for one in read_subscriptions([blob])]
    _both_ways(lambda: [*codec.read_subscriptions(blobs).strange])
    left = [*blobs]
    for number, repair in read_repaired(blobs)[1].items():
        left[number] = repair.subscription
    for raw in left:
        for topic in ConsumerProtocolSubscription.decode(raw).topics:
            ensure_valid_topic_name(topic)
    for before, after in zip(read, read_subscriptions(left), strict=True):
        assert after is not None
        said = before or Subscription(frozenset())
        assert after.topics <= said.topics
        assert after[1:] == said[1:]
    assert not codec.read_subscriptions(left).strange


def check_user_data(data: bytes) -> None:
    """Both ways read the same; all at once as one by one; what was read can be written and read again."""
    blobs = data.split(SEPARATOR)
    *claims, generations, weights, extras, faults = _both_ways(lambda: _user_data(blobs))
    for number, blob in enumerate(blobs):
        assert 1 <= weights[number] <= MAX_WEIGHT
        short = decode_generation(blob)
        if short is not None:
            assert decode_generation(encode_generation(*short)) in (
                short,
                None,  # generation 0 with a weight, which no member can have
            )
        prior = None
        with suppress(UnreadableError):
            prior = decode_sticky(blob)
        if prior is None:
            assert (number in faults) == bool(blob)
            assert claims[number] == []
            continue
        assert number not in faults
        assert sum(4 * len(ids) for ids in prior.claims.values()) <= len(blob)
        assert (
            StickyUserData(
                dict(claims[number]), generations[number], weights[number], extras.get(number, NO_EXTRA)
            )
            == prior
        )
        raw = encode_sticky(prior.claims, prior.generation, prior.weight, prior.extra)
        sorted_claims = {topic: sorted(ids) for topic, ids in prior.claims.items()}
        assert decode_sticky(raw) == replace(prior, claims=sorted_claims)


def check_measured(data: bytes) -> None:
    """Numbers are in range or unknown; what is wrong is named; a leader makes a finite load of any bytes."""
    topics, fault = decode_measured(data)
    assert fault is None or 0 < len(fault) < 200
    for one in topics:
        assert one.numbers.shape == (one.ids.size, 3)
        numbers = np.concatenate((one.numbers, [one.others]))
        assert (np.isnan(numbers) | ((numbers >= 0) & (numbers <= 1.001 * np.array(MOST)))).all()
    topic = topics[0].name if topics else "t"
    members = [
        Member(member_id=name, topics=frozenset({topic}), claims={topic: ids}, data=raw)
        for name, ids, raw in (("a", [0, 1], data), ("b", [2], b""), ("c", [3, 4], data[::-1]))
    ]
    group = Group.of({topic: range(6)}, members)
    known, speed, faults = learn(Known.nothing(group))
    assert (group.members.ids[0] in faults) == (fault is not None)
    assert speed.min() > 0
    assert speed.mean() == pytest.approx(1)
    load = load_of(known, speed, np.zeros(6, dtype=np.bool_))
    for work in (load.arriving, load.waiting):
        assert (np.isfinite(work) & (work >= 0)).all()
    check(plan_load(group, load), group)


def check_read_assignments(data: bytes) -> None:
    """Both ways read the same; all at once as one by one."""
    blobs = data.split(SEPARATOR)
    read = _both_ways(lambda: read_assignments(blobs))
    for blob, given in zip(blobs, read, strict=True):
        alone = None
        with suppress(RecordError):
            alone = decode_assignment(blob)
        assert (given is None) == (alone is None and blob != b"")
        known = {} if alone is None else alone.assigned_partitions
        assert {topic: tuple(ids) for topic, ids in given or ()} == known


def check_assignments(data: bytes) -> None:
    """Both ways write the same, and kafka-python reads it as it was meant."""
    names = ["", "t", "ü", "n" * 300]
    numbers = np.frombuffer(data[: len(data) // 2 * 2], dtype=">i2").astype(np.int64)
    topics, ids = numbers % len(names), numbers << 16
    cuts = np.sort(np.abs(numbers[: numbers.size // 4]) % (numbers.size + 1))
    bounds = np.concatenate(([0], cuts, [numbers.size]))
    written = _both_ways(
        lambda: codec.write_partition_lists(names, topics, ids, bounds, head=b"\0\3", tail=NULL)
    )
    meant = [(names[topic], number) for topic, number in zip(topics.tolist(), ids.tolist(), strict=True)]
    for raw, (start, stop) in zip(written, pairwise(bounds.tolist()), strict=True):
        assert ConsumerProtocolAssignment.decode(raw).partitions() == meant[start:stop]


def check_leader(data: bytes) -> None:
    """Members that send anything get a valid plan beside good ones, who get all that nobody else holds."""
    strategy = STRATEGIES[data[0] % len(STRATEGIES)] if data else "range"
    blobs = data[1:].split(SEPARATOR)[:6]
    good = [
        subscription(3, ["t", "u"], owned=partition_list([("t", [0, 1])]), generation=3),
        subscription(1, ["t", "u"], user_data=encode_sticky({"u": [5]}, 2)),
    ]
    members = [(f"m{number}", None, raw) for number, raw in enumerate([*blobs[:3], *good, *blobs[3:]])]
    given: list[tuple[str, int]] = []
    assigned = lead(TOPICS, members, strategy, RACKS)
    assert assigned.keys() == {member_id for member_id, _, _ in members}
    for raw in assigned.values():
        given += ConsumerProtocolAssignment.decode(raw).partitions()
    every = {(topic, partition) for topic, ids in TOPICS.items() for partition in ids}
    assert set(given) <= every
    if strategy != "broadcast":
        assert len(set(given)) == len(given)
    if strategy not in {
        "cooperative-sticky",
        "load-aware",
    }:  # which wait for what a member says that it holds
        assert set(given) == every
    if strategy != "random":
        with patch.object(codec, "_compiled", None):
            assert lead(TOPICS, members, strategy, RACKS) == assigned


def check_group_file(data: bytes) -> None:
    """A file is read, or refused in words."""
    name, _, text = data.partition(b"\n")
    with tempfile.NamedTemporaryFile(suffix=".yaml" if name == b"yaml" else ".json") as file:
        file.write(text)
        file.flush()
        with suppress(FileError):
            read_group(file.name)


def check_offsets_topic(data: bytes) -> None:
    """A record is read or refused, and so is what its members say; a group can be written and read again."""
    key, _, value = data.partition(SEPARATOR)
    try:
        record = decode_record(key, value)
    except RecordError:
        return
    if not isinstance(record, GroupMetadata):
        return
    assert record.value is not None
    raw = encode_group_metadata(record.value)
    # The same but for tagged fields that are not known.
    assert raw == value or record.value.version >= 4
    assert decode_record(group_metadata_key(record.group_id), raw) == record
    for member in record.value.members:
        with suppress(RecordError):
            decode_assignment(member.assignment)
        with suppress(RecordError):
            said = decode_subscription(member.subscription)
            decode_prior_assignment(record.value.protocol, said.user_data)


def check_history_tables(data: bytes) -> None:
    """All decoders make the same rows of records, and of each record some row; and the same snapshots."""
    pairs = [blob.partition(SEPARATOR)[::2] for blob in data.split(NEXT)]
    batch = archived([(key, value or None) for key, value in pairs])
    slow = one_by_one.decode(batch, {})
    assert slow["records"].num_rows + slow["rejected"].num_rows == len(pairs)
    if codec.compiled() is not None:
        for name, rows in decoded_fast(batch, {}).items():
            rows.validate(full=True)
            assert rows.equals(pa.Table.from_batches([slow[name]]))
        for place, one in enumerate(read_batch(batch)):
            if one.snapshot is not None:
                bare = one._replace(key=pairs[place][0], value=pairs[place][1], snapshot=None)
                assert [*read_snapshots([bare])] == [one.snapshot]


# What to begin with.


def seed_subscriptions() -> list[bytes]:
    owned = partition_list([("t", [0, 1]), ("u", [5])])
    prior = encode_sticky({"t": [2], "u": [0, 9]}, 4, weight=7)
    whole = [
        *(
            subscription(version, ["t", "u"], user_data=prior, owned=owned, generation=4, rack="r")
            for version in (0, 1, 2, 3, 4)
        ),
        subscription(3, []),
        subscription(3, ["t"], user_data=encode_generation(4, 2), owned=owned, generation=4),
        subscription(3, ["t"], user_data=b"\0\1" + encode_sticky({"t": [0]}, 4)),
        subscription(3, ["t", None, "", "a/b"], rack=""),
        subscription(1, ["t"], owned=NULL),
        subscription(1, ["t"], owned=partition_list([(b"\xff", [1])])),
    ]
    return [*whole, SEPARATOR.join(whole), SEPARATOR.join([whole[0][:9], b"", whole[3][:-1], whole[1]])]


def seed_user_data() -> list[bytes]:
    claims = {"t": [0, 1], "u": [5], "ü": []}
    prior = encode_sticky(claims, 4)
    layouts = [
        prior,
        prior[:-4],
        encode_sticky(claims, 4, weight=7),
        b"\0\1" + prior,
        encode_generation(4),
        encode_generation(4, 1000),
        b"",
        partition_list([("t", [0]), ("t", [1, -1])]),
        partition_list([(b"\xff", [1])]),
    ]
    return [*layouts, SEPARATOR.join(layouts)]


def seed_measured() -> list[bytes]:
    few = encode_measured({("t", 0): Measured(0.1, 9, 2), ("t", 1): Measured(), ("u", 5): Measured(5, 0, 0)})
    many = encode_measured({("t", number): Measured(number / 7, 1e6, 1e3) for number in range(150)})
    return [b"", few, many, few[:-3], few.replace(b"\0\0\0\1", b"\xff\xff\xff\xff"), few + many]


def seed_read_assignments() -> list[bytes]:
    lists = [
        partition_list(entries) for entries in ([], [("t", [0, 1]), ("u", [5])], [("t", [0]), ("t", [1])])
    ]
    whole = [b"", *(b"\0\3" + listed + user_data for listed in lists for user_data in (NULL, bytes(4)))]
    strange = [b"\0\1" + partition_list([(b"\xff", [1])]) + NULL, b"\0\7" + lists[1] + b"\0\0\0\1u" + b"more"]
    return [*whole, *strange, SEPARATOR.join([*whole, *strange, whole[3][:-1]])]


def seed_leaders() -> list[bytes]:
    return [bytes([number]) + seed for number in range(len(STRATEGIES)) for seed in seed_subscriptions()]


def seed_assignments() -> list[bytes]:
    return [b"", bytes(range(64)), b"\x7f\xff\x80\0" * 9, struct.pack(">40h", *range(-20, 20))]


def seed_group_files() -> list[bytes]:
    members = {
        "c1": {
            "topics": ["t"],
            "rack": "r",
            "weight": 2,
            "owns": {"t": [0, 1]},
            "generation": 4,
            "holds": True,
        },
        "c2": {"instance_id": "i", "owns": {"u": [7], "gone": [0]}},
        "c3": None,
    }
    topics = {"t": 3, "u": {"partitions": [0, 7], "racks": [["r"], []]}}
    whole = json.dumps({"topics": topics, "members": members})
    return [
        b"json\n" + whole.encode(),
        b"yaml\n" + whole.encode(),
        b"yaml\ntopics: {t: 3}\nmembers:\n  c1: &a\n    owns: {t: [0, 1]}\n    holds: no\n  c2: *a\n  c3:\n",
        b"yaml\ntopics:\n  t: !!int '3'\nmembers: {c1: {<<: {weight: 0x2}}}\n",
    ]


def seed_offsets_topic() -> list[bytes]:
    entries = [("t", [0, 1]), ("u", [5])]
    member = MemberMetadata(
        member_id="m-1",
        client_id="m",
        client_host="/h",
        session_timeout=45,
        subscription=subscription(3, ["t"], user_data=encode_sticky({"t": [0]}, 4), rack="r"),
        assignment=b"\0\3" + partition_list(entries) + NULL,
    )
    group = GroupMetadataValue(
        version=3, protocol_type="consumer", generation=5, protocol="sticky", leader="m-1", members=(member,)
    )
    return [
        *(bytes.fromhex(key) + SEPARATOR + bytes.fromhex(value) for key, value, _ in WRITTEN),
        *(
            group_metadata_key("g") + SEPARATOR + encode_group_metadata(replace(group, version=version))
            for version in range(5)
        ),
    ]


def seed_history_tables() -> list[bytes]:
    seeds = seed_offsets_topic()
    some = [
        key + SEPARATOR + value for key, value in random_records(Random(1), 40) if key is not None and value
    ]
    return [*seeds, *some, NEXT.join(some[:6]), NEXT.join([*seeds[-5:], *seeds[-5:]])]


def seed_flow() -> list[bytes]:
    rng = Random(1)
    small = [bytes([cells, 4]) + bytes(rng.choices(range(10), k=90)) for cells in (1, 4)]
    return [*small, *(bytes([WIDE, seed]) + rng.randbytes(12 * seed) for seed in range(3))]


TARGETS: Final = {
    "partition-lists": Target(check_partition_lists, seed_user_data),
    "subscriptions": Target(check_subscriptions, seed_subscriptions),
    "user-data": Target(check_user_data, seed_user_data),
    "measured": Target(check_measured, seed_measured),
    "read-assignments": Target(check_read_assignments, seed_read_assignments),
    "assignments": Target(check_assignments, seed_assignments),
    "leader": Target(check_leader, seed_leaders),
    "group-file": Target(check_group_file, seed_group_files),
    "offsets-topic": Target(check_offsets_topic, seed_offsets_topic),
    "history-tables": Target(check_history_tables, seed_history_tables),
    "flow": Target(check_network, seed_flow),
}
