"""Where a consumer of kafka-python is measured: each of its polls, from outside.

The coordinator, by which an assignor knows its consumer, sees no records. The consumer makes its coordinator,
and with that asks the assignor how it may rebalance: at that moment it is on the call stack.
"""

import weakref
from collections.abc import Iterator
from typing import Any, Final

from kafka import KafkaConsumer
from kafka.structs import TopicPartition

from kafka_assignors._assignors._measures import Measures, Standing
from kafka_assignors._assignors._membership.host import calling_frames
from kafka_assignors._assignors._relied_on import POLLS

_POLLS: Final = "_poll_once"


def consumer_on_the_stack() -> Any:
    """The KafkaConsumer that is on the call stack; None where there is none."""
    callers = (frame.f_locals.get("self") for frame in calling_frames())
    return next((caller for caller in callers if isinstance(caller, KafkaConsumer)), None)


def measure(consumer: Any, measures: Measures) -> None:
    """Measure each poll of a consumer; once is enough. A release that polls otherwise is left alone."""
    kind, own = type(consumer), vars(consumer)
    if _POLLS in own or not POLLS.is_in(consumer):
        return
    poll = getattr(kind, _POLLS)
    known = weakref.ref(consumer)  # which would otherwise be kept by what it keeps

    def poll_once(timer: Any, max_records: int, update_offsets: bool = True) -> Any:
        polled: Any = known()
        measures.came()
        records = poll(polled, timer, max_records, update_offsets=update_offsets)
        if records:
            measures.gave({partition: len(listed) for partition, listed in records.items()})
        if measures.is_due:
            measures.stand(_standing(polled))
        return records

    own[_POLLS] = poll_once


def _standing(consumer: Any) -> Iterator[tuple[TopicPartition, Standing]]:
    """Where partitions stand; the ends of fetches that wait behind others are not in their states yet."""
    fetched = consumer._fetcher._completed_fetches.copy()  # noqa: SLF001
    ends = {one.topic_partition: one.partition_data.high_watermark for one in fetched}
    for partition, state in list(consumer._subscription.assignment.items()):  # noqa: SLF001
        position = state.position
        end = max(ends.get(partition, -1), -1 if state.highwater is None else state.highwater)
        yield (
            partition,
            Standing(None if position is None else position.offset, None if end < 0 else end),
        )
