"""The `load-aware` strategy."""

import math
import struct
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from kafka_assignors._assignors._cooperative_sticky import CooperativeStickyAssignor
from kafka_assignors._assignors._costs import Cost, check_cost, fill_costs
from kafka_assignors._assignors._measured_load import Known, half_busy, learn, load_of
from kafka_assignors._assignors._measures import Measures
from kafka_assignors._assignors._member_warnings import MemberWarnings
from kafka_assignors._assignors._membership.claims import Claim
from kafka_assignors._assignors._membership.host import Host
from kafka_assignors._assignors._membership.standbys import lasting_names
from kafka_assignors._assignors._uneven import Uneven
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.words import by_topic
from kafka_assignors._model.arrays import FloatArray, IntArray
from kafka_assignors._model.claims import Extra
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.measured import encode_measured
from kafka_assignors.planners._load import HORIZON, Load, place_load, plan_load

log = get_logger(__name__)

_MEAN: Final = struct.Struct(">4s2d")
_MARK: Final = b"load"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Planned:
    """What a leader knew when it planned: of partitions, speeds (M,) and names of members, and when it began.

    It was `for_load` if no member had come or gone since the plan before.
    """

    known: Known
    speed: FloatArray
    members: frozenset[str]
    began: float
    for_load: bool


@dataclass(slots=True)
class _Work:
    """What an instance knows of the work of its one consumer, and of the group that this leads.

    As a member it measures. `said` is what it sent when it joined, until it has its assignment: while another
    strategy is chosen it gets none. `mean` is what its last assignment told, as `uneven` has it.

    As a leader it has `making`, its plan of the present rebalance, which may not reach the group; and
    `given`, its last one that did. `told` is the next `mean`, for all members.
    """

    measures: Measures = field(default_factory=Measures)
    said: bytes | None = None
    mean: tuple[float, float] = (0.0, 0.0)
    uneven: Uneven | None = None

    making: _Planned | None = None
    given: _Planned | None = None
    told: bytes = b""


