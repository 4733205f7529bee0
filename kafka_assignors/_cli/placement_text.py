"""How placements, what is inferred of them, and moves look on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import fitted
from kafka_assignors._cli.output import count, filled, screen_width, table
from kafka_assignors._common.words import first_of, named, size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from kafka_assignors.placement._cluster.health import Health
    from kafka_assignors.placement._cluster.stall import Reason
    from kafka_assignors.placement._cluster.throttle import Throttles
    from kafka_assignors.placement._inference.infer import Fit, Inference, InferenceStep
    from kafka_assignors.placement._moving import Cancelled, ReassignmentPlan, UnderWay
    from kafka_assignors.placement._placement import Placement
    from kafka_assignors.placement._quality import Quality
    from kafka_assignors.placement._topics import Description

SHOWN: Final = 40
"""Up to how many partitions, or moves, are listed without being asked for."""

_NAMED: Final = 3  # entries in one line
_NOTHING: Final = "nothing is under way"
_SURE: Final = 1e-3
_KINDS: Final = {
    "offline": "offline (no leader)",
    "under_replicated": "under-replicated",
    "under_min_isr": "under min.insync.replicas",
    "led_by_others": "not led by the preferred leader",
    "reassigned": "being reassigned",
}
_WHY_DOWN: Final = {
    "fenced": ": it has died, has been stopped, or is still starting",
    "gone": ": the cluster does not know it",
}


def placement_lines(topics: Mapping[str, Placement]) -> Iterator[str]:
    """Every partition and its replicas, the preferred leader first."""
    for topic, placement in topics.items():
        for partition, replicas in sorted(placement.items()):
            yield f"{topic}-{partition}: {_ids(replicas)}"


def described_lines(found: Description, *, in_full: bool) -> Iterator[str]:
    listed = list(placement_lines(found.placements))
    if len(listed) > SHOWN and not in_full:
        listed = [f"{len(listed)} partitions: --partitions lists them"]
    states = {} if found.health is None else found.health.brokers
    yield from [*listed, "", *_quality_lines(found.quality, states)]
    if found.health is not None:
        yield from ["", *health_lines(found.health)]


def _quality_lines(quality: Quality, states: Mapping[int, str]) -> Iterator[str]:
    """How good placements are; with the states of the brokers, where they are known."""
    down = sum(not load.known for load in quality.brokers)
    others = f", {down} of them not up" if down else ""
    yield (
        f"{count(quality.partitions, 'partition')}, {count(quality.replicas, 'replica')} on "
        f"{count(len(quality.brokers), 'broker')}{others}"
    )
    yield f"replicas differ by {quality.replica_spread}, preferred leaders by {quality.leader_spread}"
    yield ""
    loads = quality.brokers
    columns = {
        "broker": [str(load.broker) for load in loads],
        "rack": [load.rack or "-" for load in loads] if quality.racks else [],
        "state": [states[load.broker] for load in loads] if states else [],
        "replicas": [str(load.replicas) for load in loads],
        "leaders": [str(load.leaders) for load in loads],
        "size": [size(load.size) for load in loads] if any(load.size for load in loads) else [],
    }
    yield from fitted(columns, left={"broker", "rack", "state"}, cut=("rack",))
    for load in loads:
        if not load.known:
            yield f"broker {load.broker} is not up{_WHY_DOWN.get(states.get(load.broker, ''), '')}"
    if quality.racks:
        yield from ["", *_rack_lines(quality)]


def _rack_lines(quality: Quality) -> Iterator[str]:
    racks = quality.racks
    columns = {
        "rack": [rack.rack for rack in racks],
        "brokers": [str(rack.brokers) for rack in racks],
        "replicas": [str(rack.replicas) for rack in racks],
        "leaders": [str(rack.leaders) for rack in racks],
        "offline without it": [str(len(rack.offline)) for rack in racks],
        "read-only": [str(len(rack.read_only)) if quality.min_insync > 1 else "-" for rack in racks],
    }
    yield from fitted(columns, left={"rack"}, cut=("rack",))
    for number, partitions in quality.racks_per_partition.items():
        yield f"{count(partitions, 'partition')} on {count(number, 'rack')}"
    for rack in racks:
        if rack.offline:
            yield f"only on {rack.rack}: {named(rack.offline)}"


def health_lines(health: Health) -> Iterator[str]:
    for broker, why in health.silent.items():
        yield f"broker {broker} does not answer: {why}"
    for broker, why in health.untold.items():
        yield f"broker {broker} does not report all of its logs: {why}"
    if health.controller:
        yield f"the controller does not say what is being reassigned: {health.controller}"
    kinds = [(_KINDS[kind], str(len(partitions))) for kind, partitions in health.partitions.items()]
    before = sum(max(map(len, cells)) + 2 for cells in zip(*kinds, strict=True))
    listed = (_listed(partitions, before) for partitions in health.partitions.values())
    rows = [[*kind, which] for kind, which in zip(kinds, listed, strict=True)]
    yield from table([["partitions", "", ""], *rows], left=(0, 2))


def _listed(partitions: Sequence[tuple[str, int]], before: int) -> str:
    """The same with as many as the terminal has room for in a line, after so many letters."""
    if not sys.stdout.isatty():
        return named(partitions)
    room = screen_width() - before
    names = [f"{topic}-{partition}" for topic, partition in partitions]
    counts = range(min(len(names), SHOWN), 1, -1)
    return first_of(names, next((most for most in counts if len(first_of(names, most)) <= room), 1))


def inference_lines(topic: str, found: Inference) -> Iterator[str]:
    for fit in found.fits:
        yield f"{topic}: {fit.generator} fits: {'; then '.join(_step(fit, step) for step in fit.steps)}"
        numbering = ", partitions by position" if fit.by_position else ""
        yield f"  brokers {_ids(fit.brokers)}{numbering}; {_sureness(fit)}"
    for misfit in found.misfits:
        yield f"{topic}: {misfit.generator} does not: partition {misfit.partition}, {misfit.reason}"
    if not found.fits:
        yield f"{topic}: none fits"


def _step(fit: Fit, step: InferenceStep) -> str:
    last = step.first_partition + step.partitions - 1
    which = f"partitions {step.first_partition} to {last}" if len(fit.steps) > 1 else ""
    if fit.generator == "striped":
        offsets = ", ".join(
            f"{rack or 'brokers'} {offset}" for rack, offset in sorted(step.offsets.items(), key=str)
        )
        drawn = (
            f"first rack {step.start_index}, first of {offsets}"
            if len(step.offsets) > 1
            else f"first of {offsets}"
        )
    elif len(step.shifts) == step.modulus > 1:
        drawn = f"start index {step.start_index}, any shift"
    else:
        shifts = [step.shift] if len(step.shifts) == 1 else step.shifts
        drawn = f"start index {step.start_index}, shift {', '.join(map(str, shifts))} (mod {step.modulus})"
    return f"{which}: {drawn}" if which else drawn


def _sureness(fit: Fit) -> str:
    if fit.chance >= 1:
        return "says nothing: every placement of so few partitions fits"
    if fit.chance >= _SURE:
        return f"a random placement would fit with a chance of up to {fit.chance:.0%}"
    return f"a random placement would fit with a chance of at most {fit.chance:.0e}"


def _move_lines(planned: ReassignmentPlan) -> Iterator[str]:
    """What is to move, and what is reached by it; with what is proved about it, if it was planned here."""
    plan, proved = planned.moves, planned.proved
    listed = plan.moves[:SHOWN]
    for move in listed:
        source = "" if move.source is None else f" in place of {move.source}"
        volume = "" if move.size is None else f", {size(move.size)}"
        yield f"{move.topic}-{move.partition}: to {move.target}{source}{volume}"
    if len(plan.moves) > len(listed):
        yield f"and {len(plan.moves) - len(listed)} more: --output or --json has all"
    if plan.moves:
        yield ""
    volume = "" if plan.bytes_moved is None else f" ({size(plan.bytes_moved)})"
    changed = plan.leaders_changed
    forced = "" if proved is None else f", {proved.replicas_forced} of them needed for any balance"
    yield (
        f"{count(plan.replicas_moved, 'replica')} to copy{volume}{forced};"
        f" {count(changed, 'preferred leader')} {'changes' if changed == 1 else 'change'}"
    )
    replicas, leaders = plan.replica_loads.values(), plan.leader_loads.values()
    most = leader_best = ""
    if proved is not None:
        best = "the best possible beside what is under way" if planned.there else "the best possible"
        most = f", {best}"
        leader_best = f", {best}" if proved.leaders_best else f", not proved to be {best}"
    yield f"replicas on a broker: {min(replicas)} to {max(replicas)}{most}"
    yield f"preferred leaders of a broker: {min(leaders)} to {max(leaders)}{leader_best}"


def _fenced_lines(plan: ReassignmentPlan) -> Iterator[str]:
    for broker in plan.fenced:
        gets = sum(move.target == broker for move in plan.moves.moves)
        gives = sum(move.source == broker for move in plan.moves.moves)
        if gets:
            yield f"broker {broker} is fenced and would get {count(gets, 'replica')}:"
            yield "  start it, or --execute with --allow-fenced"
        elif gives:
            yield f"broker {broker} is fenced and would lose {count(gives, 'replica')}:"
            yield "  if it comes back, start it first, or say --allow-fenced"


def plan_lines(plan: ReassignmentPlan, rate: int | None, *, asks: bool) -> Iterator[str]:
    """What is to move, what is under way of it, how long that takes, and what fenced brokers mean for it.

    `asks` says that no rate was given, and that one must be if much is to be copied.
    """
    yield from _move_lines(plan)
    if racks := plan.crowded_racks:
        few = f"rack {racks[0]} has" if len(racks) == 1 else f"racks {', '.join(racks)} have"
        yield f"{few} few brokers for a replica of each partition: these hold more than others"
        yield "  more brokers there, fewer replicas of each partition, or --disable-rack-aware evens that out"
    if plan.there:
        yield f"{count(len(plan.there), 'partition')} of it under way already: {named(plan.there)}"
    if plan.elsewhere:
        topics = " ".join(sorted({topic for topic, _ in plan.elsewhere}))
        yield (
            f"{count(len(plan.elsewhere), 'partition')} under way to other brokers than planned:"
            f" {named(plan.elsewhere)}"
        )
        yield f"  before --execute wait until that is done, or break it off: `placement cancel {topics}`"
    yield from _volume_lines(plan, rate, asks=asks)
    yield from _fenced_lines(plan)


def under_way_lines(found: UnderWay) -> Iterator[str]:
    if found.under_way:
        yield (
            f"{count(len(found.under_way), 'partition')} under way,"
            f" {count(found.replicas, 'new replica')} not in sync, {size(found.missing)} to copy"
        )
    else:
        yield _NOTHING
    yield from reason_lines(found.waits_for)
    yield from _throttle_lines(found.throttles)


def cancelled_lines(found: Cancelled) -> Iterator[str]:
    yield from [f"{topic}-{partition} stays where it was" for topic, partition in found.cancelled] or [
        _NOTHING
    ]
    yield from _throttle_lines(found.throttles)


def reason_lines(why: Sequence[Reason]) -> Iterator[str]:
    """Why something does not get on, and below it what to do."""
    for one in why:
        yield from filled(one.why, "  ", "    ")
        yield from filled(one.way_out, "    ", "      ")


def _throttle_lines(throttles: Throttles) -> Iterator[str]:
    """Which replication quotas there are, and what does not say whether it has some."""
    for broker, rates in throttles.rates.items():
        for name, rate in rates.items():
            yield f"broker {broker} has {name}={rate}"
    for topic, lists in throttles.replicas.items():
        for name, entries in lists.items():
            if entries:
                yield f"topic {topic} has {name}={first_of(entries, _NAMED, ',')}"
    for resource, why in throttles.untold.items():
        yield f"{resource} does not say whether it has a throttle: {why}"


def _volume_lines(plan: ReassignmentPlan, rate: int | None, *, asks: bool) -> Iterator[str]:
    """How long copying takes at this rate, in bytes per second of a broker, each way.

    Without a rate, whether that has to be said, as more must not be copied before.
    """
    volume = plan.volume
    if rate is not None and volume.total:
        broker, does, most = volume.most
        yield (
            f"at {size(rate)}/s about {duration(volume.seconds(rate))}:"
            f" broker {broker} {does} {size(most)}, the most"
        )
        if passes := volume.passes(rate):
            yield from filled(
                f"so low a throttle does not hold: Kafka looks at it before a fetch, so {size(passes)} pass"
                f" at once, and as much every {volume.WINDOW_SECONDS} s",
                "  ",
                "    ",
            )
    elif asks and plan.much:
        yield f"--execute wants --throttle or --no-throttle: {plan.much} would be copied"


def duration(seconds: float) -> str:
    """A time for people."""
    whole = max(1, round(seconds))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if whole >= 2 * length:
            return f"{whole / length:.0f} {unit}"
    return f"{whole} s"


def internal_left(left: Mapping[str, Collection[int]], to_brokers: Iterable[int]) -> str:
    """That internal topics, which were not named, stay on brokers that replicas are to leave."""
    where = ", ".join(f"{topic} ({_ids(sorted(brokers))})" for topic, brokers in left.items())
    return (
        f"internal topics have replicas on brokers that --to-brokers leaves out: {where}. They move only if"
        f" named: placement reassign {' '.join(left)} --to-brokers {','.join(map(str, to_brokers))}"
    )


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
