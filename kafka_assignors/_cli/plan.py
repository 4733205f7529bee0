"""`kafka-assignors plan`: a group from a file, and the plan for it, without a consumer."""
# The function imports what takes time itself: help and completion do not need it.
# ruff: noqa: PLC0415

from typing import Any

import click

from kafka_assignors import groups as library
from kafka_assignors._cli.arguments import whole
from kafka_assignors._cli.options import FILE, Command, as_json, flag, number, option, refuse
from kafka_assignors._cli.output import screen_width, show_result
from kafka_assignors._common.strategies import PLANNED

_EPILOG = """\
the file, in YAML (needs: pip install 'kafka-assignors[cli]') or the same in JSON:

  topics:
    orders: 6                      # partitions 0 to 5
    payments:
      partitions: [0, 1, 4]        # or a number
      racks: [[a, b], [b], [a]]    # where the replicas are, for each partition
      lag: [0, 9000, 20]           # for load-aware: records; rate a second; cost in microseconds
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
      holds: false                 # revokes before it joins; true with --cooperative
    c3:                            # a new member

exit status: 0 planned; 1 --check, and not proved to be optimal; 2 a wrong command line, or a file that
cannot be used. The keys of --json and more about the file: docs/plan-file.md"""


@click.command(
    "plan",
    cls=Command,
    short_help="plan a group that a file describes, without a consumer",
    epilog=_EPILOG,
)
@click.argument("file", type=FILE, help="the group, in JSON or YAML; - for the standard input")
@option(
    "--assignor",
    type=click.Choice(PLANNED),
    default=PLANNED[0],
    help=f"the planner: {', '.join(PLANNED)} (default: {PLANNED[0]})",
    metavar="NAME",
)
@number(
    "--max-skew",
    "loads may be N partitions off the best balance, if fewer partitions move that way (exact only)",
    read=whole,
)
@number("--max-moves", "at most N partitions may move (exact only)", read=whole)
@flag("--cooperative", "show the two rounds in which a cooperative group does it")
@option(
    "--certify/--no-certify", default=True, help="find out whether the plan could be better (default: yes)"
)
@flag("--check", "exit with 1 if the plan is not proved to be optimal")
@flag("--assignments", "show who gets what, however large the group is")
@as_json("print the plan as JSON")
def plan(*, file: str, check: bool, assignments: bool, as_json: bool, **options: Any) -> int:
    """Plan a consumer group that a file describes, without a consumer and without Kafka.

    Shows who gets what, what moves, and a certificate that proves the plan optimal or shows a better one.
    """
    if options["assignor"] != PLANNED[0] and (options["max_skew"], options["max_moves"]) != (None, None):
        refuse(f"--max-skew and --max-moves are options of --assignor {PLANNED[0]}")
    if check and not options["certify"]:
        refuse("--check needs the certificate that --no-certify leaves out")
    if check and options["assignor"] == PLANNED[-1]:
        refuse(f"--check needs a certificate; {PLANNED[-1]} has a bound in its notes")
    from kafka_assignors._cli.plan_text import lines

    planned = library.plan(library.read_group(file, cooperative=options["cooperative"]), **options)
    shown = lines(planned, assignments=assignments, width=screen_width())
    show_result(planned, shown, as_json=as_json)
    return 1 if check and not planned.optimal else 0
