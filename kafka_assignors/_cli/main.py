"""The command line: what there is to run, and what it was asked to do."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

from kafka_assignors._cli.group_parser import add_group
from kafka_assignors._cli.history_parser import add_history, check_history_options
from kafka_assignors._cli.placement_parser import add_placement, check_placement_options
from kafka_assignors._cli.plan_parser import add_plan, check_plan

ASSIGNORS: Final = {
    "range": "kafka_assignors:RangeAssignor",
    "roundrobin": "kafka_assignors:RoundRobinAssignor",
    "sticky": "kafka_assignors:StickyAssignor",
    "cooperative-sticky": "kafka_assignors:CooperativeStickyAssignor",
    "random": "kafka_assignors:RandomAssignor",
    "broadcast": "kafka_assignors:BroadcastAssignor",
}
"""Where the assignor of each strategy is."""

COMPARED: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The strategies that --compare runs where none is named."""


_EXTRAS: Final = frozenset({"demo", "history", "placement"})
"""The commands that need the extra of their name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The command line without the program's name; that of the process if None.

    Returns:
        The exit status: 0 if all went well, 1 if not, 2 for a wrong command line or file, 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print(f"interrupted{_after_interrupt(options)}", file=sys.stderr)
        return 130
    except ImportError as error:
        if options.command not in _EXTRAS:
            raise
        needs = f"needs {error.name}" if isinstance(error, ModuleNotFoundError) else f"cannot run: {error}"
        print(
            f"kafka-assignors {options.command} {needs}: pip install 'kafka-assignors[{options.command}]'",
            file=sys.stderr,
        )
        return 1
    return status


def _after_interrupt(options: argparse.Namespace) -> str:
    if options.command == "demo":
        return "; nothing is left running"
    captures = options.command == "history" and options.verb == "capture"
    return "; the same command goes on with the rest" if captures else ""


def _run_plan(options: argparse.Namespace) -> int:
    check_plan(options.parser, options)
    from kafka_assignors._cli.plan import plan  # noqa: PLC0415 - --help needs none of what that imports

    return plan(
        options.file,
        strategy=options.strategy,
        max_skew=options.max_skew,
        max_moves=options.max_moves,
        cooperative=options.cooperative,
        certify=options.certify,
        strict=options.check,
        assignments=options.assignments,
        as_json=options.json,
    )


def _run_group(options: argparse.Namespace) -> int:
    from kafka_assignors._cli.group import run  # noqa: PLC0415 - --help needs none of what that imports

    return run(options)


def _run_history(options: argparse.Namespace) -> int:
    check_history_options(options.parser, options)
    if options.verb == "watch":
        from kafka_assignors._cli import history_watch  # noqa: PLC0415 - as below, but without the extra

        return history_watch.run(options)
    from kafka_assignors._cli.history import run  # noqa: PLC0415 - needs an extra, which --help does not

    return run(options)


def _run_placement(options: argparse.Namespace) -> int:
    check_placement_options(options.parser, options)
    from kafka_assignors._cli.placement import run  # noqa: PLC0415 - --help needs none of what that imports

    return run(options)


def _run_demo(options: argparse.Namespace) -> int:
    if options.assignor and len(options.assignor) > 1 and not options.compare:
        options.parser.error("to run several assignors, say --compare")
    from kafka_assignors._cli.demo import demo  # noqa: PLC0415 - needs an extra, which --help does not

    names = options.assignor or (COMPARED if options.compare else ["cooperative-sticky"])
    return demo(
        {name: ASSIGNORS[name] for name in names},
        bootstrap=options.bootstrap_servers,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        as_json=options.json,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-assignors",
        description="Partition assignors for kafka-python consumer groups.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('kafka-assignors')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    demo = commands.add_parser(
        "demo",
        help="show a consumer group through joins, a crash, a leave and a grown topic",
        description=(
            "Runs a group of real consumers on a real Kafka, under load: three members join, a fourth joins, "
            "one is killed, one leaves, a topic gets more partitions. Shows each rebalance as it happens. "
            "Exits with 0 only if no message was lost and no partition had two owners at once."
        ),
    )
    demo.add_argument(
        "--assignor",
        action="append",
        choices=ASSIGNORS,
        metavar="NAME",
        help=f"the strategy: {', '.join(ASSIGNORS)} (default: cooperative-sticky); with --compare repeatable",
    )
    demo.add_argument(
        "--compare",
        action="store_true",
        help=f"run several strategies and print one table (default: {', '.join(COMPARED)})",
    )
    demo.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT[,...]",
        help="a running Kafka to use; its topics of the demo are deleted afterwards "
        "(default: $KAFKA_BOOTSTRAP, else one brought by pip for the time of the demo)",
    )
    demo.add_argument(
        "--heartbeat-interval-ms",
        type=_milliseconds,
        default=300,
        metavar="MS",
        help="the consumers' heartbeat interval; pauses depend on it (default: 300; kafka-python's is 3000)",
    )
    demo.add_argument("--json", action="store_true", help="print the results as JSON on stdout")
    demo.set_defaults(run=_run_demo, parser=demo)
    plan = add_plan(commands)
    plan.set_defaults(run=_run_plan, parser=plan)
    add_group(commands, _run_group)
    add_placement(commands, _run_placement)
    add_history(commands, _run_history)
    return parser


def _milliseconds(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of milliseconds")
    return number


if __name__ == "__main__":
    sys.exit(main())
