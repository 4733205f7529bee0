"""The `copartitioned` strategy: for members that join topics."""

from collections.abc import Collection, Iterable

from kafka_assignors._assignors._cooperative_sticky import CooperativeStickyAssignor
from kafka_assignors._assignors._member_warnings import MemberWarnings
from kafka_assignors._model.claims import NO_EXTRA, Extra
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._model.tick import Tick
from kafka_assignors.planners._copartitioned import Together, digest, plan_copartitioned, units_of
from kafka_assignors.planners._quick import plan_quickly


class CopartitionedAssignor(CooperativeStickyAssignor):
    """Partition i of all topics of a set is with one member, and stays there as far as balance allows.

    That is what joins of topics in memory need. It holds in each round of a rebalance, too: partition i of a
    set is revoked as a whole and assigned as a whole. Balance counts partitions. Topics in no set are as with
    `CooperativeStickyAssignor`. All members of a set's topics must subscribe to all of them: a topic that
    others subscribe to is planned by itself, with a warning. So is what only the longer topics of a set have.

    Give all members the same sets. The leader's count; who has others is named in a warning. Only members
    with this class share a group. Options that are not listed here are `CooperativeStickyAssignor`'s.

    Args:
        together: The sets, say `[("impressions", "clicks")]`. None is all topics that have as many partitions
            and the same subscribers: then one topic that grows leaves its set.
        cooperative: False makes the consumer eager. The group may have consumers of both kinds.
        rack: As `StickyAssignor`'s. A set's partition i is in the racks that all of its partitions are in.
        max_skew: As `StickyAssignor`'s, but not in partitions: partition i of a set counts once.
        max_moves: The same. What unites a set's partition i, as in a group that comes from another strategy,
            does not count.

    Raises:
        ValueError: A topic is in two sets, a set has fewer than two topics, or an option is out of range.
    """

    name = "copartitioned"

    def __init__(
        self,
        together: Iterable[Collection[str]] | None = None,
        *,
        cooperative: bool = True,
        rack: str | None = None,
        weight: int = 1,
        priority: int = 0,
        max_active: int | None = None,
        return_after: float | None = None,
        max_skew: int | None = None,
        max_moves: int | None = None,
        time_limit: float | None = None,
        records_in_rebalances: bool = True,
    ) -> None:
        super().__init__(
            rack=rack,
            weight=weight,
            priority=priority,
            max_active=max_active,
            return_after=return_after,
            max_skew=max_skew,
            max_moves=max_moves,
            time_limit=time_limit,
            records_in_rebalances=records_in_rebalances,
        )
        self._together = None if together is None else _checked(together)
        self._cooperative = cooperative
        self._odd_topics = MemberWarnings("Topics joined by %s: %s")
        self._odd_members = MemberWarnings("Member %s has %s, and not those of this leader, which count")

    @property
    def extra(self) -> Extra:
        """The sets of this member, as 4 bytes to compare."""
        return super().extra._replace(data=digest(self._together))

    def plan_exactly(self, group: Group, tick: Tick) -> Plan:
        """The best plan, or nearly so for sets of several sizes; warns of topics and members that differ."""
        units, odd = units_of(group, self._together)
        self._odd_topics.warn(odd)
        own = self.extra.data
        said = [group.members.extras.get(number, NO_EXTRA).data for number in range(len(group.members))]
        self._odd_members.warn(
            {
                member: "other sets of topics" if sets else "the default sets of topics"
                for member, sets in zip(group.members.ids, said, strict=True)
                if sets != own
            }
        )
        limits = {"max_skew": self._max_skew, "max_moves": self.budget(group)}
        return plan_copartitioned(group, units, **limits, tick=tick)

    def plan_quickly(self, group: Group) -> Plan:
        """A plan that is ready in time, and keeps together what belongs together."""
        units, _ = units_of(group, self._together)
        owner = plan_quickly(units.as_group(group)).owner
        return Plan.from_owner(group, owner[units.of], units=units)


def _checked(together: Iterable[Collection[str]]) -> Together:
    sets: list[tuple[str, ...]] = []
    for given in together:
        names = set[object]() if isinstance(given, str) else {*given}
        if len(names) <= 1 or not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"together has sets of two topics or more, say [('impressions', 'clicks')], not {given!r}"
            )
        if twice := sorted({one for other in sets for one in other} & {*given}):
            raise ValueError(f"a topic is in one set only, but {', '.join(twice)} is in two of together")
        sets.append(tuple(sorted({*given})))
    return sets
