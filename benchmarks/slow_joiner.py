"""How long records wait in partitions that stay, while one member of the group is slow to join.

    python -m benchmarks.slow_joiner

Members a, b and slow share 12 partitions, and commit after each poll. slow stands still, d joins, and the
group waits for slow for some seconds. Looked at are the partitions that a or b has before and afterwards.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks import machine
from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._common.progress import progress_bar
from kafka_assignors._timelines.events import CommitFailed, Consumed, Revoked
from kafka_assignors.testing import ConsumerGroup, Load, create_topic, kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.testing import Cluster

RESULT: Final = Path(__file__).parent / "results" / "slow_joiner.md"
PARTITIONS: Final = 12
RATE: Final = 400
SLOW_SECONDS: Final = 5.0
SETTINGS: Final = {"session_timeout_ms": 60_000, "heartbeat_interval_ms": 1000}

CONSUMERS: Final[Mapping[str, tuple[str, Any]]] = {
    "aiokafka, its own sticky": ("aiokafka", "sticky"),
    "kafka-python, our sticky": ("kafka-python", StickyAssignor),
    "kafka-python, our cooperative-sticky": ("kafka-python", CooperativeStickyAssignor),
    "confluent-kafka, cooperative-sticky": ("confluent-kafka", "cooperative-sticky"),
    "our CooperativeConsumer on aiokafka": ("aiokafka", CooperativeStickyAssignor),
}
"""Client and strategy of all members."""

_PAGE: Final = """\
# Records while a member is slow to join

`python -m benchmarks.slow_joiner --runs {runs}`: three members share {partitions} partitions with {rate}
records a second, and commit after each poll. One stands still for {slow:g} s in the midst of a rebalance.
*waits* is the longest time between two records of a partition that stays with another member, in seconds, in
each run; *revoked* how many of these were revoked all the same, *refused* how many commits failed, *twice*
how many records were read twice.

![the longest wait of each](slow_joiner.svg)

| members | staying | waits | revoked | refused | twice |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one group did.

    Attributes:
        staying: Partitions that the others had before and afterwards.
        wait: Seconds.
        revoked: Of the staying ones.
        refused: Commits.
        twice: Records.
    """

    staying: int
    wait: float
    revoked: int
    refused: int
    twice: int


def measure(cluster: Cluster, client: str, strategy: Any) -> Outcome:
    """Run one group."""
    topic = create_topic(cluster, PARTITIONS)
    group = ConsumerGroup(
        cluster, topic, [strategy], client=client, commit="each poll", settings=SETTINGS, timeout=240
    )
    with group, Load(cluster, topic, rate=RATE) as load:
        a, b, slow = (group.join(name) for name in ("a", "b", "slow"))
        before = group.wait_stable().assignments
        group.wait_for(lambda: len(group.timeline.of(Consumed)) > PARTITIONS, what="records")
        began = time.monotonic()
        slow.freeze()
        group.join("d")
        group.wait_for(lambda: group.describe().state == "PreparingRebalance", what="the rebalance")
        time.sleep(SLOW_SECONDS)
        slow.thaw()
        after = group.wait_stable().assignments
        ended = time.monotonic()
        load.stop()
        group.wait_consumed(load)
        staying = {partition for member in (a, b) for partition in before[member.name] & after[member.name]}
        timeline = group.timeline
        read: dict[Any, list[float]] = {partition: [began] for partition in staying}
        for event in timeline.of(Consumed):
            for partition, _, _ in event.records:
                if partition in read and began < event.time < ended:
                    read[partition].append(event.time)
        waits = [later - earlier for times in read.values() for earlier, later in pairwise([*times, ended])]
        return Outcome(
            staying=len(staying),
            wait=max(waits),
            revoked=len(
                {
                    one
                    for event in timeline.of(Revoked)
                    if began < event.time < ended
                    for one in event.partitions
                }
                & staying
            ),
            refused=len(timeline.of(CommitFailed)),
            twice=sum(timeline.duplicates().values()),
        )


def report(found: Mapping[str, Sequence[Outcome]], about: Mapping[str, str]) -> str:
    """The page."""
    lines = []
    for name, runs in found.items():
        waits = ", ".join(f"{run.wait:.2f}" for run in runs)
        sums = [sum(getattr(run, what) for run in runs) for what in ("revoked", "refused", "twice")]
        lines.append(
            f"| {name} | {sum(run.staying for run in runs)} | {waits} | {' | '.join(map(str, sums))} |"
        )
    lines += ["", *machine.lines(about), ""]
    times = len(next(iter(found.values())))
    head = _PAGE.format(runs=times, partitions=PARTITIONS, rate=RATE, slow=SLOW_SECONDS)
    return head + "\n".join(lines)


def draw(found: Mapping[str, Sequence[Outcome]], path: Path) -> None:
    """A bar for the median of each."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import

    figure = Figure(figsize=(8, 2.6), layout="constrained")
    axes = figure.add_subplot()
    names = [*found][::-1]
    longest = [sorted(run.wait for run in found[name])[len(found[name]) // 2] for name in names]
    bars = axes.barh(
        names, longest, color=["tab:green" if "our Coop" in name else "tab:gray" for name in names]
    )
    axes.bar_label(bars, fmt="%.2f s", padding=3)
    axes.axvline(SLOW_SECONDS, color="black", linestyle=":", linewidth=1)
    axes.set(xlabel="longest wait of a record in a partition that stays, s", xlim=(0, 1.25 * max(longest)))
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page and the picture.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow_joiner", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    about = machine.describe()
    found: dict[str, list[Outcome]] = {name: [] for name in CONSUMERS}
    with progress_bar() as bar, kafka_cluster(how="embedded") as cluster:
        task = bar.add_task("groups", total=options.runs * len(CONSUMERS))
        for _ in range(options.runs):
            for name, (client, strategy) in CONSUMERS.items():
                found[name].append(measure(cluster, client, strategy))
                bar.advance(task)
    options.output.write_text(report(found, about), encoding="utf-8")
    draw(found, options.output.with_suffix(".svg"))
    print(options.output)  # noqa: T201 - a command prints
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
