"""Whether the leader of a restless group goes on needing the same memory and the same file handles.

    python -m benchmarks.lab.soak --minutes 30

One group for each of our sticky strategies and range: its first member leads it for all the time, while
another joins and leaves again and again, under load. The leader's process is looked at after each rebalance.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks import machine
from kafka_assignors import Assignor, CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors.testing import ConsumerGroup, Load, create_topic, kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ASSIGNORS: tuple[type[Assignor], ...] = (RangeAssignor, StickyAssignor, CooperativeStickyAssignor)
PARTITIONS = 60
RATE = 50.0  # records a second
MEBIBYTE = 2**20
RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True, slots=True)
class Look:
    """A leader's process at one moment: seconds since the start, resident bytes, open files."""

    second: float
    resident: int
    files: int


@dataclass(slots=True)
class Soak:
    """What was seen of one group.

    Attributes:
        strategy: The assignor's name.
        rebalances: Generations that the leader planned.
        looks: The leader's process, look by look.
        failure: Why the group did not come to the end; empty if it did.
    """

    strategy: str
    rebalances: int = 0
    looks: list[Look] = field(default_factory=list)
    failure: str = ""

    def between(self, begin: float, end: float) -> list[Look]:
        """The looks of a part of the time, from 0 to 1."""
        last = self.looks[-1].second
        return [look for look in self.looks if begin * last <= look.second <= end * last]


def look(pid: int, began: float) -> Look:
    """Look at a process (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    files = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - links that dangle are counted, too
    return Look(time.monotonic() - began, pages * os.sysconf("SC_PAGE_SIZE"), files)


def soak(servers: list[str], assignor: type[Assignor], seconds: float, tell: Callable[[float], None]) -> Soak:
    """Let one group live for so long."""
    topic = create_topic(servers, PARTITIONS)
    found = Soak(assignor.name)
    began = time.monotonic()
    with (
        ConsumerGroup(servers, topic, [assignor], timeout=120) as group,
        Load(servers, topic, rate=RATE) as load,
    ):
        leader = group.join("leader")
        group.wait_stable()
        group.join("other", place="thread")
        group.wait_stable()
        rounds = 0
        try:
            while (now := time.monotonic() - began) < seconds:
                rounds += 1
                guest = group.join(f"guest{rounds}", place="thread")
                group.wait_stable()
                guest.leave()
                group.wait_stable()
                found.looks.append(look(leader.pid, began))
                tell(now)
            load.stop()
        except Exception as error:  # noqa: BLE001 - whatever ends it is the result
            found.failure = f"{type(error).__name__}: {error}"
        found.rebalances = leader.generation
    return found


def measure(minutes: float) -> list[Soak]:
    """Let the groups live at once."""
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    found: list[Soak] = []
    with ExitStack() as stack:
        kafka = stack.enter_context(kafka_cluster())
        stack.enter_context(bar)
        threads = []
        for assignor in ASSIGNORS:
            task = bar.add_task(assignor.name, total=minutes * 60)

            def run(assignor: type[Assignor] = assignor, task: TaskID = task) -> None:
                def tell(second: float) -> None:
                    bar.update(task, completed=second)

                found.append(soak(kafka.bootstrap_servers, assignor, minutes * 60, tell))

            threads.append(threading.Thread(target=run))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sorted(found, key=lambda one: one.strategy)


_HEAD = """\
# A leader for {minutes:g} minutes

Groups of 2 and 3 members and {partitions} partitions, {rate:g} records a second; a member joins and leaves
all the time. The leader is a process of its own. Medians of the second tenth of the time (the first is
warm-up) and of the last.

`python -m benchmarks.lab.soak --minutes {minutes:g}`

| strategy | rebalances | MiB resident, early | late | change | files, early | late | most |
|---|---|---|---|---|---|---|---|
"""


def report(soaks: Sequence[Soak], minutes: float, about: Mapping[str, str]) -> str:
    """What was seen, as a page."""
    rows = []
    for one in soaks:
        early, late = one.between(0.1, 0.2), one.between(0.9, 1.0)
        memory = [statistics.median(look.resident for look in part) / MEBIBYTE for part in (early, late)]
        files = [statistics.median(look.files for look in part) for part in (early, late)]
        most = max(look.files for look in one.looks)
        rows.append(
            f"| {one.strategy} | {one.rebalances} | {memory[0]:.1f} | {memory[1]:.1f}"
            f" | {memory[1] / memory[0] - 1:+.1%} | {files[0]:g} | {files[1]:g} | {most} |"
        )
    rows += [f"- {one.strategy}: {one.failure}" for one in soaks if one.failure]
    machine_lines = machine.lines(about)
    head = _HEAD.format(minutes=minutes, partitions=PARTITIONS, rate=RATE)
    return head + "\n".join([*rows, "", "![memory of each leader](soak.svg)", "", *machine_lines, ""])


def draw(soaks: Sequence[Soak], path: Path) -> None:
    """The leaders' memory over the time."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import

    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    for one in soaks:
        minutes = [look.second / 60 for look in one.looks]
        axes.plot(minutes, [look.resident / MEBIBYTE for look in one.looks], label=one.strategy)
    axes.set(xlabel="minutes", ylabel="resident memory, MiB", ylim=(0, None))
    axes.legend(loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page and the picture.

    Returns:
        0 if all groups came to the end.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="folder to write to (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print all looks as JSON")
    options = parser.parse_args(arguments)
    about = machine.describe()
    soaks = measure(options.minutes)
    page = report(soaks, options.minutes, about)
    (options.output / "soak.md").write_text(page, encoding="utf-8")
    draw(soaks, options.output / "soak.svg")
    sys.stdout.write((json.dumps([asdict(one) for one in soaks]) if options.json else page) + "\n")
    return 1 if any(one.failure for one in soaks) else 0


if __name__ == "__main__":
    sys.exit(main())
