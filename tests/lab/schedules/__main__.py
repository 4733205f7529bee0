"""`python -m tests.lab.schedules`: search for a schedule that breaks a group."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

from rich.console import Console

from kafka_assignors._common.progress import progress_bar
from tests.lab.schedules._clients import CLIENTS, STRATEGIES
from tests.lab.schedules._exhaustive import every
from tests.lab.schedules._schedule import Schedule, draw
from tests.lab.schedules._search import Tally, broken, search, shorten


def main(arguments: Sequence[str] | None = None) -> int:
    """Search; 1 if a schedule breaks a group."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    tally = _search(options)
    seconds = time.monotonic() - began
    steps = options.length if options.exhaustive is None else options.exhaustive + 1
    print(
        f"{tally.schedules:,} schedules of up to {steps} steps,"
        f" {tally.generations:,} generations, {seconds:,.0f} s: {len(tally.broken)} broken;"
        f" at most {tally.longest_ms / 1000:g} s and {tally.most_rounds} generations to settle"
    )
    for schedule, _ in tally.broken[:1]:
        print("shortening the first that is broken ...", file=sys.stderr)
        shortest = shorten(schedule)
        print(f"\n{shortest.script()}\n{broken(shortest)}")
    return 1 if tally.broken else 0


def _search(options: argparse.Namespace) -> Tally:
    with progress_bar(Console(stderr=True)) as progress:
        bar = progress.add_task("schedules", total=None if options.exhaustive else options.count)
        return search(
            _schedules(options),
            processes=options.processes,
            watch=lambda tally: progress.update(bar, completed=tally.schedules),
            stop_at_first=not options.keep_going,
        )


def _schedules(options: argparse.Namespace) -> Iterator[Schedule]:
    clients = options.clients.split(",")
    if options.exhaustive:
        for depth in range(1, options.exhaustive + 1):
            yield from every(depth, client=clients[0], strategy=options.strategy)
        return
    for seed in range(options.seed, options.seed + options.count):
        yield draw(seed, options.length, strategy=options.strategy, clients=clients)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.schedules",
        description="Search for a schedule that breaks a simulated group, and shorten the first one found.",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--count", type=int, default=10_000, help="how many schedules (default: 10000)")
    parser.add_argument("--length", type=int, default=40, help="steps of a schedule at most (default: 40)")
    parser.add_argument(
        "--exhaustive",
        type=int,
        metavar="DEPTH",
        help="run all schedules of three members of the first client with up to so many steps, and draw none",
    )
    parser.add_argument("--strategy", choices=[*STRATEGIES], default="cooperative-sticky")
    parser.add_argument(
        "--clients",
        default="ours",
        help=f"what members are, with commas: {', '.join(CLIENTS)} (default: ours)",
    )
    parser.add_argument("--processes", type=int, help="how many processes (default: one a core)")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first that is broken")
    return parser


if __name__ == "__main__":
    sys.exit(main())
