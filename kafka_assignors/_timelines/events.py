"""What happens to members of a group: a type for each kind of event, and how it is shown in text."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar, Final

from kafka import TopicPartition

from kafka_assignors._common.words import by_topic

NO_GENERATION: Final = -1

_NOT_SHOWN: Final = frozenset(
    {
        *("time", "member", "generation", "member_id", "partitions", "records"),
        *("pid", "seconds", "silent", "version", "thread"),
    }
)

LONG: Final = 0.5
"""Seconds. Applications and listeners that take less are not reported: quick ones would fill a timeline."""

Claims = Mapping[str, Mapping[str, Any]]
"""What members said when they joined, by member id: the fields of `Joining`, as their leader decoded them."""


KINDS: Final[dict[str, "type[Event]"]] = {}
"""All that can happen to a member, by kind."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one member; what all kinds of events have.

    Attributes:
        kind: The kind's name in text, and in the JSON that members write.
        time: When, in seconds.
        member: The name of the member; a restarted member has a new name.
        generation: The generation that the member was in, by KIP-848 its epoch; -1 if in none or if the kind
            does not say.
        member_id: The id that the coordinator gave the member; empty if it has none or the kind does not say.
    """

    kind: ClassVar[str]
    time: float
    member: str
    _: KW_ONLY
    generation: int = NO_GENERATION
    member_id: str = ""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls

    def __str__(self) -> str:
        parts = [f"{self.member:<10} {self.kind}"]
        if self.generation != NO_GENERATION:
            parts.append(f"generation {self.generation}")
        return " ".join([*parts, *self._details()])

    def _details(self) -> Iterator[str]:
        for one in fields(self):
            value = getattr(self, one.name)
            is_empty = value in (None, -1) or (isinstance(value, Collection) and not value)
            if one.name not in _NOT_SHOWN and not is_empty:
                yield f"{one.name} {_in_short(one.name, value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPartitions(Event):
    """An event that is about partitions.

    Attributes:
        partitions: The partitions.
    """

    partitions: frozenset[TopicPartition] = frozenset()


class _ShownPartitions(OfPartitions):
    __slots__ = ()

    def _details(self) -> Iterator[str]:
        yield format_partitions(self.partitions)
        yield from super()._details()


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Event):
    """A member began.

    Attributes:
        pid: Its process; 0 of a simulated one.
        instance_id: Its static instance id, if the group chose it.
        client: Its client library.
    """

    kind = "started"
    pid: int = 0
    instance_id: str | None = None
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured(Event):
    """A member made its consumer.

    Attributes:
        session_timeout_ms: The consumer's setting; 0 if that is the broker's (KIP-848), or was not reported.
        max_poll_interval_ms: The consumer's setting.
        auto_offset_reset: The consumer's setting; empty if that was not reported.
        instance_id: Its static instance id, whether the group or the application chose it.
    """

    kind = "configured"
    session_timeout_ms: int = 0
    max_poll_interval_ms: int = 0
    auto_offset_reset: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledLate(Event):
    """A member polled again after it had not polled for long: its application was busy between two polls.

    Attributes:
        seconds: For how long, `LONG` at least.
    """

    kind = "polled late"
    seconds: float = 0.0

    def _details(self) -> Iterator[str]:
        yield f"after {self.seconds:.3f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerReturned(Event):
    """An application's listener returned after long, or raised. Of Java's client, applications have none.

    Attributes:
        callback: The method, as the client calls it.
        seconds: How long it took; `LONG` at least, unless it raised.
        error: What it raised, or empty.
    """

    kind = "listener"
    callback: str = ""
    seconds: float = 0.0
    error: str = ""

    def _details(self) -> Iterator[str]:
        yield f"{self.callback} took {self.seconds:.3f} s"
        if self.error:
            yield f"and raised {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(Event):
    """A member asked to join. Only members of kafka-python and simulated ones report it.

    Generation and member id are those that it had then.

    Attributes:
        topics: What it subscribes to; None if that was not reported.
        version: The version of its subscription.
        owned: The partitions that it claims to own.
        claimed_generation: The generation of that claim.
        user_data: Its user data in hexadecimal digits.
        rack: Its rack.
        undecodable: Why its subscription cannot be decoded.
    """

    kind = "metadata"
    topics: tuple[str, ...] | None = None
    version: int = -1
    owned: frozenset[TopicPartition] = frozenset()
    claimed_generation: int = NO_GENERATION
    user_data: str = ""
    rack: str | None = None
    undecodable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Led(Event):
    """A member's assignor was asked for an assignment, as the leader's.

    Attributes:
        claims: What each member said.
        plan: Member id -> `partitions` and `user_data` that it was given; None if the assignor raised.
        error: `type` and `text` of what it raised.
        seconds: How long the assignor took.
    """

    kind = "assign"
    claims: Claims = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None
    error: Mapping[str, str] | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentReceived(_ShownPartitions):
    """A member's client got its assignment; `partitions` are all of it.

    Attributes:
        user_data: The assignment's user data in hexadecimal digits.
    """

    kind = "assignment"
    user_data: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(_ShownPartitions):
    """A member's application was given more partitions."""

    kind = "assigned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(_ShownPartitions):
    """A member's application had to revoke partitions."""

    kind = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(_ShownPartitions):
    """A member's application lost partitions; others may have them already."""

    kind = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(OfPartitions):
    """A simulated member did not accept an assignment, because its subscription changed meanwhile."""

    kind = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRecords(Event):
    """An event that is about records.

    Attributes:
        records: (partition, first offset, last offset), ranges without holes.
        thread: The thread in which that was, or the task on an event loop; empty if it was not reported.
    """

    records: tuple[tuple[TopicPartition, int, int], ...] = ()
    thread: str = ""

    def _details(self) -> Iterator[str]:
        for partition, first, last in self.records:
            yield f"{name_of(partition)}: {first}..{last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed(OfRecords):
    """A poll returned records."""

    kind = "records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed(OfRecords):
    """An application said that it is done with records: `Seat.processed`."""

    kind = "processed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPositions(Event):
    """An event that is about positions.

    Attributes:
        positions: Partition -> the offset to continue at, the last record's plus one. Of a commit only what
            differs from the member's last one.
    """

    positions: Mapping[TopicPartition, int] = field(default_factory=dict)

    def _details(self) -> Iterator[str]:
        return each_position(self.positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought(OfPositions):
    """An application had its consumer go on elsewhere: `positions`, where -1 is the end, -2 the beginning.

    Attributes:
        callback: The method of its listener that did so, as the client calls it; else empty.
    """

    kind = "sought"
    callback: str = ""

    def _details(self) -> Iterator[str]:
        yield from each_position(self.positions)
        if self.callback:
            yield f"in {self.callback}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(OfPositions):
    """The coordinator has a member's positions, committed by application, kit or the client's timer.

    Of members of Java's client only what the kit commits.
    """

    kind = "committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed(OfPositions):
    """A commit was refused, or the client could not even send it.

    Attributes:
        text: The error.
    """

    kind = "commit_failed"
    text: str = ""

    def _details(self) -> Iterator[str]:
        yield from each_position(self.positions)
        yield self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """A fact of an application's own: `Seat.note`.

    Attributes:
        name: What it is about.
        value: Anything that has JSON.
    """

    kind = "note"
    name: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding(_ShownPartitions):
    """An application has something of its own for partitions: `Seat.holds`.

    Attributes:
        what: A cache, a lock, a file...
    """

    kind = "holds"
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(_ShownPartitions):
    """An application released something that it had for partitions: `Seat.releases`.

    Attributes:
        what: As in `Holding`.
    """

    kind = "releases"
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obeyed(Event):
    """A member did what it was asked to, where no other event says so.

    Attributes:
        command: The command.
    """

    kind = "obeyed"
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event):
    """A poll or a command raised.

    Attributes:
        command: The command; None of a poll.
        type: The exception's class.
        text: Its text.
        records: The record at which a deserializer raised it, as in `OfRecords`.
    """

    kind = "error"
    command: str | None = None
    type: str = ""
    text: str = ""
    records: tuple[tuple[TopicPartition, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised(Event):
    """An application raised an exception, and dealt with it by itself.

    Attributes:
        where: "handler", if a function of `Seat.handler` raised it, or "log", if the application logged it.
        text: The exception's class, and the first line of its text.
        records: The record that the handler had, as in `OfRecords`.
    """

    kind = "raised"
    where: str = ""
    text: str = ""
    records: tuple[tuple[TopicPartition, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed(Event):
    """A member changed its subscription.

    Attributes:
        topics: The topics; empty if there is a pattern.
        pattern: The pattern that topics match from the start of their names.
    """

    kind = "subscribed"
    topics: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribed(Event):
    """A member gave up all topics."""

    kind = "unsubscribed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    """A member stopped polling."""

    kind = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """A member polls again."""

    kind = "resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReported(OfPartitions):
    """A member was asked where it stands; `partitions` are what its consumer has.

    Attributes:
        coordinator: The state of its membership, see `MemberState`.
        subscription: The topics that it subscribes to.
        silent: Seconds since its last poll returned; 0 while it polls.
    """

    kind = "state"
    coordinator: str = ""
    subscription: tuple[str, ...] = ()
    silent: float = 0.0

    def _details(self) -> Iterator[str]:
        # Not super(), which does not know the class that slots made anew.
        yield from OfPartitions._details(self)  # noqa: SLF001 - its own
        if self.silent >= LONG:
            yield f"not polling for {self.silent:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event):
    """A member closed its consumer.

    Attributes:
        reason: "left", "returned" if an application did so unasked, "errors" after too many in a row.
    """

    kind = "closed"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed(Event):
    """A member was killed."""

    kind = "crashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen(Event):
    """A member was frozen."""

    kind = "frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thawed(Event):
    """A frozen member continues."""

    kind = "thawed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff(Event):
    """Nothing passes any more between a member and the coordinator: a fault of a `Network`, or simulated."""

    kind = "cut off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(Event):
    """Everything passes again."""

    kind = "reconnected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Event):
    """A member's process or thread ended.

    Attributes:
        status: Its exit status; None of a simulated one.
    """

    kind = "exited"
    status: int | None = None


End = Unsubscribed | Closed | Crashed | Exited
"""After these events a member owns nothing."""


def read_event(member: str, report: Mapping[str, Any]) -> Event:
    """Decode an event as a member's process writes it; raises ValueError of an unknown kind or field."""
    rest = dict(report)
    kind = rest.pop("event")
    if kind not in KINDS:
        raise ValueError(f"{member} reported an event {kind!r}: known are {', '.join(sorted(KINDS))}")
    decoded = dict(_decoded(name, value) for name, value in rest.items())
    try:
        return KINDS[kind](member=member, **decoded)
    except TypeError as error:
        raise ValueError(f"{member} reported {kind!r} with other fields: {error}") from error


def _decoded(name: str, value: Any) -> tuple[str, Any]:
    match name:
        case "partitions" | "owned":
            return name, frozenset(TopicPartition(*pair) for pair in value)
        case "records":
            return name, tuple((TopicPartition(topic, one), first, last) for topic, one, first, last in value)
        case "positions":
            return name, {TopicPartition(topic, one): offset for topic, one, offset in value}
        case "topics" | "subscription" if value is not None:
            return name, tuple(value)
        case _:
            return name, value


def identities(events: Iterable[Event]) -> dict[str, str]:
    """Who each member is to the group: member -> the first member with its static instance id, or itself.

    A static member that restarts is a new process with a new name here; to the group it is the old member.
    """
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, Started | Configured) and event.instance_id:
            found[event.member] = first.setdefault(event.instance_id, event.member)
        else:
            found.setdefault(event.member, event.member)
    return found


def name_of(partition: TopicPartition) -> str:
    """A partition as people write it: "orders-3"."""
    return f"{partition.topic}-{partition.partition}"


def each_position(positions: Mapping[TopicPartition, int]) -> Iterator[str]:
    """Committed positions as events show them: "orders-3: 17"."""
    return (f"{name_of(partition)}: {offset}" for partition, offset in sorted(positions.items()))


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in short: "orders:0,1,4 events:2", or "none"."""
    topics = by_topic(partitions).items()
    return " ".join(f"{topic}:{','.join(map(str, ids))}" for topic, ids in topics) or "none"


def _in_short(name: str, value: Any) -> str:
    """A detail of an event for people, who read partitions and not JSON."""
    match name:
        case "owned" | "partitions":
            return format_partitions(TopicPartition(*pair) for pair in value)
        case "plan" | "claims" if "undecodable" not in value:
            shown = "partitions" if name == "plan" else "owned"
            return ", ".join(f"({key}: {_in_short(shown, said[shown])})" for key, said in value.items())
        case _:
            return str(list(value) if isinstance(value, tuple) else value)
