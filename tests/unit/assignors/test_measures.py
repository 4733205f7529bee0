"""What a member measures, in a time that is turned by hand; and where its consumer tells it."""

import gc
import math
import weakref
from collections import deque
from collections.abc import Mapping
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from kafka_assignors import CooperativeStickyAssignor, LoadAwareAssignor
from kafka_assignors._assignors import _measuring, _relied_on
from kafka_assignors._assignors._measures import MEMORY, Measures, Standing
from kafka_assignors._wire.measured import Measured
from tests.support.unconnected import Unconnected

A, B, C = (TopicPartition("t", number) for number in range(3))
BOTH = {"t": [0, 1]}


class Application:
    """Works for known seconds on each record, and waits between its polls."""

    def __init__(self, cost: Mapping[TopicPartition, float]) -> None:
        self.now = 100.0
        self.cost = cost
        self.measures = Measures(lambda: self.now)

    def poll(self, records: Mapping[TopicPartition, int], *, wait: float = 0.0) -> None:
        self.measures.came()
        self.now += wait
        self.measures.gave(records)
        self.now += sum(count * self.cost[partition] for partition, count in records.items())

    def of(self, partition: TopicPartition) -> Measured:
        self.measures.came()
        known = self.measures.of({partition.topic: [partition.partition]})
        return known.get(tuple(partition), Measured())


@pytest.mark.parametrize("seed", range(5))
def test_a_records_cost_is_the_time_of_work_on_it_however_long_polls_wait(seed: int) -> None:
    rng = Random(seed)
    app = Application({A: 0.002, B: 0.03})
    for _ in range(200):
        app.poll({rng.choice([A, B]): rng.randint(1, 50)}, wait=rng.expovariate(1))
        app.poll({}, wait=rng.expovariate(1))
    assert app.of(A).cost == pytest.approx(0.002)
    assert app.of(B).cost == pytest.approx(0.03)


def test_the_time_of_a_poll_is_shared_by_its_partitions_in_proportion_to_their_records() -> None:
    app = Application({A: 0.1, B: 0.1})
    app.poll({A: 10, B: 30})
    assert app.of(A).cost == app.of(B).cost == pytest.approx(0.1)
    assert app.measures.of(BOTH).keys() == {("t", 0), ("t", 1)}


def test_what_is_out_counts_when_the_application_comes_again_and_once() -> None:
    app = Application({A: 1.0})
    app.poll({A: 5})
    assert app.measures.of(BOTH) == {}
    app.now += 5
    assert app.of(A).cost == pytest.approx(2.0)
    app.now += 50
    assert app.of(A).cost == pytest.approx(2.0)


def test_a_pause_changes_no_cost_and_a_new_cost_is_known_after_a_minute() -> None:
    app = Application({A: 0.01})
    for _ in range(60):
        app.poll({A: 100})
    app.poll({}, wait=3 * 3600)
    assert app.of(A).cost == pytest.approx(0.01)
    app.cost = {A: 0.1}
    for _ in range(6):
        app.poll({A: 100})
    assert app.of(A).cost == pytest.approx(0.1, rel=0.01)


def test_a_partition_that_is_idle_for_days_keeps_what_was_measured_of_it() -> None:
    app = Application({A: 0.01})
    app.poll({A: 100})
    for _ in range(3 * 24 * 60):
        app.poll({}, wait=60)
        app.measures.stand([(A, Standing(None, None))])
    assert app.of(A).cost == pytest.approx(0.01)
    app.measures.stand([(A, Standing(0, 0))])
    app.now += 1
    app.measures.stand([(A, Standing(0, 7))])
    for _ in range(3 * 24 * 60):
        app.now += 60
        app.measures.stand([(A, Standing(None, None))])
    assert app.of(A).arriving == pytest.approx(7)


def test_arrivals_are_an_average_over_about_a_minute() -> None:
    app = Application({})
    end = 1000
    for _ in range(600):
        app.now += 1
        end += 50
        app.measures.stand([(A, Standing(700, end))])
    assert app.of(A) == pytest.approx(Measured(math.nan, end - 700, 50), nan_ok=True)
    for _ in range(int(MEMORY)):
        app.now += 1
        app.measures.stand([(A, Standing(end + 9, end))])
    assert app.of(A) == pytest.approx(Measured(math.nan, 0, 50 / math.e), rel=0.02, nan_ok=True)


