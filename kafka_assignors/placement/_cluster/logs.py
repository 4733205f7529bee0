"""How much each replica has on its broker's disks, and which brokers do not answer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.errors import KafkaError, for_code

from kafka_assignors._cluster.admin import Admin, ClusterError


class Logs(NamedTuple):
    """What brokers say of their logs."""

    sizes: dict[tuple[str, int, int], int]  # (topic, partition, broker) -> bytes
    silent: dict[int, str]  # broker -> why it does not answer
    untold: dict[int, str]  # broker that answers -> why it does not say all

    def unknown(self, partitions: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        """Those of some partitions of which no broker says how large they are."""
        return tuple(sorted({*partitions} - {(topic, partition) for topic, partition, _ in self.sizes}))

    def largest(self, topics: Mapping[str, Iterable[int]]) -> dict[tuple[str, int], int]:
        """Bytes of the log of each of these partitions: what its largest known replica has."""
        found = {(topic, partition): 0 for topic, partitions in topics.items() for partition in partitions}
        for (topic, partition, _), size in self.sizes.items():
            if (topic, partition) in found:
                found[topic, partition] = max(found[topic, partition], size)
        return found


def read_logs(admin: Admin, topics: Mapping[str, Iterable[int]], brokers: Collection[int]) -> Logs:
    """Ask each broker by itself, so that one that does not answer hides none of the others."""
    found = Logs({}, {}, {})
    wanted = {topic: sorted(partitions) for topic, partitions in topics.items()}
    for broker in sorted(brokers):
        try:
            folders = _ask(admin, wanted, broker)
        except (ClusterError, KafkaError) as error:
            found.silent[broker] = str(error)
            continue
        sizes, why = sizes_in(folders)
        found.sizes.update({(*partition, broker): size for partition, size in sizes.items()})
        if why:
            found.untold[broker] = why
    return found


def _ask(admin: Admin, wanted: Mapping[str, list[int]], broker: int) -> Sequence[Mapping[str, Any]]:
    (answer,) = admin.ask(lambda client: client.describe_log_dirs(wanted, brokers=[broker]), node=broker)
    folders: Sequence[Mapping[str, Any]] = answer["log_dirs"]
    return folders


def sizes_in(folders: Sequence[Mapping[str, Any]]) -> tuple[dict[tuple[str, int], int], str]:
    """Bytes of each replica in a broker's answer, and why there may be more that it does not say."""
    sizes: dict[tuple[str, int], int] = {}
    # A broker names its folders, whatever is in them, unless it refuses to.
    wrong = [] if folders else ["it names none; the permission to describe the cluster may be missing"]
    for folder in folders:
        if folder["error_code"]:
            wrong.append(f"{folder['log_dir'] or 'a folder'}: {for_code(folder['error_code']).__name__}")
            continue
        for topic in folder["topics"]:
            for partition in topic["partitions"]:
                if not partition["is_future_key"]:
                    sizes[topic["name"], partition["partition_index"]] = partition["partition_size"]
    return sizes, "; ".join(wrong)