class LoadAwareAssignor(CooperativeStickyAssignor):
    """As `CooperativeStickyAssignor`, but it balances what the work costs, not how many partitions there are.

    Each member measures what a record of each of its partitions costs, its lag and what arrives, and sends
    that when it joins. The leader plans for the least time in which the slowest member works off what waits
    and arrives; then racks; then the fewest moves. If the gain is within the tolerance, nothing moves.
    Members that cannot be measured, and new partitions, count as the mean.

    The time from when an application gets records until it comes for more is what they cost. An application
    that hands its records to other threads or tasks, and comes back at once, says what they cost by `cost`.

    The group needs this strategy with every member: no other client has one of its name. Options that are not
    listed here are `CooperativeStickyAssignor`'s.

    Args:
        weight: How fast this consumer is beside the others, where that shall not be measured: if weights in
            a group differ, they are the speeds.
        cost: How much work a record is, by topic (1 for topics that are not listed), or a function of topic
            and partition id. Only ratios count. The leader's counts; without one it is measured. Who asks by
            `rebalance_when` does not go by it, but by measured time. Where a function raises or gives no
            number from 1e-9 to 1e9, the cost is 1, and a warning names the first.
        tolerance: Which part of the time to drain a rebalance has to save, 0.1 for a tenth; from 0 up to 1.
        settle: Seconds for which a partition that was moved for load stays, unless members come or go.
        time_limit: Seconds until a plan has to be ready, as `StickyAssignor`'s. The quick one moves nothing:
            what is free goes to the members that are done soonest.
        cooperative: False has the consumer rebalance eagerly, in the same group.

    Raises:
        ValueError: An option is out of range.
    """

    name = "load-aware"

    def __init__(
        self,
        *,
        rack: str | None = None,
        weight: int = 1,
        priority: int = 0,
        max_active: int | None = None,
        return_after: float | None = None,
        cost: Cost | None = None,
        tolerance: float = 0.1,
        settle: float = 3600.0,
        max_moves: int | None = None,
        time_limit: float | None = None,
        cooperative: bool = True,
        records_in_rebalances: bool = True,
    ) -> None:
        super().__init__(
            rack=rack,
            weight=weight,
            priority=priority,
            max_active=max_active,
            return_after=return_after,
            max_moves=max_moves,
            time_limit=time_limit,
            records_in_rebalances=records_in_rebalances,
        )
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance must be 0 or more and below 1, not {tolerance!r}")
        if not 0 <= settle < math.inf:
            raise ValueError(f"settle must be 0 s or more, not {settle!r}")
        if cost is not None:
            check_cost(cost)
        self._cost = dict(cost) if isinstance(cost, Mapping) else cost
        self._tolerance, self._settle = tolerance, settle
        self._cooperative = cooperative
        self._bad_measures = MemberWarnings("Some of what member %s has measured counts as unknown: %s")

    @property
    def _work(self) -> _Work:
        if self._consumer.more is None:
            self._consumer.more = _Work()
        work: _Work = self._consumer.more
        return work

    # As a member.

    def _belong_to(self, host: Host) -> None:
        super()._belong_to(host)
        host.measure(self._work.measures)

    def metadata(self, topics: Collection[str]) -> Any:
        """As `CooperativeStickyAssignor`; a plan that was made before may not have reached the group."""
        self._work.making = None
        return super().metadata(topics)

    def tell_claim(self, claim: Claim) -> bytes | None:
        """As `CooperativeStickyAssignor`, with what was measured of the partitions that are claimed.

        It is the same until the assignment: with other bytes, a member that is asked again would begin
        another rebalance.
        """
        work = self._work
        if work.said is None:
            work.said = encode_measured(work.measures.of(claim.partitions))
        return super().tell_claim(claim)

    @property
    def extra(self) -> Extra:
        """As `StickyAssignor`'s, with what was measured."""
        return super().extra._replace(data=self._work.said or b"")

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """As `CooperativeStickyAssignor`; what it says of the group's mean load is remembered."""
        before = self._consumer.memory.last.partitions
        super().on_assignment(assignment, generation)
        work = self._work
        work.said, work.mean = None, _mean_in(assignment.user_data or b"")
        work.given, work.making = work.making or work.given, None
        if work.uneven is not None:
            changed = self._consumer.memory.last.partitions != before
            work.uneven.rebalanced(time.monotonic(), work.mean, changed=changed)

    def ask_when_uneven(self, *, uneven_for: float, at_least: float, cool_down: float) -> None:
        """See `rebalance_when`."""
        work = self._work
        work.uneven = Uneven(uneven_for=uneven_for, at_least=at_least, cool_down=cool_down)
        work.uneven.rebalanced(time.monotonic(), work.mean, changed=True)
        work.measures.watch = self._compare

    def _compare(self) -> None:
        host, work = self._host(), self._work
        if host is None or work.uneven is None or work.said is not None:
            return
        measured = work.measures.of(by_topic(host.partitions)).values()
        mine = sum(one.work(work.uneven.uneven_for) for one in measured)
        if reason := work.uneven.look(time.monotonic(), mine):
            log.info("Asking for a rebalance: %s", reason)
            host.request_rejoin()

    # As a leader.

    def plan(self, group: Group) -> Plan:
        """The plan by what members have measured."""
        work = self._work
        now = work.making = self._knowledge(group)
        known = now.known
        if self._cost is not None:
            fill_costs(known.said, self._cost, group)
        stays = (known.moved < now.began) & (time.monotonic() - known.moved < self._settle)
        load = load_of(known, now.speed, stays)
        by_load = partial(
            plan_load,
            group,
            load if self._cost is None else half_busy(load),
            tolerance=self._tolerance,
            # Who came is to get its share, however little there is to do.
            least_gain=self._tolerance * HORIZON if now.for_load else 0.0,
            max_moves=self.budget(group),
        )
        quickly = partial(place_load, group, load)  # counts would undo what was moved for load
        plan = self._in_time(group, lambda tick: by_load(tick=tick), quickly, "A plan by load")
        if now.for_load:
            known.moved[plan.moved] = time.monotonic()
        work.told = _mean(plan, known, load)
        return plan

    def notes(self, sent: Plan, held_back: IntArray | None) -> Mapping[int, bytes]:
        """As `CooperativeStickyAssignor`, and for all members the mean load behind that."""
        notes = super().notes(sent, held_back)
        return {number: notes.get(number, b"") + self._work.told for number in range(len(sent.group.members))}

    def _knowledge(self, group: Group) -> _Planned:
        """What is known of a group; in the second round of a rebalance what was known in the first.

        What members were asked to revoke, and where it goes, must not change in between.
        """
        given = self._work.given
        before = Known.nothing(group) if given is None else given.known.of(group)
        if given is not None and self._consumer.hand_over.goes_on_with(group):
            return replace(given, known=before)
        known, speed, faults = learn(before)
        self._bad_measures.warn(faults)
        members = frozenset(lasting_names(group.members))
        for_load = given is not None and members == given.members
        if not for_load:  # who came is to get its share
            known.moved[:] = np.nan
        return _Planned(known=known, speed=speed, members=members, began=time.monotonic(), for_load=for_load)


def _mean(plan: Plan, known: Known, load: Load) -> bytes:
    """What members hear: the mean load of those who take part, or nothing if nobody has measured."""
    if np.isnan(known.numbers[:, 0]).all():
        return b""
    takes_part = np.diff(plan.group.subscribed.bounds)[plan.group.subscription_of] > 0
    means = [
        (np.bincount(plan.owner, weights=work, minlength=load.speed.size) / load.speed)[takes_part].mean()
        for work in (load.waiting, load.arriving)
    ]
    return _MEAN.pack(_MARK, *means)


def _mean_in(user_data: bytes) -> tuple[float, float]:
    """The mean load that an assignment tells; 0 if it tells none, whatever the leader may have sent."""
    told = user_data[-_MEAN.size :]
    if len(told) != _MEAN.size or not told.startswith(_MARK):
        return 0.0, 0.0
    _, waits, arrives = _MEAN.unpack(told)
    return (waits, arrives) if 0 <= waits < math.inf and 0 <= arrives < math.inf else (0.0, 0.0)
