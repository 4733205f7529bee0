"""How long consumers wait for records in a rebalance, by client, and what a calm consumer costs.

    python -m benchmarks.pauses

A staying partition has the same member before and afterwards. Its records could come all the time.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse

from benchmarks import machine
from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._common.progress import progress_bar
from kafka_assignors._timelines.events import CommitFailed, Frozen, Revoked
from kafka_assignors.testing import ConsumerGroup, Load, create_topic, kafka_cluster
from kafka_assignors.testing._brokers.metadata import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kafka import TopicPartition

    from kafka_assignors.testing import Cluster

RESULT: Final = Path(__file__).parent / "results" / "pauses.md"
PARTITIONS: Final = 12
RATE: Final = 400
HEARTBEAT: Final = 3.0
SLOW: Final = 5.0
CALM: Final = 5.0
SLICES: Final = 12
_VERSION: Final = 8  # of OffsetCommit
BEFORE, NOW = "kafka-python, ours, records_in_rebalances=False", "kafka-python, our cooperative-sticky"
CLIENTS: Final[Mapping[str, tuple[str, Any]]] = {
    "kafka-python, its own cooperative-sticky": ("kafka-python", "cooperative-sticky"),
    "kafka-python, our sticky": ("kafka-python", StickyAssignor),
    BEFORE: ("kafka-python", (CooperativeStickyAssignor, {"records_in_rebalances": False})),
    NOW: ("kafka-python", CooperativeStickyAssignor),
    "aiokafka, our CooperativeConsumer": ("aiokafka", CooperativeStickyAssignor),
    "confluent-kafka, cooperative-sticky": ("confluent-kafka", "cooperative-sticky"),
    "Java, cooperative-sticky": ("java", "cooperative-sticky"),
}
"""Client and strategy of all members."""

_PAGE: Final = """\
# Pauses of consumers in a rebalance

`python -m benchmarks.pauses --runs {runs}`: three members share {partitions} partitions with {rate} records a
second on three brokers, and commit after each poll. `heartbeat_interval_ms` is {heartbeat:g}. Each run is a
group of its own, to which the four things below happen one after the other.

*staying* is the longest time between two records of a partition that one member has before and afterwards.
*moving* is that of a partition which changes hands. *no commits* is the longest time in which no broker took
a commit. All are in seconds, for each run.

*revoked* counts staying partitions that were revoked all the same. *refused* counts commits that failed; of
kafka-python and aiokafka each try. *twice* counts records that were read again.

![the longest wait of a staying partition](pauses.svg)

Below, one member is slow to join by {slow:g} s. Each mark is a poll that brought records of one staying
partition, the one that waited longest.

