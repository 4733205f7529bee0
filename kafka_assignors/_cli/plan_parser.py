"""What `kafka-assignors plan` can be told, and its help; imports nothing that takes time."""

import argparse
import textwrap
from typing import Any, Final

from kafka_assignors._cli.arguments import add_command, add_json, whole

STRATEGIES: Final = ("exact", "kip54", "range", "roundrobin")
"""The planners, the default one first."""

_DESCRIPTION: Final = """\
Plans a consumer group that a file describes, without a consumer and without Kafka: who gets what, what
moves, and a certificate that proves the plan optimal or shows a better one."""

_EPILOG: Final = """\
the file, in YAML (needs: pip install 'kafka-assignors[cli]') or the same in JSON:

  topics:
    orders: 6                      # partitions 0 to 5
    payments:
      partitions: [0, 1, 4]        # or a number
      racks: [[a, b], [b], [a]]    # where the replicas are, for each partition
  members:
    c1:
      owns: {orders: [0, 1, 2, 3, 4, 5]}
    c2:
      topics: [payments]           # all topics if not said
      rack: a
      weight: 2                    # 1 to 1000: takes twice as much as others
      instance_id: host-2          # a static member
      owns: {payments: [0, 1]}
      generation: 7                # when it owned that; of two claims the newer counts
      holds: false                 # lets go before it joins; true with --cooperative
    c3:                            # a new member

exit status: 0 planned; 1 --check, and not proved to be optimal; 2 a wrong command line, or a file that
cannot be used. The keys of --json and more about the file: docs/plan-file.md"""


def add_plan(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "plan",
        "plan a group that a file describes, without a consumer",
        "plan:plan",
        check=_check,
        description=textwrap.fill(_DESCRIPTION, 80),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the group, in JSON or YAML; - for the standard input")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default=STRATEGIES[0],
        help=f"the planner: {', '.join(STRATEGIES)} (default: {STRATEGIES[0]})",
        metavar="NAME",
    )
    parser.add_argument(
        "--max-skew",
        type=whole,
        metavar="N",
        help="loads may be N partitions off the best balance, if fewer partitions move that way (exact only)",
    )
    parser.add_argument(
        "--max-moves", type=whole, metavar="N", help="at most N partitions may move (exact only)"
    )
    parser.add_argument(
        "--cooperative", action="store_true", help="show the two rounds in which a cooperative group does it"
    )
    parser.add_argument(
        "--certify",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="find out whether the plan could be better (default: yes)",
    )
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if the plan is not proved to be optimal"
    )
    parser.add_argument(
        "--assignments", action="store_true", help="show who gets what, however large the group is"
    )
    add_json(parser, "print the plan as JSON")


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.strategy != STRATEGIES[0] and not (options.max_skew is None and options.max_moves is None):
        parser.error(f"--max-skew and --max-moves are options of --strategy {STRATEGIES[0]}")
    if options.check and not options.certify:
        parser.error("--check needs the certificate that --no-certify leaves out")
