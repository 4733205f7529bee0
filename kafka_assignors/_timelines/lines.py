"""Events as lines of text. Records and commits, of which there are many, are summed up between the others."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kafka_assignors._timelines.events import (
    CommitFailed,
    Committed,
    Consumed,
    Event,
    Obeyed,
    OfPositions,
    OfRecords,
    PolledLate,
    Processed,
    StateReported,
    each_position,
    name_of,
)
from kafka_assignors._timelines.records import find_deliveries, runs_of

MANY: Final = Consumed | Processed | Committed | PolledLate | StateReported | Obeyed
"""Kinds of which a group under load has thousands, and that change nothing of who owns what."""

_SUMMED_UP: Final = MANY | CommitFailed
"""Java's consumer tries a commit that a rebalance refuses again and again."""

_FEWEST: Final = 4
"""So many in a row are summed up."""


def lines_of(events: Iterable[Event], begin: float) -> Iterator[str]:
    """The events as text, a line each; of `MANY` and failed commits in a row one for each member and kind."""
    for many, run in itertools.groupby(events, key=lambda event: isinstance(event, _SUMMED_UP)):
        found = [*run]
        if many and len(found) >= _FEWEST:
            yield from _summed_up(found, begin)
        else:
            yield from (line(event, begin) for event in found)


def line(event: Event, begin: float) -> str:
    return f"{event.time - begin:8.3f} {event}"


def _summed_up(events: Sequence[Event], begin: float) -> Iterator[str]:
    by_kind: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in events:
        why = event.text if isinstance(event, CommitFailed) else ""
        by_kind[event.member, event.kind, why].append(event)
    for found in sorted(by_kind.values(), key=lambda found: found[-1].time):
        last = found[-1]
        if len(found) == 1:
            yield line(last, begin)
            continue
        times = f"{len(found)} times since {found[0].time - begin:.3f}"
        yield f"{last.time - begin:8.3f} {last.member:<10} {last.kind} {times}{_all_of(found)}"


def _all_of(found: Sequence[Event]) -> str:
    """What events of one kind come to: all their records, or their last positions, and why they failed."""
    runs = runs_of(find_deliveries(one for one in found if isinstance(one, OfRecords)))
    parts = [
        f"{name_of(partition)}: {', '.join(f'{first}..{last}' for first, last in each)}"
        for partition, each in sorted(runs.items())
    ]
    positions = {at: to for one in found if isinstance(one, OfPositions) for at, to in one.positions.items()}
    parts += each_position(positions)
    parts += [found[-1].text] if isinstance(found[-1], CommitFailed) else []
    return "".join(f" {one}" for one in parts)
