"""A load on a mock cluster that refuses at first: what was acknowledged is in the log."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition, libversion
from kafka import TopicPartition as Partition

from kafka_assignors.testing import Load, MockCluster
from kafka_assignors.testing._brokers.waiting import wait_until

PATIENCE = 60.0  # seconds

pytestmark = pytest.mark.skipif(libversion()[1] < 0x02100000, reason="needs confluent-kafka 2.16")


@pytest.mark.parametrize("time_of_many", range(10))  # with more requests on the way, about half of them fail
def test_records_that_are_refused_at_first_are_in_the_log_once_they_are_counted(time_of_many: int) -> None:
    with MockCluster(1) as mock:
        mock.create_topic("t", 1)
        # A broker that has not made the partition yet, and has when the next records come.
        mock.inject_on(1, "Produce", ("NOT_LEADER_FOR_PARTITION", 0.05))
        with Load(mock.access, "t", rate=60) as load:
            wait_until(lambda: [] if sum(load.produced.values()) >= 10 else ["not yet"], PATIENCE, "records")
            counted = load.stop()
        consumer: Any = Consumer({**mock.access.librdkafka(), "group.id": "g"})
        with contextlib.closing(consumer):
            first, end = consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=PATIENCE)
        assert end >= 10, time_of_many
        assert counted == {Partition("t", 0): end - first}
