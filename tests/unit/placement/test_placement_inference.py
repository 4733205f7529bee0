"""What generator, start index and shift made a placement, read back from it."""

import pytest
from hypothesis import given, strategies as st

from kafka_assignors.placement import Placements, infer as infer_topics
from kafka_assignors.placement._generators import alternate, place_rack_aware
from kafka_assignors.placement._inference.infer import Fit, Inference, Misfit, infer
from kafka_assignors.placement._inference.shifts import Run, fewest
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._striped import place_striped

TOPIC_TEST2 = {0: [2, 0, 1], 1: [0, 1, 2], 2: [1, 2, 0], 3: [2, 1, 0], 4: [0, 2, 1], 5: [1, 0, 2]}
NINE = {broker: f"rack{broker // 3 + 1}" for broker in range(9)}

SEEDS = st.integers(0, 2**48 - 1)


@st.composite
def clusters(draw: st.DrawFn) -> dict[int, str]:
    """Brokers with racks, of equal sizes or not; ids with gaps."""
    ids = draw(st.lists(st.integers(0, 99), min_size=1, max_size=12, unique=True))
    return {broker: f"r{draw(st.integers(0, 3))}" for broker in ids}


def fit_of(generator: str, found: Inference) -> Fit:
    (fit,) = [fit for fit in found.fits if fit.generator == generator]
    return fit


def misfit_of(generator: str, found: Inference) -> Misfit:
    (misfit,) = [misfit for misfit in found.misfits if misfit.generator == generator]
    return misfit


def test_the_listing_of_topic_test2_has_start_2_and_shift_2_modulo_2() -> None:
    found = infer(TOPIC_TEST2)
    assert found.best is not None
    assert found.best.generator == "rack-unaware"
    (step,) = found.best.steps
    assert (step.start_index, step.shift, step.shifts, step.modulus) == (2, 2, (0,), 2)
    assert found.best.chance < 0.001
    assert misfit_of("striped", found).partition == 4


def test_brokers_that_have_joined_since_are_left_out() -> None:
    fit = fit_of("rack-unaware", infer(TOPIC_TEST2, racks=dict.fromkeys(range(7))))
    assert fit.brokers == (0, 1, 2)


def test_brokers_that_no_replica_is_on_are_known_from_what_is_given() -> None:
    placement = place_rack_aware(3, 1, dict.fromkeys(range(5)), start_index=1)
    assert fit_of("rack-unaware", infer(placement, racks=dict.fromkeys(range(5)))).brokers == (0, 1, 2, 3, 4)


def test_partitions_with_gaps_count_by_position() -> None:
    made = place_rack_aware(8, 3, dict.fromkeys(range(5)), start_index=3, shift=1)
    ids = (10, 21, 33, 40, 41, 57, 60, 99)
    fit = fit_of("rack-unaware", infer({ids[place]: replicas for place, replicas in made.items()}))
    assert fit.by_position
    assert (fit.start_index, fit.steps[0].shifts) == (3, (1,))


def test_partitions_left_of_a_larger_topic_count_by_id() -> None:
    made = place_rack_aware(12, 3, dict.fromkeys(range(5)), start_index=3, shift=1)
    del made[4], made[7]
    fit = fit_of("rack-unaware", infer(made))
    assert not fit.by_position
    assert (fit.start_index, fit.steps[0].shifts) == (3, (1,))


def test_rack_awareness_is_told() -> None:
    aware = infer(place_rack_aware(9, 3, NINE, start_index=4, shift=7), racks=NINE)
    assert aware.best is not None
    assert (aware.best.generator, aware.best.start_index) == ("rack-aware", 4)
    assert aware.best.brokers == tuple(alternate(NINE)) == (0, 3, 6, 1, 4, 7, 2, 5, 8)
    unaware = infer(place_rack_aware(9, 3, dict.fromkeys(range(9)), start_index=4, shift=7), racks=NINE)
    assert unaware.best is not None
    assert (unaware.best.generator, unaware.best.steps[0].shifts) == ("rack-unaware", (7,))
    assert misfit_of("rack-aware", unaware) == Misfit(
        generator="rack-aware", partition=0, reason="[4, 3, 5]: is not to be had from any start"
    )


def test_what_only_additions_one_by_one_would_explain_is_not_striped() -> None:
    racks = {broker: f"r{broker % 3}" for broker in range(100)}
    found = infer(place_rack_aware(200, 3, racks, seed=1), racks=racks)
    assert [fit.generator for fit in found.fits] == ["rack-aware"]
    assert misfit_of("striped", found).partition == 1


def test_a_striped_topic_that_got_one_partition_more_is_known() -> None:
    placement = place_striped(12, 3, NINE, seed=4)
    placement[12] = place_striped(1, 3, NINE, seed=5)[0]
    steps = fit_of("striped", infer(placement, racks=NINE)).steps
    assert [(step.first_partition, step.partitions) for step in steps] == [(0, 12), (12, 1)]


def test_without_racks_of_all_brokers_rack_aware_is_not_asked() -> None:
    found = infer(TOPIC_TEST2, racks={0: "a", 1: "b", 2: None})
    assert [fit.generator for fit in found.fits] == ["rack-unaware"]
    assert [misfit.generator for misfit in found.misfits] == ["striped"]


