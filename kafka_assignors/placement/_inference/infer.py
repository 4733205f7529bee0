"""How was this placement made? Which of Kafka's generators fits it, from which start index and shift.

Kafka draws a start index and a shift when it creates a topic, and does not keep them; the placement shows
them. Before KRaft it placed by `AdminUtils`. Partitions that were added later began at the position of the
first partition's leader among the brokers. Every such step is found. KRaft's placer draws a rack, a broker in
each rack, and a new order after each round. Its first round is read back, later ones are compared with what
any order allows.

That a generator fits proves little for a small topic, so each fit says how likely a placement drawn at random
would fit as well.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, cast

from kafka_assignors.placement._generators import BrokerRing
from kafka_assignors.placement._inference.shifts import Row, fewest, read_run
from kafka_assignors.placement._inference.stripes import read_stripes
from kafka_assignors.placement._placement import Placement, Racks, holders

GeneratorName = Literal["rack-unaware", "rack-aware", "striped"]
"""Kafka's generators of placements."""

_LONE = 0.25  # the share of partitions that may have come one by one
_ROUNDING = 1e-6  # bits


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceStep:
    """Partitions that were placed at once.

    Attributes:
        first_partition: The first of them.
        partitions: How many.
        start_index: The start index; for the striped generator the rack that it began with, among the racks
            by name.
        shifts: The shifts that fit, each standing for itself and all that differ by a multiple of `modulus`;
            empty for the striped generator, which has none.
        modulus: See `shifts`; 0 for the striped generator.
        offsets: For the striped generator: rack -> the position of its first broker among its brokers by id;
            of racks that were used.
    """

    first_partition: int
    partitions: int
    start_index: int
    shifts: tuple[int, ...] = ()
    modulus: int = 0
    offsets: Mapping[str | None, int] = field(default_factory=dict)

    @property
    def shift(self) -> int | None:
        """One shift that fits: the start index if it does, as Kafka takes it for both when it is given."""
        if not self.shifts:
            return None
        same = self.start_index % self.modulus in self.shifts
        return self.start_index if same else self.shifts[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A generator that makes this placement.

    Attributes:
        generator: Which.
        brokers: The brokers, in the order in which it took them.
        steps: The creation of the topic, then every addition of partitions.
        by_position: Whether partitions count by their position; else by their id. They differ in topics
            whose ids have gaps.
        chance: How likely a random placement would fit as well, at most. Near 1, the fit says nothing.
    """

    generator: GeneratorName
    brokers: tuple[int, ...]
    steps: tuple[InferenceStep, ...]
    by_position: bool
    chance: float

    @property
    def start_index(self) -> int:
        """The start index that the topic was created with."""
        return self.steps[0].start_index


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A generator that does not make this placement.

    The first partition that disagrees does so with what came before, or with any start.
    """

    generator: GeneratorName
    partition: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The generators that make a placement, the most telling first, and those that do not."""

    fits: tuple[Fit, ...]
    misfits: tuple[Misfit, ...]

    @property
    def best(self) -> Fit | None:
        """The fit that is least likely by chance; None if none fits."""
        return self.fits[0] if self.fits else None


def infer(placement: Placement, *, racks: Racks | None = None) -> Inference:
    """Find the generators, and what they drew, that make a topic's placement.

    If the brokers of `racks` do not fit, or none are known, those that the placement names are tried: there
    may be more now. Without racks, no generator that goes by them is tried, and the striped one as on brokers
    without racks.
    """
    known = dict(racks or {})
    named = holders(placement)
    among = dict.fromkeys([frozenset(known) or frozenset(named), frozenset(named)])
    fits: list[Fit] = []
    misfits: list[Misfit] = []
    for generator in ("rack-unaware", "rack-aware", "striped"):
        if generator == "rack-aware" and any(known.get(broker) is None for broker in named):
            continue
        tried = [
            _read(generator, rows, {broker: known.get(broker) for broker in sorted(there)}, by_position)
            for there in among
            for by_position, rows in _rows(placement)
        ]
        found = [one for one in tried if isinstance(one, Fit)]
        if found:
            fits.append(found[0])
        else:
            misfits.append(max(cast("list[Misfit]", tried), key=lambda one: one.partition))
    return Inference(fits=tuple(sorted(fits, key=lambda fit: fit.chance)), misfits=tuple(misfits))


def _rows(placement: Placement) -> Iterator[tuple[bool, list[Row]]]:
    """The partitions by id and, where ids have gaps, by position."""
    ids = sorted(placement)
    yield False, [(partition, placement[partition]) for partition in ids]
    if ids[-1] - ids[0] >= len(ids):
        yield True, [(position, placement[partition]) for position, partition in enumerate(ids)]


def _read(generator: GeneratorName, rows: list[Row], racks: Racks, by_position: bool) -> Fit | Misfit:
    striped, factor = generator == "striped", len(rows[0][1])
    brokers, modulus, read = sorted(racks), 0, partial(read_stripes, rows, racks=racks)
    if not striped:
        why = ""
        if generator == "rack-aware" and None in racks.values():
            why = "some brokers have no rack"
        elif factor > len(racks):
            why = f"{factor} replicas, {len(racks)} brokers"
        if why:
            return Misfit(generator=generator, partition=rows[0][0], reason=why)
        ring = BrokerRing(racks if generator == "rack-aware" else dict.fromkeys(racks), factor)
        brokers, modulus, read = ring.brokers, ring.modulus, partial(read_run, ring, rows)
    runs, reach = fewest(read, len(rows))
    start = f"{'rack' if striped else 'start index'} {runs[0][1].start}"
    misfit = _misfit(generator, rows, runs[0][1].end, start, racks)
    if reach < len(rows):
        return misfit
    bounds = [begin for begin, _ in runs[1:]] + [len(rows)]
    steps = tuple(
        InferenceStep(
            first_partition=rows[begin][0],
            partitions=bound - begin,
            start_index=run.start,
            shifts=run.shifts,
            modulus=modulus,
            offsets=run.offsets,
        )
        for (begin, run), bound in zip(runs, bounds, strict=True)
    )
    free = math.log2(math.comb(len(rows) - 1, len(steps) - 1))  # where the steps after the first began
    if striped:
        free += sum(_log_drawn(racks, step.partitions) for step in steps)
    else:
        free += math.log2(len(brokers)) + math.log2(modulus)
    chance = _chance(free, rows, len(racks))
    # Any placement is some sequence of additions, each of one partition: too many of those explain nothing.
    lone = sum(step.partitions == 1 for step in steps[1:])
    if striped and (lone > len(rows) * _LONE or (len(steps) > 1 and chance == 1)):
        return misfit
    return Fit(
        generator=generator, brokers=tuple(brokers), steps=steps, by_position=by_position, chance=chance
    )


def _misfit(generator: GeneratorName, rows: Sequence[Row], end: int, start: str, racks: Racks) -> Misfit:
    """What to say when the creation explains the rows before `end`, and no additions the others."""
    partition, replicas = rows[min(end, len(rows) - 1)]
    strangers = [broker for broker in replicas if broker not in racks]
    if strangers:
        why = f"broker {strangers[0]} is none of the brokers that there were"
    elif end:
        why = f"does not continue from {start}, as partitions up to {rows[end - 1][0]} do"
    else:
        why = "is not to be had from any start"
    return Misfit(generator=generator, partition=partition, reason=f"{list(replicas)}: {why}")


def _log_drawn(racks: Racks, partitions: int) -> float:
    """How many bits one run of the striped placer draws, at most."""
    sizes = Counter(racks.values())
    rounds = (partitions - 1) // len(racks) if len(racks) > 1 else 0
    in_order = math.log2(len(sizes)) + sum(map(math.log2, sizes.values()))
    shuffled = sum(map(_log_factorial, [len(sizes), *sizes.values()]))
    return in_order + rounds * shuffled


def _chance(free: float, rows: Sequence[Row], brokers: int) -> float:
    """The chance that a random placement is among those that some bits can tell apart."""
    possible = sum(_log_factorial(brokers) - _log_factorial(brokers - len(replicas)) for _, replicas in rows)
    return 1.0 if free > possible - _ROUNDING else 2.0 ** (free - possible)


def _log_factorial(number: int) -> float:
    return math.lgamma(number + 1) / math.log(2)
