"""What `list_groups` knows, as Prometheus reads it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.handle import Cluster
from kafka_assignors._common.escaping import escaped
from kafka_assignors._common.files import write_whole
from kafka_assignors._groups.problems import ORDER
from kafka_assignors.groups._status import GroupStatus, list_groups


def export_metrics(
    cluster: Cluster,
    groups: Collection[str] = (),
    *,
    observe: float = 0.0,
    max_lag: int | None = None,
    max_lag_seconds: float | None = None,
    output: str | Path | None = None,
    failed: Callable[[ClusterError], object] | None = None,
) -> str:
    """The metrics of a cluster's groups in the text format that Prometheus reads.

    The first arguments are those of `list_groups`; without `max_lag_seconds` there is no
    `kafka_group_lag_seconds`. With `output` they are also written to a file, all at once: for the textfile
    collector of node_exporter. `failed` gets why the groups could not be read, in place of an error.

    Raises:
        ClusterError: The cluster does not say. What is written has `kafka_groups_up` 0 and no group.
        OSError: The file cannot be written, and is as it was.
    """
    errors: list[ClusterError] = []
    limits: dict[str, Any] = {"observe": observe, "max_lag": max_lag, "max_lag_seconds": max_lag_seconds}
    read = partial(list_groups, cluster, groups, **limits)
    text = generate_latest(_Groups(read, failed or errors.append).registry)
    if output is not None:
        write_whole(output, text)
    if errors:
        raise errors[0]
    return text.decode()


@contextmanager
def serve_metrics(
    cluster: Cluster,
    groups: Collection[str] = (),
    *,
    port: int = 0,
    address: str = "127.0.0.1",
    observe: float = 0.0,
    max_lag: int | None = None,
    max_lag_seconds: float | None = None,
    failed: Callable[[ClusterError], object] = lambda _: None,
) -> Iterator[int]:
    """Serve the same to Prometheus for the time of the context, read from the cluster at each request.

    Other arguments are those of `export_metrics`. The port is any free one if it is 0, the address "0.0.0.0"
    for all. `failed` gets why the groups could not be read at a request; its answer has `kafka_groups_up` 0.

    Yields:
        The port.

    Raises:
        ClusterError: No broker answers.
        OSError: The address cannot be served.
    """
    limits: dict[str, Any] = {"observe": observe, "max_lag": max_lag, "max_lag_seconds": max_lag_seconds}
    registry = _Groups(partial(list_groups, cluster, groups, **limits), failed).registry
    with cluster:  # a server that can read nothing is not started
        server, thread = start_http_server(port, addr=address, registry=registry)
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Groups(Collector):
    """Reads the groups whenever their metrics are asked for."""

    def __init__(
        self, read: Callable[[], tuple[GroupStatus, ...]], failed: Callable[[ClusterError], object]
    ) -> None:
        self._read, self._failed = read, failed
        self._one_at_a_time = threading.Lock()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The metrics; if the groups cannot be read, that they cannot."""
        found: tuple[GroupStatus, ...] = ()
        up = True
        with self._one_at_a_time:
            began = time.monotonic()
            try:
                found = self._read()
            except ClusterError as error:
                up = False
                self._failed(error)
            seconds = time.monotonic() - began
        yield GaugeMetricFamily("kafka_groups_up", "Whether the groups could be read", float(up))
        yield GaugeMetricFamily("kafka_groups_read_seconds", "How long it took to read them", seconds)
        if up:
            yield from metrics_of(found)


_METRICS: Final[Mapping[str, tuple[str, ...]]] = {
    "state": ("The group's state: 1", "type", "state"),
    "described": ("Whether its coordinator describes it: 1, else 0",),
    "members": ("How many members it has",),
    "epoch": ("The epoch of a group of KIP-848",),
    "problems": ("How many problems it has of a severity", "severity"),
    "lag_records": (
        "The end of a partition less the committed offset, or less its beginning if that is later",
        "topic",
        "partition",
    ),
    "lag_seconds": (
        "How long ago the first record of a partition was written that is not committed",
        "topic",
        "partition",
    ),
    "lost_records": ("Offsets that were deleted before the group had read them", "topic", "partition"),
    "lag_known": ("Whether the lag of each partition with a commit is known: 1, else 0",),
    "uncommitted_partitions": ("Partitions with records and no commit",),
    "unowned_partitions": ("Partitions of subscribed topics that nobody has",),
}
"""What each metric of a group is, and its labels beside the group."""


def metrics_of(groups: Iterable[GroupStatus]) -> Iterator[Metric]:
    """The metrics of groups; what is not known of a group is left out."""
    families = {
        name: GaugeMetricFamily(f"kafka_group_{name}", text, labels=["group", *labels])
        for name, (text, *labels) in _METRICS.items()
    }
    for group in groups:

        def add(name: str, value: float | None, *labels: object, group_id: str = group.group_id) -> None:
            if value is not None:
                families[name].add_metric(
                    [escaped(str(label)) for label in (group_id, *labels)], float(value)
                )

        add("state", 1, group.kind, group.state)
        add("described", group.members is not None)
        add("members", group.members)
        add("epoch", group.epoch)
        counts = Counter[str](problem.severity for problem in group.problems)
        for severity in ORDER:
            add("problems", counts[severity], severity)
        for one in () if group.lag is None else group.lag.partitions:
            add("lag_records", one.lag, one.topic, one.partition)
            add("lag_seconds", one.seconds, one.topic, one.partition)
            add("lost_records", one.lost, one.topic, one.partition)
        add("lag_known", group.lag_known)
        add("uncommitted_partitions", None if group.lag is None else len(group.lag.uncommitted))
        add("unowned_partitions", None if group.unowned is None else len(group.unowned))
    yield from families.values()
