"""Who is compared, and how each one's process is started."""

import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.cases import Problem

HERE: Final = Path(__file__).parent
EAGER: Final = ("sticky", "range", "roundrobin")
ALL: Final = (*EAGER, "cooperative-sticky")


class PeerUnavailableError(Exception):
    """What a peer needs is not on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a peer's process is to do.

    Attributes:
        group: The file with the group.
        answer: The file to write the answer to.
        strategy: The strategy.
        until: Seconds after which it should not be working any more; it begins no run that may take longer.
        budget: Seconds of repetitions that are enough, if there are `repetitions` at the least.
        repetitions: Repetitions after the first, cold one.
        memory: MiB that it may have.
    """

    group: Path
    answer: Path
    strategy: str
    until: float
    budget: float
    repetitions: int
    memory: int

    @property
    def arguments(self) -> list[str]:
        """The arguments that all peers' programs take."""
        numbers = (self.until, self.budget, self.repetitions)
        return [str(self.group), str(self.answer), self.strategy, *map(str, numbers)]


class Peer(ABC):
    """One of those compared.

    Attributes:
        name: Its name on the command line and in tables.
        ours: Whether it is this library.
        strategies: What it can do.
        cap: Seconds that it may take for a case, by default.
        limit_address_space: Whether its memory can be limited from outside.
    """

    name: str
    ours: bool = False
    strategies: tuple[str, ...] = ALL
    cap: float = 150.0
    limit_address_space: bool = True

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """See that all that it needs is there; build it in a folder of its own.

        Raises:
            PeerUnavailableError: That cannot be done here.
        """

    @abstractmethod
    def command(self, order: Order) -> list[str]:
        """The program and its arguments."""

    def too_large(self, problem: Problem, strategy: str) -> str | None:
        """Why a group need not be tried, if so."""
        del problem, strategy
        return None


class PythonPeer(Peer):
    """A leader in Python: `python_leaders.py`."""

    cap = 130.0

    def __init__(self, name: str, *, needs: str, ours: bool = False, strategies: Sequence[str] = ALL) -> None:
        self.name, self.ours, self.strategies = name, ours, tuple(strategies)
        self._needs = needs

    def prepare(self, folder: Path) -> None:
        """See that the client is installed."""
        del folder
        if find_spec(self._needs) is None:
            raise PeerUnavailableError(f"{self.name} is not installed")

    def command(self, order: Order) -> list[str]:
        """This Python."""
        return [sys.executable, "-m", "benchmarks.peers.python_leaders", self.name, *order.arguments]


class StockPythonPeer(PythonPeer):
    """Clients whose sticky strategy makes a list of all (member, partition), and goes through it often."""

    most_pairs: Final = 20_000_000
    """More would need over ten times the default time, and 16 bytes each in each of several lists."""

    def too_large(self, problem: Problem, strategy: str) -> str | None:
        """Whether it has too many pairs."""
        pairs = problem.pairs
        if "sticky" not in strategy or pairs <= self.most_pairs:
            return None
        return f"not tried: {pairs / 1e6:.0f} million (member, partition)"


class JavaPeer(Peer):
    """Apache Kafka's Java client: `java/Leader.java` on the jars that the library fetches."""

    name = "java"
    limit_address_space = False  # a Java machine reserves far more than it uses; -Xmx it is

    def prepare(self, folder: Path) -> None:
        """Compile the program."""
        if shutil.which("java") is None or shutil.which("javac") is None:
            raise PeerUnavailableError("no java and javac on the path")
        try:
            from kafka_assignors.testing._brokers.jars import (  # noqa: PLC0415 - needs an extra
                JarsUnavailableError,
                class_path,
                kafka_jars,
            )
        except ModuleNotFoundError as missing:
            raise PeerUnavailableError(f"{missing.name} is not installed") from missing
        try:
            jars = kafka_jars()
        except JarsUnavailableError as error:
            raise PeerUnavailableError(str(error)) from error
        self._class_path = class_path([folder, *jars])
        _build(["javac", "-cp", self._class_path, "-d", str(folder), str(HERE / "java" / "Leader.java")])

    def command(self, order: Order) -> list[str]:
        """Java with its usual settings, but for the size of the heap."""
        machine = [f"-Xmx{order.memory}m", "-Dlog4j2.level=OFF", "-cp", self._class_path]
        return ["java", *machine, "Leader", *order.arguments]


class FranzGoPeer(Peer):
    """The Go client franz-go: `franz_go/main.go`."""

    name = "franz-go"

    def prepare(self, folder: Path) -> None:
        """Compile the program."""
        if shutil.which("go") is None:
            raise PeerUnavailableError("no go on the path")
        self._program = folder / "franz-go-leader"
        _build(["go", "build", "-o", str(self._program), "."], HERE / "franz_go")

    def command(self, order: Order) -> list[str]:
        """Go with its usual settings."""
        return [str(self._program), *order.arguments]


def _build(command: list[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise PeerUnavailableError(f"{command[0]} failed: {error.stderr.strip()[-500:]}") from error


PEERS: Final[tuple[Peer, ...]] = (
    PythonPeer("library", needs="kafka_assignors", ours=True),
    PythonPeer("library-in-kafka-python", needs="kafka_assignors", ours=True),
    StockPythonPeer("kafka-python", needs="kafka"),
    StockPythonPeer("aiokafka", needs="aiokafka", strategies=EAGER),
    JavaPeer(),
    FranzGoPeer(),
)
"""All peers: the library from bytes to bytes, its assignors as kafka-python calls them, then the others."""
