"""Subscriptions that kafka-python's leader fails on, rewritten so that it does not.

It decodes what all members sent before it calls the assignor, and asks the brokers for all topics named in
it. An error there comes out of the leader's `poll`, at each join, as long as the member that caused it stays:

    bytes that end too early, a string that is not UTF-8, a negative version: its decoder raises
    a null for a topic, or for all: its `set_topics` raises
    a name that no topic can have: its `set_topics` raises, or the brokers answer with an error

What it is given instead says what `codec` reads in the same bytes, and that is nothing where that cannot be
read. So a member gets the same from a leader in kafka-python as from `kafka_assignors.lead`, whichever of
kafka-python's ways it is assigned by.
"""

import re
import reprlib
from collections.abc import Collection
from typing import Final, NamedTuple

from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafka_assignors._wire.codec import NOT_STATED, Subscriptions, read_subscriptions
from kafka_assignors._wire.reader import OWNED_SINCE, RACK_SINCE

_LEGAL: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
"""The names that topics can have (Kafka's class `Topic`)."""


class Repair(NamedTuple):
    """What to decode in place of a subscription, and why, in words that follow a member's name."""

    subscription: bytes
    fault: str


def read_repaired(blobs: list[bytes]) -> tuple[Subscriptions, dict[int, Repair]]:
    """Read many subscriptions, and what to decode in place of those that kafka-python's leader fails on.

    The latter are by their numbers, and what is read is what then stands in place. Takes memory in
    proportion to the bytes that are there, for any counts that they announce.
    """
    read = read_subscriptions(blobs)
    illegal = frozenset(name for name in read.topics.names if _LEGAL.fullmatch(name) is None)
    faults = {}
    if illegal:
        named = [sorted(topics & illegal) for topics in read.topics]
        for number, which in enumerate(read.topics_of.tolist()):
            if named[which]:
                faults[number] = f"subscribes to what cannot be a topic, {reprlib.repr(named[which])}"
    for number in read.strange:
        faults[number] = "names a null as a topic, or cannot be read behind its topics: that does not count"
    for number in read.unreadable:
        faults[number] = f"gets nothing: its subscription ({len(blobs[number])} bytes) cannot be read"
    found = {number: Repair(_rewritten(read, number, illegal), fault) for number, fault in faults.items()}
    if found:
        read = read_subscriptions(
            [found[number].subscription if number in found else blob for number, blob in enumerate(blobs)]
        )
    return read, found


def _rewritten(read: Subscriptions, number: int, illegal: Collection[str]) -> bytes:
    """What was read of a subscription, encoded anew."""
    generation = int(read.generations[number])
    entry = ConsumerProtocolSubscription.TopicPartition
    encoded: bytes = ConsumerProtocolSubscription(
        version=OWNED_SINCE if generation == NOT_STATED else RACK_SINCE,
        topics=sorted(read.topics[int(read.topics_of[number])].difference(illegal)),
        user_data=read.user_data[number],
        owned_partitions=[
            entry(topic=topic, partitions=ids) for topic, ids in read.owned.claims()[number].items()
        ],
        generation_id=generation,
        rack_id=read.racks[number],
    ).encode()
    return encoded
