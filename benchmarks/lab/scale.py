"""How long a big group takes from the moment its members join until it is stable, with each assignor.

    python -m benchmarks.lab.scale --members 60 200

The members are processes of kafka-python, all started before; then all join at once, on a cluster of three
nodes. When the group is stable one more joins, and one leaves. Then nothing happens, and it is measured how
busy the processors are. Ours and kafka-python's own assignors take turns in one run.

A step lasts until the last member has its assignment. That the group is then stable is asked afterwards: the
questions wait for busy processors, for 8 s where 5 had passed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, RoundRobinAssignor, StickyAssignor
from kafka_assignors._timelines.events import Led, Started
from kafka_assignors.testing import ConsumerGroup, create_topic, delete_topic, kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.testing import Member

TOPICS = 2
PATIENCE = 600.0  # seconds
REST = 10.0  # seconds
RESULT = Path(__file__).parents[1] / "results" / "scale.md"
CASES: dict[str, tuple[Any, Any]] = {
    "range": (RangeAssignor, "range"),
    "roundrobin": (RoundRobinAssignor, "roundrobin"),
    "sticky": (StickyAssignor, "sticky"),
    "cooperative-sticky": (CooperativeStickyAssignor, "cooperative-sticky"),
}
"""Strategy -> our assignor, kafka-python's own."""

