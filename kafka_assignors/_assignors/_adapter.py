"""What all assignors share: kafka-python's plug-in contract on one side, Group and Plan on the other."""

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.errors import KafkaConfigurationError, LeaderNotAvailableError

from kafka_assignors._assignors import _messages as messages
from kafka_assignors._assignors._host import calling
from kafka_assignors._assignors._membership.claims import Claim, Memory
from kafka_assignors._assignors._membership.hand_over import HandOver
from kafka_assignors._assignors._membership.host import Host
from kafka_assignors._assignors._membership.standbys import Standbys
from kafka_assignors._assignors._sent import Sent, takes_all_members
from kafka_assignors._assignors._topics import partition_ids, replica_racks
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.words import first_of
from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.claims import Claimed, ClaimTable
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import NO_GENERATION, Members
from kafka_assignors._model.plan import Plan, check
from kafka_assignors._wire.codec import Subscriptions

log = get_logger(__name__)

METADATA_TRIES: Final = 10
"""How often `assign` asks for the metadata of a topic, one `retry_backoff_ms` (100 ms) apart."""

RECORD_LIMIT: Final = 1_048_588
"""The most bytes that a group's record may have by default (`max.message.bytes` of `__consumer_offsets`)."""

TOPICS_SHOWN: Final = 10
"""How many topics a message names: any member may name thousands."""

_OVERHEAD: Final = 24
"""Bytes of a member in the group's record beside its strings, subscription and assignment (Kafka 4.3)."""

_MAX_STRING: Final = 2**15 - 1  # a string's length is an int16 on the wire


@dataclass(slots=True)
class _Consumer:
    """What an assignor knows of its one consumer, and of the group that this leads.

    `known` gives the consumer's host as long as it is alive; None for an assignor without one. `memory` is
    what it claims when it joins. `hand_over` is the leader's state between the rounds of a cooperative
    rebalance, `standbys` whom it has seen for how long. `tries` is how often in a row each topic had no
    metadata, `wait` in which generation, and until when, to wait for it. `more` is what a strategy keeps
    beside that.
    """

    known: Callable[[], Host | None] | None = None
    memory: Memory = field(default_factory=Memory)
    hand_over: HandOver = field(default_factory=HandOver)
    standbys: Standbys = field(default_factory=Standbys)
    tries: dict[str, int] = field(default_factory=dict)
    wait: tuple[int | None, float] = (None, 0.0)
    more: Any = None

    def host(self) -> Host | None:
        """The consumer, if there is one that is alive."""
        return None if self.known is None else self.known()


