"""A real Kafka cluster to test against, had in one of three ways behind one interface.

``given``
    One that is running already, named by its bootstrap servers.
``docker``
    Containers of the image apache/kafka, through testcontainers.
``embedded``
    Processes on this machine, from jars and a Java that pip brings: no Docker, no Java to install.
"""

from __future__ import annotations

import contextlib
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kafka_assignors.testing import embedded
from kafka_assignors.testing.broker import (
    Broker,
    BrokerDiedError,
    ClusterUnavailableError,
    count_brokers,
    find_death,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

log = logging.getLogger(__name__)

How = Literal["given", "docker", "embedded"]


@dataclass(frozen=True)
class Cluster:
    """A running Kafka cluster.

    Attributes:
        bootstrap_servers: ``host:port`` of each node, or what was named for a given cluster.
        nodes: Number of brokers.
        how: The way it was had.
        brokers: The nodes by ascending id; empty for a given cluster.
    """

    bootstrap_servers: list[str]
    nodes: int
    how: How
    brokers: tuple[Broker, ...] = ()

    def death(self) -> str | None:
        """Which broker has died, and the end of its log; None while all live. Stopped ones are not dead."""
        return find_death(self.brokers)


@contextlib.contextmanager
def kafka_cluster(
    nodes: int = 1,
    *,
    how: How | None = None,
    bootstrap: str | None = None,
    settings: Mapping[str, str | int] | None = None,
    progress: bool = True,
) -> Iterator[Cluster]:
    """Have a real Kafka cluster for the time of the context.

    A cluster that is started here has a rack per node (``rack-1`` ...), creates no topics by itself, starts
    rebalances without delay and allows session timeouts from one second. Nothing is left of it afterwards.

    Args:
        nodes: Number of brokers, 1 or 3. A given cluster must have at least as many.
        how: Insist on one way. None takes a given cluster if one is named, else Docker if an image is named
            or an engine answers that has an image or can pull it, else the embedded one.
        bootstrap: Servers of a running cluster, ``host:port[,host:port...]``; default: ``$KAFKA_BOOTSTRAP``.
        settings: Broker settings besides or instead of the built-in ones, on every node. A given cluster is
            not ours to set.
        progress: Show on stderr that jars are being fetched (see `kafka_jars`).

    Yields:
        The cluster, once all of its brokers answer and know each other.

    Raises:
        ClusterUnavailableError: There is no Kafka in the way asked for.
        BrokerDiedError: A broker ended while it was starting, or before the context did.
        JarsUnavailableError: The embedded cluster's jars cannot be fetched.
        ValueError: The arguments contradict each other.
    """
    if nodes not in {1, 3}:
        raise ValueError(f"nodes={nodes}: a cluster has 1 or 3 (a quorum wants an odd number)")
    if bootstrap is not None and how not in {None, "given"}:
        raise ValueError(f"bootstrap={bootstrap!r} names a running cluster, but how={how!r} starts one")
    bootstrap = bootstrap or os.environ.get("KAFKA_BOOTSTRAP")
    way = how or choose_way(bootstrap, os.environ.get("KAFKA_IMAGE"), _docker_has_image)
    log.info("a Kafka cluster of %d nodes: %s", nodes, way)
    if way == "given":
        yield _given_cluster(bootstrap, nodes, settings)
        return
    with _started_brokers(way, nodes, {**common_settings(nodes), **(settings or {})}, progress) as brokers:
        cluster = Cluster([broker.bootstrap for broker in brokers], nodes, way, tuple(brokers))
        try:
            yield cluster
        except Exception as error:
            # What failed in the context most likely did so for want of the broker: tell both.
            if (death := cluster.death()) is not None:
                error.add_note(death)
            raise
        if (death := cluster.death()) is not None:
            raise BrokerDiedError(death)


def choose_way(bootstrap: str | None, image: str | None, docker_has_image: Callable[[], bool]) -> How:
    """The way to take where none is insisted on.

    Args:
        bootstrap: The running cluster that is named, if any.
        image: The container image that is named, if any. Who names one wants that Kafka and no other, so
            this never falls back to the embedded one.
        docker_has_image: Whether an engine answers that has an image or can pull it. Called only if nothing
            is named, as it may take its time.
    """
    if bootstrap:
        return "given"
    if image or docker_has_image():
        return "docker"
    return "embedded"


def common_settings(nodes: int) -> dict[str, str | int]:
    """Broker settings for tests, whichever way a cluster is started: quick, small and strict."""
    replicas = min(nodes, 3)
    return {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # The default of 50 partitions costs seconds when the first group forms.
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": 1,
        "controller.quorum.election.timeout.ms": 500,
        "controller.quorum.fetch.timeout.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 2097152,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "num.replica.fetchers": 1,
    }


def _given_cluster(bootstrap: str | None, nodes: int, settings: Mapping[str, str | int] | None) -> Cluster:
    if not bootstrap:
        raise ClusterUnavailableError(
            "no running cluster is named: set KAFKA_BOOTSTRAP=host:port, or start one (how='embedded')"
        )
    if settings:
        raise ClusterUnavailableError(
            f"the cluster at {bootstrap} is given, so {sorted(settings)} cannot be set on it: "
            "insist on one that is started here (how='embedded' or how='docker')"
        )
    there = count_brokers(bootstrap)
    if there < nodes:
        raise ClusterUnavailableError(
            f"no broker answers at {bootstrap}"
            if there == 0
            else f"the cluster at {bootstrap} has {there} of the {nodes} brokers asked for"
        )
    return Cluster([server.strip() for server in bootstrap.split(",")], there, "given")


def _docker_has_image() -> bool:
    try:
        # Testcontainers is optional, and slow to import: only who comes here needs it.
        from kafka_assignors.testing import containers  # noqa: PLC0415
    except ImportError as error:
        log.info("no Docker: %s", error)
        return False
    return containers.image_available()


def _started_brokers(
    way: How, nodes: int, settings: Mapping[str, str | int], progress: bool
) -> contextlib.AbstractContextManager[Sequence[Broker]]:
    if way == "embedded":
        return embedded.started_brokers(nodes, settings, progress=progress)
    try:
        from kafka_assignors.testing import containers  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ClusterUnavailableError(
            f"testcontainers is not installed ({error}): pip install 'kafka-assignors[testing]', or use "
            "how='embedded', which does without"
        ) from error
    return containers.started_brokers(nodes, settings)
