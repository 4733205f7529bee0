"""Kafka brokers in containers of the image apache/kafka, or of another with its interface.

Containers that a killed Python leaves behind are removed by testcontainers' Ryuk, where its image is present;
without it, only the end of the context removes them.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, DockerException, ImageNotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from kafka_assignors.testing.broker import ClusterUnavailableError, wait_until_complete
from kafka_assignors.testing.jars import KAFKA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

log = logging.getLogger(__name__)

PUBLIC_IMAGE = f"apache/kafka:{KAFKA_VERSION}"
LOCAL_IMAGE = f"local/kafka:{KAFKA_VERSION}"  # built by .ci/docker/image.sh where there is no image registry

_CLIENT_PORT = 9092
_ADVERTISED = "/tmp/advertised"  # noqa: S108 - in the container, which is nobody else's
# The port that clients use is known once the container runs, so it waits to be told its address.
_START = f"""
until [ -s {_ADVERTISED} ]; do sleep 0.05; done
export KAFKA_ADVERTISED_LISTENERS=$(cat {_ADVERTISED})
exec /etc/kafka/docker/run
"""
_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"  # any will do: the containers share a network with nobody


class ContainerBroker(DockerContainer):
    """One node: a broker and controller in a container.

    Args:
        image: Has apache/kafka's interface: KAFKA_* variables and /etc/kafka/docker/run.
        node_id: 1, 2, ...
        nodes: Number of nodes in the cluster.
        settings: For server.properties.
    """

    def __init__(self, image: str, node_id: int, nodes: int, settings: Mapping[str, str | int]) -> None:
        super().__init__(image)
        self.node_id = node_id
        self.host = _host(node_id)
        self.with_exposed_ports(_CLIENT_PORT)
        self.with_env("CLUSTER_ID", _CLUSTER_ID)
        self.with_env("KAFKA_HEAP_OPTS", "-Xms256m -Xmx256m")
        for key, value in {**server_settings(node_id, nodes), **settings}.items():
            self.with_env(variable(key), str(value))
        self.with_command(["sh", "-c", _START])

    @property
    def bootstrap(self) -> str:
        """Where clients reach it: ``host:port``."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(_CLIENT_PORT)}"

    def has_died(self) -> bool:
        """Whether the container has ended."""
        self.reload()
        return bool(self.status != "running")

    def log(self) -> str:
        """All that it has logged."""
        stdout, stderr = self.get_logs()
        return (stdout + stderr).decode(errors="replace")

    def advertise(self) -> None:
        """Tell the running container its address, whereupon Kafka starts."""
        listeners = f"CLIENT://{self.bootstrap},BROKER://{self.host}:19092"
        self.copy_into_container(listeners.encode(), _ADVERTISED)


def variable(setting: str) -> str:
    """The variable that sets a broker setting in the image: ``a.b_c-d`` has ``KAFKA_A_B__C___D``."""
    return "KAFKA_" + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def server_settings(node_id: int, nodes: int) -> dict[str, str | int]:
    """What makes the containers one cluster with a rack each."""
    return {
        "process.roles": "broker,controller",
        "node.id": node_id,
        "broker.rack": f"rack-{node_id}",
        "controller.quorum.voters": ",".join(f"{each}@{_host(each)}:9093" for each in range(1, nodes + 1)),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"CLIENT://:{_CLIENT_PORT},BROKER://:19092,CONTROLLER://:9093",
    }


def image_available() -> bool:
    """Whether an engine answers that has an image or can pull it; pulls it, which may take a while."""
    try:
        with _engine() as engine:
            _have_image(engine)
    except ClusterUnavailableError as error:
        log.info("no Docker: %s", error)
        return False
    return True


@contextlib.contextmanager
def started_brokers(nodes: int, settings: Mapping[str, str | int]) -> Iterator[Sequence[ContainerBroker]]:
    """Brokers in containers with a network of their own, ready for clients; removed with the context.

    Args:
        nodes: Number of brokers; each is a controller, too.
        settings: For all nodes; listeners, racks and the like are added unless they are among them.

    Raises:
        ClusterUnavailableError: No engine answers, there is no image, a container cannot be started, or the
            brokers are not ready in time.
        BrokerDiedError: A broker ended while starting.
    """
    with _engine() as engine:
        image = _have_image(engine)
        if not _present(engine, testcontainers_config.ryuk_image):
            testcontainers_config.ryuk_disabled = True  # else the first start fails where it cannot be pulled
    with contextlib.ExitStack() as stack:
        brokers = [ContainerBroker(image, node, nodes, settings) for node in range(1, nodes + 1)]
        try:
            network = stack.enter_context(Network())
            for broker in brokers:
                broker.with_network(network).with_network_aliases(broker.host)
                stack.enter_context(broker)
            for broker in brokers:
                broker.advertise()
        except DockerException as error:
            raise ClusterUnavailableError(f"Docker cannot start {image}: {error}") from error
        wait_until_complete(brokers)
        yield brokers


def _host(node_id: int) -> str:
    """A node's name in the cluster's network."""
    return f"kafka{node_id}"


@contextlib.contextmanager
def _engine() -> Iterator[Any]:
    """A client of the Docker engine, which answers."""
    try:
        client = DockerClient().client
    except DockerException as error:
        raise ClusterUnavailableError(
            f"no Docker engine answers: {error}. Start one, or use how='embedded', which needs none"
        ) from error
    with contextlib.closing(client):
        yield client


def _present(engine: Any, image: str) -> bool:
    try:
        engine.images.get(image)
    except ImageNotFound:
        return False
    return True


def _have_image(engine: Any) -> str:
    """The image to use, present by now: the one that is named, else the public or the local one."""
    named = os.environ.get("KAFKA_IMAGE")
    candidates = [named] if named else [PUBLIC_IMAGE, LOCAL_IMAGE]
    for image in candidates:
        if _present(engine, image):
            return image
    image = candidates[0]
    log.info("pulling %s", image)
    try:
        engine.images.pull(image)
    except APIError as error:
        raise ClusterUnavailableError(
            f"the image {image} is not present and cannot be pulled: {error}. Name another (KAFKA_IMAGE), or "
            "use how='embedded', which needs none"
        ) from error
    return image
