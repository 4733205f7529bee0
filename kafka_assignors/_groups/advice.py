"""What each kind of reason for a rebalance means to people on call, and what to do about it."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class ReasonWords(NamedTuple):
    """A kind of reason: as a heading, what it means, and what to do."""

    title: str
    meaning: str
    todo: str

    @property
    def verdict(self) -> str:
        """The first sentence of what to do: it stands alone."""
        first, ends, _ = self.todo.partition(". ")
        return first + ends.strip()


REASONS: Final[Mapping[str, ReasonWords]] = {
    "member joined": ReasonWords(
        "A consumer joined",
        "A consumer started, or came back after it had been lost.",
        "Normal when you deploy or scale up. If it happens all the time, look for consumers that restart or"
        " fall out of the group, and give each its own group.instance.id (static membership).",
    ),
    "member gone": ReasonWords(
        "A consumer left or was lost",
        "It was stopped or killed, sent no heartbeat within session.timeout.ms, or did not ask for records"
        " within max.poll.interval.ms.",
        "Look at that consumer's log and its restarts at that time. If it was merely slow: fewer records per"
        " poll (max.poll.records) or a longer max.poll.interval.ms. If it was restarted on purpose: static"
        " membership.",
    ),
    "member left": ReasonWords(
        "A consumer left",
        "It was closed, unsubscribed, or did not ask for records within max.poll.interval.ms.",
        "Normal when you deploy or scale down. Otherwise look at that consumer's log: if it was slow, fewer"
        " records per poll (max.poll.records) or a longer max.poll.interval.ms.",
    ),
    "member lost": ReasonWords(
        "A consumer was lost",
        "It sent no heartbeat within session.timeout.ms: it crashed, hung, or was cut off.",
        "Look at that consumer's log and its machine at that time: out of memory, long pauses, the network.",
    ),
    "member removed": ReasonWords(
        "A static member was removed",
        "It was taken out of the group before its session timeout was over, by an administrator's command.",
        "Nothing to do, if that was on purpose. Otherwise find out who removes members.",
    ),
    "static member gone": ReasonWords(
        "A static member was lost or removed",
        "It sent no heartbeat within session.timeout.ms, as it crashed, hung, was cut off or was stopped"
        " for longer. Or an administrator's command removed it.",
        "Nothing to do, if somebody stopped or removed it on purpose. Otherwise look at that consumer's log"
        " and its machine at that time.",
    ),
    "member restarted": ReasonWords(
        "A consumer was gone and came back",
        "A consumer was gone, and one with its client.id (or group.instance.id) joined with that rebalance,"
        " or within 10 minutes.",
        "Normal in a deployment; without one the consumer may be too slow between two polls. With static"
        " membership (group.instance.id) a restart that takes no longer than session.timeout.ms is no"
        " rebalance. If it was slow: fewer records per poll (max.poll.records) or a longer"
        " max.poll.interval.ms.",
    ),
    "static member came back": ReasonWords(
        "A static member came back",
        "A consumer with a group.instance.id was restarted. Within session.timeout.ms that is no rebalance,"
        " unless it subscribes to something else, or the group was rebalancing anyway.",
        "Nothing to do. If the group does rebalance for it, make session.timeout.ms longer than a restart"
        " takes.",
    ),
    "subscription changed": ReasonWords(
        "A subscription changed",
        "A consumer subscribed to other topics than before.",
        "Normal after a deployment. With subscriptions by pattern, look for topics that come and go.",
    ),
    "hand-over of a cooperative rebalance": ReasonWords(
        "The second step of a cooperative rebalance",
        "Cooperative groups rebalance in two steps: partitions are revoked in the first, and assigned"
        " to their new owners in the second. All other partitions stay with their owners.",
        "Nothing to do: it belongs to the rebalance before it.",
    ),
    "strategy changed": ReasonWords(
        "The assignor changed",
        "The group's partitions are assigned by another rule than before (partition.assignment.strategy).",
        "Normal once, in a deployment. If it goes back and forth, consumers differ in their configuration.",
    ),
    "topics changed": ReasonWords(
        "Topics changed",
        "Topics or partitions were added or deleted, and the consumers divided what there is now.",
        "Nothing to do: this is how new partitions get an owner.",
    ),
    "coordinator moved": ReasonWords(
        "The group moved to another broker",
        "Another broker coordinates the group now. Consumers and subscriptions are the same.",
        "Check if brokers were restarted at that time.",
    ),
    "unknown": ReasonWords(
        "No reason is on record",
        "Neither consumers nor subscriptions changed. A consumer may have asked for the rebalance, the group"
        " may have moved to another broker, or a member joined and left between two records.",
        "Look at the brokers' logs at that time, for a restart or a change of the group's coordinator.",
    ),
}
"""What kinds of reasons mean to people on call. Kinds that are not here stand for themselves."""


def reason_words(kind: str) -> ReasonWords:
    """A kind's words; of a kind that is not known the kind itself."""
    return REASONS.get(kind) or ReasonWords(kind[:1].upper() + kind[1:], "", "")
