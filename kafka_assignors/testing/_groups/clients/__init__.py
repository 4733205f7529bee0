"""The client libraries that a member of a group can be made of, behind one interface.

Each module makes consumers of one library and observes them, those of a user's own making, too. What the
group does to the consumer and what the consumer delivers is reported as events, listed in
`kafka_assignors.testing._groups.worker`. The application's own listener is called as without the kit.
"""

import asyncio
import contextlib
import inspect
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.strategies import COMPARED
from kafka_assignors._timelines.events import LONG
from kafka_assignors._timelines.records import merged
from kafka_assignors.testing._groups.config import WorkerConfig, is_by_epochs

ClientName = Literal["kafka-python", "confluent-kafka", "aiokafka", "java"]

Report = Callable[..., None]
"""Writes one event: report(kind, **fields)."""

Gate = Callable[[], None]
"""Called before each poll; an application that is to hang is held up in it."""

Pair = tuple[str, int]
"""A topic and one of its partitions."""


class Membership(NamedTuple):
    """Where a consumer stands in its group; its generation is -1 if in none, its member id may be empty.

    `state` is "stable", "rebalancing", "unjoined", or "unknown" where the library does not say.
    """

    generation: int
    member_id: str
    state: str


_IN_PLACE: Final[Mapping[str, str]] = {
    "enable_auto_commit": 'say commit="auto", "each poll" or "never" of the group',
    "group_id": "give the group group_id=",
    "client_id": "it is the name with which a member joins",
    "group_instance_id": "give join instance_id=",
    **dict.fromkeys(
        ("partition_assignment_strategy", "group_remote_assignor"),
        "give the group or join assignors=",
    ),
    **dict.fromkeys(
        ("key_deserializer", "value_deserializer"),
        "give client= a function that makes a consumer of yours",
    ),
    **dict.fromkeys(
        (
            *("bootstrap_servers", "metadata_broker_list", "security_protocol"),
            *("ssl_cafile", "ssl_ca_location", "ssl_context"),
            *("ssl_truststore_type", "ssl_truststore_location"),
            *("sasl_mechanism", "sasl_mechanisms", "sasl_jaas_config"),
            *("sasl_username", "sasl_password", "sasl_plain_username", "sasl_plain_password"),
        ),
        "give the group a Cluster, or an Access with its Security",
    ),
}
"""Settings that the kit makes itself, with `_` for each dot -> what to give in their place."""


def check_settings(names: Iterable[str]) -> None:
    """Raise ValueError for settings that the kit makes itself, in any client's spelling.

    The message says what to give in their place.
    """
    for name in names:
        if (in_place := _IN_PLACE.get(name.replace(".", "_"))) is not None:
            raise ValueError(f"{name} is set by the kit: {in_place}")


BEGINNING: Final = -2
"""Where a consumer seeks that seeks to the beginning, as Kafka's requests have it."""

END: Final = -1
"""The same of the end."""


def no_gate() -> None:
    """Hold nobody up."""


class Client(Protocol):
    """A consumer of some library, observed, in the way that a member's loop uses it."""

    subscribed: bool
    absences: "Absences"

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        """Subscribe to topics, or to those whose names match a pattern from their start."""

    def unsubscribe(self) -> None:
        """Give up all topics, and with them the membership."""

    def poll(self, seconds: float) -> bool:
        """Wait for records at most so long; they are reported. Returns whether there were any."""

    def commit(self) -> None:
        """Commit the positions. Raises CommitError if the coordinator refuses, most often in a rebalance."""

    def membership(self) -> Membership:
        """Where the consumer stands; may be called from another thread."""

    def assignment(self) -> Iterable[Pair]:
        """The partitions that it has."""

    def subscription(self) -> Iterable[str]:
        """The topics that it subscribes to."""

    def close(self) -> None:
        """Leave the group, if the member is not static, and release everything."""


