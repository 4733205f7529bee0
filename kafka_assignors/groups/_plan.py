"""A group planned by itself: the plan, what each member gets of it, and whether it could be better."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kafka_assignors import proofs
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.strategies import PLANNED, STRATEGIES, load
from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import Plan, check
from kafka_assignors.groups._file import GroupFile
from kafka_assignors.planners._cooperative import first_round
from kafka_assignors.planners._exact.exact import plan_exact
from kafka_assignors.proofs._findings import Certificate

if TYPE_CHECKING:
    from kafka_assignors.planners._load import Load

EXACT: Final = PLANNED[0]
"""The planner that takes options."""
LOAD_AWARE: Final = "load-aware"
"""The planner that takes what a file says of the work, and has a bound instead of a certificate."""
_PLANNERS: Final = (*PLANNED, *(name for name, one in STRATEGIES.items() if one.kip848))


class NoPlannerError(KafkaAssignorsError, ValueError):
    """There is no planner of this name, or it does not take what it was given."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one member gets, and how many of the partitions.

    `kept` were its own, `free` nobody owned. `gained` come from each other member, and `given_up` go to each
    other. `in_rack` have a replica in its rack, None where racks do not matter.
    """

    member: Member
    load: int
    kept: int
    gained: Mapping[str, int]
    free: int
    given_up: Mapping[str, int]
    in_rack: int | None


@dataclass(frozen=True, kw_only=True)
class Round:
    """The first round of a cooperative hand-over; the second one gives away what is revoked in it.

    By member and topic, `let_go` is what it revokes, `awaited` what it gets only in the second round.
    """

    loads: Mapping[str, int]
    let_go: Mapping[str, Mapping[str, list[int]]]
    awaited: Mapping[str, Mapping[str, list[int]]]


@dataclass(frozen=True, kw_only=True)
class PlannedGroup:
    """A plan for a group, and what there is to say about it.

    The `certificate` says whether it could be better, if that was asked; what each took is in milliseconds.
    So many partitions have to move at the least with the same goal, where that is known. If it is
    `cooperative`, such a group carries it out, in two rounds. The `notes` are of what is allowed in the
    group's file and yet may not be meant.
    """

    strategy: str
    plan: Plan
    plan_ms: float
    certificate: Certificate | None
    certificate_ms: float | None
    least_moves: int | None
    cooperative: bool = False
    notes: tuple[str, ...] = ()

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no plan is better."""
        return self.certificate is not None and self.certificate.optimal

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """What each member gets, in the group's order."""
        group, owner, prior = self.plan.group, self.plan.owner, self.plan.group.owner
        ids = [member.member_id for member in group.members]
        gained: list[Counter[str]] = [Counter() for _ in ids]
        given_up: list[Counter[str]] = [Counter() for _ in ids]
        moved = self.plan.moved
        for source, target in zip(prior[moved].tolist(), owner[moved].tolist(), strict=True):
            gained[target][ids[source]] += 1
            given_up[source][ids[target]] += 1
        kept = np.bincount(owner[owner == prior], minlength=len(ids)).tolist()
        free = np.bincount(owner[prior == NOBODY], minlength=len(ids)).tolist()
        in_rack = _in_rack(group, owner)
        return tuple(
            Share(
                member=member,
                load=load,
                kept=kept[number],
                gained=_most_first(gained[number]),
                free=free[number],
                given_up=_most_first(given_up[number]),
                in_rack=in_rack[number],
            )
            for number, (member, load) in enumerate(zip(group.members, self.plan.loads.tolist(), strict=True))
        )

    @property
    def free(self) -> int:
        """How many partitions nobody owned before."""
        return int(np.count_nonzero(self.plan.group.owner == NOBODY))

    @property
    def standbys(self) -> int:
        return int(np.count_nonzero(self.plan.group.standbys))

    @property
    def active_loads(self) -> IntArray:
        return self.plan.loads[~self.plan.group.standbys]

    @property
    def imbalance(self) -> float:
        """How much the highest load is above the lowest one, a unit of weight; standbys do not count."""
        loads = self.active_loads / self.plan.group.weights[~self.plan.group.standbys]
        return round(float(loads.max() - loads.min()), 3)

    @property
    def first_round(self) -> Round:
        """How it would be carried out by a cooperative strategy."""
        group = self.plan.group
        given, awaited = first_round(self.plan)
        ids = [member.member_id for member in group.members]
        late = np.unique(self.plan.whole(awaited[:, 0]))
        return Round(
            loads=dict(zip(ids, given.loads.tolist(), strict=True)),
            let_go=_by_member(group, awaited[:, 0], awaited[:, 1]),
            awaited=_by_member(group, late, self.plan.owner[late]),
        )

    def to_json(self) -> dict[str, Any]:
        group, goal, loads = self.plan.group, self.plan.goal, self.active_loads
        return {
            "strategy": self.strategy,
            "max_skew": goal.max_skew,
            "max_moves": goal.max_moves,
            "topics": len(group.topics),
            "partitions": group.size,
            "lowest_load": int(loads.min()),
            "highest_load": int(loads.max()),
            "imbalance": self.imbalance,
            "moves": self.plan.moves,
            "least_moves": self.least_moves,
            "free": self.free,
            "plan_ms": round(self.plan_ms, 3),
            "certificate_ms": None if self.certificate_ms is None else round(self.certificate_ms, 3),
            "members": {
                share.member.member_id: {
                    "weight": share.member.weight,
                    "priority": share.member.priority,
                    "rack": share.member.rack,
                    **fields_of(share, without=("member",)),
                    "assignment": self.plan.of(number),
                }
                for number, share in enumerate(self.shares)
            },
            "first_round": self.first_round if self.cooperative else None,
            "certificate": self.certificate.as_json() if self.certificate else None,
            "notes": self.notes,
        }