class Assignor(AbstractPartitionAssignor):
    """A partition assignor for kafka-python's `partition_assignment_strategy`.

    Subclasses say how to plan, and, if they are sticky, how to encode and decode what members owned. An
    instance belongs to one consumer; a class may be given to any number of them.

    Args:
        rack: The rack of this consumer (KIP-881). kafka-python does not hand its `client_rack` to assignors,
            so give both the same value.

    Raises:
        ValueError: The rack is not a name.
    """

    name: ClassVar[str]
    shared: ClassVar[bool] = False
    """Whether several members may get one partition."""
    records_in_rebalances: bool = False
    """Whether a cooperative consumer is to read on while it joins."""

    def __init__(self, *, rack: str | None = None) -> None:
        if rack is not None and not (isinstance(rack, str) and 0 < _utf8_size(rack) <= _MAX_STRING):
            raise ValueError(
                f"rack must be a non-empty string of up to {_MAX_STRING} bytes of UTF-8 or None, not {rack!r}"
            )
        host = calling()
        if host is not None and host.namesakes_listed:  # the consumer under construction makes this one
            raise _namesakes(host.namesakes_listed)
        self._rack = rack
        self._consumer = _Consumer()

    def __getstate__(self) -> dict[str, Any]:
        """The options: a copy belongs to no consumer yet."""
        return {name: value for name, value in vars(self).items() if name != "_consumer"}

    def __setstate__(self, options: dict[str, Any]) -> None:
        self.__dict__.update(options)
        self._consumer = _Consumer()

    @property
    def rack(self) -> str | None:
        """The rack of this consumer."""
        return self._rack

    @abstractmethod
    def plan(self, group: Group) -> Plan:
        """Decide who gets what."""

    def this_round(self, plan: Plan) -> tuple[Plan, IntArray | None]:
        """What of a plan can be carried out at once, and which partitions nobody gets until the next round.

        All of it, and None, but in a cooperative rebalance.
        """
        return plan, None

    def notes(self, sent: Plan, held_back: IntArray | None) -> Mapping[int, bytes]:
        """User data for some members' assignments, by their numbers.

        Args:
            sent: What goes out in this round.
            held_back: The partitions that nobody gets in it.
        """
        del sent, held_back
        return {}

    def tell_claim(self, claim: Claim) -> bytes | None:
        """The user data with a claim for the leader; None for strategies that do not care."""
        del claim
        return None

    def read_claims(self, ids: Sequence[str], subscriptions: Subscriptions) -> Claimed:
        """What members claim in their subscriptions, the user data in which may be any bytes."""
        del subscriptions
        return Claimed(
            claims=ClaimTable.empty(len(ids)),
            generations=np.full(len(ids), NO_GENERATION),
            holds=np.zeros(len(ids), dtype=np.bool_),
            weights=np.ones(len(ids), dtype=np.int64),
        )

    def settle(self, group: Group) -> Group:
        """The group with the claims that count, from all that members claim."""
        return group

    # kafka-python's contract from here on; it calls all of it from the consumer's I/O thread, but for
    # supported_protocols(), which it calls while the consumer is constructed.

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """How consumers may rebalance with this strategy, the preferred way first (KIP-429).

        Raises:
            KafkaConfigurationError: The consumer under construction has two assignors of this
                name, or this instance belongs to another consumer.
        """
        host = calling()
        if host is not None:
            self._belong_to(host)
        return [RebalanceProtocol.EAGER]

    def metadata(self, topics: Collection[str]) -> Any:
        """What this member sends to the leader: topics, and what it owned in which generation.

        Returns:
            A ConsumerProtocolSubscription v3.
        """
        host = calling()
        if host is not None:
            self._belong_to(host)
            # A leader that joins because its view of the topics changed forgets the join if its poll ends
            # and the view changes back before all others have joined. It then never takes its assignment,
            # and hangs until it is expelled (kafka-python 3.0.12). This mark stays until it has it.
            host.request_rejoin()
            host.complete_joins(reads_on=self.records_in_rebalances)
        claim = self._claim(self._host())
        if not claim.held:
            claim = claim.within(topics)
        return messages.make_subscription(
            topics,
            owned=claim.partitions if claim.held else {},
            generation=claim.generation,
            rack=self._rack,
            user_data=self.tell_claim(claim),
        )

    @takes_all_members
    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Plan for the whole group; called on its leader.

        Args:
            cluster: kafka-python's ClusterMetadata.
            members: JoinGroupResponseMember objects with decoded metadata; where the consumer has read what
                they sent before, one object in their place that has it. A class with an `assign` of its
                own is given the members.

        Returns:
            An EncodedAssignment for every member id.

        Raises:
            LeaderNotAvailableError: A topic has no metadata yet. kafka-python takes this as "ask again":
                it joins again after `retry_backoff_ms` into the same generation. At most `METADATA_TRIES`
                times for a topic, and for a third of the time for which the consumer may be silent. A topic
                that still has none is left out.
            InvalidPlanError: The planner's result must not be sent.
        """
        sent = Sent.by(members)
        decoded = self.decode(sent.ids, sent.instance_ids, sent.subscriptions)
        topics = self._partition_ids(cluster, decoded.wanted)
        if (host := self._host()) is not None:
            host.plans_with(cluster)
        racks = replica_racks(cluster) if any(decoded.racks) else None
        assignments = self.lead(Group.of(topics, decoded, racks))
        _warn_of_size(sent, assignments)
        return assignments

    def decode(
        self, ids: Sequence[str], instance_ids: Sequence[str | None], subscriptions: Subscriptions
    ) -> Members:
        """What members claim, as the Group has it; instance ids of dynamic members are None or empty."""
        return Members(
            ids=ids,
            instance_ids=[instance_id or None for instance_id in instance_ids],
            topics=subscriptions.topics,
            topics_of=subscriptions.topics_of,
            racks=subscriptions.racks,
            **vars(self.read_claims(ids, subscriptions)),
        )

    def lead(self, group: Group) -> dict[str, messages.EncodedAssignment]:
        """Plan for a group, check the plan, and encode what of it goes out in this round.

        Raises:
            InvalidPlanError: The planner's result must not be sent.
        """
        group = self.settle(group)
        plan = self.plan(group)
        check(plan, group, shared=self.shared)
        sent, held_back = self.this_round(plan)
        if sent is not plan:
            check(sent, group, held_back=held_back)
        if log.isEnabledFor(logging.INFO):
            log.info(
                "Planned %d partitions for %d members by %s: loads %s, %d moved",
                group.size,
                len(group.members),
                self.name,
                f"{plan.loads.min()} to {plan.loads.max()}" if group.members else "none",
                plan.moves,
            )
        return messages.encode_assignments(sent, self.notes(sent, held_back))

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Remember what this member got."""
        self._consumer.memory.took(assignment.partitions(), generation)

    def _host(self) -> Host | None:
        """The consumer that calls, or else the one that this instance is known to belong to."""
        host = calling()
        return self._consumer.host() if host is None else host

    def _belong_to(self, host: Host) -> None:
        if host.namesakes:
            raise _namesakes(host.namesakes)
        before = self._consumer.host()
        if before is not None and before.consumer is host.consumer:
            return
        if before is not None and not before.closed:
            raise KafkaConfigurationError(
                f"this {type(self).__name__} belongs to another consumer; an instance keeps what its "
                "consumer owns, so pass the class, or make an instance for each consumer"
            )
        self._consumer.hand_over.end()
        self._consumer.standbys.end()
        more = self._consumer.more if before is None and self._consumer.known is None else None
        self._consumer = _Consumer(known=host.weakly(), more=more)

    def _claim(self, host: Host | None) -> Claim:
        """What this member owns or owned, as far as that is certain."""
        if host is not None:
            return self._consumer.memory.claim(host, self.name)
        cooperative = RebalanceProtocol.COOPERATIVE in self.supported_protocols()
        if self._consumer.known is not None:
            log.warning(
                "Claiming no partitions: the consumer that this %s belonged to is gone", type(self).__name__
            )
            return Claim(held=cooperative)
        return replace(self._consumer.memory.last, held=cooperative)

    def _partition_ids(self, cluster: Any, topics: Collection[str]) -> dict[str, Collection[int]]:
        """The partition ids of every topic with metadata."""
        known = partition_ids(cluster, topics)
        missing = sorted(topic for topic in topics if topic not in known)
        self._consumer.tries = {topic: self._consumer.tries.get(topic, 0) + 1 for topic in missing}
        waiting = [topic for topic, tries in self._consumer.tries.items() if tries <= METADATA_TRIES]
        host = self._host()
        if waiting and host is not None and self._may_wait(host):
            raise LeaderNotAvailableError(f"no metadata yet for {first_of(waiting, TOPICS_SHOWN)}")
        if missing:
            log.warning(
                "Leaving out topics without metadata: %s; they are missing, or hidden from this user",
                first_of(missing, TOPICS_SHOWN),
            )
        return known

    def _may_wait(self, host: Host) -> bool:
        """Whether there is time to ask again in this generation; a leader sends no heartbeats meanwhile.

        With 30,000 topics that do not exist, the client takes half a second for each time.
        """
        generation, end = self._consumer.wait
        if generation != host.generation:
            end = time.monotonic() + host.patience / 3
            self._consumer.wait = host.generation, end
        return time.monotonic() < end


def _warn_of_size(sent: Sent, assignments: Mapping[str, messages.EncodedAssignment]) -> None:
    """Warn before the group's record is too large for the coordinator to write.

    It writes subscriptions and assignments of all members as one record. One that is too large fails for
    every member with an unknown error, on each try, until somebody leaves.
    """
    size = (
        sent.size
        + _OVERHEAD * len(sent.ids)
        + 2 * sum(map(len, sent.ids))  # with the client id, which the member id begins with
        + sum(map(len, filter(None, sent.instance_ids)))
        + sum(len(assignment.encode()) for assignment in assignments.values())
    )
    if size > RECORD_LIMIT * 2 // 3:
        log.warning(
            "The group's record has about %d bytes; brokers refuse more than %d, and then no member gets "
            "an assignment. Raise max.message.bytes of __consumer_offsets, or use fewer members, fewer "
            "partitions or fewer topics for each member",
            size,
            RECORD_LIMIT,
        )


def _namesakes(names: Iterable[str]) -> KafkaConfigurationError:
    return KafkaConfigurationError(
        f"partition_assignment_strategy has assignors of one name (among {', '.join(names)}); "
        "a group knows a strategy by its name, so give each once"
    )


def _utf8_size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return -1