class CommitError(KafkaAssignorsError, RuntimeError):
    """A commit was refused."""


class ClientUnavailableError(KafkaAssignorsError, ImportError):
    """A client library is not installed."""


MODULES: Final[Mapping[ClientName, tuple[str, str]]] = {
    "kafka-python": ("kafka_python", "kafka-python"),
    "confluent-kafka": ("confluent", "confluent-kafka"),
    "aiokafka": ("aio", "aiokafka"),
    "java": ("java", "'kafka-assignors[java]'"),
}
"""Client -> its module here, and what to install for it."""

STRATEGIES_OF_LIBRDKAFKA: Final = frozenset(COMPARED) - {"sticky"}
"""The other libraries bring all of `COMPARED`; cooperative-sticky on aiokafka is ours."""

BY_EPOCHS: Final[Sequence[ClientName]] = ("confluent-kafka", "java")
"""The clients that know KIP-848."""

OF_THE_BROKER: Final = ("uniform", "range")
"""The assignors that brokers of KIP-848 bring; they take classes of their own, too."""


def check_client(name: str) -> None:
    """Raise ValueError for what is neither a client library nor the path of a function."""
    if name not in MODULES and ":" not in name:
        raise ValueError(
            f"client={name}: must be one of {', '.join(MODULES)}, or the path of a function of yours"
            " ('package.module:name')"
        )


def check_epochs(name: ClientName) -> None:
    """Raise ValueError for a client that cannot be a member of a KIP-848 group."""
    if name not in BY_EPOCHS:
        raise ValueError(
            f"group_protocol=consumer: {name} knows only the classic group protocol; the clients that know"
            f" KIP-848 are {' and '.join(BY_EPOCHS)}"
        )


def load(name: ClientName) -> Any:
    """The module of a client: `settings(config)`, `make(config, settings, report)`, `observe(consumer, ...)`.

    Raises ClientUnavailableError if the library is not installed.
    """
    module, package = MODULES[name]
    try:
        return import_module(f"{__name__}.{module}")
    except ImportError as error:
        raise ClientUnavailableError(
            f"a member of client {name!r} needs its library ({error}): pip install {package}"
        ) from error


def report_records(
    report: Report, offsets: Mapping[Pair, Iterable[int]], kind: str = "records", *, thread: str = ""
) -> bool:
    """Report what a poll delivered: partition -> offsets. Returns whether that was anything."""
    ranges = [
        (topic, partition, first, last)
        for (topic, partition), delivered in offsets.items()
        for first, last in merged((offset, offset) for offset in delivered)
    ]
    if ranges:
        report(kind, records=ranges, thread=thread)
    return bool(ranges)


def report_batch(report: Report, batch: Mapping[Any, Sequence[Any]], *, thread: str = "") -> None:
    """Report what a poll of kafka-python or aiokafka returned: partition -> records."""
    offsets = {(one.topic, one.partition): [each.offset for each in found] for one, found in batch.items()}
    report_records(report, offsets, thread=thread)


def pairs(partitions: Iterable[Any]) -> list[Pair]:
    """Partitions of a Python library, sorted, as plain data."""
    return sorted((partition.topic, partition.partition) for partition in partitions)


