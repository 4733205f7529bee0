"""The command: `python -m benchmarks`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.cases import CASES
from benchmarks.measure import Effort
from benchmarks.peers import PEERS
from benchmarks.report import Report
from benchmarks.run import run

RESULTS: Final = Path(__file__).parent / "results"
QUICK: Final = Effort(cap=20.0, budget=0.2, repetitions=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks.

    Args:
        arguments: The command line without the program's name; that of the process if None.

    Returns:
        The exit status: 0 if all answers were right, 1 if one was wrong, 2 for a wrong command line,
        130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    if options.redraw is not None:
        report = Report.read(options.redraw)
    else:
        cases = [case for case in CASES if any(map(case.chosen_by, options.case or ["*"]))]
        if not cases:
            console.print(f"no case is called {' or '.join(options.case)}")
            return 2
        peers = [peer for peer in PEERS if options.peer is None or peer.name in options.peer]
        limits = QUICK if options.quick else Effort(cap=options.cap, budget=options.budget)
        with tempfile.TemporaryDirectory(prefix="benchmarks-") as scratch:
            report = run(cases, peers, limits, Path(scratch), console)
    for path in report.write(options.output):
        console.print(f"wrote {path}")
    if options.json:
        json.dump(report.to_json(), sys.stdout, indent=1)
        sys.stdout.write("\n")
    if not report.complete:
        return 130
    failures = [each.failure or "" for each in report.measurements]
    return 1 if any(failure.startswith("wrong") for failure in failures) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=(
            "Measures what a group leader's work costs, from the members' bytes to the assignments' bytes: "
            "this library beside kafka-python, aiokafka, Apache Kafka's Java client and franz-go, on the "
            "same bytes, one process after another. Takes an hour or more as a whole; Ctrl-C ends it with "
            "what there is."
        ),
    )
    parser.add_argument(
        "--case",
        action="append",
        metavar="PATTERN",
        help="a case, say K2, K2-reassign or 'P*'; repeatable (default: all)",
    )
    names = [peer.name for peer in PEERS]
    parser.add_argument(
        "--peer",
        action="append",
        choices=names,
        metavar="NAME",
        help=f"whom to measure: {', '.join(names)}; repeatable (default: all)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions, and at most 20 s for each peer and case"
    )
    parser.add_argument(
        "--cap",
        type=float,
        metavar="SECONDS",
        help="the most that a peer may take for a case (default: 150 s; 130 s for those in Python)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=Effort().budget,
        metavar="SECONDS",
        help="repetitions of a case that are enough, in all (default: %(default)s s; 5 repetitions at least)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="where to write the table and the plot (default: benchmarks/results)",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON on stdout, too")
    parser.add_argument(
        "--redraw", type=Path, metavar="FILE", help="measure nothing; make table and plot of a leader.json"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
