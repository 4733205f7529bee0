"""A consumer of kafka-python that does nothing but what a test has it do, poll by poll.

Its exchange with the coordinator goes on in its own I/O thread between two polls. So a test that begins a
join with a poll that does not wait decides what happens before the next.
"""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, overload

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from integration_tests.support.waiting import wait_for
from kafka_assignors._timelines.events import (
    AssignmentReceived,
    Configured,
    Event,
    Joining,
    PolledLate,
    read_event,
)
from kafka_assignors._timelines.facts import Kind
from kafka_assignors.testing import Cluster
from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._groups.clients import kafka_python
from kafka_assignors.testing._groups.stability import describe
from kafka_assignors.testing._topics import admin_client
from tests.support.scale import longer

SECONDS: Final = 60.0
SETTINGS: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 45_000,
}
"""Nobody is expelled unless a test has it so."""

SHORT: Final = {"session_timeout_ms": 3000}
"""Settings of a consumer that is to be expelled."""


class Hesitant(CooperativeStickyAssignor):
    """kafka-python's own, whose leader waits in `assign` while its gate is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.asked = threading.Event(), threading.Event()
        self.gate.set()
        self.said: dict[str, Any] = {}  # by member id: what they subscribed with when it led last

    def assign(self, cluster: Any, members: Any) -> Any:
        self.said = {member.member_id: member.metadata for member in members}
        self.asked.set()
        self.gate.wait(longer(SECONDS))
        return super().assign(cluster, members)


class DrivenConsumer:
    def __init__(
        self, access: Access, group_id: str, name: str, topics: Sequence[str], assignor: Any, **settings: Any
    ) -> None:
        self.events: list[Event] = []
        self.name = name
        self.assignor = assignor
        self.access = access
        self._admin = admin_client(access)
        self.group_id = group_id
        self.consumer: Any = KafkaConsumer(
            **{**SETTINGS, **settings, **access.kafka_python()},
            group_id=group_id,
            client_id=name,
            partition_assignment_strategy=[self.assignor],
        )
        self.coordinator = self.consumer._coordinator
        self._observed = kafka_python.ObservedKafkaConsumer(self.consumer, self._report)
        self._observed.subscribe(topics, None)

    def _report(self, kind: str, **fields: Any) -> None:
        event = read_event(self.name, {"event": kind, "time": time.monotonic(), **fields})
        if not isinstance(event, Configured | PolledLate):  # of the kit, not of the client
            self.events.append(event)

    def __repr__(self) -> str:
        return "\n".join([self.name, *map(str, self.events)])

    def close(self) -> None:
        if isinstance(self.assignor, Hesitant):
            self.assignor.gate.set()
        # Behind a JoinGroup that waits for others, LeaveGroup is not answered.
        self.consumer.close(autocommit=False, timeout_ms=200)

    # What it is like

    @property
    def member_id(self) -> str:
        return str(self.coordinator._generation.member_id)

    @property
    def generation(self) -> int:
        """The generation of its newest JoinGroup, whether it took the assignment or not."""
        return int(self.coordinator._generation.generation_id)

    @property
    def held(self) -> frozenset[TopicPartition]:
        return frozenset(self.consumer.assignment())

    @property
    def must_rejoin(self) -> bool:
        return bool(self.coordinator.need_rejoin())

    @property
    def exchange_is_over(self) -> bool:
        """Whether a join that was begun has completed, and no poll has looked at it."""
        task = self.coordinator._join_task
        return task is not None and bool(task.is_done)

    @property
    def is_at_rest(self) -> bool:
        return self.coordinator.stable() and not self.must_rejoin and self.coordinator._join_task is None

    @property
    def is_listed(self) -> bool:
        return self.member_id in self.listed

    @property
    def listed(self) -> frozenset[str]:
        """The ids of all members, by the coordinator's word."""
        return frozenset(describe(self._admin, self.group_id).assignments)

    @overload
    def since(self, mark: int) -> list[Event]: ...

    @overload
    def since(self, mark: int, kind: type[Kind]) -> list[Kind]: ...

    def since(self, mark: int, kind: type[Any] = Event) -> list[Any]:
        """The events after the first so many, of one kind or all."""
        return [event for event in self.events[mark:] if isinstance(event, kind)]

    def kinds_since(self, mark: int) -> list[str]:
        return [event.kind for event in self.since(mark)]

    # What it does

    def subscribe(self, topics: Sequence[str]) -> None:
        self.consumer.subscribe(topics=topics)

    def poll(self, milliseconds: int) -> None:
        """Poll, for so long: nobody produces to its topics."""
        self.consumer.poll(timeout_ms=milliseconds)

    def begin_join(self) -> None:
        """Poll until a join is under way, and no longer."""
        before, joins = self.coordinator._join_task, len(self.since(0, Joining))

        def begun() -> bool:
            # A poll of a millisecond can look twice. Where the broker answers in between, it joins twice.
            self.poll(0)
            other = self.coordinator._join_task not in (None, before)
            # Where all others wait already, it may even be over by now.
            return other or len(self.since(0, Joining)) > joins

        wait_for(f"a join of {self.name}", begun, SECONDS)

    def take_assignment(self) -> AssignmentReceived:
        """Poll until it has a new assignment, as one poll: what completes between two is thrown away."""
        before = len(self.since(0, AssignmentReceived))

        def taken() -> bool:
            self.coordinator.poll(timeout_ms=1000 * SECONDS)  # without records, for which a poll would wait
            return len(self.since(0, AssignmentReceived)) > before

        wait_for(f"an assignment of {self.name}", taken, SECONDS)
        return self.since(0, AssignmentReceived)[before]