def test_none_fits_and_the_first_partition_that_disagrees_is_named() -> None:
    changed = {**TOPIC_TEST2, 4: [0, 1, 2]}
    found = infer(changed)
    assert found.fits == ()
    assert misfit_of("rack-unaware", found) == Misfit(
        generator="rack-unaware",
        partition=4,
        reason="[0, 1, 2]: does not continue from start index 2, as partitions up to 3 do",
    )


def test_a_replication_factor_that_changes_disagrees() -> None:
    assert misfit_of("rack-unaware", infer({**TOPIC_TEST2, 3: [2, 1]})).partition == 3


def test_of_a_large_topic_few_beginnings_of_additions_are_followed() -> None:
    begun = []

    def read_from(begin: int) -> Run:
        begun.append(begin)
        return Run(999, 0)

    assert fewest(read_from, 1000) == ([(0, Run(999, 0))], 999)
    assert (len(begun), begun[-1]) == (102, 999)


def test_a_small_topic_proves_little() -> None:
    assert all(fit.chance == 1 for fit in infer({0: [1]}, racks=dict.fromkeys(range(3))).fits)


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ({}, "the placement has no partitions"),
        ({3: []}, "partition 3: '' has no replica"),
        ({0: [1, 2], 7: [1, 1]}, "partition 7: '1:1' has broker 1 twice"),
    ],
)
def test_what_is_no_placement_is_refused(placement: dict[int, list[int]], said: str) -> None:
    with pytest.raises(PlacementError, match=f"topic t: {said}"):
        infer_topics(Placements({"t": placement}))


def test_what_is_neither_a_cluster_nor_placements_is_refused() -> None:
    with pytest.raises(PlacementError, match=r"^{0: \[1\]} has no placements: give a Cluster, Placements\("):
        infer_topics({0: [1]})  # type: ignore[arg-type]
    with pytest.raises(PlacementError, match=r"^no topic 'u' in the placements: t$"):
        infer_topics(Placements({"t": {0: [1]}}), ["u"])
    with pytest.raises(PlacementError, match=r"^a topic has no name"):
        infer_topics(Placements({"": {0: [1]}}))


@given(clusters(), st.data(), st.booleans())
def test_what_was_drawn_is_among_what_is_read_back(
    racks: dict[int, str], data: st.DataObject, aware: bool
) -> None:
    factor = data.draw(st.integers(1, min(len(racks), 4)))
    count, first = data.draw(st.integers(1, 40)), data.draw(st.sampled_from([0, 0, 7]))
    start, shift = data.draw(st.integers(0, len(racks) - 1)), data.draw(st.integers(0, 30))

    def place(shift: int) -> dict[int, list[int]]:
        looked_at = racks if aware else dict.fromkeys(racks)
        return place_rack_aware(
            count, factor, looked_at, start_index=start, shift=shift, first_partition=first
        )

    placement = place(shift)
    (step,) = fit_of("rack-aware" if aware else "rack-unaware", infer(placement, racks=racks)).steps
    assert (step.first_partition, step.partitions, step.start_index) == (first, count, start)
    assert factor == 1 or shift % step.modulus in step.shifts
    # All that are said to fit make the placement.
    for fitting in step.shifts:
        assert place(fitting) == placement


@given(clusters(), st.data(), SEEDS)
def test_a_striped_placement_is_known_in_one_step(
    racks: dict[int, str], data: st.DataObject, seed: int
) -> None:
    factor = data.draw(st.integers(1, min(len(racks), 4)))
    placement = place_striped(data.draw(st.integers(1, 60)), factor, racks, seed=seed)
    (step,) = fit_of("striped", infer(placement, racks=racks)).steps
    names = sorted({*racks.values()})
    assert names[step.start_index] == racks[placement[0][0]]
    assert step.offsets.keys() <= {*names}


def added(placement: dict[int, list[int]], count: int, racks: dict[int, str], *, aware: bool) -> None:
    """Add partitions as Kafka's `AdminZkClient.addPartitions` did before KRaft."""
    brokers = sorted(racks)
    start = next((place for place, broker in enumerate(brokers) if broker >= placement[0][0]), 0)
    factor = len(placement[0])
    first = len(placement)
    looked_at = racks if aware else dict.fromkeys(racks)
    placement |= place_rack_aware(count, factor, looked_at, start_index=start, first_partition=first)


@given(clusters(), st.data(), SEEDS, st.booleans())
def test_additions_are_found_step_by_step(
    racks: dict[int, str], data: st.DataObject, seed: int, aware: bool
) -> None:
    factor = data.draw(st.integers(1, min(len(racks), 4)))
    count = data.draw(st.integers(1, 30))
    placement = place_rack_aware(count, factor, racks if aware else dict.fromkeys(racks), seed=seed)
    more = data.draw(st.lists(st.integers(1, 20), max_size=3))
    for number in more:
        added(placement, number, racks, aware=aware)
    fit = fit_of("rack-aware" if aware else "rack-unaware", infer(placement, racks=racks))
    # Two steps may look like one.
    assert 1 <= len(fit.steps) <= 1 + len(more)
    assert sum(step.partitions for step in fit.steps) == len(placement)


def test_an_addition_begins_where_it_was_made() -> None:
    racks = dict.fromkeys(range(7), "")
    placement = place_rack_aware(10, 3, dict.fromkeys(range(7)), start_index=2, shift=5)
    added(placement, 8, racks, aware=False)
    fit = fit_of("rack-unaware", infer(placement))
    assert [(step.first_partition, step.partitions, step.start_index, step.shift) for step in fit.steps] == [
        (0, 10, 2, 5),
        (10, 8, 2, 2),
    ]
