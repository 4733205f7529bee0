"""New partitions for a topic, placed as the ones that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kafka_assignors.placement._generators import BrokerRing, shift_at
from kafka_assignors.placement._inference.infer import infer
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._planning.moves import place_balanced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.placement._inference.infer import Fit
    from kafka_assignors.placement._placement import Placement, Racks

How = Literal["rack-unaware", "rack-aware", "balanced"]
"""What new partitions were placed by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """New partitions of a topic.

    Attributes:
        partitions: Their placement.
        how: The generator whose pattern continues, or "balanced".
        why: In words.
    """

    partitions: dict[int, list[int]]
    how: How
    why: str


def expand(
    placement: Placement,
    count: int,
    racks: Racks,
    *,
    others: Mapping[str, Placement] | None = None,
    keep_pattern: bool = True,
) -> Expansion:
    """Place more partitions of a topic; those that there are stay.

    If a pattern of the topic is found, it continues: the generator of `AdminUtils` that made it, from the
    same start index. Its shift grows as if the topic had been created with all its partitions. Else, as for
    topics that KRaft placed, whose draws nobody knows, the new partitions are placed so that the brokers are
    best balanced.

    Args:
        placement: The topic as it is.
        count: How many partitions to add.
        racks: The brokers that are up, and their racks.
        others: Other topics; what they have counts where brokers are balanced.
        keep_pattern: Look for a pattern; else balance.

    Raises:
        PlacementError: It has no partitions, its replication factor is more than there are brokers, or
            `count` is below 1.
        ImportError: Balancing needs OR-tools, which is not installed.
    """
    if count < 1:
        raise PlacementError(f"{count} partitions cannot be added: say how many more there are to be")
    found = infer(placement, racks=racks)
    first = max(placement) + 1
    why = "its pattern is not to be kept"
    if keep_pattern:
        fit = next((fit for fit in found.fits if fit.generator != "striped"), None)
        if fit is None:
            why = "no generator with a start index and a shift fits it"
        elif gone := sorted({*fit.brokers} - racks.keys()):
            why = f"its pattern goes over broker {', '.join(map(str, gone))}, which is not up"
        else:
            return _continue(fit, len(placement[min(placement)]), first, count, racks)
    factor = len(placement[max(placement)])
    # As one topic, so that its own partitions count with the others.
    existing = {**(others or {}), "": placement}
    placed = place_balanced(range(first, first + count), factor, racks, existing=existing)
    return Expansion(partitions=placed, how="balanced", why=why)


def _continue(fit: Fit, factor: int, first: int, count: int, racks: Racks) -> Expansion:
    """Go on with the last step of a pattern."""
    step = fit.steps[-1]
    shift = step.shift
    assert shift is not None  # noqa: S101 - for the type checker: only the striped generator has none
    # By position, the next number is how many there are.
    number = sum(one.partitions for one in fit.steps) if fit.by_position else first
    aware = fit.generator == "rack-aware"
    ring = BrokerRing(fit.brokers, factor, racks if aware else None)
    size = len(fit.brokers)
    why = f"start index {step.start_index}, shift {shift} continues"
    if left_out := sorted(racks.keys() - {*fit.brokers}):
        why += f"; broker {', '.join(map(str, left_out))} is no part of the pattern and gets nothing"
    return Expansion(
        partitions={
            first + more: ring.replicas(
                number + more,
                step.start_index,
                shift_at(number + more, step.first_partition, shift, size),
            )
            for more in range(count)
        },
        how="rack-aware" if aware else "rack-unaware",
        why=why,
    )
