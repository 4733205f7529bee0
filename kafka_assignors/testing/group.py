"""Consumer groups to test with: members are processes that really crash, freeze, leave and come back.

    with ConsumerGroup(["localhost:9092"], "orders", ["my_package.assignor:MyAssignor"]) as group:
        a, b = group.join("a"), group.join("b")
        group.wait_stable()
        b.crash()
        group.wait_stable()
        assert not group.timeline.double_assigned()

The members (`kafka_assignors.testing.member`) report all that happens to them. A group is *stable* when its
members, by their own word, and the brokers, asked by a second client, agree on it. Whatever is waited for
is a condition, and a wait that ends in vain says who held it up and how.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition

from kafka_assignors.testing.load import Load
from kafka_assignors.testing.member import POLL_MS, CommitMode, MemberConfig
from kafka_assignors.testing.timeline import NO_GENERATION, Event, Timeline, format_partitions
from kafka_assignors.testing.topics import REQUEST_SECONDS, admin_client, existing_partitions, servers

AssignorSpec = str | type[Any] | tuple[str | type[Any], Mapping[str, Any]] | Mapping[str, Any]
"""An assignor for a member's process to make: a class or its path "package.module:Class", alone or in a pair
with its arguments by name; or {"class": path, "options": arguments}."""

Topics = str | Collection[str] | re.Pattern[str]
"""What to subscribe to: a topic, topics, or a pattern that topics match from the start of their names."""

Sharing = Literal["exclusive", "broadcast"]
"""Whether each partition is to have one owner, or to be owned by every subscriber of its topic."""

SETTINGS: Mapping[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 300,
    "metadata_max_age_ms": 1000,
    "session_timeout_ms": 6000,
}
"""The consumers' settings unless told otherwise: quick to notice what happens."""

_LOOK_SECONDS = 0.05  # between two looks at what sends no word: the brokers, the caller's predicate
_SETTLED_SECONDS = 0.2  # a stable group stays stable for so long
_COMMAND_SECONDS = 15.0
_EVENTS_SHOWN = 30
_LOG_LINES_SHOWN = 15


