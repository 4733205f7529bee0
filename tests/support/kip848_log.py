"""The log of a KIP-848 group, written by hand: records with the bytes that a coordinator writes (all v0)."""

from collections.abc import Sequence
from typing import Any, Self
from uuid import UUID

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._common.words import by_topic
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    encode_group_metadata,
    group_metadata_key,
)
from tests.support.archives import key_of
from tests.support.group_histories import START_US, partitions_of

TOPIC_IDS = {"t": UUID(int=1), "u": UUID(int=2)}
TOPIC_NAMES = {uuid_text(topic_id): topic for topic, topic_id in TOPIC_IDS.items()}
SEEN_TOPICS = [SeenTopic(topic, topic_id, 4) for topic_id, topic in TOPIC_NAMES.items()]
"""The topics as a capture notes them, which gives what has only their ids their names."""
AWAY = -2


class Log:
    """Records, in their order; times are in seconds."""

    def __init__(self) -> None:
        self.records: list[ArchivedRecord] = []
        self.seconds = 0.0

    def at(self, seconds: float) -> Self:
        """What follows is written then."""
        self.seconds = seconds
        return self

    def epoch(self, epoch: int | None) -> None:
        """Type 3, with a hash of the topics; None for a tombstone."""
        self._write(3, [], None if epoch is None else _int32(epoch) + b"\1\0\x08" + bytes(8))

    def assigned(self, epoch: int | None) -> None:
        """Type 6, with the time."""
        self._write(6, [], None if epoch is None else _int32(epoch) + b"\0")

    def reached(self, epoch: int) -> None:
        """An epoch, and its assignment."""
        self.epoch(epoch)
        self.assigned(epoch)

    def joined(
        self,
        member: str,
        *,
        topics: str = "t",
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = "uniform",
        client_id: str | None = None,
        session_timeout_ms: int | None = None,
    ) -> None:
        """Type 5; with a session timeout of a member that uses the classic protocol."""
        said = [instance_id, None, client_id or member, "/h"]
        head = b"".join(map(_text, said)) + _texts(topics) + _text(regex) + _int32(60_000) + _text(assignor)
        classic = b"\0" if session_timeout_ms is None else b"\1" + _int32(session_timeout_ms) + b"\1\0"
        self._write(5, [member], head + b"\1\0" + bytes([len(classic)]) + classic)

    def has(self, member: str, epoch: int, partitions: str, *, gives: str = "", state: int = 0) -> None:
        """Type 8: what it keeps, and what it is to let go of."""
        body = _int32(epoch) + _int32(epoch - 1) + bytes([state])
        self._write(8, [member], body + _topics(partitions) + _topics(gives) + b"\0")

    def enters(self, member: str, epoch: int, partitions: str, **how: Any) -> None:
        """A member joins, which makes an epoch; it has these partitions in it, or waits for some."""
        self.joined(member, **how)
        self.reached(epoch)
        self.has(member, epoch, partitions, state=0 if partitions else 2)

    def matches(self, regex: str, topics: str) -> None:
        """Type 16."""
        self._write(16, [regex], _texts(topics) + 2 * (bytes(7) + b"\1") + b"\0")

    def named(self, topics: str) -> None:
        """Type 4, as brokers up to 4.0 write it."""
        body = b"".join(TOPIC_IDS[topic].bytes + _text(topic) + _int32(4) + b"\1\0" for topic in topics)
        self._write(4, [], bytes([len(topics) + 1]) + body + b"\0")

    def gone(self, member: str) -> None:
        """The tombstones of a member, in Kafka's order."""
        for kind in (8, 7, 5):
            self._write(kind, [member], None)

    def classic(self, value: GroupMetadataValue | None) -> None:
        """A record of a classic group, or its tombstone."""
        data = None if value is None else encode_group_metadata(value)
        self._add(group_metadata_key("g"), data)

    def _write(self, kind: int, names: Sequence[str], body: bytes | None) -> None:
        self._add(key_of("g", kind, *names), None if body is None else b"\0\0" + body)

    def _add(self, key: bytes, value: bytes | None) -> None:
        time_us = START_US + round(self.seconds * 1e6)
        self.records.append(ArchivedRecord(key, value, 0, len(self.records), time_us, 0))


def two_come(log: Log) -> None:
    """A member has four partitions; at 10 s a second one comes, to get two of them. The rest is to follow."""
    log.enters("a", 1, "t0 t1 t2 t3")
    log.at(10).joined("b")
    log.reached(2)
    log.has("a", 1, "t0 t1", gives="t2 t3", state=1)
    log.has("b", 2, "", state=2)


def two_share(log: Log, *, later: float = 0) -> None:
    """`two_come`, and each of them has two: the first at 12 s, the second so many seconds later."""
    two_come(log)
    log.at(12).has("a", 2, "t0 t1")
    log.at(12 + later).has("b", 2, "t2 t3")


def a_third_passes(log: Log) -> None:
    """After `two_come`, a third member is there only while the group is on its way, which ends at 13 s."""
    log.at(11).enters("c", 3, "")
    log.at(12).gone("c")
    log.reached(4)
    log.at(13).has("a", 4, "t0 t1")
    log.has("b", 4, "t2 t3")


def hand_overs(count: int) -> list[ArchivedRecord]:
    """Again and again a member comes and gets most of what the one before has, which then goes."""
    log = Log()
    for number in range(1, count + 1):
        log.at(100 * number).joined(f"m{number}", topics="tu")
        log.reached(number)
        if number > 1:
            log.has(f"m{number - 1}", number, "t0")
            log.at(100 * number + 5)
        log.has(f"m{number}", number, "t1 u0")
        log.at(100 * number + 50).gone(f"m{number - 1}")
    return log.records


def _int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def _text(text: str | None) -> bytes:
    return b"\0" if text is None else bytes([len(text) + 1]) + text.encode()


def _texts(texts: str) -> bytes:
    return bytes([len(texts) + 1]) + b"".join(map(_text, texts))


def _topics(text: str) -> bytes:
    topics = by_topic(partitions_of(text))
    body = bytes([len(topics) + 1])
    for topic, ids in topics.items():
        body += TOPIC_IDS[topic].bytes + bytes([len(ids) + 1]) + b"".join(map(_int32, ids)) + b"\0"
    return body
