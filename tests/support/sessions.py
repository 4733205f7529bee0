"""Spark, an object store, Kafka's own Java classes: fixtures that start once in a process of tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.java.oracle import JavaOracle
    from tests.support.object_store import ObjectStore

KAFKA_3_9 = [
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.kafka:kafka-server-common:3.9.1",  # AdminUtils
    "org.apache.kafka:kafka-tools:3.9.1",  # TopicCommand
]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with the product's settings, which its commands take over, too."""
    # Not imported before: every run of tests loads this module.
    from kafka_assignors.history._spark import spark_session  # noqa: PLC0415

    settings = {
        "spark.sql.shuffle.partitions": "4",
        # A session of a few minutes does not earn what a better compiler costs.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    session = spark_session("local[2]", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """A store that speaks S3; each test takes buckets of its own from it."""
    from tests.support.object_store import running_object_store  # noqa: PLC0415 - see above

    with running_object_store() as store:
        yield store


@pytest.fixture(scope="session")
def java() -> Iterator[JavaOracle]:
    """Kafka's own classes, of the release that the test kit starts."""
    from kafka_assignors.testing._brokers.jars import kafka_jars  # noqa: PLC0415 - see above
    from tests.support.java.oracle import JavaOracle  # noqa: PLC0415

    with JavaOracle(kafka_jars()) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def kafka_3_9() -> Iterator[JavaOracle]:
    """Kafka 3.9's, for what is gone from Kafka 4."""
    from kafka_assignors.testing._brokers.jars import fetch_jars  # noqa: PLC0415 - see above
    from tests.support.java.oracle import JavaOracle  # noqa: PLC0415

    with JavaOracle(fetch_jars(KAFKA_3_9, Path(__file__).with_name("kafka-3.9.1.sha256"))) as oracle:
        yield oracle
