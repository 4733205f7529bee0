"""What an archive is of, and of which format: archive.json, and the properties of its tables."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors.history._schemas import ARCHIVED, TOPICS
from kafka_assignors.history._store.location import Location

FORMAT: Final = 2  # others are refused
DESCRIPTION: Final = "archive.json"
RECORDS: Final = "records"
TOPICS_NOTED: Final = "topics"
OWN_TABLES: Final = {
    RECORDS: (ARCHIVED, ("source", "day"), "records of __consumer_offsets"),
    TOPICS_NOTED: (TOPICS, (), "the topics of the cluster, as they were seen"),
}
"""Schema, columns that it is partitioned by, and what each table says of itself."""
_PROPERTY: Final = "kafka_assignors."
_LOG: Final = f"{GROUPS_TOPIC}-"
_PARTITIONS: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
"""How many partitions a topic of groups can have: each is looked up in the log."""


class WrongArchiveError(KafkaAssignorsError, ValueError):
    """A place is no archive, or not the one that is meant; the message says what it is."""


class ArchiveBusyError(KafkaAssignorsError, RuntimeError):
    """Another process has written the same into the archive; nothing of this is there."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What an archive is of; cluster and partitions are None of dumps only, the topic's id of old brokers."""

    cluster_id: str | None = None
    topic: str = GROUPS_TOPIC
    partitions: int | None = None
    topic_id: str | None = None

    def check(self, where: Location, cluster_id: str, partitions: int, topic_id: str) -> None:
        """Make sure that an archive is of this cluster and topic, as far as is known."""
        if self.cluster_id not in {None, cluster_id}:
            raise WrongArchiveError(
                f"{where} is an archive of cluster {self.cluster_id}, not of {cluster_id}: name another"
                " folder for this cluster"
            )
        again = "it was created again; name another folder"
        if topic_id and self.topic_id not in {None, topic_id}:
            raise WrongArchiveError(
                f"{where} is an archive of {self.topic} with id {self.topic_id}, not {topic_id}: {again}"
            )
        if partitions < (self.partitions or 0):
            raise WrongArchiveError(
                f"{where} is an archive of {self.topic} with {self.partitions} partitions, not"
                f" {partitions}: {again}"
            )

    def properties(self) -> dict[str, str]:
        """As properties of a table."""
        return {f"{_PROPERTY}{name}": str(value) for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, where: Location, properties: Mapping[str, str]) -> "Description":
        """Of the properties of a table, which is there."""
        found: dict[str, Any] = {
            field.name: properties[f"{_PROPERTY}{field.name}"]
            for field in fields(cls)
            if f"{_PROPERTY}{field.name}" in properties
        }
        partitions = found.get("partitions")
        if partitions is not None:
            if not _PARTITIONS.fullmatch(partitions):
                raise WrongArchiveError(
                    f"the log of {where} says that {GROUPS_TOPIC} has {partitions!r} partitions"
                )
            found["partitions"] = int(partitions)
        return cls(**found)


def check_format(where: Location) -> None:
    """Make sure that there is an archive of the present format."""
    text = where.read_text(DESCRIPTION)
    if text is None:
        where.names()  # a bucket that is not there is the store's error
        raise WrongArchiveError(
            f"{where} is no archive of groups' history: it has no {DESCRIPTION}"
            " (kafka-assignors history capture makes one)"
        )
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongArchiveError(
            f"cannot read {where / DESCRIPTION}: {error}. Restore it from a backup, or remove it: history"
            " capture makes it again"
        ) from error
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise WrongArchiveError(
            f"{where} is an archive of format {version}, and this version reads {FORMAT}: update"
            " kafka-assignors, or name another folder"
        )


def describe(where: Location) -> None:
    """Write archive.json, by which there is an archive of the present format."""
    where.write_text(DESCRIPTION, f"{json.dumps({'format': FORMAT})}\n")


def log_of(partition: int) -> str:
    """The transaction that says up to which offset a partition of the topic was read."""
    return f"{_LOG}{partition}"
