"""`kafka-assignors placement`: what its commands call, and how the results are printed."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from kafka_assignors._cli import placement_text as text
from kafka_assignors._cli.arguments import ClusterClient, Draws, Pace, WantedReplicas, Where
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer, joined, show
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors._cluster.handle import Cluster
from kafka_assignors._common.plain import to_json
from kafka_assignors._common.progress import progress_bar
from kafka_assignors.placement import _moving as moving, _topics
from kafka_assignors.placement._cluster.reassign import Progress
from kafka_assignors.placement._cluster.source import PlacementFile
from kafka_assignors.placement._explicit import parse_explicit
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._reassignment_file import (
    format_reassignment,
    read_reassignment,
    write_rollback,
)

ERRORS: Final = Errors(wrong=(PlacementError, CommandConfigError), failed=(ClusterError,))

_ONLY_SHOWN: Final = "nothing is changed: --execute does it"


def _cluster(client: ClusterClient) -> Cluster:
    return Cluster(client.bootstrap_servers or (), command_config=client.command_config)


def _source(where: Where) -> Cluster | PlacementFile:
    return (
        _cluster(where.client) if where.placements is None else PlacementFile(where.placements, where.brokers)
    )


def _warn(said: str) -> None:
    print(joined(said.split("\n")), file=sys.stderr, flush=True)


def create(
    *,
    client: ClusterClient,
    topic: str,
    partitions: int | None,
    replication_factor: int | None,
    generator: _topics.Generator | None,
    draws: Draws,
    replica_assignment: str | None,
    config: Sequence[tuple[str, str]] | None,
    allow_fenced: bool,
    dry_run: bool,
) -> Answer:
    """Create a topic."""
    found = _topics.create(
        _cluster(client),
        topic,
        partitions,
        replication_factor,
        placement=None if replica_assignment is None else parse_explicit(replica_assignment),
        generator=generator,
        **draws._asdict(),
        configs=dict(config or []),
        allow_fenced=allow_fenced,
        dry_run=dry_run,
    )
    done = f"{topic} is created" if found.created else f"{topic} was not created: this is a dry run"
    return Answer(lambda: to_json(found), [*text.placement_lines(found.placements), done])


def describe(
    *,
    where: Where,
    topics: Sequence[str],
    min_insync: int,
    partitions: bool,
    draw: Path | None,
    check: bool,
) -> Answer:
    """Describe topics; with `check` the status is 1 if something is not in order."""
    found = _topics.describe(_source(where), topics, min_insync=min_insync)
    if draw is not None:
        from kafka_assignors.placement import _picture  # noqa: PLC0415 - optional, and slow to import

        _picture.draw(found.quality, draw, title=", ".join(found.placements))
    wrong = check and found.health is not None and not found.health.healthy
    return Answer(lambda: to_json(found), text.described_lines(found, in_full=partitions), int(wrong))


def infer_generators(*, where: Where, topics: Sequence[str]) -> Answer:
    """The generators that can have made placements; with the status 1 if none can for one of the topics."""
    found = _topics.infer_topics(_source(where), topics)
    lines = [line for topic, one in found.items() for line in text.inference_lines(topic, one)]
    return Answer(lambda: to_json(found), lines, int(not all(one.fits for one in found.values())))


def expand_topic(*, where: Where, topic: str, partitions: int, balanced: bool, execute: bool) -> Answer:
    """Add partitions to a topic."""
    found = _topics.expand_topic(_source(where), topic, partitions, balanced=balanced, execute=execute)
    return Answer(
        lambda: to_json(found),
        [
            *text.placement_lines({topic: found.added}),
            f"{found.how}: {found.why}",
            f"{topic} has {partitions} partitions" if found.executed else _ONLY_SHOWN,
        ],
    )


def reassign(
    *,
    where: Where,
    topics: Sequence[str],
    goal: WantedReplicas,
    file: Path | None,
    output: Path | None,
    rollback: Path | None,
    allow_fenced: bool,
    execute: bool,
    pacing: Pace,
    verify: bool,
    cancel: bool,
    remove_throttles: bool,
    as_json: bool,
) -> int:
    """Say which replicas are to move, and move them if asked to; or look at what is under way."""
    source = _source(where)
    if verify or cancel:
        answer = _look(source, topics, verify=verify, remove_throttles=remove_throttles)
        answer.show(as_json=as_json)
        return answer.status
    target = None if file is None else read_reassignment(file)
    with source if isinstance(source, Cluster) else nullcontext():
        plan = moving.plan_reassignment(
            source, topics, target=target, **goal._asdict(), allow_fenced=allow_fenced
        )
        for broker, why in plan.untold.items():
            _warn(f"broker {broker} does not say all that its logs hold: {why}")
        if rollback is not None:
            if rollback.resolve() in [other.resolve() for other in (file, output) if other is not None]:
                raise PlacementError(
                    f"{rollback} cannot be the rollback and the plan at once: name another file"
                )
            write_rollback(rollback, plan.moves.before)
        if output is not None:
            output.write_text(f"{format_reassignment(plan.after)}\n", encoding="utf-8")
        if not as_json:
            asks = not (execute or pacing.throttle or pacing.no_throttle)
            show(joined(text.plan_lines(plan, pacing.throttle, asks=asks)))
        if execute and isinstance(source, Cluster):
            done = _move(source, plan, pacing)
        else:
            done = moving.Reassigned(executed=False, reassigned=0, plan=plan, throttle=pacing.throttle)
    if plan.internal_left:
        _warn(text.internal_left(plan.internal_left, goal.to_brokers or ()))
    last = f"partitions reassigned: {done.reassigned}" if done.executed else _ONLY_SHOWN
    Answer(lambda: to_json(done), [last]).show(as_json=as_json)
    return 0


def _look(
    source: Cluster | PlacementFile, topics: Sequence[str], *, verify: bool, remove_throttles: bool
) -> Answer:
    if not isinstance(source, Cluster):
        return Answer(dict, [])
    if verify:
        found = moving.verify(source, topics, remove_throttles=remove_throttles, warn=_warn)
        return Answer(lambda: to_json(found), text.under_way_lines(found), int(bool(found.under_way)))
    ended = moving.cancel(source, topics, remove_throttles=remove_throttles, warn=_warn)
    return Answer(lambda: to_json(ended), text.cancelled_lines(ended))


def _move(cluster: Cluster, plan: moving.ReassignmentPlan, pace: Pace) -> moving.Reassigned:
    """Move, with a bar on a terminal and a line for each change elsewhere, both on stderr."""
    bar = progress_bar()
    task = bar.add_task("partitions", total=None, visible=False)
    told = ""

    def say(line: str) -> None:
        # Names of topics are no markup, and lines are broken by the terminal.
        bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def watch(progress: Progress) -> None:
        nonlocal told
        bar.update(task, total=progress.total, completed=progress.done, visible=True)
        counts = f"{progress.done} of {progress.total} partitions done, {progress.under_way} under way"
        if not bar.console.is_terminal and not progress.stalled:
            say(counts)
        why = joined(text.reason_lines(progress.stalled))
        if why not in {"", told}:
            say(f"no progress for {pace.stalled_after} s; {counts}:\n{why}")
        told = why

    pacing = moving.Pacing(
        throttle=pace.throttle,
        unthrottled=pace.no_throttle,
        at_once=pace.at_once,
        stalled_after=pace.stalled_after,
    )
    with bar:
        return moving.reassign(cluster, plan, pacing, watch=watch, warn=say)
