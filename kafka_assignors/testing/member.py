"""One member of a consumer group, in a process of its own, driven and observed through JSON lines.

`python -m kafka_assignors.testing.member` reads its `MemberConfig` as the first line of its standard input,
then commands, and writes what happens to it as events to its standard output, one JSON object a line.
`kafka_assignors.testing.group` is the other end.

Every event has `event` (its kind) and `time`: `time.monotonic()`, which on Linux and macOS is one clock for
all processes of a machine, so the events of several members can be put in order.

    started       pid, instance_id
    metadata      generation, member_id: as the member stood when it asked to join
                  topics, version, owned, claimed_generation, user_data (hex), rack: what the assignor sent
    assign        on the leader only: generation, claims (as metadata, one for each member), plan (the
                  partitions and user_data of each member), seconds; or error instead of plan
    assignment    generation, member_id, partitions (the whole assignment), user_data (hex)
    assigned      the listener's callbacks: partitions, generation
    revoked
    lost
    records       ranges: [topic, partition, first offset, last offset], without holes
    committed     the command `commit` was done
    commit_failed type, text: of the commit after a poll; it is not tried again
    error         type, text, command: an exception that came out of poll (command null) or of a command
    subscribed    topics, pattern
    unsubscribed
    paused        the member does not poll until `resumed`
    resumed
    state         generation, member_id, coordinator, partitions, subscription: the answer to `state`
    closed        reason: "left", or "errors" after too many in a row

Partitions are [topic, partition] pairs. Commands are objects with `command`: `leave`, `subscribe` (topics),
`unsubscribe`, `pause`, `resume`, `commit` and `state`. The member carries them out between two polls, but
answers `state` at once.

Records are reported before their offsets are committed: a member that is killed never committed what it did
not report.
"""

import importlib
import io
import json
import logging
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

CommitMode = Literal["each poll", "auto", "never"]
"""When a member commits: after reporting each poll's records, by the client's timer, or on command only."""

POLL_MS = 1000
"""How long one poll waits.

Not shorter: a leader whose poll ends while it waits for its own SyncGroup may never apply the assignment
(kafka-python 3.0), so a poll should outlast a rebalance.
"""

_EXIT_TOO_MANY_ERRORS = 3
_EXIT_PARENT_GONE = 4
_MOST_ERRORS_IN_A_ROW = 100
_SECONDS_AFTER_ERROR = 0.2
_CLOSE_MS = 3000
_COMMIT_MS = 5000

Report = Callable[..., None]
"""Writes one event: report(kind, **fields)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """All that a member's process needs to know; crosses the process border as one line of JSON.

    Attributes:
        bootstrap_servers: The brokers, "host:port" each.
        group_id: The group to join.
        name: Client id, and so the beginning of the member id.
        topics: The topics to subscribe to; empty if there is a pattern.
        pattern: Regular expression for the topics, matched from the start of their names.
        assignors: In order of preference: "package.module:Class", and arguments for the class.
        settings: Further settings of the KafkaConsumer.
        commit: When to commit.
        poll_ms: How long one poll waits, see `POLL_MS`.
    """

    bootstrap_servers: Sequence[str]
    group_id: str
    name: str
    topics: Sequence[str]
    pattern: str | None
    assignors: Sequence[tuple[str, Mapping[str, Any]]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    commit: CommitMode = "each poll"
    poll_ms: int = POLL_MS

    def to_json(self) -> str:
        """One line without its end.

        Raises:
            TypeError: A setting or an argument of an assignor has no JSON.
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str | bytes) -> Self:
        """The inverse of `to_json`."""
        return cls(**json.loads(line))


class _Reporter:
    """Writes events as lines, from any thread."""

    def __init__(self, file_descriptor: int) -> None:
        self._file = os.fdopen(file_descriptor, "w", encoding="utf-8")
        self._lock = threading.Lock()

    def __call__(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"event": kind, "time": time.monotonic(), **fields})
        with self._lock:
            try:
                self._file.write(line + "\n")
                self._file.flush()
            except BrokenPipeError:
                os._exit(_EXIT_PARENT_GONE)


class _Listener(ConsumerRebalanceListener):
    """Reports the callbacks that an application gets."""

    def __init__(self, report: Callable[[str, Iterable[Any]], None]) -> None:
        self._report = report

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._report("assigned", assigned)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._report("revoked", revoked)

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        self._report("lost", lost)


