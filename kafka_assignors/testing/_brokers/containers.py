"""Kafka brokers in containers of the image apache/kafka, or of another with its interface.

If the image of testcontainers' Ryuk is present, it removes containers that a killed Python leaves behind.
Without it, only the end of the context removes them.
"""

import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from kafka_assignors.testing._brokers.broker import Broker, wait_until_complete
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError, PortTakenError
from kafka_assignors.testing._brokers.jars import KAFKA_VERSION
from kafka_assignors.testing._brokers.layout import CLIENTS, PLAIN, PROXIED, Layout, joined
from kafka_assignors.testing._brokers.ports import enter_retrying, free_ports
from kafka_assignors.testing._brokers.waiting import STOP_TIMEOUT

PUBLIC_IMAGE = f"apache/kafka:{KAFKA_VERSION}"
LOCAL_IMAGE = f"local/kafka:{KAFKA_VERSION}"  # built by .ci/docker/image.sh where there is no image registry

_PORTS = {PLAIN: 9092, CLIENTS: 9094, PROXIED: 9095, "CONTROLLER": 9093, "BROKER": 19092}  # in the container
_PORT_TAKEN = ("port is already allocated", "address already in use")  # by a container, by another process
_ADVERTISED = "/tmp/advertised"  # noqa: S108 - in the container, which is nobody else's
_KEY_STORE = "/tmp/key.pem"  # noqa: S108 - as above
# The host that clients use is known once the container runs, so it waits to be told its address. It finds it
# there when it starts again.
_START = f"""
until [ -s {_ADVERTISED} ]; do sleep 0.05; done
export KAFKA_ADVERTISED_LISTENERS=$(cat {_ADVERTISED})
exec /etc/kafka/docker/run
"""
_CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"  # any will do: the containers share a network with nobody


class ContainerBroker(Broker):
    """One node: a broker and controller in a container, which keeps its data when it is down.

    Its ports are chosen here, as the engine would choose others when the container starts again.
    """

    def __init__(
        self, image: str, node_id: int, layout: Layout, ports: Mapping[str, int], network: Network
    ) -> None:
        super().__init__(node_id, {})  # the engine's host is known when the container runs
        self.image = image
        self._layout = layout
        self._ports = ports
        self._container = DockerContainer(image, network=network, network_aliases=[_host(node_id)])
        for name, port in ports.items():
            self._container.with_bind_ports(_PORTS[name], port)
        self._container.with_env("CLUSTER_ID", _CLUSTER_ID)
        self._container.with_env("KAFKA_HEAP_OPTS", "-Xms256m -Xmx256m")
        for key, value in {**server_settings(node_id, layout), **layout.settings}.items():
            self._container.with_env(variable(key), str(value))
        self._container.with_command(["sh", "-c", _START])
        self._announced = False
        self._logged = (0, 0)  # bytes on stdout and stderr before the last start

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            container = stack.enter_context(self._container)
            host = container.get_container_host_ip()
            self.addresses = {
                name: f"{host}:{container.get_exposed_port(_PORTS[name])}" for name in self._ports
            }
            self._close = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    def log(self) -> str:
        try:
            logs = self._container.get_logs()
        except NotFound:
            return "Its container was removed."
        return b"".join(text[before:] for text, before in zip(logs, self._logged, strict=True)).decode(
            errors="replace"
        )

    @property
    def _docker(self) -> Any:
        return self._container.get_wrapped_container()

    def _launch(self) -> None:
        if self._announced:
            stdout, stderr = self._container.get_logs()
            self._logged = len(stdout), len(stderr)
            self._docker.start()
        else:  # the container runs, and waits for its address
            host, _, _ = self.bootstrap.rpartition(":")
            if key_store := self._layout.credentials.key_store(host):
                self._container.copy_into_container(key_store, _KEY_STORE)
            advertised = {
                **self._layout.advertised(self.node_id, self.addresses),
                "BROKER": f"{_host(self.node_id)}:19092",
            }
            self._container.copy_into_container(joined(advertised, "://").encode(), _ADVERTISED)
            self._announced = True

    def _end(self, *, orderly: bool) -> None:
        if orderly:
            self._docker.stop(timeout=int(STOP_TIMEOUT))
        elif self._alive():
            self._docker.kill()
        self._docker.wait()

    def _suspend(self) -> None:
        self._docker.pause()

    def _resume(self) -> None:
        self._docker.unpause()

    def _alive(self) -> bool:
        try:
            self._docker.reload()
        except NotFound:
            return False
        return self._docker.status in {"running", "paused"}