def plan(
    group: Group | GroupFile,
    assignor: str = EXACT,
    *,
    max_skew: int | None = None,
    max_moves: int | None = None,
    cooperative: bool = False,
    certify: bool = True,
) -> PlannedGroup:
    """Plan a group, without a consumer and without Kafka.

    Args:
        group: The group, also as `read_group` reads it from a file.
        assignor: The planner: `exact`, `kip54` (Kafka's own sticky algorithm), `range`, `roundrobin`,
            `copartitioned` (with its default sets), `load-aware` (the group of a file; a note says how near
            the best it is). Also `kip848:uniform` and `kip848:range`: what Kafka's coordinator does with the
            new protocol if ids of topics are in the order of their names, and all members in the group.
        max_skew: How many partitions loads may be off the best balance, if fewer move that way; `exact` only.
        max_moves: How many partitions may move; `exact` only.
        cooperative: Whether a cooperative group carries it out.
        certify: Whether to find out if the plan could be better.

    Raises:
        NoPlannerError: There is no such planner, or it does not take this group, `max_skew` or `max_moves`.
        ValueError: `max_skew` or `max_moves` is negative.
    """
    if assignor not in _PLANNERS:
        raise NoPlannerError(f"there is no planner {assignor!r}; choose one of {', '.join(_PLANNERS)}")
    given: dict[str, Any] = {"max_skew": max_skew, "max_moves": max_moves} if assignor == EXACT else {}
    if not given and (max_skew is not None or max_moves is not None):
        raise NoPlannerError(f"max_skew and max_moves are options of {EXACT}, not of {assignor}")
    notes: tuple[str, ...] = ()
    if assignor == LOAD_AWARE:
        if not isinstance(group, GroupFile):
            raise NoPlannerError(f"{LOAD_AWARE} plans the group of a file, which has what partitions cost")
        given["load"], certify = group.load, False
    if isinstance(group, GroupFile):
        notes, group = group.notes, group.group
    if not len(group.members):
        raise NoPlannerError("the group has no members: there is nobody to plan for")
    began = time.perf_counter()
    made: Plan = load(str(STRATEGIES[assignor].planner))(group, **given)
    check(made, group)
    planned = time.perf_counter()
    certificate = proofs.certify(made) if certify else None
    certified = time.perf_counter()
    if assignor == LOAD_AWARE:
        notes += (_time_note(made, given["load"]),)
    return PlannedGroup(
        strategy=assignor,
        plan=made,
        plan_ms=1000 * (planned - began),
        certificate=certificate,
        certificate_ms=1000 * (certified - planned) if certify else None,
        least_moves=_least_moves(made, certificate),
        cooperative=cooperative,
        notes=notes,
    )


def _time_note(plan: Plan, cost: "Load") -> str:
    from kafka_assignors.planners._load import least_time, work_times  # noqa: PLC0415 - others need none

    seconds, bound = work_times(plan.owner, cost).max(), least_time(plan.group, cost)
    return f"the slowest member is done in {seconds:.3g} s; no plan takes less than {bound:.3g} s"


def _least_moves(plan: Plan, certificate: Certificate | None) -> int | None:
    """From the certificate if it proves the plan's moves to be the fewest, else those of the exact plan."""
    if certificate is None or plan.units is not None:  # what has to move is counted in what belongs together
        return None
    if any(finding.proved for finding in certificate.goals if finding.name == "moves"):
        return plan.moves
    goal = plan.goal
    return plan_exact(plan.group, max_skew=goal.max_skew, max_moves=goal.max_moves).moves


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _in_rack(group: Group, owner: IntArray) -> list[int] | list[None]:
    if not (racks := group.local_racks):
        return [None] * len(group.members)
    counts = [0] * len(group.members)
    for partition, member in enumerate(owner.tolist()):
        counts[member] += group.members.racks[member] in racks[partition]
    return counts


def _by_member(group: Group, partitions: IntArray, members: IntArray) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for member, partition in sorted(zip(members.tolist(), partitions.tolist(), strict=True)):
        topic, number = group.name_of(partition)
        found.setdefault(group.members[member].member_id, {}).setdefault(topic, []).append(number)
    return found