![records of one staying partition](pauses_records.svg)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one group did in one rebalance.

    Attributes:
        wait: The longest of a staying partition, in seconds.
        other: That of a moving partition; if the coordinator moves, how long no broker took commits.
        refused: Commits.
        twice: Records.
        revoked: Staying partitions.
        reads: When records of the staying partition with the longest wait came; `SLOW` is the end of the act.
    """

    wait: float
    other: float
    refused: int
    twice: int
    revoked: int
    reads: Sequence[float]


def _slow(group: ConsumerGroup, _: Cluster) -> None:
    with group.members["c"].freeze():
        group.members["e"].release()
        group.wait_for(lambda: group.describe().state == "PreparingRebalance", what="the rebalance")
        time.sleep(SLOW)


def _move(group: ConsumerGroup, cluster: Cluster) -> float:
    """Returns for how long no broker took commits."""
    taken, over = [time.monotonic()], False
    with ThreadPoolExecutor() as pool:
        moved = pool.submit(cluster.move_coordinator, group.group_id)
        while not over:
            over = moved.done()
            if any(_takes_commits(server, str(group.topics)) for server in cluster.bootstrap_servers):
                taken.append(time.monotonic())
            else:
                over = False
        moved.result()
    time.sleep(HEARTBEAT)  # until each member has sent one to the new coordinator
    return max(later - earlier for earlier, later in pairwise(taken))


def _takes_commits(server: str, topic: str) -> bool:
    """Whether a broker takes a commit, of a group without members and with the same coordinator."""
    committed = OffsetCommitRequest.OffsetCommitRequestTopic
    at = committed.OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")
    request = OffsetCommitRequest(
        group_id="watcher", member_id="", topics=[committed(name=topic, partitions=[at])]
    )
    answer = ask(server, request, OffsetCommitResponse, _VERSION)
    return not answer.topics[0].partitions[0].error_code


SCENARIOS: Final[Mapping[str, tuple[str, Callable[[ConsumerGroup, Cluster], float | None]]]] = {
    "a member joins": ("moving", lambda group, _: group.members["d"].release()),
    "a member leaves": ("moving", lambda group, _: group.members["d"].leave()),
    "a member is slow to join": ("moving", _slow),
    "the coordinator moves": ("no commits", _move),
}
"""What happens to a group: how `Outcome.other` is called, and the act."""


def group_of(cluster: Cluster, name: str) -> ConsumerGroup:
    """A group without members on a topic of its own."""
    client, strategy = CLIENTS[name]
    settings = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": round(1000 * HEARTBEAT)}
    topic = create_topic(cluster, PARTITIONS)
    return ConsumerGroup(cluster, topic, [strategy], client=client, settings=settings, timeout=240)


def measure(cluster: Cluster, name: str, run: int) -> Iterator[tuple[str, Outcome]]:
    """Have all happen to one group."""
    with group_of(cluster, name) as group, Load(cluster, str(group.topics), rate=RATE) as load:
        for member in "abcde":
            group.join(member, held=member in "de")
        after = _settled(group, load, run)
        for scenario, (_, act) in SCENARIOS.items():
            before, earlier = after, sum(group.timeline.duplicates().values())
            began, outage, acted = time.monotonic(), act(group, cluster), time.monotonic()
            group.wait_stable()
            group.wait_consumed(load)
            ended = time.monotonic()
            after = _settled(group, load, run)
            timeline = group.timeline
            stood_still = {event.member for event in timeline.of(Frozen)}
            staying = {
                one for who in after.keys() - stood_still for one in after[who] & before.get(who, set())
            }
            moving = {one for who in after for one in after[who] - before.get(who, set())}
            waits = timeline.longest_silence(since=began, until=ended)
            longest = max(staying, key=waits.__getitem__)
            during = [event for event in timeline.of(Revoked, CommitFailed) if event.time > began]
            revoked = {one for event in during if isinstance(event, Revoked) for one in event.partitions}
            yield (
                scenario,
                Outcome(
                    wait=waits[longest],
                    other=max(waits[one] for one in moving) if outage is None else outage,
                    refused=sum(isinstance(event, CommitFailed) for event in during),
                    twice=sum(timeline.duplicates().values()) - earlier,
                    revoked=len(revoked & staying),
                    reads=[one.time - acted + SLOW for one in timeline.deliveries[longest]],
                ),
            )


def _settled(group: ConsumerGroup, load: Load, run: int) -> Mapping[str, frozenset[TopicPartition]]:
    stable = group.wait_stable()
    group.wait_consumed(load)
    # Heartbeats come no sooner than due by then. Each run begins elsewhere between two.
    time.sleep(4 + run % HEARTBEAT)
    return stable.assignments


def calm(cluster: Cluster) -> dict[str, float]:
    """CPU seconds of three members of a stable group, without and with records in rebalances, by turns."""
    with ExitStack() as stack:
        groups = {name: stack.enter_context(group_of(cluster, name)) for name in (BEFORE, NOW)}
        for group in groups.values():
            for member in "abc":
                group.join(member)
            group.wait_stable()
        spent = dict.fromkeys(groups, 0.0)
        for name, group in [*groups.items()] * SLICES:
            with Load(cluster, str(group.topics), rate=RATE) as load:
                group.wait_consumed(load)
                began = _cpu(group)
                time.sleep(CALM)
                spent[name] += _cpu(group) - began
        return spent


def _cpu(group: ConsumerGroup) -> float:
    return sum(sum(psutil.Process(one.pid).cpu_times()[:2]) for one in group.members.values())


Found = dict[tuple[str, str], list[Outcome]]
"""Scenario, client -> an outcome of each run."""


def report(found: Found, spent: Mapping[str, float], about: Mapping[str, str]) -> str:
    """The page."""
    lines = []
    for scenario, (other, _) in SCENARIOS.items():
        lines += ["", f"## {scenario.capitalize()}", ""]
        lines += [f"| members | staying | {other} | revoked | refused | twice |", "|---|---|---|---|---|---|"]
        for name in CLIENTS:
            ones = found[scenario, name]
            times = [", ".join(f"{getattr(one, what):.2f}" for one in ones) for what in ("wait", "other")]
            counts = [
                str(sum(getattr(one, what) for one in ones)) for what in ("revoked", "refused", "twice")
            ]
            lines.append(" | ".join([f"| {name}", *times, *counts]) + " |")
    lines += ["", "## Nothing happens", ""]
    lines += [f"| members | CPU seconds of three members in {SLICES * CALM:g} s |", "|---|---|"]
    lines += [f"| {name} | {cpu:.2f} |" for name, cpu in spent.items()]
    head = _PAGE.format(
        runs=len(ones), partitions=PARTITIONS, rate=RATE, heartbeat=1000 * HEARTBEAT, slow=SLOW
    )
    return head + "\n".join([*lines, "", *machine.lines(about), ""])


def draw(found: Found, path: Path) -> None:
    """The median waits of staying partitions as bars; one such partition's records beside a slow member."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = [*CLIENTS][::-1]
    colors = ["tab:green" if name == NOW else "tab:gray" for name in names]
    bars, marks = (Figure(figsize=(width, 3.4), layout="constrained") for width in (12, 10))
    for axes, scenario in zip(bars.subplots(1, len(SCENARIOS), sharey=True), SCENARIOS, strict=True):
        waits = [statistics.median(one.wait for one in found[scenario, name]) for name in names]
        axes.bar_label(axes.barh(names, waits, color=colors), fmt="%.2f", padding=3)
        axes.set(title=scenario, xlim=(0, 1.3 * max(waits)))
    bars.supxlabel("longest wait for a record of a staying partition, s (median of the runs)")
    axes = marks.subplots()
    axes.axvspan(0, SLOW, color="tab:orange", alpha=0.15)
    for row, (name, color) in enumerate(zip(names, colors, strict=True)):
        run = max(found["a member is slow to join", name], key=lambda one: one.wait)
        reads = [one for one in run.reads if abs(one - SLOW) < SLOW + 2]
        times = [time for one in reads for time in (one, one, math.nan)]
        axes.plot(times, [row - 0.3, row + 0.3, math.nan] * len(reads), color=color, linewidth=1)
    axes.set(yticks=range(len(names)), yticklabels=names, xlim=(-2, SLOW + 5), ylim=(-0.6, len(names) - 0.4))
    axes.set(xlabel=f"s; the group rebalances at 0, and waits {SLOW:g} s for one member")
    # The same file from the same numbers, with each mark.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pauses", "path.simplify": False}):
        bars.savefig(path, metadata={"Date": None})
        marks.savefig(path.with_stem(f"{path.stem}_records"), metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page and the pictures.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pauses", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    about = machine.describe()
    found: Found = {(scenario, name): [] for scenario in SCENARIOS for name in CLIENTS}
    with progress_bar() as bar, kafka_cluster(nodes=3, how="embedded") as cluster:
        for run, name in bar.track([*product(range(options.runs), CLIENTS)], description="groups"):
            for scenario, outcome in measure(cluster, name, run):
                found[scenario, name].append(outcome)
        spent = calm(cluster)
    options.output.write_text(report(found, spent, about), encoding="utf-8")
    draw(found, options.output.with_suffix(".svg"))
    print(options.output)  # noqa: T201 - a command prints
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
