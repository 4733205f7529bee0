"""What `kafka-assignors plan` takes, and its help; imports nothing that takes time."""

from types import SimpleNamespace
from typing import Final

import click

from kafka_assignors._cli.arguments import whole
from kafka_assignors._cli.commands import FILE_NAME, Command, Option, as_json, flag, number, refuse

STRATEGIES: Final = ("exact", "kip54", "range", "roundrobin")
"""The planners, the default one first."""

_DESCRIPTION: Final = """\
Plans a consumer group that a file describes, without a consumer and without Kafka. Shows who gets what,
what moves, and a certificate that proves the plan optimal or shows a better one."""

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
      holds: false                 # revokes before it joins; true with --cooperative
    c3:                            # a new member

exit status: 0 planned; 1 --check, and not proved to be optimal; 2 a wrong command line, or a file that
cannot be used. The keys of --json and more about the file: docs/plan-file.md"""


def _check(options: SimpleNamespace) -> None:
    if options.strategy != STRATEGIES[0] and not (options.max_skew is None and options.max_moves is None):
        refuse(f"--max-skew and --max-moves are options of --strategy {STRATEGIES[0]}")
    if options.check and not options.certify:
        refuse("--check needs the certificate that --no-certify leaves out")


PLAN: Final = Command(
    "plan",
    "plan:plan",
    [
        click.Argument(["file"], type=FILE_NAME, help="the group, in JSON or YAML; - for the standard input"),
        Option(
            ["--strategy"],
            type=click.Choice(STRATEGIES),
            default=STRATEGIES[0],
            help=f"the planner: {', '.join(STRATEGIES)} (default: {STRATEGIES[0]})",
            metavar="NAME",
        ),
        number(
            "--max-skew",
            "loads may be N partitions off the best balance, if fewer partitions move that way (exact only)",
            read=whole,
        ),
        number("--max-moves", "at most N partitions may move (exact only)", read=whole),
        flag("--cooperative", "show the two rounds in which a cooperative group does it"),
        Option(
            ["--certify/--no-certify"],
            default=True,
            help="find out whether the plan could be better (default: yes)",
        ),
        flag("--check", "exit with 1 if the plan is not proved to be optimal"),
        flag("--assignments", "show who gets what, however large the group is"),
        as_json("print the plan as JSON"),
    ],
    check=_check,
    description=_DESCRIPTION,
    epilog=_EPILOG,
)
