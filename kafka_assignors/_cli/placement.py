"""Replicas on brokers, from the command line: what is read, planned, shown and done."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafka.errors import KafkaError

from kafka_assignors._cli import placement_text as text
from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import exit_status
from kafka_assignors._cli.output import show, show_json
from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors._common.progress import progress_bar
from kafka_assignors.placement._cluster import reassign as moving, topics as live
from kafka_assignors.placement._expansion import expand
from kafka_assignors.placement._explicit import check_placement, parse_explicit
from kafka_assignors.placement._generators import place_rack_aware, place_rack_unaware
from kafka_assignors.placement._inference.infer import Inference, infer
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._planning.moves import MovePlan, plan_moves
from kafka_assignors.placement._quality import measure
from kafka_assignors.placement._reassignment_file import format_reassignment, parse_reassignment
from kafka_assignors.placement._striped import place_striped

if TYPE_CHECKING:
    from kafka_assignors.placement._placement import Racks

Topics = Mapping[str, dict[int, list[int]]]


class Cluster(NamedTuple):
    """A running cluster, or what files say.

    Attributes:
        racks: Its brokers and their racks.
        topics: The topics that were asked for, or all.
        admin: A client of a running one.
    """

    racks: "Racks"
    topics: Topics
    admin: Admin | None


def run(options: argparse.Namespace) -> int:
    """Run one of the commands; see the parser.

    Returns:
        The exit status: 0 done, 1 the cluster did not do it or nothing fits, 2 what cannot be asked for.
    """
    return exit_status(
        f"placement {options.verb}",
        lambda: _RUN[options.verb](options),
        wrong=(PlacementError, CommandConfigError),
        failed=(ClusterError, KafkaError),
    )


def _create(options: argparse.Namespace) -> int:
    with open_admin(options) as admin:
        racks = live.read_racks(admin)
        if options.replica_assignment is not None:
            placement = parse_explicit(options.replica_assignment)
            check_placement(placement, racks)
        else:
            placement = _generate(options, racks)
        if not options.dry_run:
            live.create_topic(admin, options.topic, placement, dict(options.config or []))
    if options.json:
        show_json({"created": not options.dry_run, "placements": {options.topic: placement}})
    else:
        _print(
            [
                *text.placement_lines({options.topic: placement}),
                f"{options.topic} was not created: this is a dry run"
                if options.dry_run
                else f"{options.topic} is created",
            ]
        )
    return 0


def _generate(options: argparse.Namespace, racks: "Racks") -> dict[int, list[int]]:
    counts = options.partitions, options.replication_factor
    generator = options.generator or ("rack-aware" if any(racks.values()) else "rack-unaware")
    if generator == "striped":
        return place_striped(*counts, racks, seed=options.seed)
    draws = {"start_index": options.start_index, "shift": options.shift, "seed": options.seed}
    if generator == "rack-aware":
        return place_rack_aware(*counts, racks, **draws)
    return place_rack_unaware(*counts, sorted(racks), **draws)


def _describe(options: argparse.Namespace) -> int:
    with _cluster(options) as cluster:
        sizes = None if cluster.admin is None else live.read_sizes(cluster.admin, cluster.topics)
    quality = measure(cluster.topics, cluster.racks, sizes=sizes, min_insync=options.min_insync)
    if options.draw is not None:
        from kafka_assignors.placement._picture import draw  # noqa: PLC0415 - optional, and slow to import

        draw(quality, options.draw, title=", ".join(cluster.topics))
    if options.json:
        show_json({"placements": cluster.topics, "quality": asdict(quality)})
        return 0
    shown = list(text.placement_lines(cluster.topics))
    if len(shown) > text.SHOWN and not options.partitions:
        shown = [f"{len(shown)} partitions: --partitions lists them"]
    _print([*shown, "", *text.quality_lines(quality)])
    return 0


def _infer(options: argparse.Namespace) -> int:
    with _cluster(options) as cluster:
        found: dict[str, Inference] = {
            topic: infer(placement, racks=cluster.racks) for topic, placement in cluster.topics.items()
        }
    if options.json:
        show_json({topic: asdict(one) for topic, one in found.items()})
    else:
        _print([line for topic, one in found.items() for line in text.inference_lines(topic, one)])
    return 0 if all(one.fits for one in found.values()) else 1


def _expand(options: argparse.Namespace) -> int:
    with _cluster(options, every_topic=True) as cluster:
        if options.topic not in cluster.topics:
            raise PlacementError(f"there is no topic {options.topic!r}")
        present = cluster.topics[options.topic]
        if options.partitions <= len(present):
            raise PlacementError(
                f"{options.topic} has {len(present)} partitions already, and cannot have fewer than it has:"
                f" --partitions is {options.partitions}"
            )
        others = {name: placed for name, placed in cluster.topics.items() if name != options.topic}
        more = expand(
            present,
            options.partitions - len(present),
            cluster.racks,
            others=others,
            keep_pattern=not options.balanced,
        )
        if options.execute and cluster.admin is not None:
            live.add_partitions(cluster.admin, options.topic, present, more.partitions)
    if options.json:
        show_json({"executed": options.execute, "how": more.how, "why": more.why, "added": more.partitions})
        return 0
    _print(
        [
            *text.placement_lines({options.topic: more.partitions}),
            f"{more.how}: {more.why}",
            f"{options.topic} has {options.partitions} partitions" if options.execute else _ONLY_SHOWN,
        ]
    )
    return 0


def _reassign(options: argparse.Namespace) -> int:
    if options.cancel:
        return _cancel(options)
    target = None if options.file is None else _read_placements(options.file)
    with _cluster(options, names=None if target is None else [*target]) as cluster:
        plan: MovePlan | None = None
        if target is None:
            plan = _plan(options, cluster)
            target = plan.after
        else:
            for topic, placement in target.items():
                check_placement(placement, [*cluster.racks, *_holders(cluster.topics[topic])])
        for path, topics in ((options.output, target), (options.rollback, cluster.topics)):
            if path is not None:
                path.write_text(f"{format_reassignment(topics)}\n", encoding="utf-8")
        if plan is not None and not options.json:
            _print(text.move_lines(plan))
        done = 0
        if options.execute and cluster.admin is not None:
            done = _execute(options, cluster.admin, target)
    if options.json:
        show_json(
            {
                "executed": options.execute,
                "reassigned": done,
                "plan": None if plan is None else asdict(plan),
                "after": target,
            }
        )
    else:
        _print([f"partitions reassigned: {done}" if options.execute else _ONLY_SHOWN])
    return 0


def _plan(options: argparse.Namespace, cluster: Cluster) -> MovePlan:
    sizes = None
    if cluster.admin is not None and not options.count_replicas:
        sizes = live.read_sizes(cluster.admin, cluster.topics)
    return plan_moves(
        cluster.topics,
        cluster.racks,
        replication_factor=options.replication_factor,
        sizes=sizes,
        brokers=options.to_brokers,
        per_topic=options.per_topic,
    )


def _execute(options: argparse.Namespace, admin: Admin, target: Topics) -> int:
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
            return moving.reassign(admin, target, at_once=options.at_once, watch=watch)
    except KeyboardInterrupt:
        bar.console.print("what is under way goes on in the cluster; the same command goes on with the rest")
        raise


def _cancel(options: argparse.Namespace) -> int:
    with _cluster(options) as cluster:
        cancelled = [] if cluster.admin is None else moving.cancel(cluster.admin, cluster.topics)
    if options.json:
        show_json({"cancelled": [[tp.topic, tp.partition] for tp in cancelled]})
    else:
        _print(
            [*(f"{tp.topic}-{tp.partition} stays where it was" for tp in cancelled)]
            or ["nothing is under way"]
        )
    return 0


@contextmanager
def _cluster(
    options: argparse.Namespace, *, names: list[str] | None = None, every_topic: bool = False
) -> Iterator[Cluster]:
    """The cluster that is meant, with the topics that are asked for."""
    wanted = names or (None if every_topic else options.topics or None)
    if options.placements is None:
        with open_admin(options) as admin:
            yield Cluster(live.read_racks(admin), live.read_topics(admin, wanted), admin)
        return
    topics = _read_placements(options.placements)
    for topic in wanted or ():
        if topic not in topics:
            raise PlacementError(f"{options.placements} has no topic {topic!r}: it has {', '.join(topics)}")
    racks = options.brokers or dict.fromkeys(sorted({b for one in topics.values() for b in _holders(one)}))
    yield Cluster(racks, {topic: topics[topic] for topic in wanted or sorted(topics)}, None)


def _read_placements(path: Path) -> dict[str, dict[int, list[int]]]:
    try:
        return parse_reassignment(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlacementError(f"cannot read {path}: {error}") from error


def _holders(placement: Mapping[int, list[int]]) -> set[int]:
    return {broker for replicas in placement.values() for broker in replicas}


def _print(lines: Iterable[str]) -> None:
    show("\n".join(lines))


_ONLY_SHOWN = "nothing is changed: --execute does it"

_RUN = {"create": _create, "describe": _describe, "infer": _infer, "expand": _expand, "reassign": _reassign}