def at_work() -> str:
    """The name of the task that runs on this thread's event loop, or else the thread's."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread().name if task is None else task.get_name()


def report_seeks(consumer: Any, report: Report, absences: "Absences") -> None:
    """Have seeks of a consumer of kafka-python or aiokafka reported, when the client has taken them."""
    seek = consumer.seek

    def observed(partition: Any, offset: int) -> None:
        seek(partition, offset)
        absences.sought(report, [(partition.topic, partition.partition, offset)])

    def observed_to(method: Callable[..., Any], offset: int) -> Callable[..., Any]:
        def sought(*partitions: Any) -> Any:
            result = method(*partitions)  # of aiokafka still to be awaited
            absences.sought(report, [(*pair, offset) for pair in pairs(partitions or consumer.assignment())])
            return result

        return sought

    consumer.seek = observed
    consumer.seek_to_end = observed_to(consumer.seek_to_end, END)
    consumer.seek_to_beginning = observed_to(consumer.seek_to_beginning, BEGINNING)


def record_of(error: BaseException) -> list[tuple[str, int, int, int]]:
    """The record at which a client's deserializer raised, as a range of one; none if it was another error."""
    if (message := getattr(error, "kafka_message", None)) is not None:  # confluent-kafka says so
        return [(message.topic(), message.partition(), message.offset(), message.offset())]
    # The others have no word for it, and an application may have functions of the same names.
    called = ""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        known, name = frame.f_locals, frame.f_code.co_name
        if (called == "_deserialize" or name == "_consumer_record") and "tp" in known and "record" in known:
            return [(*known["tp"], known["record"].offset, known["record"].offset)]
        called = name
    return []


class Commits:
    """Reports a consumer's commits: what differs from the last one."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._committed: dict[Pair, int] = {}

    def done(self, positions: Mapping[Pair, int]) -> None:
        """The coordinator has these positions."""
        news = {pair: offset for pair, offset in positions.items() if self._committed.get(pair) != offset}
        self._committed.update(news)
        if news:
            self._report("committed", positions=_triples(news))

    async def follow(self, commit: Awaitable[Any], positions: Mapping[Pair, int]) -> Any:
        """Await a client's commit of these positions, and report what came of it."""
        try:
            result = await commit
        except Exception as error:
            self.failed(positions, error)
            raise
        self.done(positions)
        return result

    def failed(self, positions: Mapping[Pair, int], error: BaseException | str, **sent_as: Any) -> None:
        """The coordinator does not, or not all.

        `sent_as` has the generation and member id of the commit, if the client may have others by now.
        """
        text = error if isinstance(error, str) else described(error)
        self._report("commit_failed", positions=_triples(positions), text=text, **sent_as)


class Observed:
    """What observers of every library have: they report events with where their consumer stands."""

    def __init__(self, consumer: Any, report: Report, gate: Gate = no_gate) -> None:
        self.consumer = consumer
        self.subscribed = False
        self._write, self._gate = report, gate
        self._commits = Commits(self._report)
        self.absences = Absences(self._report)

    def membership(self) -> Membership:
        raise NotImplementedError

    def _report(self, kind: str, **fields: Any) -> None:
        generation, member_id, _ = self.membership()
        self._write(kind, **{"generation": generation, "member_id": member_id, **fields})


class Absences:
    """Reports how long an application keeps its consumer waiting, and what its polls and listener raise.

    `failed` is what the last poll raised, or empty. What a listener raised is not reported once more by the
    poll that raises it.
    """

    def __init__(self, report: Report) -> None:
        self.failed = self._heard = ""
        self._report = report
        self._polled: float | None = None
        self._callback = ""

    @contextlib.contextmanager
    def poll(self) -> Iterator[None]:
        """Around a poll: the first one comes when it likes."""
        if self._polled is not None and (seconds := time.monotonic() - self._polled) >= LONG:
            self._report("polled late", seconds=seconds)
        self._polled = None
        try:
            yield
        except Exception as error:
            self.failed = described(error)
            if self.failed != self._heard:
                self._report("error", **type_and_text(error), records=record_of(error))
            self._heard = ""
            raise
        else:
            self.failed = ""
        finally:
            self._polled = time.monotonic()

    def silent(self) -> float:
        """Seconds since the last poll returned, 0 during one and before the first; from any thread."""
        polled = self._polled
        return 0.0 if polled is None else time.monotonic() - polled

    @contextlib.contextmanager
    def listener(self, callback: str, kind: str, partitions: Iterable[Any]) -> Iterator[None]:
        """Around a call of the application's listener; "assigned", "revoked" or "lost" is the kind of event.

        A partition is the application's from before its listener hears so until after it has let go.
        """
        event = {"partitions": pairs(partitions)}
        if kind == "assigned":
            self._report(kind, **event)
        begun, error = time.monotonic(), ""
        self._callback = callback
        try:
            yield
        except BaseException as raised:
            error = self._heard = described(raised)
            raise
        finally:
            self._callback = ""
            if (seconds := time.monotonic() - begun) >= LONG or error:
                self._report("listener", callback=callback, seconds=seconds, error=error)
            if kind != "assigned":  # they are gone, whether it raised or not
                self._report(kind, **event)

    def sought(self, report: Report, positions: Sequence[tuple[str, int, int]]) -> None:
        """Report where the application had its consumer go on, and in which method of its listener."""
        if positions:
            report("sought", positions=positions, callback=self._callback)


