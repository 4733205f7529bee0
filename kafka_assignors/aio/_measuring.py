"""Where a consumer of aiokafka is measured: each call that gets records, from outside.

Stock consumers and ours enter a context of their subscription for that. Which records a call gets, positions
before and after it tell. To look at them takes time by the number of partitions. So after a look calls are
left out until ten times as long has passed.
"""

import contextlib
import time
from collections.abc import Iterator
from typing import Any, Final

from kafka.structs import TopicPartition

from kafka_assignors._assignors._measures import Measures, Standing

_CONTEXT: Final = "fetch_context"

_PAUSE: Final = 10


def measure(subscriptions: Any, measures: Measures) -> None:
    """Measure each call of the consumer with this SubscriptionState; once is enough."""
    own = vars(subscriptions)
    if _CONTEXT in own:
        return
    context = getattr(type(subscriptions), _CONTEXT)
    next_look = 0.0

    @contextlib.contextmanager
    def fetch_context() -> Iterator[None]:
        nonlocal next_look
        measures.came()
        began = time.monotonic()
        before = _standing(subscriptions) if began >= next_look else None
        spent = time.monotonic() - began
        with context(subscriptions):
            yield
        if before is None:
            return
        got = time.monotonic()
        after = _standing(subscriptions)
        measures.gave({one: _records(before.get(one), now) for one, now in after.items()})
        if measures.is_due:
            measures.stand(after.items())
        ended = time.monotonic()
        next_look = ended + _PAUSE * (spent + ended - got)

    own[_CONTEXT] = fetch_context


def _standing(subscriptions: Any) -> dict[TopicPartition, Standing]:
    subscription = subscriptions.subscription
    assignment = None if subscription is None else subscription.assignment
    if assignment is None:
        return {}
    states = {one: assignment.state_value(one) for one in assignment.tps}
    return {
        one: Standing(state.position if state.has_valid_position else None, state.highwater)
        for one, state in states.items()
        if state is not None
    }


def _records(before: Standing | None, after: Standing) -> int:
    if before is None or before.position is None or after.position is None:
        return 0
    return max(0, after.position - before.position)
