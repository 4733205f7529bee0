"""The offsets topic of a running cluster: what there is of it, and the cluster's topics."""

from typing import Final
from uuid import UUID

from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._cluster.groups import Extent, find_extents, read_topics as find_leaders
from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._common.waiting import wait_until
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors.history import _limits as limits

_NO_ID: Final = uuid_text(UUID(int=0))


def read_bounds(admin: Admin) -> dict[int, Extent]:
    """Where each partition of the offsets topic begins and ends; asked again while leaders come and go."""
    found: dict[tuple[str, int], Extent] = {}

    def missing() -> list[str]:
        leaders = find_leaders(admin, [GROUPS_TOPIC])
        wanted = {(GROUPS_TOPIC, partition) for partition in leaders.get(GROUPS_TOPIC, ())}
        if not wanted:
            raise ClusterError(
                f"the cluster has no {GROUPS_TOPIC}: no group has committed or joined yet, or the client may"
                " not see it. It needs DESCRIBE and READ on the topic"
            )
        found.update(find_extents(admin, wanted - found.keys(), leaders))
        return [f"{GROUPS_TOPIC}-{partition}" for _, partition in sorted(wanted - found.keys())]

    try:
        what = "leaders that say where their partitions end"
        wait_until(missing, limits.PATIENCE_SECONDS, what, error=ClusterError, every=limits.LOOK_SECONDS)
    except KafkaError as error:
        raise ClusterError(
            f"cannot find the offsets of {GROUPS_TOPIC}: {type(error).__name__}: {error}"
        ) from error
    return {partition: extent for (_, partition), extent in sorted(found.items())}


def read_topics(admin: Admin, topics: list[str] | None = None) -> list[SeenTopic]:
    """The topics that the client may see, by name, internal ones included; or only some."""
    return sorted(
        SeenTopic(
            topic["name"],
            uuid_text(UUID(topic["topic_id"])) if topic.get("topic_id") else "",
            len(topic["partitions"]),
        )
        for topic in admin.ask(lambda client: client.describe_topics(topics))
        if not topic["error_code"]
    )


def read_topic_id(admin: Admin) -> str:
    """The id of the offsets topic; empty if it has none, as at metadata versions before Kafka 2.8."""
    topic_id = next((topic.topic_id for topic in read_topics(admin, [GROUPS_TOPIC])), "")
    return "" if topic_id == _NO_ID else topic_id