class ListenerCalls:
    """What observed listeners of kafka-python and aiokafka have in common; `inner` may be None."""

    def __init__(self, absences: Absences, inner: Any) -> None:
        self._absences, self._inner = absences, inner

    @contextlib.contextmanager
    def _called(self, kind: str, partitions: Iterable[Any]) -> Iterator[Any]:
        """Call the application's; what it returns may have to be awaited."""
        name = f"on_partitions_{kind}"
        if self._inner is not None and not hasattr(
            self._inner, name
        ):  # aiokafka's have no word for lost ones
            name = "on_partitions_revoked"
        with self._absences.listener(name, kind, partitions):
            yield None if self._inner is None else getattr(self._inner, name)(partitions)


class AwaitedListenerCalls(ListenerCalls):
    """The same where the application's methods may be coroutines."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        await self._awaited("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._awaited("revoked", revoked)

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        await self._awaited("lost", lost)

    async def _awaited(self, kind: str, partitions: Iterable[Any]) -> None:
        with self._called(kind, partitions) as done:
            if inspect.isawaitable(done):
                await done


def described(error: BaseException) -> str:
    """An exception: its class and its text."""
    return f"{type(error).__name__}: {error}"


def type_and_text(error: BaseException) -> dict[str, str]:
    """An exception as events have it."""
    return {"type": type(error).__name__, "text": str(error)}


def first_line(error: BaseException) -> str:
    """An exception in one line."""
    return described(error).partition("\n")[0]


def configured(report: Report, settings: Mapping[str, Any]) -> None:
    """Report what a consumer is configured to, as far as explanations need it, in any client's spelling.

    What is not among the settings has the default of librdkafka and Java's client.
    """
    known = {name.replace(".", "_"): value for name, value in settings.items()}
    # By KIP-848 it is the broker's, and 0 where nobody says.
    session = 0 if is_by_epochs(settings) else 45_000
    report(
        "configured",
        session_timeout_ms=int(known.get("session_timeout_ms", session)),
        max_poll_interval_ms=int(known.get("max_poll_interval_ms", 300_000)),
        auto_offset_reset=known.get("auto_offset_reset", "latest"),
        instance_id=known.get("group_instance_id") or None,
    )


def _triples(positions: Mapping[Pair, int]) -> list[tuple[str, int, int]]:
    return [(*pair, offset) for pair, offset in sorted(positions.items())]


def settings_with_dots(
    config: WorkerConfig, of_access: Mapping[str, Any], other_names: Mapping[str, str]
) -> dict[str, Any]:
    """A member's settings as librdkafka and Java spell them: `session.timeout.ms`, with `other_names`.

    A name that has dots already stays as it is.
    """
    common = {other_names.get(name, name.replace("_", ".")): value for name, value in config.common().items()}
    setting = "group.remote.assignor" if config.by_epochs else "partition.assignment.strategy"
    # A function may be given assignors before anybody knows which client it takes.
    names = ",".join(str(getattr(one, "name", one)) for one in config.made_assignors() or ())
    chosen = {**common, **of_access, **({setting: names} if names else {})}
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in chosen.items()}
