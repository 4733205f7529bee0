"""What a record costs, said by hand."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Final, TypeGuard

import numpy as np

from kafka_assignors._common.escaping import get_logger
from kafka_assignors._model.arrays import FloatArray
from kafka_assignors._model.group import Group

log = get_logger(__name__)

Cost = Mapping[str, float] | Callable[[str, int], float]
"""The relative work of a record: by topic, 1 for those that are not listed; or of a (topic, partition id)."""

LEAST: Final = 1e-9
MOST: Final = 1e9


def check_cost(cost: object) -> None:
    """Raise a ValueError for what is no `Cost`. What a function gives, shows when a leader plans."""
    if not (callable(cost) or isinstance(cost, Mapping)):
        raise ValueError(  # noqa: TRY004 - as any option that is wrong
            f"cost must be a mapping of topics, or a function of topic and partition id, not {cost!r}"
        )
    for topic, one in cost.items() if isinstance(cost, Mapping) else ():
        if not _is_cost(one):
            raise ValueError(f"the cost of {topic!r} must be a number from 1e-9 to 1e9, not {one!r}")


def fill_costs(said: FloatArray, cost: Cost, group: Group) -> None:
    """Ask for the costs (N,) of those partitions of which none is known yet, NaN.

    What is wrong with one counts as 1, and the first is warned of: the group goes on.
    """
    if isinstance(cost, Mapping):
        said[:] = np.array([float(cost.get(topic, 1.0)) for topic in group.topics])[group.topic_of]
        return
    fault: tuple[str, int, object] | None = None
    for partition in np.flatnonzero(np.isnan(said)).tolist():
        topic, number = group.name_of(partition)
        try:
            one: object = cost(topic, number)
        except Exception as error:  # noqa: BLE001 - it would come out of the poll of the leader's application
            one = error
        if _is_cost(one):
            said[partition] = float(one)
        else:
            said[partition] = 1.0
            fault = fault or (topic, number, one)
    if fault is not None:
        log.warning("A cost must be a number from 1e-9 to 1e9: of %s-%d it is %r, and counts as 1", *fault)


def _is_cost(number: object) -> TypeGuard[float]:
    return isinstance(number, Real) and not isinstance(number, bool) and not number < LEAST and number <= MOST
