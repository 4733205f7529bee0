"""How long the simulated coordinator and its members take, in real seconds, up to 10,000 members.

    python -m benchmarks.simulator

All members of a group join at once; then one more joins, and one is killed. Every member subscribes with real
bytes, and real assignors plan. Each group has a process of its own, so that its memory is known.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from rich.progress import track

from benchmarks import machine
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors.coordinator import Simulation

RESULT: Final = Path(__file__).parent / "results" / "simulator.md"
SIZES: Final = ((100, 1000), (1000, 10_000), (10_000, 100_000))
TOPICS: Final = 10
ASSIGNORS: Final = {
    assignor.name: assignor for assignor in (RangeAssignor, StickyAssignor, CooperativeStickyAssignor)
}


def measure(strategy: str, members: int, partitions: int) -> dict[str, float]:
    """Real and simulated seconds of a group's life."""
    topics = {f"topic-{number}": partitions // TOPICS for number in range(TOPICS)}
    group = Simulation(topics, [ASSIGNORS[strategy]], seed=1)
    seen: dict[str, float] = {}

    def timed(what: str) -> None:
        real, simulated = time.perf_counter(), group.now
        group.run_until_stable()
        seen[what] = time.perf_counter() - real
        seen[f"{what}, simulated"] = group.now - simulated

    for _ in range(members):
        group.join()
    timed("join")
    group.join("one more")
    timed("one more")
    group.members["one more"].crash()
    timed("crash")
    seen["generations"] = group.group.generation
    seen["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seen


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--one", nargs=3, metavar=("STRATEGY", "MEMBERS", "PARTITIONS"), help=argparse.SUPPRESS
    )
    one = parser.parse_args().one
    if one:
        sys.stdout.write(json.dumps(measure(one[0], int(one[1]), int(one[2]))))
        return
    about = machine.describe()
    cases = [(strategy, *size) for size in SIZES for strategy in ASSIGNORS]
    lines = [
        "# Groups in virtual time",
        "",
        "Real seconds for what takes the group the seconds in brackets: all members join, one more joins,",
        "that one is killed (default settings: 45 s until the coordinator notices). 10 topics.",
        "",
        "`python -m benchmarks.simulator`",
        "",
        "| strategy | members | partitions | all join | one more | one killed | generations | memory, MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for strategy, members, partitions in track(cases, "groups"):
        command = [sys.executable, "-m", "benchmarks.simulator", "--one", strategy]
        done = subprocess.run(
            [*command, str(members), str(partitions)], capture_output=True, check=True, text=True
        )
        seen = json.loads(done.stdout)
        times = (
            f"{seen[what]:.2f} ({seen[f'{what}, simulated']:.1f})" for what in ("join", "one more", "crash")
        )
        lines.append(
            f"| {strategy} | {members:,} | {partitions:,} | {' | '.join(times)} | {seen['generations']:.0f}"
            f" | {seen['MB']:.0f} |"
        )
    lines += ["", *machine.lines(about)]
    text = "\n".join(lines) + "\n"
    RESULT.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
