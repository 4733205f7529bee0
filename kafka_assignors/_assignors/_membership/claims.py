"""What a member claims when it joins: the partitions it owned, in which generation, whether it holds them.

| the consumer                                                  | eager               | cooperative       |
|---------------------------------------------------------------|---------------------|-------------------|
| has taken no assignment yet                                   | nothing             | nothing           |
| has what it took                                              | that, as a wish     | what it holds     |
| fell out of its group                                         | its last one        | nothing           |
| is in a generation again, with nothing but what it had before | its last one        | nothing           |
| refused the assignment of its generation, and has nothing     | that generation     | that generation   |

A claim's generation is that of the last assignment that the consumer took. A join alone never raises it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kafka.structs import TopicPartition

from kafka_assignors._assignors._membership.host import Host
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.words import by_topic
from kafka_assignors._model.members import NO_GENERATION

log = get_logger(__name__)

_UNANSWERED: Final = 10
"""Joins in a row without an assignment after which a consumer is warned of."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Partitions by topic, the generation in which they were owned, and whether they are held right now."""

    partitions: Mapping[str, Collection[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION
    held: bool = False

    def within(self, topics: Collection[str]) -> "Claim":
        """This claim without the partitions of other topics."""
        kept = {topic: ids for topic, ids in self.partitions.items() if topic in topics}
        return replace(self, partitions=kept)


@dataclass(slots=True)
class Memory:
    """What an assignor remembers of the assignments of its one consumer.

    `last` is the last one that is known to have been real, or what is left of it. `lost` is what the consumer
    had when it fell out of its group, and has not been given again. `joined` is the generation that it was in
    when it last joined. `unanswered` is how many in a row it joined without taking its assignment.
    """

    last: Claim = field(default_factory=Claim)
    lost: frozenset[TopicPartition] = frozenset()
    joined: int = NO_GENERATION
    unanswered: int = 0

    def took(self, partitions: Collection[TopicPartition], generation: int) -> None:
        """Remember an assignment that was really taken: nothing else raises a claim's generation."""
        self.last, self.lost = Claim(by_topic(partitions), generation), frozenset()
        self.joined, self.unanswered = generation, 0

    def claim(self, host: Host, strategy: str) -> Claim:
        """What the consumer claims when it joins now; see the table of this module.

        A cooperative consumer claims all that it holds, also of topics that it no longer subscribes to. One
        that rebalances eagerly has revoked everything: a claim to hold partitions would make the leader
        wait for a release that never comes. What it had is a wish, no more.
        """
        self.look(host.generation, host.partitions, chosen=host.strategy == strategy)
        claim = self.last
        if host.cooperative:
            fell_out = host.generation < 0 or bool(self.lost)
            claim = Claim(held=True) if fell_out else replace(claim, held=True)
        if not claim.partitions and 0 <= host.refused == host.generation:
            # It was given an assignment that it could not take, and will be again, unless it says something
            # else than before: that it has nothing of it.
            return replace(claim, generation=host.generation)
        return claim

    def look(self, generation: int, partitions: frozenset[TopicPartition], *, chosen: bool) -> None:
        """Compare what the consumer has with what is known.

        If its generation has another assignor's strategy (not `chosen`), this one hears of no assignment.
        """
        self._count(generation, chosen=chosen)
        if generation < 0:
            # Out of the group: others may own these by now. kafka-python may leave them in place until
            # the consumer has joined again, and ask for metadata more than once before that.
            self.lost |= partitions
            return
        if self.lost and partitions <= self.lost:
            return
        self.lost = frozenset()
        owned, known = by_topic(partitions), self.last.partitions
        part = all({*ids} <= {*known.get(topic, ())} for topic, ids in owned.items())
        # What it has beyond that, it was given under another strategy since it last joined: so in the
        # generation that it joined then.
        self.last = Claim(owned, self.last.generation if part else generation)

    def _count(self, generation: int, *, chosen: bool) -> None:
        """Count joins whose assignments were not taken, and warn of a consumer that takes none."""
        if not chosen:
            self.unanswered = 0
        elif generation > self.joined:
            self.unanswered += 1
            if self.unanswered == _UNANSWERED:
                log.warning(
                    "This consumer joined its group %d times and took no assignment: its polls end "
                    "before the group has rebalanced. Poll for longer, or work for less time between polls",
                    _UNANSWERED,
                )
        self.joined = generation
