"""A sample report of simulated groups, its picture for the documentation, and how large reports become.

    python -m benchmarks.history_report report.html --picture docs/history.png
    python -m benchmarks.history_report large.html --groups 200 --rebalances 500

The picture needs Chromium (Debian: apt-get install chromium).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from benchmarks.sample_history import MIDNIGHT, sample_report, summary_of
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.reasons import Change
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.snapshots import Snapshot, SnapshotMember
from kafka_assignors.history._report.drawing import ReportedGroup, draw
from kafka_assignors.history._report.page import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MADE: Final = MIDNIGHT + timedelta(days=1, minutes=5)

PICTURE: Final = "1180,2130"
"""The window's size: the overview, and the first group down to the picture's explanation."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a report, and tell how many bytes and seconds it took.

    Args:
        arguments: The command line without the program's name; that of the process if None.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history_report", description="Write a sample report."
    )
    parser.add_argument("report", type=Path, help="the HTML file to write")
    parser.add_argument("--picture", type=Path, help="a PNG of its beginning to write")
    parser.add_argument("--groups", type=int, default=0, help="so many random groups instead of the sample")
    parser.add_argument("--rebalances", type=int, default=500, help="how many each of them has")
    parser.add_argument("--shuffled", action="store_true", help="and all partitions move in each")
    options = parser.parse_args(arguments)
    groups = (
        random_report(options.groups, options.rebalances, shuffled=options.shuffled)
        if options.groups
        else sample_report()
    )
    began = time.perf_counter()
    page = render(groups, source="random groups" if options.groups else "cluster mercury", made=_MADE)
    size = options.report.write_bytes(page.encode())
    sys.stdout.write(f"{options.report}: {size:,} bytes in {time.perf_counter() - began:.1f} s\n")
    if options.picture is not None:
        take_picture(options.report, options.picture)
        sys.stdout.write(f"{options.picture}: {options.picture.stat().st_size:,} bytes\n")
    return 0


def take_picture(report: Path, picture: Path) -> None:
    """Write what a browser shows of a report's beginning.

    Raises:
        RuntimeError: There is no Chromium.
    """
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("a picture needs chromium on the PATH: apt-get install chromium")
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        subprocess.run(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={PICTURE}",
                f"--screenshot={picture.resolve()}",
                report.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def random_report(groups: int, rebalances: int, *, shuffled: bool = False) -> list[ReportedGroup]:
    """Groups in which a consumer comes or goes each time.

    Args:
        groups: How many.
        rebalances: How many each has.
        shuffled: Whether all partitions move each time: the most that a report can have to draw.
    """
    names = (f"group-{number:05}" for number in range(groups))
    return [_random_group(name, rebalances, shuffled=shuffled) for name in names]


def _shared(
    partitions: Sequence[tuple[str, int]],
    here: Sequence[str],
    before: Mapping[tuple[str, int], str],
    random: Random,
) -> dict[tuple[str, int], str]:
    """Partitions shared out evenly; where they were, as far as that goes."""
    most = -(-len(partitions) // len(here))
    rooms = dict.fromkeys(here, most)
    owners: dict[tuple[str, int], str] = {}
    for one in partitions:
        if rooms.get(before.get(one, ""), 0):
            owners[one] = before[one]
            rooms[before[one]] -= 1
    for one in partitions:
        if one not in owners:
            owners[one] = random.choice([name for name, room in rooms.items() if room])
            rooms[owners[one]] -= 1
    return owners


def _random_group(group: str, count: int, *, shuffled: bool) -> ReportedGroup:
    random = Random(group)
    clients = [f"{group}-consumer-{number}" for number in range(20)]
    partitions = [("topic", number) for number in range(20)]
    times = sorted(random.uniform(0, 86_000) for _ in range(count))
    here = random.sample(clients, 8)
    owners = {one: here[at % len(here)] for at, one in enumerate(partitions)}
    snapshots, rows = [], []
    for generation, seconds in enumerate(times):
        others = [client for client in clients if client not in here]
        if len(here) > random.randint(4, 12):
            here.remove(random.choice(here))
        else:
            here.append(random.choice(others))
        before, owners = owners, _shared(partitions, here, {} if shuffled else owners, random)
        ended = MIDNIGHT + timedelta(seconds=seconds)
        moves = tuple(
            OwnerMove(topic=one[0], partition=one[1], source=before.get(one), target=owner)
            for one, owner in owners.items()
            if before.get(one) != owner
        )
        members = tuple(
            SnapshotMember(
                member_id=f"{client}-{generation}",
                client_id=client,
                host="/10.0.0.1",
                claims={},
                assignment=frozenset(one for one, owner in owners.items() if owner == client),
            )
            for client in sorted(here)
        )
        snapshots.append(
            Snapshot(
                group=group,
                generation=generation,
                time_us=round(1e6 * ended.timestamp()),
                offset=generation,
                members=members,
            )
        )
        rows.append(
            Rebalance(
                group=group,
                first_generation=generation,
                generation=generation,
                began=ended - timedelta(seconds=3),
                ended=ended,
                seconds=3.0,
                strategy="range",
                reasons=tuple(
                    Change(kind="member joined", member=client, text=f"{client}/10.0.0.1 joined")
                    for client in here[-1:]
                ),
                members=len(here),
                joined=1,
                gone=0,
                returned=0,
                partitions=len(partitions),
                moved=len(moves),
                least_moved=len(moves) // 3,
                imbalance=2,
                best_imbalance=1,
                unowned_seconds=random.uniform(0, 60),
                moves=moves,
            )
        )
    return ReportedGroup(summary=summary_of(group, rows, snapshots), drawing=draw(rows, snapshots))


if __name__ == "__main__":
    sys.exit(main())
