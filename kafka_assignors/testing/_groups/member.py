"""A member of a group under test, seen from outside: what was last heard of it and what can be done to it."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

from kafka import TopicPartition

from kafka_assignors._timelines import events
from kafka_assignors.testing._brokers.network import Network
from kafka_assignors.testing._disturbance import Disturbance
from kafka_assignors.testing._groups.clients import MODULES
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.runners import Place, ProcessRunner, ThreadRunner, process_of
from kafka_assignors.testing._groups.specs import OwnParts, Topics

_Answer = TypeVar("_Answer", bound=events.Event)

COMMAND_SECONDS = 60.0
"""How long a member may take to do what it is asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """A member's consumer at one moment.

    Attributes:
        generation: The generation that it is in, -1 if in none.
        member_id: The id that the coordinator gave it; may be empty.
        coordinator: The state of its membership: "stable", "rebalancing", "unjoined", or "unknown" where the
            client library does not say.
        assignment: The partitions that it has.
        subscription: The topics that it subscribes to; empty where the library does not say.
    """

    generation: int
    member_id: str
    coordinator: str
    assignment: frozenset[TopicPartition]
    subscription: frozenset[str]


class Member:
    """One member of a group; made by `ConsumerGroup.join`.

    What it is asked to do raises a RuntimeError if it cannot, or has ended. It raises a GroupNotStableError
    if the member does not answer, as when it is frozen. One in a thread neither crashes nor freezes: a
    NotInAThreadError.

    Attributes:
        name: Its name in the group and in the timeline; also its client id.
        client: Its client library, or the function of the user's that it runs.
        instance_id: Its `group.instance.id`, None for a dynamic member.
        member_id: The id that the coordinator gave it, by its own last word.
        generation: The generation of its newest assignment; -1 once it lost it or left.
        assignment: The partitions of that assignment.
        joining: Whether it asked to join and has no answer yet; only kafka-python's members say so.
        running: Whether it has not ended.
        frozen: Whether it was frozen and not yet thawed.
        paused: Whether it was asked not to poll.
        held: Whether it waits for `release` before it makes its consumer.
        begun: Whether it has made its consumer and subscribed.
        observed: Whether its consumer is observed, or will be as it is not the user's.
        topics: What it subscribes to; empty after `unsubscribe`.
    """

    def __init__(
        self,
        config: WorkerConfig,
        topics: Topics,
        place: Place,
        *,
        network: Network | None,
        record: Callable[[events.Event], None],  # calls `take` with the event
        wait_for: Callable[[Callable[[], object], float | None, str], None],
        rejoin: Callable[..., "Member"],
    ) -> None:
        self.name = config.name
        self.client = config.client
        self.instance_id = config.instance_id
        self.member_id = ""
        self.generation = events.NO_GENERATION
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.joining = False
        self.running = True
        self.frozen = False
        self.paused = False
        self.held = config.held
        self.begun = False
        self.observed = config.client in MODULES
        self.topics = topics
        self.last_event: events.Event | None = None
        self._asked_to_end = False
        self._network = network
        self._unfollow: Callable[[], None] = lambda: None
        self._record = record
        self._wait_for = wait_for
        self._rejoin = rejoin
        self._events: list[events.Event] = []
        self._runner: ProcessRunner | ThreadRunner = (ProcessRunner if place == "process" else ThreadRunner)(
            config, lambda report: record(events.read_event(config.name, report))
        )

    @property
    def pid(self) -> int:
        """The process that it runs in."""
        return self._runner.pid

    def __repr__(self) -> str:
        return f"<Member {self.name} pid {self.pid}: {self.describe()}>"

    def describe(self) -> str:
        """Where it stands by its own last word, in a line."""
        words = {
            "held": self.held,
            "frozen": self.frozen,
            "not polling": self.paused,
            "joining": self.joining,
        }
        doing = [word for word, holds in words.items() if holds] if self.running else ["ended"]
        partitions = events.format_partitions(self.assignment)
        return f"{', '.join(doing) or 'running'}, generation {self.generation}, {partitions}"

    @property
    def ended_by_itself(self) -> bool:
        """Whether the process ended without having been asked to."""
        return not self.running and not self._asked_to_end

    def log(self) -> str:
        """All that it wrote to its standard error; of a member in a thread, the exception that ended it."""
        return self._runner.log()

    def start(self) -> None:
        """Begin; the group calls this once it knows the member, so that no process is left over."""
        self._runner.start()
        if self._network is not None:
            self._unfollow = self._network.follow(self.name, self._reaches_none)

    def _reaches_none(self, cut_off: bool) -> None:
        if self.running:
            self._record((events.CutOff if cut_off else events.Reconnected)(time.monotonic(), self.name))

    def take(self, event: events.Event) -> None:
        """Follow an event; the group calls it, under its lock."""
        self.last_event = event
        self._events.append(event)
        match event:
            case events.Configured():
                self.observed = True
            case events.Subscribed():
                self.begun = True
            case events.Joining():
                self.joining = True
            case events.AssignmentReceived():
                self.joining = False
                self.generation = event.generation
                self.member_id = event.member_id
                self.assignment = event.partitions
            case events.Revoked():
                # A member of a client that does not tell when it joins has at least not these any more.
                self.assignment -= event.partitions
            case events.Lost() | events.Unsubscribed() | events.Closed():
                self.generation = events.NO_GENERATION
                self.assignment = frozenset()
            case events.Exited():
                self.running = self.frozen = False

    def _ask(self, answer: type[_Answer], command: str, **fields: Any) -> _Answer:
        """Send a command and wait for the event that answers it."""
        seen = len(self._events)
        self._runner.send({"command": command, **fields})

        def answers() -> list[events.Event]:
            return [
                event
                for event in self._events[seen:]
                if isinstance(event, (answer, events.Exited))
                or (isinstance(event, events.Failed) and event.command == command)
            ]

        self._wait_for(lambda: answers() or not self.running, COMMAND_SECONDS, f"{self.name} to {command}")
        found = next(iter(answers()), None)
        if isinstance(found, answer):
            return found
        raise RuntimeError(f"{self.name} did not {command}: {found or 'it has ended'}")

    def release(self) -> None:
        """Let a member that was held make its consumer and join."""
        self.held = False
        self._runner.send({"command": "release"})

    def ask_state(self) -> bool:
        """Have the member say where it stands, as an event; returns whether it is there to answer."""
        if not self.running or self.frozen or self.held:
            return False
        self._runner.send({"command": "state"})
        return True

    def state(self) -> MemberState:
        """Ask the member's consumer where it stands."""
        answer = self._ask(events.StateReported, "state")
        return MemberState(
            generation=answer.generation,
            member_id=answer.member_id,
            coordinator=answer.coordinator,
            assignment=answer.partitions,
            subscription=frozenset(answer.subscription),
        )

    def subscribe(self, topics: str | Collection[str], *, wait: bool = True) -> None:
        """Change the subscription to these topics.

        Args:
            topics: The topics.
            wait: Wait until it has; one that works long obeys when its work is done.
        """
        names = [topics] if isinstance(topics, str) else [*topics]
        if wait:
            self._ask(events.Subscribed, "subscribe", topics=names)
        else:
            self._runner.send({"command": "subscribe", "topics": names})
        self.topics = topics

    def unsubscribe(self) -> None:
        """Give up all topics, and with them the membership."""
        self._ask(events.Unsubscribed, "unsubscribe")
        self.topics = ()

    def commit(self) -> None:
        """Commit the positions; if a rebalance is on, once it is over, which takes a member that polls."""
        self._ask(events.Obeyed, "commit")

    def pause_polling(self) -> Disturbance:
        """Make the member stop to poll, as an application that hangs; its heartbeats continue.

        Returns:
            A context at whose end it polls again, unless it does already or has ended.
        """
        self._ask(events.Paused, "pause")
        self.paused = True
        return Disturbance(lambda: self.resume_polling() if self.paused and self.running else None)

    def resume_polling(self) -> None:
        """Make the member poll again."""
        self._ask(events.Resumed, "resume")
        self.paused = False

    def leave(self, *, wait: bool = True) -> None:
        """Close the consumer and end the process. A dynamic member leaves the group, a static one does not.

        A function of the user's ends as it sees `Seat.leaving`. In a process of its own it gets SIGTERM if it
        never looks there: SystemExit is raised in it, unless it handles the signal.

        Args:
            wait: Wait until it has ended, for the group's timeout at most.

        Raises:
            GroupNotStableError: The process does not end.
        """
        self._asked_to_end = True
        self._runner.send({"command": "leave"})
        if not wait:
            return
        hint = "" if self.client in MODULES else " (it sees seat.leaving, or gets SIGTERM in a process)"
        self._wait_for(lambda: not self.running, None, f"{self.name} to leave{hint}")

    def crash(self) -> None:
        """Kill the process and those that it has started, frozen or not; it has ended on return."""
        process = process_of(self._runner, f"{self.name} cannot crash")
        self._asked_to_end = True
        process.crash()
        self._record(events.Crashed(time.monotonic(), self.name))
        # The last it wrote before may still be on its way.
        process.drain()

    def freeze(self) -> Disturbance:
        """Stop the process with all its threads, as a long pause of the machine would; stopped on return.

        If it has not `begun`, it may give up looking for its brokers when it is thawed: clients count the
        time.

        Returns:
            A context at whose end it is thawed, unless it was meanwhile or has ended.
        """
        process_of(self._runner, f"{self.name} cannot freeze").freeze()
        self.frozen = True
        self._record(events.Frozen(time.monotonic(), self.name))
        return Disturbance(lambda: self.thaw() if self.frozen else None)

    def thaw(self) -> None:
        """Let the process continue after `freeze`."""
        process = process_of(self._runner, f"{self.name} is not frozen")
        self.frozen = False
        self._record(events.Thawed(time.monotonic(), self.name))
        process.thaw()

    def restart(self, *, crash: bool = False, **own: Unpack[OwnParts]) -> "Member":
        """End this member and start another in its place, with the same instance id if it has one.

        Args:
            crash: Kill the process instead of closing its consumer.
            **own: Another `client`, `assignors`, `topics`, `settings`, `place`... than this member's; see
                `ConsumerGroup.join`.

        Returns:
            The new member; its name is this one's with a count.

        Raises:
            GroupNotStableError: It does not end.
        """
        if crash:
            self.crash()
        else:
            self.leave()
        own = {**own, "topics": own.get("topics") or self.topics or None}
        base, _, count = self.name.rpartition(".")
        base, count = (base, count) if base and count.isdecimal() else (self.name, "1")
        changes = {key: value for key, value in own.items() if value is not None}
        return self._rejoin(f"{base}.{int(count) + 1}", **changes)

    def kill(self) -> None:
        """End it without waiting: a process at once, a thread when its poll ends."""
        self._asked_to_end = True
        self._runner.kill()

    def close(self) -> None:
        """Wait for the end of a member that was asked to end, and clear up after it."""
        self._unfollow()
        self._runner.wait()
