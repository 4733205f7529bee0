"""What there is to say of all groups of a cluster, as Prometheus reads it."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from kafka.errors import KafkaError
from prometheus_client import CollectorRegistry, generate_latest, start_http_server, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.group_list import matching
from kafka_assignors._cli.output import joined, show
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors._groups.problems import ORDER
from kafka_assignors.coordinator._fleet import read_fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prometheus_client.core import Metric

    from kafka_assignors._cli.arguments import ClusterClient
    from kafka_assignors.coordinator._fleet import FleetGroup

    Read = Callable[[], tuple[FleetGroup, ...]]

ERRORS: Final = Errors(wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError, OSError))


def export(
    *,
    client: ClusterClient,
    groups: Sequence[str],
    observe: float,
    max_lag: int | None,
    listen: int | None,
    address: str,
    output: str | None,
) -> int:
    """Print or write the metrics once; or serve them until Ctrl-C, read again at each request.

    Args:
        client: The cluster.
        groups: Patterns of ids; all groups if there are none.
        observe: For how many seconds to look at groups that are in a rebalance.
        max_lag: The lag from which on it is an error.
        listen: The port to serve them on.
        address: The address to serve them on.
        output: The file to write them to.
    """
    with open_admin(client) as admin:

        def read() -> tuple[FleetGroup, ...]:
            return read_fleet(admin, wanted=matching(groups), observe=observe, max_lag=max_lag)

        registry = CollectorRegistry()
        if listen is None:
            found = read()
            registry.register(_Groups(lambda: found))
            if output is None:
                show(generate_latest(registry).decode().rstrip("\n"))
            else:
                write_to_textfile(output, registry)
            return 0
        registry.register(_Groups(read))
        server, thread = start_http_server(listen, addr=address, registry=registry)
        try:
            print(f"serving http://{address}:{server.server_port}/metrics; Ctrl-C ends it", file=sys.stderr)
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
    return 0


class _Groups(Collector):
    """Reads the groups whenever their metrics are asked for.

    Args:
        read: Reads them.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._one_at_a_time = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Nothing: with it the registry need not read the groups to learn the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The metrics; if the groups cannot be read, that they cannot."""
        began = time.monotonic()
        found: tuple[FleetGroup, ...] = ()
        failure: Exception | None = None
        with self._one_at_a_time:
            try:
                found = self._read()
            except (ClusterError, KafkaError) as error:
                failure = error
                print(f"kafka-assignors group export: {joined(str(error).split(chr(10)))}", file=sys.stderr)
        yield GaugeMetricFamily("kafka_groups_up", "Whether the groups could be read", float(failure is None))
        yield GaugeMetricFamily(
            "kafka_groups_read_seconds", "How long it took to read them", time.monotonic() - began
        )
        if failure is None:
            yield from metrics_of(found)


def metrics_of(groups: Sequence[FleetGroup]) -> Iterator[Metric]:
    """The metrics of groups."""
    state = GaugeMetricFamily("kafka_group_state", "The group's state: 1", labels=["group", "type", "state"])
    described = GaugeMetricFamily(
        "kafka_group_described", "Whether its coordinator describes it: 1, else 0", labels=["group"]
    )
    members = GaugeMetricFamily("kafka_group_members", "How many members it has", labels=["group"])
    epoch = GaugeMetricFamily("kafka_group_epoch", "The epoch of a group of KIP-848", labels=["group"])
    problems = GaugeMetricFamily(
        "kafka_group_problems", "How many problems it has of a severity", labels=["group", "severity"]
    )
    lag = GaugeMetricFamily(
        "kafka_group_lag_records",
        "The end of a partition less the committed offset",
        labels=["group", "topic", "partition"],
    )
    lag_known = GaugeMetricFamily(
        "kafka_group_lag_known",
        "Whether the lag of each partition with a commit is known: 1, else 0",
        labels=["group"],
    )
    uncommitted = GaugeMetricFamily(
        "kafka_group_uncommitted_partitions", "Partitions with records and no commit", labels=["group"]
    )
    unowned = GaugeMetricFamily(
        "kafka_group_unowned_partitions", "Partitions of subscribed topics that nobody has", labels=["group"]
    )
    for one in groups:
        group = one.group_id
        state.add_metric([group, one.kind, one.state], 1)
        described.add_metric([group], float(one.members is not None))
        if one.members is not None:
            members.add_metric([group], one.members)
        if one.epoch is not None:
            epoch.add_metric([group], one.epoch)
        counts = Counter[str](problem.severity for problem in one.problems)
        for severity in ORDER:
            problems.add_metric([group, severity], counts[severity])
        if one.unowned is not None:
            unowned.add_metric([group], len(one.unowned))
        if one.lag_known is not None:
            lag_known.add_metric([group], float(one.lag_known))
        if one.lag is None:
            continue
        uncommitted.add_metric([group], len(one.lag.uncommitted))
        for partition in one.lag.partitions:
            if partition.lag is not None:
                lag.add_metric([group, partition.topic, str(partition.partition)], partition.lag)
    yield from (state, described, members, epoch, problems, lag, lag_known, uncommitted, unowned)
