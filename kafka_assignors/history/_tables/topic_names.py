"""The names of topics by id: from what was noted of the cluster, and from the records that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._wire.offsets_topic import (
    ConsumerGroupPartitionMetadata,
    RecordError,
    decode_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

PARTITION_METADATA = 4
"""The type of the records by which brokers up to 4.0 name a group's topics."""
_DDL = "topic_id string, topic string"


def topic_names(records: DataFrame | None, topics: Iterable[DataFrame | None]) -> dict[str, str]:
    """The names of topics by id, as Java prints it.

    Args:
        records: Rows in schema ARCHIVE; None if none of them names any.
        topics: Rows in schema TOPICS.
    """
    sources = [rows.select("topic_id", "topic") for rows in topics if rows is not None]
    if records is not None:
        told = records.where(F.col("type") == PARTITION_METADATA)
        sources.append(told.select("key", "value").mapInArrow(_told, _DDL))
    return {row["topic_id"]: row["topic"] for rows in sources for row in rows.distinct().toLocalIterator()}


def _told(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        names: dict[str, str] = {}
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
            try:
                record = decode_record(key, value)
            except RecordError:
                continue
            if isinstance(record, ConsumerGroupPartitionMetadata) and record.value is not None:
                names |= {uuid_text(topic.topic_id): topic.topic_name for topic in record.value.topics}
        columns = [pa.array(names.keys(), pa.string()), pa.array(names.values(), pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=["topic_id", "topic"])
