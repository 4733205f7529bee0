"""Members made of confluent-kafka (librdkafka).

librdkafka joins in a thread of its own and reports to the application only by callbacks, which come out of
`poll`. Each generation of a classic group ends in one. A member of a KIP-848 group that keeps what it has
gets to a new epoch without one. So its epoch is looked at after each poll. What a member sends to join cannot
be observed, nor what a leader plans.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from confluent_kafka import Consumer, DeserializingConsumer, KafkaException

from kafka_assignors._timelines.events import NO_GENERATION
from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._topics import LOG_LEVEL

_MOST_RECORDS: Final = 1000  # of one poll
_MAGIC: Final = b"CGMDv2:"  # rd_kafka_consumer_group_metadata_write, librdkafka 1.5 to 2.16
_OTHER_NAMES: Final = {
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    # The age at which a topic is looked at again; librdkafka's own metadata.max.age.ms is for its cache.
    "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
}
# The client itself tries again; an application only logs these.
_TRANSIENT: Final = frozenset({-187, -195, -193, -185, 3})
"""Codes: all brokers down, transport, resolve, timed out; unknown topic or partition."""

_NO_OFFSET: Final = -168
"""Code: there is nothing to commit."""


def settings(config: WorkerConfig) -> dict[str, Any]:
    chosen = clients.settings_with_dots(config, config.access.librdkafka(), _OTHER_NAMES)
    return {"log_level": LOG_LEVEL, **chosen}


def callbacks(report: clients.Report) -> dict[str, Any]:
    """The setting that has commits reported that no call waits for."""
    commits = clients.Commits(report)

    def on_commit(error: Any, partitions: Sequence[Any]) -> None:
        _report_commit(commits, partitions, error)

    return {"on_commit": on_commit}


def make(
    config: WorkerConfig, settings: Mapping[str, Any], report: clients.Report
) -> "ObservedConfluentConsumer":
    clients.configured(report, settings)
    consumer = Consumer({**settings, **callbacks(report)})
    return ObservedConfluentConsumer(consumer, report, by_epochs=config.by_epochs)


class ObservedConsumer(clients.Observed):
    """What an application uses in place of its Consumer: the same, and what happens is reported.

    A class of librdkafka's cannot be changed in place.
    """

    def __init__(self, consumer: Any, report: clients.Report, gate: clients.Gate, *, by_epochs: bool) -> None:
        super().__init__(consumer, report, gate)
        self._by_epochs = by_epochs
        # Asked by another thread than the one that polls, librdkafka was seen to take seconds to answer.
        self._membership = clients.Membership(NO_GENERATION, "", "unknown")
        self.held: set[clients.Pair] = set()
        self._reported = NO_GENERATION

    def __getattr__(self, name: str) -> Any:
        return getattr(self.consumer, name)

    # `with` looks for these in the class only.

    def __enter__(self) -> Self:
        self.consumer.__enter__()
        return self

    def __exit__(self, *raised: object) -> bool | None:
        left: bool | None = self.consumer.__exit__(*raised)
        return left

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: Callable[..., None] | None = None,
        on_revoke: Callable[..., None] | None = None,
        on_lost: Callable[..., None] | None = None,
    ) -> None:
        def called(
            kind: str, name: str, callback: Callable[..., None] | None, partitions: Sequence[Any]
        ) -> None:
            with self.absences.listener(name, kind, partitions):
                if callback is not None:
                    callback(self, partitions)

        def assigned(_: Any, partitions: Sequence[Any]) -> None:
            self.held.update(clients.pairs(partitions))
            # By KIP-848 a member that has let go of something is told so, still in its old epoch.
            if partitions or not self._by_epochs:
                self._report_assignment()
            called("assigned", "on_assign", on_assign, partitions)

        def let_go(kind: str, callback: Callable[..., None] | None, partitions: Sequence[Any]) -> None:
            try:
                called(kind, "on_revoke" if callback is on_revoke else "on_lost", callback, partitions)
            finally:
                self.held.difference_update(clients.pairs(partitions))

        self.consumer.subscribe(
            list(topics),
            on_assign=assigned,
            on_revoke=lambda _, partitions: let_go("revoked", on_revoke, partitions),
            # Without a callback of its own, librdkafka revokes what is lost.
            on_lost=lambda _, partitions: let_go("lost", on_lost or on_revoke, partitions),
        )
        self.subscribed = True
        patterns = [topic for topic in topics if topic.startswith("^")]
        self._write(
            "subscribed",
            topics=[topic for topic in topics if topic not in patterns],
            pattern="|".join(pattern[1:] for pattern in patterns) or None,
        )

    def poll(self, timeout: float = -1) -> Any:
        return self._polled(self.consumer.poll, timeout)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> Any:
        return self._polled(self.consumer.consume, num_messages, timeout)

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        """As the Consumer's. What is asynchronous is reported by `callbacks` when it is done."""
        try:
            committed = self.consumer.commit(*args, **kwargs)
        except KafkaException as error:
            if error.args[0].code() != _NO_OFFSET:
                self._commits.failed({}, str(error.args[0]))
            raise
        if committed is not None:
            _report_commit(self._commits, committed, None)
        return committed

    def seek(self, partition: Any) -> None:
        self.consumer.seek(partition)
        self._sought([partition])

    def assign(self, partitions: Sequence[Any]) -> None:
        self.consumer.assign(partitions)
        self._sought(partitions)

    def incremental_assign(self, partitions: Sequence[Any]) -> None:
        self.consumer.incremental_assign(partitions)
        self._sought(partitions)

    def _polled(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self._gate()
        with self.absences.poll():
            polled = call(*arguments)
        if self._by_epochs:
            epoch = _generation(self.consumer.consumer_group_metadata())
            if epoch > 0 and epoch != self._reported:
                self._report_assignment()
        offsets: dict[clients.Pair, list[int]] = {}
        for record in polled if isinstance(polled, list) else [polled]:
            if record is not None and record.error() is None:
                offsets.setdefault((record.topic(), record.partition()), []).append(record.offset())
        clients.report_records(self._write, offsets, thread=clients.at_work())
        return polled

    def _sought(self, partitions: Sequence[Any]) -> None:
        # Others are to go on at their commits.
        sought = [
            (one.topic, one.partition, one.offset) for one in partitions if one.offset >= clients.BEGINNING
        ]
        self.absences.sought(self._write, sought)

    def _report_assignment(self) -> None:
        self._report("assignment", partitions=sorted(self.held))
        self._reported = self._membership.generation

    def membership(self) -> clients.Membership:
        """See `Client`. As of the last event."""
        return self._membership

    def _report(self, kind: str, **fields: Any) -> None:
        generation = _generation(self.consumer.consumer_group_metadata())
        member_id = str(self.consumer.memberid() or "")
        self._membership = clients.Membership(generation, member_id, "unknown")
        super()._report(kind, **fields)


class ObservedConfluentConsumer:
    """A Consumer in the way that a member's loop uses it."""

    def __init__(
        self,
        consumer: Any,
        report: clients.Report,
        gate: clients.Gate = clients.no_gate,
        *,
        by_epochs: bool = False,
    ) -> None:
        self.consumer = ObservedConsumer(consumer, report, gate, by_epochs=by_epochs)
        self.absences = self.consumer.absences

    @property
    def subscribed(self) -> bool:
        return self.consumer.subscribed

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        # librdkafka searches for it: of several alternatives each is to be at the start.
        self.consumer.subscribe(list(topics) if pattern is None else [f"^({pattern})"])

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    def poll(self, seconds: float) -> bool:
        """See `Client`. Raises KafkaException for an error that the client does not recover from."""
        first = self.consumer.poll(seconds)
        if first is None:
            return False
        polled = [first]
        if not isinstance(self.consumer.consumer, DeserializingConsumer):  # it polls one by one
            polled += self.consumer.consume(_MOST_RECORDS, 0)
        for one in polled:
            if (error := one.error()) is not None and error.code() not in _TRANSIENT:
                raise KafkaException(error)
        return True

    def commit(self) -> None:
        try:
            self.consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != _NO_OFFSET:
                raise clients.CommitError(str(error)) from error

    def membership(self) -> clients.Membership:
        """See `Client`. As of the last callback."""
        return self.consumer.membership()

    def assignment(self) -> Iterable[clients.Pair]:
        """See `Client`. As of the last callback."""
        return sorted(self.consumer.held)

    def subscription(self) -> Iterable[str]:
        """See `Client`. librdkafka does not say."""
        return []

    def close(self) -> None:
        self.consumer.close()


observe = ObservedConfluentConsumer


def _generation(metadata: bytes) -> int:
    """The generation in what identifies a member to the transactional producer (opaque, by its documents)."""
    if not metadata.startswith(_MAGIC):
        raise ValueError(f"unknown layout of librdkafka's group metadata: {metadata[:16]!r}")
    (generation,) = struct.unpack_from("=i", metadata, len(_MAGIC))
    return int(generation)


def _report_commit(commits: clients.Commits, partitions: Sequence[Any], error: Any) -> None:
    """Report a commit's result: each partition has its own, and the request one."""
    if error is not None and error.code() == _NO_OFFSET:
        return
    done: dict[clients.Pair, int] = {}
    failed: dict[str, dict[clients.Pair, int]] = {}
    for one in partitions:
        if one.offset >= 0:  # else there was nothing to commit
            wrong = one.error or error
            found = done if wrong is None else failed.setdefault(str(wrong), {})
            found[one.topic, one.partition] = one.offset
    commits.done(done)
    for text, positions in failed.items():
        commits.failed(positions, text)
