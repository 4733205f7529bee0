"""`kafka-assignors placement`: where replicas are, and how to move few of them."""
# Functions import what takes time themselves: help and completion do not need it.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_assignors import placement as library
from kafka_assignors._cli.arguments import data_size, up_to, whole
from kafka_assignors._cli.options import (
    Group,
    as_json,
    flag,
    number,
    option,
    path,
    refuse,
    running_cluster,
    value,
)
from kafka_assignors._cli.output import joined, show, show_result
from kafka_assignors._common.escaping import block, escaped
from kafka_assignors._common.files import write_whole
from kafka_assignors._common.tree import HIGHEST_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kafka_assignors.placement import Cluster, Pacing, Placements
    from kafka_assignors.placement._cluster.reassign import Progress
    from kafka_assignors.placement._moving import ReassignmentPlan

    Source = Callable[[], Cluster | Placements]

GENERATORS: Final = ("rack-aware", "rack-unaware", "striped")
"""The generators that can make a topic, the default one first."""

_EPILOG: Final = """\
the cluster is a running one, --bootstrap-server, or what files say: --placements (Kafka's reassignment
JSON) with --brokers. Nothing is changed but by `create`, and by `expand` and `reassign` with --execute.
`cancel` breaks moves off. It and `verify` remove the throttle of a killed run.

exit status: 0 done; 1 the cluster did not do it, no generator fits, something is not in order
(`describe --check`), or is under way (`verify`). It is 2 for a wrong command line, a
file that cannot be used, or a placement that cannot be. After Ctrl-C it is 130, after SIGTERM 143.
More: docs/placement.md"""

_CLUSTER: Final = "The cluster"
_TARGET: Final = "Where they should be"
_PACE: Final = "How gently"


_ONLY_SHOWN: Final = "nothing is changed: --execute does it"


_broker: Final = up_to(HIGHEST_ID, "broker ids")


def _ids(text: str) -> list[int]:
    return [_broker(one.strip()) for one in text.split(",")]


def _racks(text: str) -> dict[int, str | None]:
    entries = [entry.strip().partition("=") for entry in text.split(",")]
    racks = {_broker(broker): rack or None for broker, _, rack in entries}
    if len(racks) < len(entries):
        raise ValueError(f"{text!r} names a broker twice")
    return racks


