"""What chaos is let loose on: a strategy, with the options of its members, and what has to hold then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from kafka_assignors import _leader
from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor, CopartitionedAssignor
from tests.lab.chaos._model import Limits
from tests.lab.chaos._promises import EXCLUSIVE, PROMISES, Promise, priority_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A strategy; `options` are its members', by a member's name in the script and the topics."""

    assignor: type[Assignor]
    promise: Promise
    options: Callable[[str, Sequence[str]], Mapping[str, Any]] = lambda _name, _topics: {}
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(cls, assignor: type[Assignor]) -> Self:
        return cls(assignor=assignor, promise=PROMISES.get(assignor.name, EXCLUSIVE))


_STANDBYS: Final = replace(PROMISES["cooperative-sticky"], balance="none", sticky=False)

CASES: Final[Mapping[str, Case]] = {
    **{name: Case.of(assignor) for name, assignor in _leader.STRATEGIES.items()},
    # A topic to which others do not subscribe leaves its set. So here all members want all topics.
    "copartitioned": Case(
        assignor=CopartitionedAssignor,
        promise=PROMISES["copartitioned"],
        options=lambda _, topics: {"together": [topics]},
        limits=Limits(partitions=(12, 12), wanted=1.0),
    ),
    "max_active=1": Case(
        assignor=CooperativeStickyAssignor,
        promise=replace(_STANDBYS, active="one"),
        options=lambda _name, _topics: {"max_active": 1},
    ),
    "priority": Case(
        assignor=CooperativeStickyAssignor,
        promise=replace(_STANDBYS, active="highest priority"),
        options=lambda name, _: {"priority": priority_of(name)},
    ),
}
"""By the names that the command takes."""
