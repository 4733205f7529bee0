"""`kafka-assignors placement reassign`: what is to be where, and how it gets there."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kafka_assignors._cli.arguments import WantedReplicas, Where
from kafka_assignors._cli.output import Answer, joined, show
from kafka_assignors._cli.placement_cluster import (
    ERRORS,
    ONLY_SHOWN,
    OpenedCluster,
    Topics,
    holders,
    open_cluster,
    read_placements,
)
from kafka_assignors._cli.placement_text import are, fenced_lines, move_lines
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._common.progress import progress_bar
from kafka_assignors.placement._cluster import reassign as moving
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._cluster.topics import FENCED_WAYS_OUT
from kafka_assignors.placement._explicit import check_placement
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._planning.moves import MovePlan, Moves, moves_between, plan_moves
from kafka_assignors.placement._reassignment_file import format_reassignment

__all__ = ["ERRORS", "reassign"]


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
    cancel: bool,
    at_once: int,
    as_json: bool,
) -> int:
    """Say which replicas are to move, and move them if asked to. Prints the plan before it moves anything.

    The target is planned by `goal`, or stands in `file`. `output` gets it, `rollback` what is where now.
    `cancel` breaks off what is under way, and nothing else is done.

    Raises:
        PlacementError: A file or a placement that cannot be.
        ClusterError: The cluster did not do it.
    """
    if cancel:
        _cancel(where, topics).show(as_json=as_json)
        return 0
    target = None if file is None else read_placements(file)
    with open_cluster(where, [*(target or topics)]) as cluster:
        fenced = {} if allow_fenced else cluster.down
        if allow_fenced:
            cluster = cluster._replace(racks=cluster.all_racks, down={})  # noqa: PLW2901 - the same, seen so
        plan: Moves
        if target is None:
            plan = _plan(cluster, goal)
            target = plan.after
        else:
            plan = _given(cluster, target)
        for path, written in ((output, target), (rollback, cluster.topics)):
            if path is not None:
                path.write_text(f"{format_reassignment(written)}\n", encoding="utf-8")
        if not as_json:
            show(
                joined(
                    [
                        *move_lines(plan, plan if isinstance(plan, MovePlan) else None),
                        *fenced_lines(plan, fenced),
                    ]
                )
            )
        done = 0
        if execute and cluster.admin is not None:
            done = _execute(cluster.admin, target, at_once, allow_fenced=allow_fenced)
    answer = Answer(
        lambda: {
            "executed": execute,
            "reassigned": done,
            "plan": asdict(plan),
            "after": target,
        },
        [f"partitions reassigned: {done}" if execute else ONLY_SHOWN],
    )
    answer.show(as_json=as_json)
    return 0


def _sizes(cluster: OpenedCluster) -> dict[tuple[str, int], int] | None:
    if cluster.admin is None:
        return None
    return read_logs(cluster.admin, cluster.topics, cluster.racks).largest(cluster.topics)


def _given(cluster: OpenedCluster, target: Topics) -> Moves:
    """What is to move for a file's placements; partitions that it does not name stay."""
    after = {topic: {**placement, **target[topic]} for topic, placement in cluster.topics.items()}
    for topic, placement in target.items():
        present = cluster.topics[topic]
        if missing := sorted(placement.keys() - present.keys()):
            raise PlacementError(f"{topic}-{missing[0]} does not exist: the topic has no such partition")
        try:
            known = [*cluster.racks, *cluster.down, *holders(present)]
            check_placement(placement, known, mixed=True)
        except PlacementError as error:
            raise PlacementError(f"topic {topic}: {error}") from error
    brokers = sorted({*cluster.racks, *(broker for placed in after.values() for broker in holders(placed))})
    return moves_between(cluster.topics, after, cluster.racks, brokers=brokers, sizes=_sizes(cluster))


def _plan(cluster: OpenedCluster, goal: WantedReplicas) -> MovePlan:
    if fenced := cluster.down.keys() & {*(goal.to_brokers or ())}:
        raise PlacementError(f"--to-brokers: {are(fenced)} fenced: {FENCED_WAYS_OUT}")
    return plan_moves(
        cluster.topics,
        cluster.racks,
        replication_factor=goal.replication_factor,
        sizes=None if goal.count_replicas else _sizes(cluster),
        brokers=goal.to_brokers,
        per_topic=goal.per_topic,
    )


def _execute(admin: Admin, target: Topics, at_once: int, *, allow_fenced: bool) -> int:
    """Move, with a bar on a terminal and a line for each change elsewhere, both on stderr."""
    bar = progress_bar()
    task = bar.add_task("partitions", total=None, visible=False)

    def watch(progress: moving.Progress) -> None:
        bar.update(task, total=progress.total, completed=progress.done, visible=True)
        if not bar.console.is_terminal:
            bar.console.print(
                f"{progress.done} of {progress.total} partitions done, {progress.under_way} under way"
            )

    try:
        with bar:
            return moving.reassign(admin, target, at_once=at_once, watch=watch, allow_fenced=allow_fenced)
    except KeyboardInterrupt:
        bar.console.print("what is under way goes on in the cluster; the same command goes on with the rest")
        raise


def _cancel(where: Where, topics: Sequence[str]) -> Answer:
    with open_cluster(where, topics) as cluster:
        cancelled = [] if cluster.admin is None else moving.cancel(cluster.admin, cluster.topics)
    return Answer(
        lambda: {"cancelled": [[tp.topic, tp.partition] for tp in cancelled]},
        [f"{tp.topic}-{tp.partition} stays where it was" for tp in cancelled] or ["nothing is under way"],
    )
