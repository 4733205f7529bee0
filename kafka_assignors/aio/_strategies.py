"""Assignors in the way that aiokafka calls them, and the work of a leader beside the event loop."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaConfigurationError, LeaderNotAvailableError
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafka_assignors._assignors import Assignor
from kafka_assignors._assignors._membership.host import LEADING_SINCE, calls
from kafka_assignors._assignors._sent import AllMembers, MembersReader, takes
from kafka_assignors.aio._host import AiokafkaHost, Topics

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from concurrent.futures import Executor

_PERFORMS: Final = "_perform_assignment"


def strategies(*assignors: type[Assignor] | Assignor) -> list[Strategy]:
    """Assignors for the `partition_assignment_strategy` of one AIOKafkaConsumer.

    They plan in a thread of their own: the event loop runs on, and the leader's heartbeats with it. Members'
    bytes are read as for kafka-python: owned partitions, generations, racks and instance ids count, and what
    cannot be read takes no group down. An AIOKafkaConsumer rebalances eagerly with any strategies; see
    `CooperativeConsumer`. With more than one, aiokafka joins once for each (aio-libs/aiokafka PR 1168);
    `CooperativeConsumer` joins once.

    Args:
        *assignors: Classes, or instances of which no other consumer has one; the preferred one first.

    Raises:
        KafkaConfigurationError: Two have one name.
        TypeError: One is no assignor of this library.
    """
    made: list[Any] = [one() if isinstance(one, type) else one for one in assignors]
    for one in made:
        if not isinstance(one, Assignor):
            raise TypeError(f"strategies() takes assignors of kafka_assignors, not {one!r}")
    names = [one.name for one in made]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise KafkaConfigurationError(
            f"partition_assignment_strategy has two assignors of one name ({', '.join(twice)}); a group knows"
            " a strategy by its name, so give each once"
        )
    return [Strategy(one) for one in made]


class Strategy:
    """An assignor as aiokafka's AbstractPartitionAssignor; an object of one consumer."""

    def __init__(self, assignor: Assignor) -> None:
        self.name = assignor.name
        self.assignor = assignor
        self.read = MembersReader()

    def __repr__(self) -> str:
        return f"<{type(self.assignor).__name__} for aiokafka>"

    def metadata(self, topics: Collection[str]) -> bytes:
        """What this member sends to the leader, as a ConsumerProtocolSubscription v3.

        Raises KafkaConfigurationError if the object belongs to another consumer.
        """
        host = _calling()
        lead_beside_the_loop(host.coordinator)
        with calls(host):
            encoded: bytes = self.assignor.metadata(topics).encode()
        return encoded

    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """Raise RuntimeError: aiokafka's way to plan has neither members' bytes nor time."""
        del cluster, members
        raise RuntimeError(
            f"{self!r} plans for the members of an AIOKafkaConsumer only; see kafka_assignors.lead"
        )

    def on_assignment(self, assignment: Any) -> None:
        """Remember what this member got."""
        host = _calling()
        with calls(host):
            self.assignor.on_assignment(assignment, host.generation)


def _calling() -> AiokafkaHost:
    host = AiokafkaHost.on_the_stack()
    if host is None:
        raise RuntimeError("strategies of kafka_assignors.aio are called by aiokafka's consumer only")
    return host


def lead_beside_the_loop(coordinator: Any) -> None:
    """Let a coordinator plan in a thread, if the group has one of these strategies; once for each."""
    kind, own = type(coordinator), vars(coordinator)
    if _PERFORMS in own or getattr(kind, "leads_beside_the_loop", False):
        return
    stock: Callable[[Any], Awaitable[Any]] = getattr(coordinator, _PERFORMS)

    async def perform(response: Any) -> Any:
        planned = await lead(coordinator, response, stock)
        look_when_syncing(coordinator)
        return planned

    own[_PERFORMS] = perform


def look_when_syncing(coordinator: Any) -> None:
    """Have a leader join again if topics are not what it has planned for; called as a plan is returned.

    With the SyncGroup that follows, aiokafka forgets that it was to join again. So it looks a moment later.
    """
    cluster = coordinator._client.cluster  # noqa: SLF001
    asyncio.get_running_loop().call_soon(coordinator._handle_metadata_update, cluster)  # noqa: SLF001


async def lead(coordinator: Any, response: Any, stock: Callable[[Any], Awaitable[Any]]) -> Any:
    """What `GroupCoordinator._perform_assignment` does, with members' bytes and beside the event loop.

    Heartbeats, which aiokafka stops for a join, continue meanwhile. They end with a plan that fails.
    """
    strategy = coordinator._lookup_assignor(response.group_protocol)  # noqa: SLF001
    if not isinstance(strategy, Strategy):
        return await stock(response)
    members = [  # as kafka-python names their parts
        SimpleNamespace(
            member_id=member, group_instance_id=instance[0] if instance else None, metadata=bytes(sent)
        )
        for member, *instance, sent in response.members
    ]
    vars(coordinator)[LEADING_SINCE] = time.monotonic()
    coordinator._start_heartbeat_task()  # noqa: SLF001
    # The event loop's own threads may all be busy with what the application does.
    thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-assignors-leader")
    try:
        return await _planned(coordinator, strategy, members, thread)
    except Exception:
        # The application hears of it when it polls. If it does not, the group goes on with another leader.
        await coordinator._stop_heartbeat_task()  # noqa: SLF001
        raise
    finally:
        thread.shutdown(wait=False)
        del vars(coordinator)[LEADING_SINCE]


async def _planned(
    coordinator: Any, strategy: Strategy, members: list[SimpleNamespace], thread: Executor
) -> dict[str, bytes]:
    loop = asyncio.get_running_loop()
    client, subscription = coordinator._client, coordinator._subscription  # noqa: SLF001
    sent = await loop.run_in_executor(thread, strategy.read, members)
    if sent is None:
        raise RuntimeError("what members sent has been decoded before")
    topics = set(sent.subscriptions.topics.names)
    # The leader watches all topics of the group from here on.
    coordinator._group_subscription = topics  # noqa: SLF001
    if not subscription.subscribed_pattern:
        client.set_topics(topics)
    if takes(strategy.assignor):
        given: Sequence[Any] = [AllMembers(members, sent)]
    else:  # a class with an `assign` of its own
        given = members
        for member in members:
            member.metadata = ConsumerProtocolSubscription.decode(member.metadata)
    host = AiokafkaHost(coordinator)

    def plan(cluster: Topics) -> dict[str, bytes]:
        with calls(host):
            planned = strategy.assignor.assign(cluster, given)
        return {member: assignment.encode() for member, assignment in planned.items()}

    while True:
        await client._maybe_wait_metadata()  # noqa: SLF001
        known = coordinator._get_metadata_snapshot()  # noqa: SLF001 - a topic may grow while it plans
        try:
            planned = await loop.run_in_executor(thread, plan, Topics(client.cluster, topics))
            break
        except LeaderNotAvailableError:  # a topic has no metadata yet, and there is time to ask again
            await asyncio.sleep(coordinator._retry_backoff_ms / 1000)  # noqa: SLF001
            await client.force_metadata_update()
    coordinator._metadata_snapshot = known  # noqa: SLF001
    return planned
