"""Rows of an archive, made by hand and at random."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa

from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    encode_group_metadata,
    group_metadata_key,
    record_type,
)
from kafka_assignors._wire.user_data import encode_generation, encode_sticky
from kafka_assignors.history._schemas import ARCHIVE
from tests.support.offsets_topic import WRITTEN
from tests.support.wire import NULL, partition_list, subscription

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Pairs = list[tuple[bytes | None, bytes | None]]
"""Keys and values."""


def time_of(offset: int) -> datetime:
    return BEGAN + timedelta(seconds=offset)


def row(key: bytes | None, value: bytes | None, *, partition: int = 0, offset: int = 0) -> dict[str, Any]:
    return {
        "type": -1 if key is None or len(key) < 2 else record_type(key),
        "count": 1,
        "key": key,
        "value": value,
        "partition": partition,
        "offset": offset,
        "timestamp": time_of(offset),
        "leader_epoch": 3,
    }


def key_of(group: str, kind: int = 2, *names: str) -> bytes:
    """The key of a record of a group, or of what else it names: a member, or a topic, for example."""
    texts = [name.encode() for name in (group, *names)]
    return kind.to_bytes(2) + b"".join(len(text).to_bytes(2) + text for text in texts)


def hourly(offset: int, key: bytes | None, **more: Any) -> dict[str, Any]:
    """A row whose value is v, written so many hours after `NOON`."""
    return row(key, b"v", offset=offset) | {"timestamp": NOON + timedelta(hours=offset)} | more


def counted(kind: int, count: int) -> dict[str, Any]:
    """A row that only says how many records there were."""
    return row(None, None) | {"type": kind, "count": count}


def batch_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    return pa.RecordBatch.from_pylist(list(rows), schema=ARCHIVE)


def archived(pairs: Iterable[tuple[bytes | None, bytes | None]]) -> Any:
    return batch_of([row(key, value, offset=offset) for offset, (key, value) in enumerate(pairs)])


def member(
    member_id: str,
    assigned: Mapping[str, Sequence[int]] | None = None,
    *,
    instance_id: str | None = None,
    said: bytes | None = None,
) -> MemberMetadata:
    raw = b"" if assigned is None else b"\0\1" + partition_list(list(assigned.items())) + NULL
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=f"client-{member_id}",
        client_host="/10.0.0.1",
        rebalance_timeout=300_000,
        session_timeout=45_000,
        subscription=subscription(1, ["t", "u"]) if said is None else said,
        assignment=raw,
    )


def group(
    generation: int,
    *members: MemberMetadata,
    version: int = 3,
    protocol: str | None = "range",
    protocol_type: str = "consumer",
) -> bytes:
    return encode_group_metadata(
        GroupMetadataValue(
            version=version,
            protocol_type=protocol_type,
            generation=generation,
            protocol=protocol if members else None,
            leader=members[0].member_id if members else None,
            current_state_timestamp=1_767_225_600_000 if version >= 2 else -1,
            members=members,
        )
    )


def random_value(rng: Random, generation: int) -> bytes:
    """A group's record, most often one as brokers write it."""
    topics = {"t": 4, "orders.v1": 3, "ü": 2}
    protocol = rng.choice(["range", "sticky", "sticky", "cooperative-sticky", None])
    version = rng.choice([0, 1, 2, 3, 3, 3, 4])

    def some() -> dict[str, list[int]]:
        return {
            topic: rng.sample(range(count), rng.randint(0, count))
            for topic, count in topics.items()
            if rng.random() < 0.6
        }

    def user_data() -> bytes | None:
        prior = encode_sticky(some(), generation - 1, rng.choice([1, 1, 7]))
        return rng.choice(
            [
                None,
                b"",
                prior,
                prior[:-4],
                b"\0\1" + encode_sticky(some(), generation - 1),
                encode_generation(rng.choice([-1, 0, generation]), rng.choice([1, 1, 3])),
                rng.randbytes(rng.randint(1, 9)),
            ]
        )

    def one(number: int) -> MemberMetadata:
        said = subscription(
            rng.choice([0, 1, 2, 3, 3, 4]),
            rng.sample([*topics], rng.randint(0, 3)),
            user_data=user_data(),
            owned=partition_list([*some().items()]),
            generation=rng.choice([-1, generation - 1]),
            rack=rng.choice([None, "", "r1"]),
        )
        assigned = some() if rng.random() < 0.9 else None
        made = member(
            f"m-{number}-{rng.randint(0, 3)}",
            assigned,
            instance_id=rng.choice([None, None, "", f"i-{number}"]) if version >= 3 else None,
            said=said if rng.random() < 0.95 else rng.randbytes(rng.randint(0, 12)),
        )
        if rng.random() < 0.05:
            twice = partition_list([("t", [0]), ("t", [1])])
            return replace(member("m-twice", said=said), assignment=b"\0\0" + twice + NULL)
        return made

    return group(
        generation,
        *(one(number) for number in range(rng.randint(0, 5))),
        version=version,
        protocol=protocol,
        protocol_type=rng.choice(["consumer"] * 9 + ["connect"]),
    )


def random_records(rng: Random, count: int) -> Pairs:
    """Records of a few groups, among them tombstones, other types, and records that are damaged."""
    generations: dict[str, int] = {}
    pairs: Pairs = []
    for _ in range(count):
        name = rng.choice(["g", "other", "ü", ""])
        key: bytes | None = group_metadata_key(name)
        generations[name] = generations.get(name, 0) + 1
        value: bytes | None = random_value(rng, generations[name])
        kind = rng.random()
        if kind < 0.05:
            value = None
        elif kind < 0.15:
            raw_key, raw, _ = rng.choice(WRITTEN)
            key, value = bytes.fromhex(raw_key), rng.choice([bytes.fromhex(raw), None])
        elif kind < 0.3 and value:
            place = rng.randrange(len(value))
            value = rng.choice(
                [
                    value[:place],
                    value[:place] + rng.choice([b"\xff", b"\0", b"\x7f\xff"]) + value[place + 1 :],
                    value[:place] + value[place + 1 :],
                    value + b"\0",
                ]
            )
        elif kind < 0.32:
            key = rng.choice([None, b"", b"\0", b"\0\x0a\0\1g", b"\0\2\0\5g", b"\xff\xff"])
        pairs.append((key, value))
    return pairs
