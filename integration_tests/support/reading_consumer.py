"""Applications on kafka-python's consumers, in threads of the test."""

import contextlib
import threading
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, Self

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import (
    CooperativeStickyAssignor as StockCooperativeSticky,
)
from kafka.structs import OffsetAndMetadata

from integration_tests.support.membership import expel
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors.testing._brokers.access import Access, Kafka
from kafka_assignors.testing._groups.stability import describe
from kafka_assignors.testing._topics import admin_client

SECONDS: Final = 120.0
SETTINGS: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": 45_000,
    "metadata_max_age_ms": 1000,
}
"""The heartbeat interval is the client's own, 3 s. Nobody is expelled unless a test has it so."""


class Call(NamedTuple):
    """A call of a listener: its method, the partitions, and how much had been read of each by then."""

    method: str
    partitions: frozenset[TopicPartition]
    read: dict[TopicPartition, int]
    positions: dict[TopicPartition, int]


class ReadingConsumer(ConsumerRebalanceListener):
    """A consumer whose thread polls while it is told to, and the test does while it is not."""

    looks_at_positions = False

    def __init__(
        self,
        access: Access,
        group_id: str,
        name: str,
        topics: Sequence[str],
        *,
        assignor: Any = CooperativeStickyAssignor,
        **settings: Any,
    ) -> None:
        self.name = name
        self.read: dict[TopicPartition, list[int]] = defaultdict(list)
        self.calls: list[Call] = []
        self.errors: list[Exception] = []
        self.polls = 0
        self.consumer: Any = KafkaConsumer(
            **{**SETTINGS, **settings, **access.kafka_python()},
            group_id=group_id,
            client_id=name,
            partition_assignment_strategy=[assignor],
        )
        self.coordinator: Any = self.consumer._coordinator
        self._poll_ms = 200
        if assignor is StockCooperativeSticky:
            # A leader of kafka-python's own plans without the topics that it does not know yet, and forgets
            # a join that its poll ends: with short polls on a busy machine it has nothing for minutes.
            self._poll_ms = 2000
            for topic in topics:
                self.consumer.partitions_for_topic(topic)
        self.consumer.subscribe(topics, listener=self)
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._note("revoked", revoked)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._note("lost", lost)

    def _note(self, method: str, partitions: Collection[TopicPartition]) -> None:
        # Without a record it has no position, and would ask the broker, which a listener cannot.
        looks = self.looks_at_positions and method == "revoked"
        positions = {one: self.consumer.position(one) for one in partitions if looks and self.read[one]}
        read = {one: len(self.read[one]) for one in partitions}
        self.calls.append(Call(method, frozenset(partitions), read, positions))

    # What it is like

    @property
    def held(self) -> frozenset[TopicPartition]:
        return frozenset(self.consumer.assignment())

    @property
    def generation(self) -> Any:
        return self.coordinator._generation

    @property
    def phase(self) -> str:
        return str(self.coordinator._flow.phase.name)

    @property
    def is_at_rest(self) -> bool:
        coordinator = self.coordinator
        return coordinator.stable() and coordinator._join_task is None and not coordinator.need_rejoin()

    def count(self) -> dict[TopicPartition, int]:
        return {one: len(offsets) for one, offsets in [*self.read.items()]}

    def reads_on(self, partitions: Collection[TopicPartition], records: int = 20) -> None:
        """Wait until it has read so many more records of each of these partitions."""
        before = self.count()

        def has() -> bool:
            return all(len(self.read[one]) >= before.get(one, 0) + records for one in partitions)

        wait_for(f"{self.name} to read on in {sorted(partitions)}", has, SECONDS)

    # What it does

    def poll(self, milliseconds: int = 50) -> int:
        """Poll once, and give the number of records."""
        batch = self.consumer.poll(timeout_ms=milliseconds)
        self.polls += 1
        for one, records in batch.items():
            self.read[one] += [record.offset for record in records]
        return sum(map(len, batch.values()))

    def commit(self, one: TopicPartition, offset: int) -> None:
        self.consumer.commit({one: OffsetAndMetadata(offset, "", -1)}, timeout_ms=30_000)

    def go(self, milliseconds: int | None = None, *, commits: bool = False) -> Self:
        """Poll in a thread until `halt`, if it does not; commit what each poll gave."""
        if self._thread is not None:
            return self
        self._stopping.clear()

        def work() -> None:
            while not self._stopping.is_set():
                try:
                    if self.poll(milliseconds or self._poll_ms) and commits:
                        self.consumer.commit()
                except Exception as error:  # noqa: BLE001 - the test looks at it
                    self.errors.append(error)

        self._thread = threading.Thread(target=work, name=self.name, daemon=True)
        self._thread.start()
        return self

    def halt(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def begin_join(self) -> None:
        """Halt, and have one poll that does not wait begin a join."""
        self.halt()
        self.coordinator.request_rejoin()
        self.poll(0)
        assert self.phase == "JOINING"

    def close(self, **options: Any) -> None:
        self.halt()
        self.consumer.close(**options)


class Application:
    def __init__(self, cluster: Kafka, *topics: str, **settings: Any) -> None:
        self.group_id = f"reading-{uuid.uuid4().hex[:8]}"
        self.consumers: list[ReadingConsumer] = []
        self.access = Access.to(cluster)
        self.topics, self._settings = topics, settings

    def consumer(self, name: str, **more: Any) -> ReadingConsumer:
        """A new consumer, which does not poll yet."""
        one = ReadingConsumer(self.access, self.group_id, name, self.topics, **{**self._settings, **more})
        self.consumers.append(one)
        return one

    def settled(self, sizes: dict[str, int]) -> None:
        """Wait until the consumers of these names have so many partitions, in one generation."""
        of = {one.name: one for one in self.consumers}
        chosen = [of[name] for name in sizes]

        def done() -> bool:
            return (
                {one.name: len(one.held) for one in chosen} == sizes
                and len({one.generation.generation_id for one in chosen}) == 1
                and all(one.is_at_rest for one in chosen)
            )

        wait_for(f"the group to settle with {sizes}", done, SECONDS)

    def resumed(self, sizes: dict[str, int]) -> None:
        """The same, with those polling again that were halted."""
        for one in self.consumers:
            one.go()
        self.settled(sizes)

    def started(self, sizes: dict[str, int], **more: Any) -> list[ReadingConsumer]:
        """New consumers that poll, once they have so many partitions; the leader comes first."""
        new = [self.consumer(name, **more).go() for name in sizes]
        self.settled(sizes)
        return sorted(new, key=lambda one: not one.coordinator._is_leader)

    def expel(self, member_id: str) -> None:
        expel(self.access, self.group_id, member_id)

    @property
    def listed(self) -> frozenset[str]:
        """The ids of all members, by the coordinator's word."""
        return frozenset(describe(admin_client(self.access), self.group_id).assignments)

    def read_twice(self) -> dict[TopicPartition, list[int]]:
        """Offsets that more than one poll gave."""
        counts: dict[tuple[TopicPartition, int], int] = defaultdict(int)
        for one in self.consumers:
            for partition, offsets in one.read.items():
                for offset in offsets:
                    counts[partition, offset] += 1
        twice: dict[TopicPartition, list[int]] = {}
        for (partition, offset), count in counts.items():
            if count > 1:
                twice.setdefault(partition, []).append(offset)
        return twice


@contextlib.contextmanager
def application(cluster: Kafka, *topics: str, **settings: Any) -> Iterator[Application]:
    """A group without consumers yet; all are closed in the end."""
    group = Application(cluster, *topics, **settings)
    try:
        yield group
    finally:
        with ThreadPoolExecutor(max(1, len(group.consumers))) as pool:
            [*pool.map(lambda one: one.close(autocommit=False, timeout_ms=3000), group.consumers)]
