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

    def __init_subclass__(cls, kind: str = "") -> None:
        if kind:
            cls.kind = kind
        if "kind" in vars(cls):  # also of the class that slots make anew, without arguments
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
class Started(Event, kind="started"):
    """A member began.

    Attributes:
        pid: Its process; 0 of a simulated one.
        instance_id: Its static instance id, if the group chose it.
        client: Its client library.
    """

    pid: int = 0
    instance_id: str | None = None
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured(Event, kind="configured"):
    """A member made its consumer.

    Attributes:
        session_timeout_ms: The consumer's setting; 0 if that is the broker's (KIP-848), or was not reported.
        max_poll_interval_ms: The consumer's setting.
        auto_offset_reset: The consumer's setting; empty if that was not reported.
        instance_id: Its static instance id, whether the group or the application chose it.
    """

    session_timeout_ms: int = 0
    max_poll_interval_ms: int = 0
    auto_offset_reset: str = ""
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledLate(Event, kind="polled late"):
    """A member polled again after it had not polled for long: its application was busy between two polls.

    Attributes:
        seconds: For how long, `LONG` at least.
    """

    seconds: float = 0.0

    def _details(self) -> Iterator[str]:
        yield f"after {self.seconds:.3f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerReturned(Event, kind="listener"):
    """An application's listener returned after long, or raised. Of Java's client, applications have none.

    Attributes:
        callback: The method, as the client calls it.
        seconds: How long it took; `LONG` at least, unless it raised.
        error: What it raised, or empty.
    """

    callback: str = ""
    seconds: float = 0.0
    error: str = ""

    def _details(self) -> Iterator[str]:
        yield f"{self.callback} took {self.seconds:.3f} s"
        if self.error:
            yield f"and raised {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining(Event, kind="metadata"):
    """A member asked to join. Members of librdkafka and Java do not report it, nor aiokafka's own assignors.

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

    topics: tuple[str, ...] | None = None
    version: int = -1
    owned: frozenset[TopicPartition] = frozenset()
    claimed_generation: int = NO_GENERATION
    user_data: str = ""
    rack: str | None = None
    undecodable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Led(Event, kind="assign"):
    """A member's assignor was asked for an assignment, as the leader's.

    Attributes:
        claims: What each member said.
        plan: Member id -> `partitions` and `user_data` that it was given; None if the assignor raised.
        error: `type` and `text` of what it raised.
        seconds: How long the assignor took.
    """

    claims: Claims = field(default_factory=dict)
    plan: Mapping[str, Any] | None = None
    error: Mapping[str, str] | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentReceived(_ShownPartitions, kind="assignment"):
    """A member's client got its assignment; `partitions` are all of it.

    Attributes:
        user_data: The assignment's user data in hexadecimal digits.
    """

    user_data: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(_ShownPartitions, kind="assigned"):
    """A member's application was given more partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(_ShownPartitions, kind="revoked"):
    """A member's application had to revoke partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(_ShownPartitions, kind="lost"):
    """A member's application lost partitions; others may have them already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(OfPartitions, kind="rejected"):
    """A simulated member did not accept an assignment, because its subscription changed meanwhile."""


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
class Consumed(OfRecords, kind="records"):
    """A poll returned records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processed(OfRecords, kind="processed"):
    """An application said that it is done with records: `Seat.processed`."""


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
class Sought(OfPositions, kind="sought"):
    """An application had its consumer go on elsewhere: `positions`, where -1 is the end, -2 the beginning.

    Attributes:
        callback: The method of its listener that did so, as the client calls it; else empty.
    """

    callback: str = ""

    def _details(self) -> Iterator[str]:
        yield from each_position(self.positions)
        if self.callback:
            yield f"in {self.callback}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(OfPositions, kind="committed"):
    """The coordinator has a member's positions, committed by application, kit or the client's timer.

    Of members of Java's client only what the kit commits.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFailed(OfPositions, kind="commit_failed"):
    """A commit was refused, or the client could not even send it.

    Attributes:
        text: The error.
    """

    text: str = ""

    def _details(self) -> Iterator[str]:
        yield from each_position(self.positions)
        yield self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event, kind="note"):
    """A fact of an application's own: `Seat.note`.

    Attributes:
        name: What it is about.
        value: Anything that has JSON.
    """

    name: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding(_ShownPartitions, kind="holds"):
    """An application has something of its own for partitions: `Seat.holds`.

    Attributes:
        what: A cache, a lock, a file...
    """

    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(_ShownPartitions, kind="releases"):
    """An application released something that it had for partitions: `Seat.releases`.

    Attributes:
        what: As in `Holding`.
    """

    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obeyed(Event, kind="obeyed"):
    """A member did what it was asked to, where no other event says so.

    Attributes:
        command: The command.
    """

    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Event, kind="error"):
    """A poll or a command raised.

    Attributes:
        command: The command; None of a poll.
        type: The exception's class.
        text: Its text.
        records: The record at which a deserializer raised it, as in `OfRecords`.
    """

    command: str | None = None
    type: str = ""
    text: str = ""
    records: tuple[tuple[TopicPartition, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised(Event, kind="raised"):
    """An application raised an exception, and dealt with it by itself.

    Attributes:
        where: "handler", if a function of `Seat.handler` raised it, or "log", if the application logged it.
        text: The exception's class, and the first line of its text.
        records: The record that the handler had, as in `OfRecords`.
    """

    where: str = ""
    text: str = ""
    records: tuple[tuple[TopicPartition, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed(Event, kind="subscribed"):
    """A member changed its subscription.

    Attributes:
        topics: The topics; empty if there is a pattern.
        pattern: The pattern that topics match from the start of their names.
    """

    topics: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribed(Event, kind="unsubscribed"):
    """A member gave up all topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event, kind="paused"):
    """A member stopped polling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event, kind="resumed"):
    """A member polls again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReported(OfPartitions, kind="state"):
    """A member was asked where it stands; `partitions` are what its consumer has.

    Attributes:
        coordinator: The state of its membership, see `MemberState`.
        subscription: The topics that it subscribes to.
        silent: Seconds since its last poll returned; 0 while it polls.
    """

    coordinator: str = ""
    subscription: tuple[str, ...] = ()
    silent: float = 0.0

    def _details(self) -> Iterator[str]:
        # Not super(), which does not know the class that slots made anew.
        yield from OfPartitions._details(self)  # noqa: SLF001 - its own
        if self.silent >= LONG:
            yield f"not polling for {self.silent:.1f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event, kind="closed"):
    """A member closed its consumer.

    Attributes:
        reason: "left", "returned" if an application did so unasked, "errors" after too many in a row.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed(Event, kind="crashed"):
    """A member was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen(Event, kind="frozen"):
    """A member was frozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thawed(Event, kind="thawed"):
    """A frozen member continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff(Event, kind="cut off"):
    """Nothing passes any more between a member and the coordinator: a fault of a `Network`, or simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnected(Event, kind="reconnected"):
    """Everything passes again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Event, kind="exited"):
    """A member's process or thread ended.

    Attributes:
        status: Its exit status; None of a simulated one.
    """

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
