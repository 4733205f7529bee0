"""Topics that the kit makes."""

import uuid

import pytest
from confluent_kafka import KafkaException

from kafka_assignors.testing import Cluster, create_topic


def test_a_drawn_name_that_is_taken_is_the_topic_of_a_request_whose_answer_was_lost(
    kafka_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: drawn)
    name = create_topic(kafka_cluster, 3)
    assert create_topic(kafka_cluster, 3) == name


def test_a_given_name_that_is_taken_is_refused(kafka_cluster: Cluster, topic: str) -> None:
    with pytest.raises(KafkaException, match="already exists"):
        create_topic(kafka_cluster, 6, name=topic)