# The client's own defaults, but for how soon it looks at topics again, which 200 of them need not do.
SETTINGS = {
    "heartbeat_interval_ms": 3000,
    "session_timeout_ms": 45_000,
    "metadata_max_age_ms": 300_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One group's life.

    Attributes:
        strategy: The assignor's name.
        whose: "kafka-assignors" or "kafka-python".
        members: How many join at first.
        joined: Seconds from the moment that all were let go until the last member had its assignment of the
            generation in which the group was stable.
        one_more: Seconds from a further member's join.
        one_less: Seconds from a member's leave.
        at_rest: Processors that are busy while nothing happens, of all that the machine has.
        generations: How many there were until the group was first stable.
        planning: The seconds that leaders took to plan in all.
        owned_twice: Partitions that a generation gave to two members.
        failure: Why it did not come to its end; empty if it did.
    """

    strategy: str
    whose: str
    members: int
    joined: float | None = None
    one_more: float | None = None
    one_less: float | None = None
    at_rest: float | None = None
    generations: int = 0
    planning: float = 0.0
    owned_twice: int = 0
    failure: str = ""


def live(
    servers: list[str],
    strategy: str,
    whose: str,
    *,
    members: int,
    partitions: int,
    started: Callable[[], None],
) -> Result:
    """Let one group live."""
    assignor = CASES[strategy][0 if whose == "kafka-assignors" else 1]
    topics = [create_topic(servers, partitions // TOPICS, timeout=120) for _ in range(TOPICS)]
    took: list[float] = []
    at_rest = None
    failure = ""
    generations = 0
    with ConsumerGroup(servers, topics, [assignor], settings=SETTINGS, timeout=PATIENCE) as group:
        for number in range(members + 1):
            group.join(f"m{number:03d}", held=True)
            group.wait_for(
                lambda: len(group.timeline.of(Started)) > number - 8,  # noqa: B023 - asked before it changes
                what="processes to start, a few at a time",
            )
            started()
        group.wait_for(lambda: len(group.timeline.of(Started)) == members + 1, what="all to be started")
        *first, last = group.members.values()
        try:
            acts: list[Callable[[], None]] = [lambda: release(first), last.release, first[-1].leave]
            for act in acts:
                began = time.monotonic()
                act()
                stable = group.wait_stable()
                took.append(group.timeline.rebalances[-1].end - began)
                generations = generations or stable.generation
            at_rest = busy_processors(REST)
        except TimeoutError as error:
            failure = str(error).splitlines()[0]
        timeline = group.timeline
    for topic in topics:
        delete_topic(servers, topic)
    joined, one_more, one_less = (*took, None, None, None)[:3]
    return Result(
        strategy=strategy,
        whose=whose,
        members=members,
        joined=joined,
        one_more=one_more,
        one_less=one_less,
        at_rest=at_rest,
        generations=generations,
        planning=sum(event.seconds for event in timeline.of(Led)),
        owned_twice=sum(map(len, timeline.double_assigned().values())),
        failure=failure,
    )


def busy_processors(seconds: float) -> float:
    """How many of the machine's processors are busy in the next seconds, by Linux' own count."""
    before = _idle_seconds()
    time.sleep(seconds)
    return (os.cpu_count() or 1) - (_idle_seconds() - before) / seconds


def _idle_seconds() -> float:
    return float(Path("/proc/uptime").read_text(encoding="utf-8").split()[1])


def release(members: Sequence[Member]) -> None:
    """Let members that were held go."""
    for member in members:
        member.release()


def measure(strategies: Sequence[str], sizes: Sequence[int], partitions: int) -> list[Result]:
    """Let all groups live, one after the other."""
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    ways = ("kafka-assignors", "kafka-python")
    cases = [(members, strategy, whose) for members in sizes for strategy in strategies for whose in ways]
    found = []
    with kafka_cluster(3) as kafka, bar:
        task = bar.add_task("members", total=sum(members + 1 for members, *_ in cases))
        for members, strategy, whose in cases:
            bar.update(task, description=f"{members}, {strategy}, {whose}")
            one = live(
                kafka.bootstrap_servers,
                strategy,
                whose,
                members=members,
                partitions=partitions,
                started=lambda: bar.advance(task),
            )
            found.append(one)
    return found


_HEAD = """\
# Groups of many members

Processes of kafka-python join one group at once, on three brokers; {partitions} partitions in
{topics} topics; then one more joins, and one leaves. Seconds until the last member has its assignment of the
generation in which the group is stable: members and coordinator agree, and every partition has an owner.
With the client's own settings (heartbeats every 3 s).

*Twice* is how many partitions a generation gave to two members, *planning* the time of all leaders.
*At rest* is how many of the {cores} processors the consumers and brokers keep busy while nothing happens.
Members of our cooperative-sticky read on in a rebalance, so this work goes on in it; all others stop.
If the machine has little left at rest, their rebalances take longer.

`python -m benchmarks.lab.scale --members {sizes} --partitions {partitions}`

| members | strategy | whose | all join | generations | one more | one leaves | planning | twice | at rest |
|---|---|---|---|---|---|---|---|---|---|
"""


def report(results: Sequence[Result], partitions: int, about: Mapping[str, str]) -> str:
    """The results as a page."""
    rows = []
    for one in results:
        steps = one.joined, one.one_more, one.one_less
        times = ["not stable" if took is None else f"{took:.1f}" for took in steps]
        at_rest = "" if one.at_rest is None else f"{one.at_rest:.1f}"
        rows.append(
            f"| {one.members} | {one.strategy} | {one.whose} | {times[0]} | {one.generations} | {times[1]}"
            f" | {times[2]} | {one.planning:.2f} | {one.owned_twice} | {at_rest} |"
        )
    failures = [
        f"- {one.members}, {one.strategy}, {one.whose}: {one.failure}" for one in results if one.failure
    ]
    machine_lines = machine.lines(about)
    sizes = " ".join(str(members) for members in dict.fromkeys(one.members for one in results))
    head = _HEAD.format(sizes=sizes, partitions=partitions, topics=TOPICS, cores=about["cores"])
    return head + "\n".join([*rows, "", *failures, *([""] if failures else []), *machine_lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page.

    Returns:
        0 if all of our groups became stable.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.scale", description=__doc__)
    parser.add_argument("--members", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--strategy", choices=CASES, action="append", help="only this one (repeatable)")
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args(arguments)
    about = machine.describe()
    results = measure(options.strategy or list(CASES), options.members, options.partitions)
    page = report(results, options.partitions, about)
    options.output.write_text(page, encoding="utf-8")
    sys.stdout.write((json.dumps([asdict(one) for one in results]) if options.json else page) + "\n")
    return 1 if any(one.failure for one in results if one.whose == "kafka-assignors") else 0


if __name__ == "__main__":
    sys.exit(main())
