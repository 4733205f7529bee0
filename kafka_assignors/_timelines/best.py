"""What the best possible assignment would have been, by the library's own exact planner."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from kafka import TopicPartition

from kafka_assignors._common.words import by_topic
from kafka_assignors._model.group import NO_GENERATION, NOBODY, Group, Member
from kafka_assignors._model.plan import Plan
from kafka_assignors._timelines.events import AssignmentReceived, Event, Lost, Started, Unsubscribed
from kafka_assignors._timelines.rebalances import Holdings, PartitionMove, SeenRebalance
from kafka_assignors.planners import plan_exact

Weights = Mapping[str, int]
"""What each member can take on beside the others; 1 for those that are not named."""


def best_plan(
    partitions: Iterable[TopicPartition],
    subscriptions: Mapping[str, Collection[str]],
    before: Holdings,
    *,
    generations: Mapping[str, int] | None = None,
    weights: Weights | None = None,
) -> Plan:
    """The plan with the best balance, and among those the one with the fewest moves. Racks do not count.

    Of two that had one partition, the newer generation counts.
    """
    members = [
        Member(
            member_id=member,
            topics=frozenset(topics),
            claims=by_topic(before.get(member, ())),
            generation=(generations or {}).get(member, 0 if member in before else NO_GENERATION),
            weight=(weights or {}).get(member, 1),
        )
        for member, topics in subscriptions.items()
    ]
    return plan_exact(Group.of(by_topic(partitions), members))


def unevenness(loads: Mapping[str, int], weights: Weights | None = None) -> Fraction:
    """The measure of balance that the exact planner makes least: the sum of load² / weight."""
    return sum(
        (Fraction(load**2, (weights or {}).get(member, 1)) for member, load in loads.items()), Fraction()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A rebalance from when members or topics changed until every partition had an owner again.

    It begins when the first member asks for its first generation. It ends when the last member has its
    assignment of the last; partitions that are handed over cooperatively take two or more. `moves` are of
    partitions taken from members that are still there and still subscribe, `least` how many had to be taken
    for the best balance.
    """

    generations: tuple[int, ...]
    start: float
    end: float
    moves: tuple[PartitionMove, ...]
    least: int


def find_settled(
    rebalances: Iterable[SeenRebalance],
    events: Iterable[Event],
    identity: Mapping[str, str],
    weights: Weights | None = None,
) -> tuple[Settled, ...]:
    """The rebalances that came to an end, and what they moved.

    If a member joined or left before every partition had an owner, the rebalance was overtaken and is not
    judged. The next one begins with what members had then. So it is when a member went before it had its
    assignment.
    """
    found: list[Settled] = []
    handing_over: list[_Situation] = []
    for situation in _situations(tuple(rebalances), _find_claims(events, identity), identity):
        if handing_over and not situation.continues(handing_over[0]):
            handing_over = []
        handing_over.append(situation)
        if len(situation.rebalance.claims) > len(situation.holdings):
            handing_over = []  # the leader planned for members that never saw it: that is not on its way
        elif not situation.unowned:
            found.append(_settled(handing_over, weights))
            handing_over = []
    return tuple(found)


class _Claim(NamedTuple):
    """What a member last had before a generation; `losses` counts how often it lost partitions until then."""

    generation: int = NO_GENERATION
    partitions: frozenset[TopicPartition] = frozenset()
    losses: int = 0


class _Situation(NamedTuple):
    """A generation, with members under the names that they have in the group."""

    rebalance: SeenRebalance
    names: Mapping[str, str]
    holdings: Holdings
    subscriptions: Mapping[str, frozenset[str]]
    partitions: frozenset[TopicPartition]
    claims: Mapping[str, _Claim]

    @property
    def unowned(self) -> frozenset[TopicPartition]:
        return self.partitions.difference(*self.holdings.values())

    def continues(self, earlier: "_Situation") -> bool:
        """Whether the same members share out the same partitions as in an earlier generation."""
        return (
            self.subscriptions == earlier.subscriptions
            and self.partitions == earlier.partitions
            and all(claim.losses == earlier.claims[member].losses for member, claim in self.claims.items())
        )


def _find_claims(events: Iterable[Event], identity: Mapping[str, str]) -> dict[int, dict[str, _Claim]]:
    """Generation -> member -> what it had before."""
    found: dict[int, dict[str, _Claim]] = {}
    last: dict[str, _Claim] = {}
    for event in events:
        member = identity[event.member]
        claim = last.get(member, _Claim())
        if isinstance(event, AssignmentReceived):
            # A static member that restarts gets its assignment again in the same generation.
            found.setdefault(event.generation, {}).setdefault(member, claim)
            last[member] = _Claim(
                generation=event.generation, partitions=event.partitions, losses=claim.losses
            )
        elif isinstance(event, Lost | Unsubscribed) or (
            isinstance(event, Started) and event.member != member
        ):
            # A static member's new process knows nothing, unless the group just gives it the old assignment.
            kept = claim.partitions - event.partitions if isinstance(event, Lost) else frozenset()
            last[member] = _Claim(generation=claim.generation, partitions=kept, losses=claim.losses + 1)
    return found


def _situations(
    rebalances: Sequence[SeenRebalance], claims: Mapping[int, dict[str, _Claim]], identity: Mapping[str, str]
) -> Iterator[_Situation]:
    # A partition that nobody has ever again is not waited for: its topic was deleted.
    seen_last: dict[TopicPartition, int] = {}
    for rebalance in rebalances:
        for partition in frozenset[TopicPartition]().union(*rebalance.assignments.values()):
            seen_last[partition] = rebalance.generation
    known: set[TopicPartition] = set()
    for rebalance in rebalances:
        known.update(*rebalance.assignments.values())
        subscribed = frozenset[str]().union(*rebalance.subscriptions.values())
        yield _Situation(
            rebalance=rebalance,
            names={identity[member]: member for member in rebalance.assignments},
            holdings={identity[member]: each for member, each in rebalance.assignments.items()},
            subscriptions={identity[member]: each for member, each in rebalance.subscriptions.items()},
            partitions=frozenset(
                one for one in known if one.topic in subscribed and seen_last[one] >= rebalance.generation
            ),
            claims=claims[rebalance.generation],
        )


def _settled(situations: Sequence[_Situation], weights: Weights | None) -> Settled:
    """What was moved from the first of these generations to the last, and the least that had to be."""
    first, last = situations[0], situations[-1]
    names, generations = last.names, tuple(one.rebalance.generation for one in situations)
    plan = best_plan(
        last.partitions,
        last.subscriptions,
        {member: claim.partitions for member, claim in first.claims.items()},
        generations={member: claim.generation for member, claim in first.claims.items()},
        weights={member: (weights or {}).get(name, 1) for member, name in names.items()},
    )
    moves = []
    for number, owner in enumerate(plan.group.owner.tolist()):
        one = TopicPartition(*plan.group.name_of(number))
        if owner != NOBODY and one not in last.holdings[source := plan.group.members.ids[owner]]:
            target = next(member for member, owned in last.holdings.items() if one in owned)
            moves.append(
                PartitionMove(
                    partition=one, generation=generations[-1], source=names[source], target=names[target]
                )
            )
    return Settled(
        generations=generations,
        start=first.rebalance.start,
        end=last.rebalance.end,
        moves=tuple(moves),
        least=plan.moves,
    )