def variable(setting: str) -> str:
    """The variable that sets a broker setting in the image: ``a.b_c-d`` has ``KAFKA_A_B__C___D``."""
    return "KAFKA_" + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def server_settings(node_id: int, layout: Layout) -> dict[str, str | int]:
    """What makes the containers one cluster with a rack each."""
    listeners = {name: f":{_PORTS[name]}" for name in (*layout.protocols, "BROKER", "CONTROLLER")}
    controllers = [f"{_host(node)}:9093" for node in range(1, layout.nodes + 1)]
    return {
        **layout.node_settings(node_id, _KEY_STORE, listeners, controllers),
        "inter.broker.listener.name": "BROKER",
    }


def have_image() -> str:
    """The image to use, present by now: the one that is named, else the public or the local one.

    Pulls it if need be, which may take a while. Raises ClusterUnavailableError without an engine or an image.
    """
    named = os.environ.get("KAFKA_IMAGE")
    candidates = [named] if named else [PUBLIC_IMAGE, LOCAL_IMAGE]
    with _engine() as engine:
        for image in candidates:
            if _present(engine, image):
                return image
        image = candidates[0]
        sys.stderr.write(f"Pulling the image {image} (once)\n")
        try:
            engine.images.pull(image)
        except APIError as error:
            raise ClusterUnavailableError(
                f"the image {image} is not present and cannot be pulled: {error}. Name another"
                " (KAFKA_IMAGE), or use how='embedded', which needs none"
            ) from error
    return image


@contextlib.contextmanager
def started_brokers(layout: Layout) -> Iterator[Sequence[ContainerBroker]]:
    """Brokers in containers with a network of their own, ready for clients; removed with the context.

    Raises ClusterUnavailableError without an engine or an image, or if brokers are not ready in time.
    """
    image = have_image()
    with _engine() as engine:
        if not _present(engine, testcontainers_config.ryuk_image):
            testcontainers_config.ryuk_disabled = True  # else the first start fails where it cannot be pulled
    with contextlib.ExitStack() as stack:
        brokers = enter_retrying(stack, lambda: _brokers_on_free_ports(image, layout))
        wait_until_complete(brokers)
        yield brokers


@contextlib.contextmanager
def _brokers_on_free_ports(image: str, layout: Layout) -> Iterator[Sequence[ContainerBroker]]:
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(Network())
            ports = iter(free_ports(len(layout.protocols) * layout.nodes))
            brokers = [
                stack.enter_context(
                    ContainerBroker(
                        image, node, layout, {name: next(ports) for name in layout.protocols}, network
                    )
                )
                for node in range(1, layout.nodes + 1)
            ]
            for broker in brokers:
                broker.peers = brokers
                broker.start(wait=False)
        except DockerException as error:
            if any(words in str(error) for words in _PORT_TAKEN):
                raise PortTakenError(str(error)) from error
            raise ClusterUnavailableError(f"Docker cannot start {image}: {error}") from error
        yield brokers


def _host(node_id: int) -> str:
    """A node's name in the cluster's network."""
    return f"kafka{node_id}"


@contextlib.contextmanager
def _engine() -> Iterator[Any]:
    """A client of the Docker engine, which answers."""
    client, missing = None, ""
    try:
        client = DockerClient().client
    except DockerException as error:
        missing = str(error)
    if client is None:
        # Docker's client never closes a socket that it cannot connect. With `-W error` the test would fail in
        # which that is found.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        raise ClusterUnavailableError(
            f"no Docker engine answers: {missing}. Start one, or use how='embedded', which needs none"
        )
    with contextlib.closing(client):
        yield client


def _present(engine: Any, image: str) -> bool:
    try:
        engine.images.get(image)
    except ImageNotFound:
        return False
    return True
