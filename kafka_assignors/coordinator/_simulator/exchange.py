"""A member's exchange of JoinGroup and SyncGroup, and its heartbeats: real assignors, real bytes."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, Literal, Self

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from kafka_assignors._assignors import Assignor
from kafka_assignors._assignors._membership.host import Cancel, Host, calls
from kafka_assignors._leader import lead
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._timelines import events
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from kafka_assignors.coordinator._simulator.messages import Error, Join, Joined, Sync, Synced

RETRY_MS: Final = 100
"""How long a member waits before it asks again after an error: `retry.backoff.ms`."""

REQUEST_TIMEOUT_MS: Final = 30_000
"""How long it waits for an answer: `request.timeout.ms`."""

Trouble = Error | Literal["NETWORK", "NOT_JOINING", "ASSIGNOR"]
"""Why an exchange gave no assignment."""

State = Literal["UNJOINED", "REBALANCING", "STABLE"]


@dataclass(slots=True, eq=False)
class Attempt:
    """One exchange of JoinGroup and SyncGroup; `done` once it has ended, whoever hears of it."""

    done: bool = False


@dataclass(frozen=True, slots=True)
class EndedExchange:
    """An exchange that gave an assignment: as whom, in which generation, and when."""

    member_id: str
    generation: int
    assignment: bytes
    at: int


class JoiningMember(ClassicConsumer, Host):
    """A member that can exchange JoinGroup and SyncGroup for an assignment; when it does is its subclass's.

    It is the consumer that its assignors see.

    `assigned` are its client's partitions, `held` its application's. `refused` is the generation whose
    assignment it refused last. `options` are those of `SimulatedConsumer`. Raises ValueError if the assignors
    have no way to rebalance in common.
    """

    cooperative = False
    strategy: str | None = None
    refused = NO_GENERATION

    def __init__(
        self,
        name: str,
        group: HostedClassicGroup,
        clock: Clock,
        *,
        partitions: Callable[[], Mapping[str, Collection[int]]],
        assignors: Sequence[AbstractPartitionAssignor],
        **options: Any,
    ) -> None:
        super().__init__(name, clock, **options)
        self.generation = NO_GENERATION
        self.assigned: frozenset[TopicPartition] = frozenset()
        self._group = group
        self._partitions = partitions
        self._assignors = {assignor.name: assignor for assignor in assignors}
        with calls(self):
            ways = [set(assignor.supported_protocols()) for assignor in self._assignors.values()]
        common = set.intersection(*ways)
        if not common:
            raise ValueError(f"{', '.join(self._assignors)} are not all eager, nor all cooperative")
        self.cooperative = RebalanceProtocol.COOPERATIVE in common
        self._state: State = "UNJOINED"
        self._rejoin_needed = True
        self._joined_topics: frozenset[str] | None = None
        self._leads = False
        self._known: Mapping[str, Collection[int]] = {}
        self._led_with: Mapping[str, Collection[int]] | None = None
        self._ended: EndedExchange | None = None

    @abstractmethod
    def _look(self) -> None:
        """Let the next poll join if there is a reason to."""

    @abstractmethod
    def _join_ended(self, attempt: Attempt, error: Trouble, assignment: bytes = b"") -> None:
        """Take what an exchange gave."""

    # What its assignors see

    @classmethod
    def of(cls, consumer: Any) -> Self:
        member: Self = consumer
        return member

    @property
    def consumer(self) -> object:
        return self

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return self.assigned

    @property
    def heartbeat_interval(self) -> float:
        return self.settings.heartbeat_interval_ms / 1000

    @property
    def patience(self) -> float:
        session, poll = self.settings.session_timeout_ms, self.settings.max_poll_interval_ms
        return min(session, poll, REQUEST_TIMEOUT_MS) / 1000

    @property
    def closed(self) -> bool:
        return not self.running

    @property
    def seconds(self) -> float:
        return self._clock.now / 1000

    def call_later(self, seconds: float, action: Callable[[Host], None]) -> Cancel:
        return self.after(round(seconds * 1000), lambda: action(self))

    # A join (`BaseCoordinator._do_join_and_sync_async`)

    def _ask_to_join(self, attempt: Attempt) -> None:
        self._state = "REBALANCING"
        self._joined_topics = self.topics
        with calls(self):
            sent = {name: one.metadata(self.topics) for name, one in self._assignors.items()}
        self._report(
            events.Joining(
                *self._now,
                member_id=self.member_id,
                topics=tuple(sorted(self.topics)),
                claimed_generation=max(one.generation_id for one in sent.values()),
            )
        )
        request = Join(
            member_id=self.member_id,
            client_id=self.name,
            instance_id=self.instance_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms,
            protocols={name: one.encode() for name, one in sent.items()},
        )
        timeout = max(REQUEST_TIMEOUT_MS, self.settings.max_poll_interval_ms + 5000)
        self._request(
            attempt, lambda reply: self._group.join(request, reply), self._joined, timeout_ms=timeout
        )

    def _request(
        self,
        attempt: Attempt,
        request: Callable[[Callable[[Any], None]], None],
        hear: Callable[[Attempt, Any], None],
        *,
        timeout_ms: int,
    ) -> None:
        answered = False

        def arrived(answer: Any) -> None:
            nonlocal answered
            answered = True
            if not attempt.done:
                hear(attempt, answer)

        def timed_out() -> None:
            # Who thaws reads what has come before it looks for what has not.
            if not answered:
                self._join_ended(attempt, "NETWORK")

        self._ask(request, arrived)
        self._after(timeout_ms, timed_out)

    def _joined(self, attempt: Attempt, answer: Joined) -> None:
        if answer.error == Error.MEMBER_ID_REQUIRED:
            self._reset_generation(answer.member_id)
        elif answer.error == Error.UNKNOWN_MEMBER_ID:
            self._reset_generation()
        if answer.error:
            self._join_ended(attempt, answer.error)
            return
        if self._state != "REBALANCING":
            self._join_ended(attempt, "NOT_JOINING")
            return
        self.member_id, self.generation = answer.member_id, answer.generation
        self.strategy = answer.strategy
        assignments: Mapping[str, bytes] = {}
        if answer.leader == answer.member_id:
            self._leads = True
            self._led_with = self._known = dict(self._partitions())
            if not answer.skip_assignment:
                try:
                    assignments = self._lead(answer.members)
                except Exception as error:
                    if isinstance(self._assignors[answer.strategy], Assignor):
                        raise
                    # What another's assignor raises comes out of its application's poll; the next one joins.
                    self._report(events.Failed(*self._now, text=repr(error)))
                    self._join_ended(attempt, "ASSIGNOR")
                    return
        request = Sync(
            member_id=self.member_id,
            generation=self.generation,
            instance_id=self.instance_id,
            assignments=assignments,
        )
        self._request(
            attempt,
            lambda reply: self._group.sync(request, reply),
            self._synced,
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

    def _lead(self, members: Sequence[tuple[str, str | None, bytes]]) -> dict[str, bytes]:
        assert self._led_with is not None  # noqa: S101 - for the type checker
        self._report(events.Led(*self._now, generation=self.generation))
        assignor = self._assignors[self.strategy or ""]
        with calls(self):
            if isinstance(assignor, Assignor):
                return lead(self._led_with, members, assignor)
            return lead_by_contract(assignor, self._led_with, members)

    def _synced(self, attempt: Attempt, answer: Synced) -> None:
        if answer.error:
            self._rejoin_needed = True
            if answer.error == Error.UNKNOWN_MEMBER_ID:
                self._reset_generation()
            elif answer.error == Error.ILLEGAL_GENERATION:
                self._reset_generation(self.member_id)
        else:
            self._ended = EndedExchange(self.member_id, self.generation, answer.assignment, self._clock.now)
        self._join_ended(attempt, answer.error, answer.assignment)

    # Membership

    @property
    def _is_lost(self) -> bool:
        return self.generation == NO_GENERATION or not self.member_id

    def _reset_generation(self, member_id: str = "") -> None:
        self.generation, self.member_id = NO_GENERATION, member_id
        self._rejoin_needed = True
        self._state = "UNJOINED"
        self._stop_heartbeats()
        self._look()

    def _leave_group(self) -> None:
        """Tell the coordinator; static members never do (`BaseCoordinator.maybe_leave_group_async`)."""
        if self.instance_id is None and self.member_id:
            member_id = self.member_id
            self._send(lambda: self._group.leave(member_id))

    def _keep_alive(self) -> None:
        self._stop_heartbeats()
        self._beat = self._after(self.settings.heartbeat_interval_ms, self._send_heartbeat)

    def _stop_heartbeats(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    def _send_heartbeat(self) -> None:
        self._ask_alive(self.member_id, self.generation, self._heard)
        self._keep_alive()

    def _ask_alive(self, member_id: str, generation: int, hear: Callable[[str], None]) -> None:
        self._ask(lambda reply: reply(self._group.heartbeat(member_id, self.instance_id, generation)), hear)

    def _heard(self, error: str) -> None:
        """The answer to a heartbeat; one sent before a join may come in its midst."""
        if error == Error.REBALANCE_IN_PROGRESS:
            self.request_rejoin()
        elif error == Error.UNKNOWN_MEMBER_ID:
            self._reset_generation()
        elif error == Error.ILLEGAL_GENERATION:
            self._reset_generation(self.member_id)
        elif error not in {Error.NONE, Error.NOT_COORDINATOR}:
            self._report(events.Failed(*self._now, text=error))
            self._end(events.Closed(*self._now, reason="errors"))


def lead_by_contract(
    assignor: AbstractPartitionAssignor,
    topics: Mapping[str, Collection[int]],
    members: Iterable[tuple[str, str | None, bytes]],
) -> dict[str, bytes]:
    """As `lead`, by an assignor of kafka-python's contract."""
    joined = [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=member_id,
            group_instance_id=instance_id,
            metadata=ConsumerProtocolSubscription.decode(subscription),
        )
        for member_id, instance_id, subscription in members
    ]
    # What assignors ask of kafka-python's ClusterMetadata; replicas are in no racks.
    cluster = SimpleNamespace(
        topics=lambda: {*topics},
        partitions_for_topic=lambda topic: {*topics[topic]} if topic in topics else None,
        brokers=list,
    )
    made = assignor.assign(cluster, joined)
    return {member_id: assignment.encode() for member_id, assignment in made.items()}
