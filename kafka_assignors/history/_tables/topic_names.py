"""The names of topics by id: from what was noted of the cluster, and from the records that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._wire.offsets_topic import ConsumerGroupPartitionMetadata, RecordError, decode_record
from kafka_assignors.history._store.writing import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._engine import Engine

PARTITION_METADATA = 4
"""The type of the records by which brokers up to 4.0 name a group's topics."""
_NAMES = pa.schema({"topic_id": pa.string(), "topic": pa.string()})


def topic_names(archive: Archive, engine: Engine) -> dict[str, str]:
    """The names of an archive's topics by id, as Java prints it."""
    names: dict[str, str] = {}
    if archive.may_have(PARTITION_METADATA):
        rows = engine.map_rows(archive, ("type", "key", "value"), Task(_named, _NAMES)).rows
        names |= {row["topic_id"]: row["topic"] for row in rows}
    return names | {topic.topic_id: topic.topic for topic in archive.topics()}


def _named(batches: Iterator[Any], _: object) -> Iterator[Any]:
    names: dict[str, str] = {}
    for batch in batches:
        naming = batch.filter(pc.equal(batch["type"], PARTITION_METADATA))
        for key, value in zip(naming["key"].to_pylist(), naming["value"].to_pylist(), strict=True):
            try:
                record = decode_record(key, value)
            except RecordError:
                continue
            if isinstance(record, ConsumerGroupPartitionMetadata) and record.value is not None:
                names |= {uuid_text(topic.topic_id): topic.topic_name for topic in record.value.topics}
    yield from ({"topic_id": one, "topic": name} for one, name in names.items())