def _config(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise ValueError(f"{text!r} is not name=value")
    return name, value


def _on_cluster(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Options that name a running cluster, or files: `source` gives what they name."""

    @wraps(function)
    def run(
        *,
        cluster: Cluster | None,
        placements: Path | None,
        brokers: dict[int, str | None] | None,
        **others: Any,
    ) -> int | None:
        if placements is None:
            if cluster is None:
                refuse("give --bootstrap-server or --placements")
            if brokers is not None:
                refuse("--brokers goes with --placements: a running cluster knows its own")
            return function(source=lambda: cluster, **others)
        if cluster is not None:
            refuse("give either --bootstrap-server or --placements")
        if others.get("execute"):
            refuse("--execute needs --bootstrap-server")
        if others.get("check"):
            refuse("--check needs --bootstrap-server: files do not show which brokers are up")
        return function(source=partial(library.Placements.read, placements, brokers), **others)

    files = path("--placements", section=_CLUSTER, help="placements instead: Kafka's reassignment JSON")
    known = value(
        "--brokers",
        "with --placements: the brokers and their racks (default: those that the file names)",
        read=_racks,
        metavar="ID[=RACK][,...]",
        section=_CLUSTER,
    )
    return running_cluster(required=False, section=_CLUSTER)(files(known(run)))


_RACKS_IGNORED: Final = option(
    "--disable-rack-aware",
    "rack_aware",
    flag_value=False,
    default=True,
    section=_TARGET,
    help="place without racks, as where only some brokers have one",
)
_TOPICS: Final = click.argument(
    "topics", nargs=-1, metavar="[TOPIC]...", help="all but internal topics if none is named"
)


@click.group(
    "placement",
    cls=Group,
    help="Where a topic's replicas are, how they were placed, and how to move few of them.",
    short_help="replicas on brokers: create, describe, infer, expand, reassign, verify, cancel",
    epilog=_EPILOG,
)
def placement() -> None:
    pass


@placement.command("create")
@running_cluster(section=_CLUSTER)
@as_json()
@click.argument("topic")
@number("--partitions")
@number("--replication-factor")
@option(
    "--generator",
    type=click.Choice(GENERATORS),
    help="what places them (default: rack-aware if brokers have racks, else rack-unaware)",
)
@number("--start-index", "where leaders begin (default: drawn)", read=whole)
@number("--shift", "how far followers are (default: the start index, else drawn)", read=whole)
@option("--seed", type=int, metavar="N", help="what is drawn is drawn from this")
@option(
    "--replica-assignment",
    metavar="A:B,C:D,...",
    help="instead of a generator: the brokers of each partition, the preferred leader first",
)
@value("--config", "a setting of the topic; repeatable", read=_config, metavar="NAME=VALUE", multiple=True)
@flag(
    "--allow-fenced",
    "let fenced brokers have replicas, if the others are too few or --replica-assignment says so",
)
@flag("--dry-run", "show the placement and create nothing")
def create(
    *,
    cluster: Cluster,
    as_json: bool,
    topic: str,
    replica_assignment: str | None,
    config: Sequence[tuple[str, str]],
    **options: Any,
) -> None:
    """Create a topic, its replicas placed as you say."""
    counts = options["partitions"], options["replication_factor"]
    draws = options["start_index"], options["shift"], options["seed"], options["generator"]
    if replica_assignment is not None:
        if any(value is not None for value in (*counts, *draws)):
            refuse("--replica-assignment names all replicas: leave out the generator and its options")
    elif None in counts:
        refuse("give --partitions and --replication-factor, or --replica-assignment")
    elif options["generator"] == "striped" and draws[:2] != (None, None):
        refuse("the striped generator has no --start-index and no --shift: it draws, from --seed if given")
    from kafka_assignors._cli.placement_text import placement_lines

    found = library.create(
        cluster,
        topic,
        placement=replica_assignment,
        configs=dict(config),
        **options,
    )
    done = f"{topic} is created" if found.created else f"{topic} was not created: this is a dry run"
    show_result(found, [*placement_lines(found.placements), done], as_json=as_json)


@placement.command("describe")
@_on_cluster
@as_json()
@_TOPICS
@number(
    "--min-insync",
    "count partitions with fewer replicas left as read-only when a rack is lost (default: 1)",
    default=1,
)
@flag("--partitions", "list all partitions, however many")
@path("--draw", help="draw brokers by rack: .png, .svg, .pdf")
@flag("--check", "exit with 1 if a broker is not up, or a partition is offline or lacks an in-sync replica")
def describe(
    *,
    source: Source,
    as_json: bool,
    topics: Sequence[str],
    min_insync: int,
    partitions: bool,
    draw: Path | None,
    check: bool,
) -> int:
    """Show where replicas are, how good that is, and what is not in order."""
    from kafka_assignors._cli.placement_text import described_lines

    found = library.describe(source(), topics, min_insync=min_insync)
    if draw is not None:
        library.draw(found.quality, draw, title=", ".join(found.placements))
    show_result(found, described_lines(found, in_full=partitions), as_json=as_json)
    return int(check and found.health is not None and not found.health.healthy)


@placement.command("infer")
@_on_cluster
@as_json()
@_TOPICS
def infer_generators(*, source: Source, topics: Sequence[str], as_json: bool) -> int:
    """Find the generator, start index and shift that made a placement."""
    from kafka_assignors._cli.placement_text import inference_lines

    found = library.infer(source(), topics)
    lines = [line for topic, one in found.items() for line in inference_lines(topic, one)]
    show_result(found, lines, as_json=as_json)
    return int(not all(one.fits for one in found.values()))


@placement.command("expand")
@_on_cluster
@as_json()
@click.argument("topic")
@number("--partitions", "how many there are to be in all", required=True)
@flag("--balanced", "balance the brokers, and do not continue the topic's pattern")
@_RACKS_IGNORED
@flag("--execute", "do it; else it is only shown")
def expand(*, source: Source, topic: str, partitions: int, as_json: bool, **how: bool) -> None:
    """Add partitions to a topic, placed as the ones that it has."""
    from kafka_assignors._cli.placement_text import placement_lines

    found = library.expand(source(), topic, partitions, **how)
    lines = [
        *placement_lines({topic: found.added}),
        f"{found.how}: {found.why}",
        f"{topic} has {partitions} partitions" if found.executed else _ONLY_SHOWN,
    ]
    show_result(found, lines, as_json=as_json)


@placement.command("reassign")
@_on_cluster
@as_json()
@_TOPICS
@value(
    "--to-brokers",
    "the brokers that may have replicas (default: all)",
    read=_ids,
    metavar="ID[,...]",
    section=_TARGET,
)
@number("--replication-factor", "another than now", section=_TARGET)
@flag("--per-topic", "balance each topic by itself (default: all together)", section=_TARGET)
@_RACKS_IGNORED
@flag("--count-replicas", "move the fewest replicas; else the fewest bytes if known", section=_TARGET)
@path("--file", section=_TARGET, help="instead: what a file says, Kafka's reassignment JSON")
@path("--output", help="write the plan, Kafka's reassignment JSON")
@path("--rollback", help="write the placements as they are, in the same format")
@flag(
    "--allow-fenced",
    "count fenced brokers as up: they keep replicas and get new ones, once they are started",
)
@flag("--execute", "do it; else it is only shown")
@value(
    "--throttle",
    "per second, what each broker may send and may get for it: 10MiB; removed in the end",
    read=data_size,
    metavar="BYTES",
    section=_PACE,
)
@flag("--no-throttle", "as fast as brokers can; to be said from 1 GiB on", section=_PACE)
@number("--at-once", "partitions to move at once (default: 10)", default=10, section=_PACE)
@number(
    "--stalled-after",
    "say why, if there was no progress for so long (default: 30)",
    metavar="SECONDS",
    default=30,
    section=_PACE,
)
def reassign(
    *,
    source: Source,
    as_json: bool,
    file: Path | None,
    output: Path | None,
    rollback: Path | None,
    execute: bool,
    throttle: int | None,
    no_throttle: bool,
    at_once: int,
    stalled_after: int,
    **wanted: Any,
) -> None:
    """Move as few replicas as possible to where they should be."""
    planned = ("topics", "to_brokers", "replication_factor", "per_topic", "count_replicas")
    if file is not None and any(wanted[name] for name in planned):
        refuse("--file has the plan already: leave out topics and the options of planning")
    if throttle is not None and no_throttle:
        refuse("give either --throttle or --no-throttle")
    from kafka_assignors._cli.placement_text import internal_left, plan_lines

    target = None if file is None else library.Placements.read(file).topics
    opened = source()
    with opened if isinstance(opened, library.Cluster) else nullcontext():
        plan = library.plan_reassignment(opened, target=target, **wanted)
        for broker, why in plan.untold.items():
            _warn(f"broker {broker} does not report all of its logs: {why}")
        if rollback is not None:
            if rollback.resolve() in [other.resolve() for other in (file, output) if other is not None]:
                raise library.PlacementError(
                    f"{rollback} cannot be the rollback and the plan at once: name another file"
                )
            library.write_rollback(rollback, plan.moves.before)
        if output is not None:
            write_whole(output, f"{library.Placements(plan.after).text}\n")
        if not as_json:
            show(joined(plan_lines(plan, throttle, asks=not (execute or throttle or no_throttle))))
        if execute and isinstance(opened, library.Cluster):
            pacing = library.Pacing(
                throttle=throttle, unthrottled=no_throttle, at_once=at_once, stalled_after=stalled_after
            )
            done = _move(opened, plan, pacing)
        else:
            done = replace(plan, throttle=throttle)
    if plan.internal_left:
        _warn(internal_left(plan.internal_left, wanted["to_brokers"] or ()))
    last = _ONLY_SHOWN if done.reassigned is None else f"partitions reassigned: {done.reassigned}"
    show_result(done, [last], as_json=as_json)


_REMOVE: Final = flag("--remove-throttles", "remove all replication throttles, also those of others")


@placement.command("verify")
@running_cluster()
@as_json()
@_TOPICS
@_REMOVE
def verify(*, cluster: Cluster, topics: Sequence[str], as_json: bool, **how: bool) -> int:
    """Show what is under way and why it waits (status 1); if nothing is, remove a killed run's throttle."""
    from kafka_assignors._cli.placement_text import under_way_lines

    found = library.verify(cluster, topics, **how, warn=_warn)
    show_result(found, under_way_lines(found), as_json=as_json)
    return int(bool(found.under_way))


@placement.command("cancel")
@running_cluster()
@as_json()
@_TOPICS
@_REMOVE
def cancel(*, cluster: Cluster, topics: Sequence[str], as_json: bool, **how: bool) -> None:
    """Break off what is under way, and remove a killed run's throttle."""
    from kafka_assignors._cli.placement_text import cancelled_lines

    found = library.cancel(cluster, topics, **how, warn=_warn)
    show_result(found, cancelled_lines(found), as_json=as_json)


def _warn(said: str) -> None:
    print(block(said), file=sys.stderr, flush=True)


def _move(cluster: Cluster, plan: ReassignmentPlan, pacing: Pacing) -> ReassignmentPlan:
    """Move, with a bar on a terminal and a line for each change elsewhere, both on stderr."""
    from kafka_assignors._cli.placement_text import reason_lines
    from kafka_assignors._common.progress import progress_bar

    bar = progress_bar()
    task = bar.add_task("partitions", total=None, visible=False)
    told: list[str] = []

    def say(line: str) -> None:
        # Names of topics are no markup, and lines are broken by the terminal.
        bar.console.print(escaped(line), markup=False, highlight=False, soft_wrap=True)

    def watch(progress: Progress) -> None:
        nonlocal told
        bar.update(task, total=progress.total, completed=progress.done, visible=True)
        counts = f"{progress.done} of {progress.total} partitions done, {progress.under_way} under way"
        if not bar.console.is_terminal and not progress.stalled:
            say(counts)
        why = [*reason_lines(progress.stalled)]
        if why and why != told:
            for line in (f"no progress for {pacing.stalled_after} s; {counts}:", *why):
                say(line)
        told = why

    with bar:
        return library.reassign(cluster, plan, pacing, watch=watch, warn=say)