def test_what_is_not_known_is_not_said_and_an_end_that_goes_back_is_no_arrival() -> None:
    app = Application({})
    app.measures.stand([(A, Standing(None, 9)), (B, Standing(3, None))])
    app.now += 1
    app.measures.stand([(A, Standing(4, 5)), (B, Standing(3, 8))])  # a topic made anew
    assert app.of(A) == pytest.approx(Measured(math.nan, 1, math.nan), nan_ok=True)
    assert app.of(B) == pytest.approx(Measured(math.nan, 5, math.nan), nan_ok=True)
    app.now += 1
    app.measures.stand([(A, Standing(4, 7))])
    assert app.of(A).arriving == pytest.approx(2)


def test_partitions_that_are_gone_for_long_are_forgotten() -> None:
    app = Application({A: 1.0})
    app.poll({A: 1})
    assert app.of(A).cost == 1.0
    app.now += 10 * MEMORY + 1
    app.measures.stand([])
    assert app.measures.of(BOTH) == {}


def test_what_a_member_needs_is_what_waits_and_what_arrives() -> None:
    measured = Measured(0.1, 100, 5), Measured(1.0, math.nan, 0.5), Measured()
    assert [one.work(60) for one in measured] == [40, 30, 0]


class Consumer(KafkaConsumer):
    """A consumer whose polls give what a test says."""

    given: Any = None

    def _poll_once(self, timer: Any, max_records: Any, update_offsets: Any = True) -> Any:
        del timer, max_records, update_offsets
        return self.given


def consumer(assignor: Any, kind: type = Consumer) -> Any:
    made: Any = kind(
        group_id="g",
        partition_assignment_strategy=[assignor],
        kafka_client=Unconnected,
        api_version=(2, 6),
        enable_auto_commit=False,
    )
    made._subscription.subscribe(["t"])
    made._subscription.assign_from_subscribed([A, B])
    return made


def test_a_consumer_is_measured_from_its_first_poll_on() -> None:
    assignor = LoadAwareAssignor()
    polled = consumer(assignor)
    measures = assignor._work.measures = Measures(lambda: now[0])
    del polled._poll_once
    _measuring.measure(polled, measures)
    now = [100.0]
    polled._subscription.seek(A, 5)
    polled._subscription.assignment[A].highwater = 25
    polled.given = {A: ["a record"] * 4}
    assert polled.poll(timeout_ms=0) == polled.given
    now[0] += 2
    polled.given = {}
    polled.poll(timeout_ms=0)
    assert measures.of(BOTH) == {("t", 0): Measured(0.5, 20, 0)}
    polled.close()


def test_a_consumer_is_measured_by_load_aware_only_and_is_not_kept_alive() -> None:
    known = {}
    for kind in (LoadAwareAssignor, CooperativeStickyAssignor):
        made = consumer(kind)
        known[kind] = weakref.ref(made)
        assert ("_poll_once" in vars(made)) == (kind is LoadAwareAssignor)
        made.close()
    del made
    gc.collect()
    assert known[LoadAwareAssignor]() is None


def test_a_release_that_polls_otherwise_is_left_alone_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Other(Consumer):
        def _poll_once(self, timer: Any) -> Any:  # type: ignore[override]
            return timer

    _relied_on.warn.cache_clear()
    made = consumer(LoadAwareAssignor, Other)
    assert "_poll_once" not in vars(made)
    # The client's own thread may log that there is no broker.
    (record,) = (one for one in caplog.records if one.name.startswith("kafka_assignors"))
    assert "(_poll_once). Nothing is measured of this consumer" in record.getMessage()
    made.close()


def test_positions_and_ends_are_read_as_the_client_has_them() -> None:
    states = {
        A: SimpleNamespace(position=OffsetAndMetadata(5, "", -1), highwater=9),
        B: SimpleNamespace(position=None, highwater=None),
        C: SimpleNamespace(position=OffsetAndMetadata(0, "", -1), highwater=4),
    }
    # A fetch that waits behind those of other partitions.
    fetched = SimpleNamespace(topic_partition=C, partition_data=SimpleNamespace(high_watermark=70))
    held: Any = SimpleNamespace(
        _subscription=SimpleNamespace(assignment=states),
        _fetcher=SimpleNamespace(_completed_fetches=deque([fetched])),
    )
    standing = {A: Standing(5, 9), B: Standing(None, None), C: Standing(0, 70)}
    assert dict(_measuring._standing(held)) == standing