class GroupNotStableError(TimeoutError):
    """A group did not become what was waited for; the message says who held it up and how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """A member's consumer at one moment.

    Attributes:
        generation: The generation that it is in, -1 if in none.
        member_id: The id that the coordinator gave it; may be empty.
        coordinator: The state of its membership: "stable", "rebalancing" or "unjoined".
        assignment: The partitions that it has.
        subscription: The topics that it subscribes to.
    """

    generation: int
    member_id: str
    coordinator: str
    assignment: frozenset[TopicPartition]
    subscription: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersView:
    """A group as its coordinator describes it.

    Attributes:
        state: "STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING", "EMPTY", "DEAD" or "UNKNOWN".
        protocol: The name of the chosen assignor; empty during a rebalance.
        assignments: The partitions of each member, by member id.
        error: Why there is no view, if there is none.
    """

    state: str
    protocol: str
    assignments: Mapping[str, frozenset[TopicPartition]]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StableGroup:
    """A group on which its members and its coordinator agreed.

    Attributes:
        generation: The generation that all members are in.
        protocol: The name of the chosen assignor.
        assignments: The partitions of each member, by the member's name.
    """

    generation: int
    protocol: str
    assignments: Mapping[str, frozenset[TopicPartition]]


class Member:
    """One process of a group; made by `ConsumerGroup.join`.

    Attributes:
        name: Its name in the group and in the timeline; also its client id.
        instance_id: Its `group.instance.id`, None for a dynamic member.
        pid: The process.
        member_id: The id that the coordinator gave it, by its own last word.
        generation: The generation of its newest assignment; -1 once it lost it or left.
        assignment: The partitions of that assignment.
        joining: Whether it asked to join and has no answer yet.
        joined_topics: The topics that it named when it last asked to join.
        running: Whether the process lives.
        frozen: Whether it was frozen and not yet thawed.
        paused: Whether it was told not to poll.
        topics: What it subscribes to; empty after `unsubscribe`.
    """

    def __init__(
        self, group: "ConsumerGroup", config: MemberConfig, topics: Topics, join: Mapping[str, Any]
    ) -> None:
        self.name = config.name
        self.instance_id: str | None = config.settings.get("group_instance_id")
        self.member_id = ""
        self.generation = NO_GENERATION
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.joining = False
        self.joined_topics: frozenset[str] = frozenset()
        self.running = True
        self.frozen = False
        self.paused = False
        self.topics = topics
        self.last_event: Event | None = None
        self._told_to_end = False
        self._group = group
        self._join = join
        self._sending = threading.Lock()
        # Without a name in any folder, so that nothing is left of it, however this process ends.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the member
        self._log_end = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kafka_assignors.testing.member"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Whatever the parent can import, tests' own assignors too.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            # A process group of its own: Ctrl-C in a terminal does not reach it, and should the parent
            # die while the member is frozen, the system wakes it and hangs up on it.
            process_group=0,
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, name=f"events of {self.name}", daemon=True)
        self._reader.start()
        self._write(config.to_json())

    def __repr__(self) -> str:
        return f"<Member {self.name} pid {self.pid}: {self.describe()}>"

    def describe(self) -> str:
        """Where it stands by its own last word, in a line."""
        doing = [
            word
            for word, holds in (
                ("frozen", self.frozen),
                ("not polling", self.paused),
                ("joining", self.joining),
            )
            if holds
        ]
        if not self.running:
            doing = ["ended"]
        partitions = format_partitions(self.assignment)
        return f"{', '.join(doing) or 'running'}, generation {self.generation}, {partitions}"

    @property
    def ended_by_itself(self) -> bool:
        """Whether the process ended without having been told to."""
        return not self.running and not self._told_to_end

    def log_tail(self) -> str:
        """The last lines that the process wrote to its standard error."""
        if self._log.closed:
            return self._log_end
        # The process writes at the end by the same open file: read without moving it.
        text = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return "\n".join(text.decode(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        with self._process.stdout as lines:
            for line in lines:
                # A killed process may leave half a line.
                if line.endswith(b"\n"):
                    self._group.record(Event.from_report(self.name, json.loads(line)))
        status = self._process.wait()
        self._record("exited", status=status)

    def _record(self, kind: str, **details: Any) -> None:
        self._group.record(Event(time=time.monotonic(), member=self.name, kind=kind, details=details))

    def take(self, event: Event) -> None:
        """Follow an event; the group calls it, under its lock."""
        self.last_event = event
        match event.kind:
            case "metadata":
                self.joining = True
                self.joined_topics = frozenset(event.details.get("topics", ()))
            case "assignment":
                self.joining = False
                self.generation = event.generation
                self.member_id = event.details["member_id"]
                self.assignment = event.partitions
            case "lost" | "unsubscribed" | "closed":
                self.generation = NO_GENERATION
                self.assignment = frozenset()
            case "exited":
                self.running = self.frozen = False

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it is a pipe
        # A process that has ended does not read, but its end is an event of its own.
        with contextlib.suppress(BrokenPipeError), self._sending:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def _ask(self, answer: str, **command: Any) -> Event:
        """Send a command and wait for the event that answers it.

        Raises:
            RuntimeError: The member could not do it, or has ended.
            GroupNotStableError: No answer came, for instance because the member is frozen.
        """
        name = command["command"]
        seen = self._group.event_count
        self._write(json.dumps(command))

        def answers() -> list[Event]:
            return [
                event
                for event in self._group.events_since(seen)
                if event.member == self.name
                and (event.kind in {answer, "exited"} or event.details.get("command") == name)
            ]

        self._group.wait_for(
            lambda: answers() or not self.running, timeout=_COMMAND_SECONDS, what=f"{self.name} to {name}"
        )
        found = answers()
        if not found or found[0].kind != answer:
            raise RuntimeError(f"{self.name} did not {name}: {found[0] if found else 'it has ended'}")
        return found[0]

    def state(self) -> MemberState:
        """Ask the member's consumer where it stands.

        Raises:
            RuntimeError: The member has ended.
            GroupNotStableError: It does not answer, as when it is frozen.
        """
        answer = self._ask("state", command="state")
        return MemberState(
            generation=answer.generation,
            member_id=answer.details["member_id"],
            coordinator=answer.details["coordinator"],
            assignment=answer.partitions,
            subscription=frozenset(answer.details["subscription"]),
        )

    def subscribe(self, topics: str | Collection[str]) -> None:
        """Change the subscription to these topics.

        Raises:
            RuntimeError: The member could not.
            GroupNotStableError: It does not answer, as when it is frozen.
        """
        self._ask(
            "subscribed", command="subscribe", topics=[topics] if isinstance(topics, str) else [*topics]
        )
        self.topics = topics

    def unsubscribe(self) -> None:
        """Give up all topics, and with them the membership.

        Raises:
            RuntimeError: The member could not.
            GroupNotStableError: It does not answer, as when it is frozen.
        """
        self._ask("unsubscribed", command="unsubscribe")
        self.topics = ()

    def commit(self) -> None:
        """Commit the positions.

        Raises:
            RuntimeError: The member could not, for instance because a rebalance is on.
            GroupNotStableError: It does not answer, as when it is frozen.
        """
        self._ask("committed", command="commit")

    def pause_polling(self) -> None:
        """Make the member stop to poll, as an application that hangs; its heartbeats go on.

        Raises:
            RuntimeError: The member could not.
            GroupNotStableError: It does not answer, as when it is frozen.
        """
        self._ask("paused", command="pause")
        self.paused = True

    def resume_polling(self) -> None:
        """Make the member poll again.

        Raises:
            RuntimeError: The member could not.
            GroupNotStableError: It does not answer, as when it is frozen.
        """
        self._ask("resumed", command="resume")
        self.paused = False

    def leave(self) -> None:
        """Close the consumer and end the process. A dynamic member leaves the group, a static one does not.

        Raises:
            GroupNotStableError: The process does not end.
        """
        self._told_to_end = True
        self._write(json.dumps({"command": "leave"}))
        self._group.wait_for(lambda: not self.running, timeout=_COMMAND_SECONDS, what=f"{self.name} to leave")

    def crash(self) -> None:
        """Kill the process, frozen or not; it has ended on return."""
        self.kill()
        self._process.wait()
        self._record("crashed")
        # The last it wrote before may still be on its way.
        self._reader.join()

    def freeze(self) -> None:
        """Stop the process with all its threads, as a long pause of the machine would; stopped on return."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.frozen = True
        self._record("frozen")

    def thaw(self) -> None:
        """Let the process go on after `freeze`."""
        self.frozen = False
        self._record("thawed")
        os.kill(self.pid, signal.SIGCONT)

    def restart(
        self,
        *,
        crash: bool = False,
        assignors: Sequence[AssignorSpec] | None = None,
        topics: Topics | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> "Member":
        """End this process and start another in its place, with the same instance id if it has one.

        Args:
            crash: Kill the process instead of closing its consumer.
            assignors: Other assignors than this member's.
            topics: Other topics than this member's.
            settings: Other settings than this member's.

        Returns:
            The new member; its name is this one's with a count.

        Raises:
            GroupNotStableError: The process does not end.
        """
        if crash:
            self.crash()
        else:
            self.leave()
        changes = {"assignors": assignors, "topics": topics or self.topics or None, "settings": settings}
        base, _, count = self.name.partition(".")
        return self._group.join(
            f"{base}.{int(count or 1) + 1}",
            **{**self._join, **{key: value for key, value in changes.items() if value is not None}},
        )

    def kill(self) -> None:
        """Send the process its end, without waiting for it."""
        self._told_to_end = True
        self._process.kill()

    def close(self) -> None:
        """Wait for the end of a process that was told to end, and clear up after it."""
        self._process.wait()
        self._reader.join()
        if self._process.stdin is not None:
            # What a dead process did not read is of no use.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._log_end = self.log_tail()
        self._log.close()


class ConsumerGroup:
    """A consumer group whose members are started, observed and disturbed from here.

    A context manager: on leaving it all members are killed. Not for use from several threads.

    Args:
        bootstrap_servers: The brokers, "host:port" each.
        topics: What members subscribe to, unless told otherwise when they join.
        assignors: Their assignors in order of preference, unless told otherwise when they join.
        group_id: The group's id; a new one by default.
        settings: Settings of their KafkaConsumers, on top of `SETTINGS`. Must have JSON.
        commit: When they commit offsets: after each poll, by the client's timer, or on command.
        poll_ms: How long one poll waits; see `kafka_assignors.testing.member.POLL_MS` before shortening it.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        topics: Topics,
        assignors: Sequence[AssignorSpec],
        *,
        group_id: str | None = None,
        settings: Mapping[str, Any] | None = None,
        commit: CommitMode = "each poll",
        poll_ms: int = POLL_MS,
    ) -> None:
        self.bootstrap_servers = servers(bootstrap_servers)
        self.topics = topics
        self.group_id = f"group-{uuid.uuid4().hex[:8]}" if group_id is None else group_id
        self.members: dict[str, Member] = {}
        self._assignors = assignors
        self._settings = {**SETTINGS, **(settings or {})}
        self._commit: CommitMode = commit
        self._poll_ms = poll_ms
        self._events: list[Event] = []
        self._changed = threading.Condition(threading.RLock())
        self._admin: AdminClient | None = admin_client(self.bootstrap_servers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all members, frozen or not, and wait for their ends. The timeline stays."""
        for member in self.members.values():
            member.kill()
        for member in self.members.values():
            member.close()
        # Its threads would go on looking for brokers that are about to stop.
        self._admin = None

    # Members

    def join(
        self,
        name: str | None = None,
        *,
        assignors: Sequence[AssignorSpec] | None = None,
        topics: Topics | None = None,
        instance_id: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Member:
        """Start a member. Returns at once; `wait_stable` waits until it is in the group.

        Args:
            name: Its name, unique in the group; "m1", "m2"... by default.
            assignors: Its assignors, instead of the group's.
            topics: What it subscribes to, instead of the group's.
            instance_id: Makes it a static member (KIP-345).
            settings: Settings of its KafkaConsumer, on top of the group's.

        Raises:
            ValueError: There is a member of that name, or an assignor cannot be made in another process.
            TypeError: A setting or an assignor's argument has no JSON.
        """
        name = f"m{len(self.members) + 1}" if name is None else name
        if name in self.members:
            raise ValueError(f"the group has a member named {name!r} already")
        topics = self.topics if topics is None else topics
        own = dict(settings or {}) | ({} if instance_id is None else {"group_instance_id": instance_id})
        config = MemberConfig(
            bootstrap_servers=self.bootstrap_servers,
            group_id=self.group_id,
            name=name,
            topics=() if isinstance(topics, re.Pattern) else _names(topics),
            pattern=topics.pattern if isinstance(topics, re.Pattern) else None,
            assignors=[_assignor(spec) for spec in (self._assignors if assignors is None else assignors)],
            settings={**self._settings, **own},
            commit=self._commit,
            poll_ms=self._poll_ms,
        )
        config.to_json()  # fails before there is a process
        again = {"assignors": assignors, "topics": topics, "instance_id": instance_id, "settings": settings}
        with self._changed:
            self.members[name] = Member(self, config, topics, again)
        return self.members[name]

    def present(self) -> list[Member]:
        """The members that should make up the group: running, subscribed, neither frozen nor paused."""
        return [
            member
            for member in self.members.values()
            if member.running and member.topics and not member.frozen and not member.paused
        ]

    # Events

    def record(self, event: Event) -> None:
        """Add an event; members' readers call it."""
        with self._changed:
            self._events.append(event)
            self.members[event.member].take(event)
            self._changed.notify_all()

    @property
    def event_count(self) -> int:
        """How many events there are so far."""
        return len(self._events)

    def events_since(self, count: int) -> list[Event]:
        """The events after the first `count`, as they came in."""
        return self._events[count:]

    @property
    def timeline(self) -> Timeline:
        """All that happened up to now."""
        with self._changed:
            return Timeline(self._events, end=time.monotonic())

    # Waiting

    def wait_for(self, predicate: Callable[[], object], timeout: float = 30.0, what: str = "") -> None:
        """Wait until the predicate holds. It is asked again after every event, and often without.

        Args:
            predicate: Asked while new events are held back, so it sees one moment of the group.
            timeout: In seconds.
            what: What is waited for, for the message.

        Raises:
            GroupNotStableError: It did not come to hold, or a member ended by itself meanwhile.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not predicate():
                self._give_up_if(what or "a condition", [], deadline, timeout)
                self._changed.wait(_LOOK_SECONDS)

    def wait_stable(
        self,
        *,
        partitions: Collection[TopicPartition] | None = None,
        ownership: Sharing = "exclusive",
        expect: Mapping[str, int] | None = None,
        members: Collection[Member] | None = None,
        timeout: float = 30.0,
    ) -> StableGroup:
        """Wait until the group is at rest and its partitions are owned as they should be.

        That is: by their own word the members are in one generation and none is joining; the coordinator
        says that the group is stable, has exactly these members, and that they have the partitions that they
        say they have; every partition has its owner; and nothing of it changes for a moment.

        Args:
            partitions: The partitions that must be owned; all that the subscribed topics have by default,
                as the brokers say at that moment, so new partitions count from when they were made.
            ownership: "exclusive" if each partition is to have one owner, "broadcast" if every subscriber of
                its topic is to own it.
            expect: How many partitions certain members are to have, by their names.
            members: The members that make up the group; by default `present()`.
            timeout: In seconds.

        Raises:
            GroupNotStableError: It did not happen, or a member ended by itself. The message says what each
                member and the coordinator said at last.
        """
        began = time.monotonic()
        stable: tuple[float, StableGroup] | None = None
        while True:
            with self._changed:
                awaited = self.present() if members is None else [*members]
                wrong = _disagreements(awaited)
                words = {member.name: (member.generation, member.assignment) for member in awaited}
            if not wrong:
                view = self.describe()
                wrong = [
                    *self._against_brokers(awaited, view),
                    *self._against_topics(awaited, partitions, ownership),
                    *_unexpected(awaited, expect or {}),
                ]
            now = time.monotonic()
            if wrong:
                stable = None
            else:
                found = StableGroup(
                    generation=max((generation for generation, _ in words.values()), default=NO_GENERATION),
                    protocol=view.protocol,
                    assignments={name: assignment for name, (_, assignment) in words.items()},
                )
                if stable is None or stable[1] != found:
                    stable = now, found
                elif now - stable[0] >= _SETTLED_SECONDS:
                    return found
            self._give_up_if("the group to be stable", wrong, began + timeout, timeout)
            with self._changed:
                self._changed.wait(_LOOK_SECONDS)

    def wait_consumed(self, load: Load, timeout: float = 30.0) -> None:
        """Wait until members have reported every record of the load that the brokers acknowledged up to now.

        Raises:
            GroupNotStableError: They have not; the message counts what is missing.
        """
        produced = load.produced
        deadline = time.monotonic() + timeout
        while missing := self.timeline.missing(produced):
            wrong = [
                f"{partition.topic}-{partition.partition}: {len(offsets)} of {produced[partition]} missing,"
                f" the first is {offsets[0]}"
                for partition, offsets in sorted(missing.items())
            ]
            self._give_up_if("all records to be consumed", wrong, deadline, timeout)
            with self._changed:
                self._changed.wait(_LOOK_SECONDS)

    def describe(self) -> BrokersView:
        """Ask the coordinator about the group, by a client that is no member."""
        try:
            future = self._client.describe_consumer_groups([self.group_id], request_timeout=REQUEST_SECONDS)
            found = future[self.group_id].result(timeout=REQUEST_SECONDS)
        except (KafkaException, TimeoutError) as error:
            return BrokersView(state="UNKNOWN", protocol="", assignments={}, error=str(error))
        return BrokersView(
            state=found.state.name,
            protocol=found.partition_assignor,
            assignments={
                member.member_id: frozenset(
                    TopicPartition(one.topic, one.partition) for one in member.assignment.topic_partitions
                )
                for member in found.members
            },
        )

    @property
    def _client(self) -> AdminClient:
        if self._admin is None:
            raise RuntimeError(f"group {self.group_id} is closed")
        return self._admin

    def _against_brokers(self, awaited: Collection[Member], view: BrokersView) -> Iterator[str]:
        if view.error:
            yield f"the coordinator cannot be asked: {view.error}"
            return
        if view.state not in ({"STABLE"} if awaited else {"EMPTY", "DEAD"}):
            yield f"the coordinator says {view.state}"
        for member in awaited:
            assigned = view.assignments.get(member.member_id)
            if assigned is None:
                yield f"the coordinator does not list {member.name}"
            elif assigned != member.assignment:
                yield (
                    f"the coordinator says that {member.name} has {format_partitions(assigned)},"
                    f" {member.name} says {format_partitions(member.assignment)}"
                )
        expected = {member.member_id for member in awaited}
        for member_id in view.assignments.keys() - expected:
            yield f"the coordinator still lists {self._name(member_id)}"

    def _name(self, member_id: str) -> str:
        known = (member.name for member in self.members.values() if member.member_id == member_id)
        return next(known, member_id)

    def _against_topics(
        self,
        awaited: Collection[Member],
        partitions: Collection[TopicPartition] | None,
        ownership: Sharing,
    ) -> Iterator[str]:
        """What is wrong with the members' words in view of the topics that exist."""
        existing = existing_partitions(self._client)
        subscribed = {
            member.name: {topic for topic in existing if _subscribes(member.topics, topic)}
            for member in awaited
        }
        for member in awaited:
            if subscribed[member.name] != member.joined_topics & existing.keys():
                yield f"{member.name} has not joined with its new topics yet"
        if partitions is None:
            topics = set[str]().union(*subscribed.values())
            partitions = [partition for topic in topics for partition in existing[topic]]
        owners: dict[TopicPartition, list[str]] = {partition: [] for partition in partitions}
        for member in awaited:
            for partition in member.assignment:
                owners.setdefault(partition, []).append(member.name)
        for partition, names in sorted(owners.items()):
            subscribers = [name for name, topics in subscribed.items() if partition.topic in topics]
            right = names == subscribers if ownership == "broadcast" else len(names) == 1
            if not right or partition not in partitions:
                yield f"{partition.topic}-{partition.partition} is owned by {', '.join(names) or 'nobody'}"

    def _give_up_if(self, what: str, wrong: Sequence[str], deadline: float, timeout: float) -> None:
        dead = [member for member in self.members.values() if member.ended_by_itself]
        if not dead and time.monotonic() < deadline:
            return
        headline = (
            f"waited {timeout:g} s in vain for {what}" if not dead else f"there is no more waiting for {what}"
        )
        reasons = [*(f"{member.name} ended by itself" for member in dead), *wrong]
        view = self.describe()
        brokers = [
            f"  {self._name(member_id)}: {format_partitions(assignment)}"
            for member_id, assignment in sorted(view.assignments.items())
        ]
        raise GroupNotStableError(
            "\n".join(
                [
                    f"group {self.group_id}: {headline}",
                    *(f"  - {reason}" for reason in reasons),
                    "members, by their own word:",
                    *(f"  {member.name}: {self._account(member)}" for member in self.members.values()),
                    f"coordinator: {view.state} {view.protocol} {view.error}".rstrip(),
                    *brokers,
                    "last events:",
                    self.timeline.describe(last=_EVENTS_SHOWN),
                    *(f"log of {member.name}:\n{member.log_tail()}" for member in dead),
                ]
            )
        )

    @staticmethod
    def _account(member: Member) -> str:
        last = member.last_event
        heard = (
            "not heard of" if last is None else f"last {time.monotonic() - last.time:.1f} s ago: {last.kind}"
        )
        return f"{member.describe()}; {heard}"


def _disagreements(members: Collection[Member]) -> list[str]:
    wrong = [f"{member.name} ended" for member in members if not member.running]
    wrong += [f"{member.name} is joining" for member in members if member.joining]
    wrong += [
        f"{member.name} is in no generation"
        for member in members
        if member.generation == NO_GENERATION and not member.joining and member.running
    ]
    if len({member.generation for member in members}) > 1:
        said = ", ".join(f"{member.name} {member.generation}" for member in members)
        wrong.append(f"the members are in different generations: {said}")
    return wrong


def _unexpected(members: Collection[Member], expect: Mapping[str, int]) -> Iterator[str]:
    sizes = {member.name: len(member.assignment) for member in members}
    for name, count in expect.items():
        if sizes.get(name) != count:
            yield f"{name} has {sizes.get(name, 'no')} partitions instead of {count}"


def _subscribes(topics: Topics, topic: str) -> bool:
    if isinstance(topics, re.Pattern):
        # kafka-python leaves internal topics out of what a pattern matches.
        return not topic.startswith("__") and topics.match(topic) is not None
    return topic in _names(topics)


def _names(topics: str | Collection[str]) -> list[str]:
    return [topics] if isinstance(topics, str) else [*topics]


def _assignor(spec: AssignorSpec) -> tuple[str, Mapping[str, Any]]:
    if isinstance(spec, Mapping):
        spec = (spec["class"], spec.get("options", {}))
    target, options = spec if isinstance(spec, tuple) else (spec, {})
    path = target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"
    if ":" not in path or "<locals>" in path or path.startswith("__main__:"):
        raise ValueError(f"another process cannot import {path!r}; give the path 'package.module:Class'")
    return path, dict(options)
