"""Look for schedules that break a group, among many that are drawn; and shorten one that does."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Self

from kafka_assignors._common.garbage import no_garbage_collection
from tests.lab.schedules._run import BrokenError, run
from tests.lab.schedules._schedule import Schedule

CHUNK: Final = 250
"""How many schedules a process runs at a time."""


@dataclass(kw_only=True)
class Tally:
    """What many schedules came to: the sums of what is in `Told`, and the longest and most."""

    schedules: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    generations: int = 0
    longest_ms: int = 0
    most_rounds: int = 0
    by_others: int = 0
    unplanned: int = 0
    broken: list[tuple[Schedule, str]] = field(default_factory=list)

    def add(self, other: Self) -> None:
        self.schedules += other.schedules
        self.steps += other.steps
        self.generations += other.generations
        self.longest_ms = max(self.longest_ms, other.longest_ms)
        self.most_rounds = max(self.most_rounds, other.most_rounds)
        self.by_others += other.by_others
        self.unplanned += other.unplanned
        self.broken += other.broken


def search(
    schedules: Iterable[Schedule],
    *,
    processes: int | None = None,
    watch: Callable[[Tally], None] = lambda _: None,
    stop_at_first: bool = True,
) -> Tally:
    """Run schedules.

    Schedules are asked for as they are run. By default as many processes work at it as there are cores; 0 is
    this one.
    """
    total = Tally()
    work = _chunks(schedules)
    if processes == 0:
        return _added(total, map(_run_all, work), watch, stop_at_first=stop_at_first)
    count = processes or os.cpu_count() or 1
    with ProcessPoolExecutor(count) as pool:
        # A few chunks for each process at a time: `map` would take all schedules at once.
        while batch := list(islice(work, 4 * count)):
            _added(total, pool.map(_run_all, batch), watch, stop_at_first=stop_at_first)
            if total.broken and stop_at_first:
                break
    return total


def _added(
    total: Tally, found: Iterable[Tally], watch: Callable[[Tally], None], *, stop_at_first: bool
) -> Tally:
    for tally in found:
        total.add(tally)
        watch(total)
        if total.broken and stop_at_first:
            break
    return total


def _chunks(schedules: Iterable[Schedule]) -> Iterator[list[Schedule]]:
    left = iter(schedules)
    while chunk := list(islice(left, CHUNK)):
        yield chunk


def _run_all(schedules: list[Schedule]) -> Tally:
    tally = Tally()
    # Looking for cycles takes a sixth of the time. What a chunk leaves of them is some 100 MB.
    with _quiet(), no_garbage_collection():
        for schedule in schedules:
            tally.schedules += 1
            tally.steps.update(step.kind for step in schedule.steps)
            try:
                told = run(schedule)
            except BrokenError as error:
                tally.broken.append((schedule, str(error)))
                continue
            tally.generations += told.generations
            tally.by_others += told.by_others
            tally.unplanned += told.unplanned
            if told.unplanned:
                continue  # it did not settle
            tally.longest_ms = max(tally.longest_ms, told.settled_ms)
            tally.most_rounds = max(tally.most_rounds, told.rounds)
    return tally


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of assignors and clients, of which a search would make millions."""
    logs = [logging.getLogger(name) for name in ("kafka_assignors", "kafka", "aiokafka")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


def broken(schedule: Schedule) -> str:
    with _quiet():
        try:
            run(schedule)
        except BrokenError as error:
            return str(error)
    return ""


def shorten(schedule: Schedule) -> Schedule:
    """The shortest schedule that breaks the group, found by leaving out and simplifying what one has."""
    while True:
        for simpler in schedule.shorter():
            if broken(simpler):
                schedule = simpler
                break
        else:
            return schedule
