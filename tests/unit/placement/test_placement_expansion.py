"""New partitions go on with a topic's pattern, or balance its brokers."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kafka import TopicPartition

from kafka_assignors.placement import Cluster as Named, PlacementError, Placements, expand
from kafka_assignors.placement._expansion import ExpandedTopic
from kafka_assignors.placement._generators import place_rack_aware
from kafka_assignors.placement._inference.infer import infer
from kafka_assignors.placement._placement import Placement, Racks
from tests.support.fake_cluster import Cluster, open_as


def expanded_by(
    more: int,
    present: Placement,
    racks: Racks,
    *,
    others: dict[str, Placement] | None = None,
    balanced: bool = False,
) -> ExpandedTopic:
    source = Placements({"t": present, **(others or {})}, racks)
    return expand(source, "t", len(present) + more, balanced=balanced)


@st.composite
def clusters(draw: st.DrawFn) -> Racks:
    """Brokers, with racks or without."""
    racked = draw(st.booleans())
    return {
        broker: f"r{broker % 3}" if racked else None for broker in range(10, 10 + draw(st.integers(2, 9)))
    }


@given(clusters(), st.data(), st.integers(2, 40), st.integers(1, 30), st.booleans())
def test_a_topic_grows_as_if_it_had_been_created_so(
    racks: Racks, data: st.DataObject, count: int, more: int, aware: bool
) -> None:
    factor = data.draw(st.integers(2, min(len(racks), 4)))
    seed = data.draw(st.integers(0, 2**40))
    present = place_rack_aware(count, factor, racks if aware else dict.fromkeys(racks), seed=seed)
    expanded = expanded_by(more, present, racks)
    (known,) = [fit for fit in infer(present, racks=racks).fits if fit.generator == expanded.how]
    (step,) = known.steps
    looked_at = racks if expanded.how == "rack-aware" else dict.fromkeys(racks)
    # Few partitions leave several shifts open: it is one of them.
    assert {**present, **expanded.added} in [
        place_rack_aware(count + more, factor, looked_at, start_index=step.start_index, shift=shift)
        for shift in step.shifts
    ]


def test_a_topic_without_a_pattern_is_balanced_with_the_others() -> None:
    present = {0: [1, 2], 1: [1, 2], 2: [1, 3], 3: [1, 2]}
    expanded = expanded_by(3, present, dict.fromkeys([1, 2, 3, 4]), others={"other": {0: [4, 3]}})
    assert (expanded.how, expanded.why) == ("balanced", "no generator with a start index and a shift fits it")
    loads = Counter(
        broker for replicas in (*present.values(), *expanded.added.values()) for broker in replicas
    )
    assert loads + Counter([4, 3]) == {1: 4, 2: 4, 3: 4, 4: 4}


def test_a_pattern_over_a_broker_that_is_not_up_is_not_kept() -> None:
    present = place_rack_aware(8, 2, dict.fromkeys(range(4)), start_index=1)
    expanded = expanded_by(4, present, dict.fromkeys([0, 1, 3]))
    assert (expanded.how, expanded.why) == ("balanced", "its pattern goes over broker 2, which is not up")
    assert all({*replicas} < {0, 1, 3} for replicas in expanded.added.values())


def test_new_brokers_are_no_part_of_the_pattern() -> None:
    present = place_rack_aware(8, 2, dict.fromkeys(range(4)), start_index=1)
    expanded = expanded_by(4, present, dict.fromkeys(range(6)))
    assert expanded.how == "rack-unaware"
    assert expanded.why.endswith("; broker 4, 5 is no part of the pattern and gets nothing")
    assert {**present, **expanded.added} == place_rack_aware(12, 2, dict.fromkeys(range(4)), start_index=1)


def test_a_pattern_is_given_up_where_balance_is_wanted() -> None:
    present = place_rack_aware(8, 2, dict.fromkeys(range(4)), start_index=1)
    expanded = expanded_by(4, present, dict.fromkeys(range(6)), balanced=True)
    assert expanded.how == "balanced"
    assert Counter(b for replicas in expanded.added.values() for b in replicas) == {4: 4, 5: 4}


def test_topics_whose_ids_have_gaps_go_on_by_position() -> None:
    made = place_rack_aware(9, 3, dict.fromkeys(range(5)), start_index=3, shift=1)
    ids = (10, 21, 33, 40, 41, 57, 60, 99)
    expanded = expanded_by(1, {ids[place]: made[place] for place in range(8)}, dict.fromkeys(range(5)))
    assert expanded.added == {100: made[8]}


@pytest.mark.parametrize("balanced", [False, True])
def test_a_replication_factor_above_the_brokers_that_are_up_is_refused(balanced: bool) -> None:
    with pytest.raises(PlacementError, match="partition 1 is to have 2 replicas, but at most 1 brokers may"):
        expanded_by(1, {0: [1, 2]}, {1: None}, balanced=balanced)


def test_no_partitions_are_refused() -> None:
    with pytest.raises(PlacementError, match="t has 1 partitions already, and cannot have fewer"):
        expanded_by(0, {0: [1]}, {1: None})


def test_a_topic_is_expanded_while_partitions_of_it_are_reassigned(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster({"orders": {0: [1, 2], 1: [2, 3], 2: [3, 1]}})
    cluster.moving[TopicPartition("orders", 2)] = [1, 2]
    create_partitions = cluster.create_partitions

    def create(asked: Mapping[str, Any], **_: object) -> Any:
        cluster.finish()
        return create_partitions(asked)

    monkeypatch.setattr(cluster, "create_partitions", create)
    open_as(cluster, monkeypatch)
    expanded = expand(Named("kafka:9092"), "orders", 5, execute=True)
    assert expanded.executed
    assert [len(replicas) for replicas in expanded.added.values()] == [2, 2]
    assert cluster.topics["orders"] == {0: [1, 2], 1: [2, 3], 2: [1, 2], **expanded.added}


def test_an_internal_topic_is_not_said_to_be_missing(cluster: Cluster) -> None:
    cluster.topics["__consumer_offsets"] = {0: [1, 2]}
    with pytest.raises(PlacementError, match=r"^__consumer_offsets is internal: Kafka relies on the number"):
        expand(Named("kafka:9092"), "__consumer_offsets", 2)
    with pytest.raises(PlacementError, match=r"^the cluster has no topic 'nope'$"):
        expand(Named("kafka:9092"), "nope", 2)
