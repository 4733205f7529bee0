"""`kafka-assignors placement reassign`: what is to be where, and how it gets there."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from kafka import TopicPartition

from kafka_assignors._cli.arguments import Pacing, WantedReplicas, Where
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
from kafka_assignors._cli.placement_text import (
    UnderWay,
    are,
    fenced_lines,
    internal_left,
    move_lines,
    named,
    volume_lines,
)
from kafka_assignors._cli.placement_under_way import (
    cancel as break_off,
    journal_of,
    reason_lines,
    remove_left,
    verify as show_under_way,
    warn,
)
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._common.progress import progress_bar
from kafka_assignors._common.words import size
from kafka_assignors.placement._cluster import reassign as moving
from kafka_assignors.placement._cluster.logs import Logs, read_logs
from kafka_assignors.placement._cluster.throttle import Throttle
from kafka_assignors.placement._cluster.topics import FENCED_WAYS_OUT, read_states, replicas_of
from kafka_assignors.placement._explicit import check_placement
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._planning.moves import MovePlan, Moves, moves_between, plan_moves
from kafka_assignors.placement._planning.volume import Volume
from kafka_assignors.placement._reassignment_file import format_reassignment

__all__ = ["ERRORS", "reassign"]

UNTHROTTLED_BYTES: Final = 1 << 30
"""Up to so much is copied without a throttle if nobody says anything."""

Sizes = Mapping[tuple[str, int], int]


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
    pacing: Pacing,
    verify: bool,
    cancel: bool,
    remove_throttles: bool,
    as_json: bool,
) -> int:
    """Say which replicas are to move, and move them if asked to. Prints the plan before it moves anything.

    The target is planned by `goal`, or stands in `file`. `output` gets it, `rollback` what is where now.
    `verify` shows what is under way, `cancel` breaks it off, and nothing else is done.

    Raises:
        PlacementError: A file or a placement that cannot be, or much to copy and no word about throttling.
        ClusterError: The cluster did not do it.
    """
    if verify or cancel:
        look = show_under_way if verify else break_off
        answer = look(where, topics, remove_throttles=remove_throttles)
        answer.show(as_json=as_json)
        return answer.status
    target = None if file is None else read_placements(file)
    with open_cluster(where, [*(target or topics)]) as opened:
        under_way = {} if opened.admin is None else _under_way(opened.admin, opened.topics)
        cluster = _seen(opened, under_way, allow_fenced=allow_fenced)
        logs = _logs(opened)
        sizes = None if logs is None else logs.largest(cluster.topics)
        plan: Moves
        if target is None:
            plan = _plan(cluster, goal, None if goal.count_replicas else sizes, moving.targets(under_way))
            target = plan.after
        else:
            plan = _given(cluster, target, sizes)
        if rollback is not None:
            _keep_way_back(rollback, f"{format_reassignment(cluster.topics)}\n", others=(file, output))
        if output is not None:
            output.write_text(f"{format_reassignment(target)}\n", encoding="utf-8")
        volume = Volume.of(plan.moves, _leaders(cluster), sizes or {})
        much = "" if pacing.throttle or pacing.no_throttle else _too_much(volume, _unknown(plan, logs))
        if not as_json:
            begun = UnderWay.of(moving.targets(under_way), target)
            paced = volume_lines(volume, pacing.throttle, "" if execute else much)
            show(joined(_shown(plan, cluster, begun, paced)))
        # Asked before anything moves: an error of this look hides nothing that was done.
        left = {} if topics or cluster.admin is None else _internal_left(cluster.admin, goal.to_brokers or ())
        done = 0
        if execute and cluster.admin is not None:
            if much:
                raise PlacementError(
                    f"{much} would be copied as fast as brokers can, and slow down producers:"
                    " say --throttle BYTES (per second, 10MiB), or --no-throttle. Nothing was begun"
                )
            done = _execute(cluster.admin, target, pacing, allow_fenced=allow_fenced)
    if left:
        warn(internal_left(left, goal.to_brokers or ()))
    rate = pacing.throttle
    answer = Answer(
        lambda: {
            "executed": execute,
            "reassigned": done,
            "plan": asdict(plan),
            "after": target,
            "bytes": {"sent": volume.sent, "got": volume.got},
            "throttle": rate,
            "estimated_seconds": None if rate is None else volume.seconds(rate),
            "under_way": [[tp.topic, tp.partition] for tp in sorted(under_way)],
        },
        [f"partitions reassigned: {done}" if execute else ONLY_SHOWN],
    )
    answer.show(as_json=as_json)
    return 0


def _under_way(admin: Admin, topics: Topics) -> dict[TopicPartition, moving.Reassignment]:
    found = moving.read_under_way(admin)
    return {tp: one for tp, one in found.items() if tp.partition in topics.get(tp.topic, {})}


def _seen(
    cluster: OpenedCluster, under_way: Mapping[TopicPartition, moving.Reassignment], *, allow_fenced: bool
) -> OpenedCluster:
    """The cluster as if nothing were under way; and as if fenced brokers were up, if they are allowed."""
    if cluster.admin is not None and cluster.topics:
        # Again: what has arrived since the topics were described had too many replicas in that.
        states = read_states(cluster.admin, cluster.topics)
        topics = {topic: replicas_of(partitions) for topic, partitions in states.items()}
        cluster = cluster._replace(topics=moving.settled(topics, under_way), states=states)
    return cluster._replace(racks=cluster.all_racks, down={}) if allow_fenced else cluster


def _keep_way_back(path: Path, text: str, *, others: Sequence[Path | None]) -> None:
    """Write a rollback, and never over that of an earlier run: an interrupted one may have moved things.

    Raises:
        PlacementError: The file has something else in it, or is to have something else.
    """
    if path.resolve() in [other.resolve() for other in others if other is not None]:
        raise PlacementError(f"{path} cannot be the rollback and the plan at once: name another file")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if path.read_bytes() != text.encode():
            raise PlacementError(
                f"{path} exists, and has other placements than those of now. It may be the way back of an"
                " interrupted run: to continue that, leave out --rollback; else name another file"
            ) from None


def _too_much(volume: Volume, unknown: Sequence[tuple[str, int]]) -> str:
    """What is so much that somebody has to say how fast it is to be copied; empty if it is not."""
    if unknown:
        return f"{named(unknown)}, of unknown size,"
    return size(volume.total) if volume.total > UNTHROTTLED_BYTES else ""


def _shown(plan: Moves, cluster: OpenedCluster, begun: UnderWay, paced: Iterator[str]) -> Iterator[str]:
    yield from move_lines(plan, plan if isinstance(plan, MovePlan) else None, beside=bool(begun.there))
    yield from begun.lines()
    yield from paced
    yield from fenced_lines(plan, cluster.down)


def _unknown(plan: Moves, logs: Logs | None) -> list[tuple[str, int]]:
    """The partitions to copy of which no broker says how large they are."""
    if logs is None:
        return []
    return sorted({(move.topic, move.partition) for move in plan.moves} - logs.known)


def _logs(cluster: OpenedCluster) -> Logs | None:
    if cluster.admin is None:
        return None
    logs = read_logs(cluster.admin, cluster.topics, cluster.racks)
    for broker, why in {**logs.silent, **logs.untold}.items():
        warn(f"broker {broker} does not say all that its logs hold: {why}")
    return logs


def _leaders(cluster: OpenedCluster) -> dict[tuple[str, int], int]:
    return {
        (topic, partition): state.leader
        for topic, states in cluster.states.items()
        for partition, state in states.items()
        if state.leader is not None
    }


def _given(cluster: OpenedCluster, target: Topics, sizes: Sizes | None) -> Moves:
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
    return moves_between(cluster.topics, after, cluster.racks, brokers=brokers, sizes=sizes)


def _plan(cluster: OpenedCluster, goal: WantedReplicas, sizes: Sizes | None, under_way: Topics) -> MovePlan:
    if fenced := cluster.down.keys() & {*(goal.to_brokers or ())}:
        raise PlacementError(f"--to-brokers: {are(fenced)} fenced: {FENCED_WAYS_OUT}")
    return plan_moves(
        cluster.topics,
        cluster.racks,
        replication_factor=goal.replication_factor,
        sizes=sizes,
        brokers=goal.to_brokers,
        per_topic=goal.per_topic,
        under_way=under_way,
    )


def _internal_left(admin: Admin, to_brokers: Collection[int]) -> dict[str, set[int]]:
    """The internal topics with replicas on brokers that are to have none, and these brokers."""
    if not to_brokers:
        return {}
    begun = moving.targets(moving.read_under_way(admin))
    found = {
        topic: holders({**replicas_of(states), **begun.get(topic, {})}) - {*to_brokers}
        for topic, states in read_states(admin, internal="only").items()
    }
    return {topic: brokers for topic, brokers in found.items() if brokers}


def _execute(admin: Admin, target: Topics, pacing: Pacing, *, allow_fenced: bool) -> int:
    """Move, with a bar on a terminal and a line for each change elsewhere, both on stderr."""
    journal = journal_of(admin)
    throttle = None if pacing.throttle is None else Throttle(pacing.throttle, journal, warn)
    if throttle is None:
        remove_left(admin, journal, target)
    bar = progress_bar()
    task = bar.add_task("partitions", total=None, visible=False)
    told = ""

    def say(line: str) -> None:
        # Names of topics are no markup, and lines are broken by the terminal.
        bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def watch(progress: moving.Progress) -> None:
        nonlocal told
        bar.update(task, total=progress.total, completed=progress.done, visible=True)
        counts = f"{progress.done} of {progress.total} partitions done, {progress.under_way} under way"
        if not bar.console.is_terminal and not progress.stalled:
            say(counts)
        why = joined(reason_lines(progress.stalled))
        if why not in {"", told}:
            say(f"no progress for {pacing.stalled_after} s; {counts}:\n{why}")
        told = why

    with bar:
        done = moving.reassign(
            admin,
            target,
            at_once=pacing.at_once,
            watch=watch,
            warn=say,
            allow_fenced=allow_fenced,
            throttle=throttle,
            stalled_after=pacing.stalled_after,
        )
    # A killed run's throttle, if there was nothing to set one for.
    remove_left(admin, journal)
    return done