def _observe(assignor: Any, report: Report) -> None:
    """Make an assignor report what it is asked and what it answers.

    The assignor stays the same object and an instance of its class, with the class's name. What it calls,
    and on which thread, is unchanged; its callers are one frame further up the stack.
    """
    base: Any = type(assignor)

    class Observed(base):
        __slots__ = ()

        def metadata(self, topics: set[str]) -> Any:
            claims = super().metadata(topics)
            report("metadata", **_sent_claims(claims))
            return claims

        def assign(self, cluster: Any, members: Sequence[Any]) -> Any:
            # Before the call: what the members said, not what became of it.
            claims = {member.member_id: _member_claims(member) for member in members}
            begin = time.monotonic()
            try:
                plan = super().assign(cluster, members)
            except Exception as error:
                report("assign", claims=claims, error=_error(error), seconds=time.monotonic() - begin)
                raise
            report("assign", claims=claims, plan=_described_plan(plan), seconds=time.monotonic() - begin)
            return plan

        def on_assignment(self, assignment: Any, generation: int) -> None:
            super().on_assignment(assignment, generation)
            report("assignment", **_assignment(assignment))

    Observed.__name__, Observed.__qualname__, Observed.__module__ = (
        base.__name__,
        base.__qualname__,
        base.__module__,
    )
    # Not by setattr: the assignor may be a frozen dataclass.
    object.__setattr__(assignor, "__class__", Observed)


def _error(error: Exception) -> dict[str, str]:
    return {"type": type(error).__name__, "text": str(error)}


def _pairs(partitions: Iterable[Any]) -> list[tuple[str, int]]:
    return sorted((partition.topic, partition.partition) for partition in partitions)


def _sent_claims(claims: Any) -> dict[str, Any]:
    """What travels to the broker: fields above the subscription's version are left on the way."""
    try:
        sent = claims if isinstance(claims, bytes | bytearray) else claims.encode()
        return _claims(ConsumerProtocolSubscription.decode(bytes(sent)))
    except Exception as error:  # noqa: BLE001 - to observe a broken assignor must not change what it does
        return {"undecodable": _error(error)}


def _member_claims(member: Any) -> dict[str, Any]:
    return {"instance_id": member.group_instance_id, **_claims(member.metadata)}


def _claims(subscription: Any) -> dict[str, Any]:
    owned = getattr(subscription, "owned_partitions", None) or ()
    return {
        "topics": sorted(subscription.topics),
        "version": subscription.version,
        "owned": sorted((entry.topic, number) for entry in owned for number in entry.partitions),
        "claimed_generation": getattr(subscription, "generation_id", -1),
        "user_data": bytes(subscription.user_data or b"").hex(),
        "rack": getattr(subscription, "rack_id", None),
    }


def _described_plan(plan: Any) -> dict[str, Any]:
    try:
        return {member_id: _assignment(assignment) for member_id, assignment in plan.items()}
    except Exception as error:  # noqa: BLE001 - as above
        return {"undecodable": _error(error)}


def _assignment(assignment: Any) -> dict[str, Any]:
    if not isinstance(assignment, ConsumerProtocolAssignment):
        sent = assignment if isinstance(assignment, bytes | bytearray) else assignment.encode()
        assignment = ConsumerProtocolAssignment.decode(bytes(sent))
    return {
        "partitions": _pairs(assignment.partitions()),
        "user_data": bytes(assignment.user_data or b"").hex(),
    }


def _load_assignor(path: str, options: Mapping[str, Any]) -> Any:
    module, _, name = path.partition(":")
    target: Any = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target(**options)


