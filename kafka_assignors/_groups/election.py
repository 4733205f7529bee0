"""Who leads a group of the classic protocol, and by which strategy it assigns: as Kafka's `ClassicGroup`.

If Kafka takes "any" member, or one of strategies with as many votes, it takes the first that its hash map
walks to. So this takes the same one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import fields_of
from kafka_assignors._wire.java.orders import HashKeys, hash_order, string_hash


class NoCommonStrategyError(KafkaAssignorsError, ValueError):
    """No strategy is known to all members: Kafka lets the last of them in only once there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """How a group came by its strategy.

    Attributes:
        strategy: The one that it assigns by.
        votes: Candidate -> votes, the most first; of as many, in the order in which Kafka would take them.
            Candidates are the strategies that all members know.
        ballots: Member id -> the candidate that it voted for: the first of its own list that is one.
        preferences: Member id -> its list.
    """

    strategy: str
    votes: Mapping[str, int]
    ballots: Mapping[str, str]
    preferences: Mapping[str, Sequence[str]]

    @property
    def leader(self) -> str:
        """Who leads a new group: the first member that was named."""
        return next(iter(self.preferences))

    def to_json(self) -> dict[str, Any]:
        return fields_of(self, "tied", "leader")

    @property
    def tied(self) -> tuple[str, ...]:
        """Other candidates with as many votes as the one that was taken."""
        most = self.votes[self.strategy]
        return tuple(name for name, votes in self.votes.items() if votes == most and name != self.strategy)

    def __str__(self) -> str:
        votes = (f"{name} {count} of {len(self.ballots)} votes" for name, count in self.votes.items())
        lines = [f"{self.strategy}: {', '.join(votes)}"]
        if self.tied:
            tied = ", ".join(self.tied)
            lines.append(f"as many have {tied}: Kafka's hash map comes to {self.strategy} first")
        known = {name for preference in self.preferences.values() for name in preference}
        for name in sorted(known - self.votes.keys()):
            without = sorted(member for member, known_to in self.preferences.items() if name not in known_to)
            do = "does" if len(without) == 1 else "do"
            lines.append(f"{name} is no candidate: {', '.join(without)} {do} not know it")
        return "\n".join(lines)


def elect_strategy(preferences: Mapping[str, Sequence[str]]) -> Election:
    """Elect the strategy of a group.

    Args:
        preferences: Member id -> the strategies that it knows, the one that it prefers first; members in the
            order in which they joined. If two strategies have as many votes and share a place in the hash
            map, the order of members decides. Kafka's is that of `HashKeys`.

    Raises:
        NoCommonStrategyError: No strategy is known to all, or there are no members.
    """
    if not preferences:
        raise NoCommonStrategyError("a group without members elects nothing")
    candidates = set.intersection(*(set(preference) for preference in preferences.values()))
    if not candidates:
        lists = "; ".join(f"{member}: {', '.join(known) or 'none'}" for member, known in preferences.items())
        raise NoCommonStrategyError(f"no strategy is known to all members: {lists}")
    ballots = {
        member: next(name for name in preference if name in candidates)
        for member, preference in preferences.items()
    }
    # Kafka counts in a hash map, and takes the first of those with the most votes.
    counted = hash_order(ballots.values(), string_hash)
    votes = dict.fromkeys(counted, 0)
    for name in ballots.values():
        votes[name] += 1
    order = sorted(counted, key=lambda name: -votes[name])
    unwanted = sorted(candidates - votes.keys())
    return Election(
        strategy=order[0],
        votes={**{name: votes[name] for name in order}, **dict.fromkeys(unwanted, 0)},
        ballots=ballots,
        preferences={member: tuple(preference) for member, preference in preferences.items()},
    )


def elect_leader(
    members: HashKeys[str], *, leader: str | None = None, joined: Collection[str] | None = None
) -> str | None:
    """Who leads a group, of those that have joined the round: all by default; None if nobody has.

    The first member of a group leads it for as long as it stays and joins every round in time. Then it is the
    first member that has joined in the order of Kafka's hash map.
    """
    present = members if joined is None else joined
    if leader in members and leader in present:
        return leader
    return next((member for member in members if member in present), None)