Trio = tuple[DrivenConsumer, DrivenConsumer, DrivenConsumer]


def settle(*consumers: DrivenConsumer) -> None:
    """Poll all of them at once until they are at rest in one generation."""
    with ThreadPoolExecutor(len(consumers)) as pool:

        def settled() -> bool:
            [*pool.map(lambda one: one.poll(300), consumers)]
            return (
                all(one.is_at_rest for one in consumers) and len({one.generation for one in consumers}) == 1
            )

        wait_for("the group to settle", settled, SECONDS)


def start_rebalance(leader: DrivenConsumer, *others: DrivenConsumer) -> None:
    """Have the leader join again, and the others hear of it; none of those joins yet."""
    leader.coordinator.request_rejoin()
    leader.begin_join()
    hear(*others)


def bring_in(newcomer: DrivenConsumer, *others: DrivenConsumer) -> None:
    """Have another one join, and the others hear of it; none of those joins yet."""

    def heard() -> bool:
        newcomer.poll(1)  # until the coordinator has it: the first answer is a member id
        return all(one.must_rejoin for one in others)

    wait_for("the others to hear of a newcomer", heard, SECONDS)


def hear(*consumers: DrivenConsumer) -> None:
    wait_for("a heartbeat to tell of a rebalance", lambda: all(one.must_rejoin for one in consumers), SECONDS)


@contextlib.contextmanager
def driven_group(
    access: Access, topics: Sequence[str], assignor: Callable[[], Any], group_id: str | None = None
) -> Iterator[Callable[..., DrivenConsumer]]:
    """Makes consumers of one group, each with an assignor of its own; all are closed in the end."""
    group_id = group_id or f"driven-{uuid.uuid4().hex[:8]}"
    with contextlib.ExitStack() as stack:

        def make(name: str, **settings: Any) -> DrivenConsumer:
            one = DrivenConsumer(access, group_id, name, topics, assignor(), **settings)
            stack.callback(one.close)
            return one

        yield make


@contextlib.contextmanager
def logged_requests(cluster: Cluster) -> Iterator[Callable[..., bool]]:
    """Has the broker log requests when it gets them, and says whether one is logged that has some words.

    So a test can wait for what a client has sent, which the client does not report.
    """
    if not cluster.brokers:
        pytest.skip("the cluster is given: its log is not ours to read")
    (broker,) = cluster.brokers
    admin: Any = KafkaAdminClient(**cluster.access.kafka_python())

    def set_level(level: str) -> None:
        wanted = {"kafka.server.KafkaApis": level}
        admin.alter_configs([ConfigResource(ConfigResourceType.BROKER_LOGGER, str(broker.node_id), wanted)])

    with contextlib.closing(admin):
        set_level("TRACE")
        try:
            yield lambda *words: any(
                all(word in line for word in words) for line in broker.log().splitlines()
            )
        finally:
            set_level("INFO")


def settled_trio(drive: Callable[..., DrivenConsumer], **of_follower: Any) -> Trio:
    leader = drive("leader")
    settle(leader)
    follower, other = drive("follower", **of_follower), drive("other")
    settle(leader, follower, other)
    assert [len(one.held) for one in (leader, follower, other)] == [2, 2, 2]
    return leader, follower, other


def complete_between_polls(leader: DrivenConsumer, follower: DrivenConsumer, other: DrivenConsumer) -> None:
    """Have a rebalance in which nothing changes, and which completes while the follower does not poll."""
    start_rebalance(leader, follower, other)
    follower.begin_join()
    other.take_assignment()
    wait_for("the follower's exchange to be over", lambda: follower.exchange_is_over, SECONDS)


def topic_to_give_up(consumer: DrivenConsumer, topics: list[str]) -> tuple[str, set[TopicPartition]]:
    topic = next(topic for topic in topics if any(one.topic == topic for one in consumer.held))
    return topic, {one for one in consumer.held if one.topic == topic}