def _ranges(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending offsets as (first, last) of runs without holes."""
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset != last + 1:
            yield first, last
            first = offset
        last = offset
    yield first, last


class _Member:
    """The consumer, its loop, and the commands to it."""

    def __init__(self, config: MemberConfig, commands: io.RawIOBase, report: Report) -> None:
        self._config = config
        self._write = report
        self._queue: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._listener = _Listener(
            lambda kind, partitions: self._report(kind, partitions=_pairs(partitions)),
        )
        self._consumer: Any = None
        self._paused = False
        self._subscribed = True
        # Before the consumer, which may take long to find its brokers.
        threading.Thread(target=self._read_commands, args=(commands,), name="commands", daemon=True).start()
        assignors = [_load_assignor(path, options) for path, options in config.assignors]
        for assignor in assignors:
            _observe(assignor, self._report)
        settings = {
            **config.settings,
            "bootstrap_servers": list(config.bootstrap_servers),
            "group_id": config.group_id,
            "client_id": config.name,
            "partition_assignment_strategy": assignors,
            "enable_auto_commit": config.commit == "auto",
        }
        report("started", pid=os.getpid(), instance_id=settings.get("group_instance_id"))
        self._consumer = KafkaConsumer(**settings)

    def _report(self, kind: str, **fields: Any) -> None:
        """Write an event with where the consumer stands in its group."""
        membership = self._consumer.group_metadata()
        self._write(kind, generation=membership.generation_id, member_id=membership.member_id, **fields)

    def _read_commands(self, commands: io.RawIOBase) -> None:
        try:
            while line := commands.readline():
                command = json.loads(line)
                if command["command"] == "state":
                    self._report_state()
                else:
                    self._queue.put(command)
        except Exception:
            logging.getLogger(__name__).exception("the member cannot take commands any more")
        # The parent is gone, and nobody else would end this process.
        os._exit(_EXIT_PARENT_GONE)

    def _report_state(self) -> None:
        if self._consumer is None:
            self._write("state", member_id="", coordinator="starting", subscription=[])
            return
        self._report(
            "state",
            coordinator=str(self._consumer.group_metadata().state).strip("<>"),
            partitions=_pairs(self._consumer.assignment()),
            subscription=sorted(self._consumer.subscription() or ()),
        )

    def run(self) -> int:
        """Poll and obey until told to leave.

        Returns:
            The exit status of the process.
        """
        self._subscribe(self._config.topics, self._config.pattern)
        errors = 0
        while True:
            command = self._next_command(wait=_SECONDS_AFTER_ERROR if errors else 0)
            if command is not None and command["command"] == "leave":
                break
            try:
                if command is not None:
                    self._obey(command)
                    continue
                self._poll()
                errors = 0
            except Exception as error:  # noqa: BLE001 - an application may well go on, and so does this one
                errors += 1
                self._write("error", command=command and command["command"], **_error(error))
                if errors == _MOST_ERRORS_IN_A_ROW:
                    break
        self._consumer.close(autocommit=self._config.commit == "auto", timeout_ms=_CLOSE_MS)
        failed = errors == _MOST_ERRORS_IN_A_ROW
        self._write("closed", reason="errors" if failed else "left")
        return _EXIT_TOO_MANY_ERRORS if failed else 0

    def _next_command(self, wait: float) -> dict[str, Any] | None:
        idle = self._paused or not self._subscribed
        try:
            return (
                self._queue.get(timeout=None if idle else wait) if idle or wait else self._queue.get_nowait()
            )
        except queue.Empty:
            return None

    def _obey(self, command: Mapping[str, Any]) -> None:
        match command["command"]:
            case "subscribe":
                self._subscribe(command["topics"], None)
            case "unsubscribe":
                self._consumer.unsubscribe()
                self._subscribed = False
                self._write("unsubscribed")
            case "pause":
                self._paused = True
                self._write("paused")
            case "resume":
                self._paused = False
                self._write("resumed")
            case "commit":
                self._consumer.commit(timeout_ms=_COMMIT_MS)
                self._write("committed")
            case other:
                raise ValueError(f"unknown command {other!r}")

    def _subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        self._consumer.subscribe(
            topics=topics,
            pattern=None if pattern is None else re.compile(pattern),
            listener=self._listener,
        )
        # A leader that joins before it has metadata hands out nothing and has to rebalance again.
        for topic in topics:
            self._consumer.partitions_for_topic(topic)
        self._subscribed = True
        self._write("subscribed", topics=list(topics), pattern=pattern)

    def _poll(self) -> None:
        batch = self._consumer.poll(timeout_ms=self._config.poll_ms)
        if not batch:
            return
        self._write(
            "records",
            ranges=[
                (partition.topic, partition.partition, first, last)
                for partition, records in batch.items()
                for first, last in _ranges([record.offset for record in records])
            ],
        )
        if self._config.commit == "each poll":
            self._commit()

    def _commit(self) -> None:
        try:
            self._consumer.commit(timeout_ms=_COMMIT_MS)
        except KafkaError as error:
            self._write("commit_failed", **_error(error))


def main() -> int:
    """Be a member until told to leave.

    Returns:
        The exit status.
    """
    # What an assignor prints must not end up between the events.
    report = _Reporter(os.dup(sys.stdout.fileno()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # Unbuffered, because a buffered reader that a thread waits in is in the way when the interpreter ends.
    commands = io.FileIO(sys.stdin.fileno(), closefd=False)
    return _Member(MemberConfig.from_json(commands.readline()), commands, report).run()


if __name__ == "__main__":
    sys.exit(main())
