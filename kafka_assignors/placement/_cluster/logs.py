"""How much each replica has on its broker's disks, and which brokers do not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.errors import KafkaError, for_code

from kafka_assignors._cluster.admin import ClusterError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kafka_assignors._cluster.admin import Admin

_PATIENCE_SECONDS: Final = 3.0


class Logs(NamedTuple):
    """What brokers say of their logs.

    Attributes:
        sizes: (topic, partition, broker) -> bytes of that replica.
        silent: The brokers that do not say it, and why.
    """

    sizes: dict[tuple[str, int, int], int]
    silent: dict[int, str]

    def largest(self, topics: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
        """Bytes of the log of each of these partitions: what its largest known replica has."""
        found = {(topic, partition): 0 for topic, partitions in topics.items() for partition in partitions}
        for (topic, partition, _), size in self.sizes.items():
            if (topic, partition) in found:
                found[topic, partition] = max(found[topic, partition], size)
        return found


def read_logs(admin: Admin, topics: Mapping[str, Iterable[int]], brokers: Collection[int]) -> Logs:
    """Ask each broker by itself, so that one that does not answer hides none of the others.

    Args:
        admin: The cluster.
        topics: The partitions of interest.
        brokers: Whom to ask: those that are not fenced.
    """
    found = Logs({}, {})
    wanted = {topic: sorted(partitions) for topic, partitions in topics.items()}
    for broker in sorted(brokers):
        try:
            found.sizes.update(_read(admin, wanted, broker))
        except (ClusterError, KafkaError) as error:
            found.silent[broker] = str(error)
    return found


def _read(admin: Admin, wanted: Mapping[str, list[int]], broker: int) -> dict[tuple[str, int, int], int]:
    (answer,) = admin.ask(
        lambda client: client.describe_log_dirs(wanted, brokers=[broker]), patience=_PATIENCE_SECONDS
    )
    sizes: dict[tuple[str, int, int], int] = {}
    for folder in answer["log_dirs"]:
        if folder["error_code"]:
            why = for_code(folder["error_code"]).__name__
            raise ClusterError(f"it does not say what {folder['log_dir'] or 'its logs'} hold: {why}")
        for topic in folder["topics"]:
            for partition in topic["partitions"]:
                if not partition["is_future_key"]:
                    key = topic["name"], partition["partition_index"], broker
                    sizes[key] = partition["partition_size"]
    return sizes
