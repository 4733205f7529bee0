"""The consumer that an assignor works for: what it may know of it, and ask of it.

kafka-python's coordinator is looked up on the call stack, in `KafkaPythonHost.on_the_stack` and nowhere else;
docs/design.md says why. Other consumers, the simulated ones among them, name themselves with `calls`.
"""

import threading
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator

from kafka_assignors._assignors import _flow as flow
from kafka_assignors._assignors._joins import REFUSED, complete
from kafka_assignors._assignors._measures import Measures
from kafka_assignors._assignors._measuring import consumer_on_the_stack, measure
from kafka_assignors._assignors._membership.host import CALLING, LEADING_SINCE, Cancel, CoordinatorHost, Host
from kafka_assignors._assignors._relied_on import MEMBERS, TOPICS, warn
from kafka_assignors._assignors._sent import AllMembers, MembersReader, Sent, needs_only_topics, takes
from kafka_assignors._model.members import NO_GENERATION

_CALLS_LISTENERS: Final = "_invoke_rebalance_listener_async"

_DECODES: Final = "_perform_assignment"


class KafkaPythonHost(CoordinatorHost):
    """A consumer of kafka-python."""

    __slots__ = ()

    @classmethod
    def _coordinator_of(cls, caller: Any) -> Any:
        return caller if isinstance(caller, ConsumerCoordinator) else None

    @classmethod
    def _not_calling(cls) -> Collection[str]:
        return {_CALLS_LISTENERS}

    @property
    def cooperative(self) -> bool:
        return bool(self.coordinator._rebalance_protocol == RebalanceProtocol.COOPERATIVE)  # noqa: SLF001

    @property
    def generation(self) -> int:
        return int(self.coordinator.group_metadata().generation_id)

    @property
    def strategy(self) -> str | None:
        name: str | None = self.coordinator._generation.protocol  # noqa: SLF001
        return name

    @property
    def refused(self) -> int:
        return int(vars(self.coordinator).get(REFUSED, NO_GENERATION))

    @property
    def heartbeat_interval(self) -> float:
        return float(self.coordinator.config["heartbeat_interval_ms"]) / 1000

    @property
    def patience(self) -> float:
        """As `Host`: the shortest of the timeouts that end a consumer's membership or its requests."""
        config = self.coordinator.config
        limits = ("session_timeout_ms", "max_poll_interval_ms", "request_timeout_ms")
        return min(float(config[limit]) for limit in limits if config.get(limit)) / 1000

    @property
    def closed(self) -> bool:
        return bool(self.coordinator._heartbeat_closed)  # noqa: SLF001

    @property
    def namesakes(self) -> Collection[str]:
        """As `Host`. Factories have no name: if one of theirs was dropped, these are all names."""
        listed, kept = self.coordinator.config["assignors"], list(self.coordinator._assignors)  # noqa: SLF001
        # Of an iterator nothing is left to count.
        dropped = isinstance(listed, Collection) and len(listed) > len(kept)
        return self.namesakes_listed or (kept if dropped else ())

    @property
    def namesakes_listed(self) -> Collection[str]:
        listed = self.coordinator.config["assignors"]
        names = (
            [getattr(assignor, "name", None) for assignor in listed] if isinstance(listed, Collection) else []
        )
        return sorted({name for name in names if isinstance(name, str) and names.count(name) > 1})

    def _after(self, seconds: float, act: Callable[[], None]) -> Cancel:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        return timer.cancel

    def complete_joins(self, *, reads_on: bool) -> None:
        """As `Host`; see `kafka_assignors._assignors._flow` and `kafka_assignors._assignors._joins`."""
        if not reads_on or not flow.install(self.coordinator):
            complete(self.coordinator)
        self.show_members_first(MembersReader())

    def plans_with(self, cluster: Any) -> None:
        """As `Host`.

        kafka-python compares the metadata of its last update with what it took for that when it planned. If
        the update came while the leader was joining, it has the leader's own topics only: the next one
        differs, and the leader joins again. Where each rebalance outlasts `metadata_max_age_ms`, as it does
        with members that poll seldom, that continues for ever. So what it plans with is recorded again.
        """
        coordinator = self.coordinator
        if not TOPICS.is_in(coordinator):
            return
        last = coordinator._metadata_snapshot  # noqa: SLF001
        # To compare all partitions takes long; what the update lacks are whole topics.
        if last.keys() == set(coordinator._subscription.group_subscription()):  # noqa: SLF001
            return
        now = coordinator._build_metadata_snapshot(coordinator._subscription, cluster)  # noqa: SLF001
        coordinator._metadata_snapshot = coordinator._assignment_snapshot = now  # noqa: SLF001

    def measure(self, measures: Measures) -> None:
        """As `Host`; possible while the consumer is constructed, or polls."""
        if (consumer := consumer_on_the_stack()) is not None:
            measure(consumer, measures)

    def show_members_first(self, look: Callable[[Sequence[Any]], Sent | None]) -> None:
        """Let a function see and change the group's members before this consumer decodes what they sent.

        Once for each consumer, whichever of its strategies the group chooses. Members' `metadata` is bytes
        then. The consumer decodes before it calls an assignor, and an error there would surface from the
        application's `poll`. So `_perform_assignment` is wrapped on this coordinator, once.

        An assignor that takes `AllMembers` is given them, if the method needs no more of the members than
        their topics. Others get the members.
        """
        kind, own = type(self.coordinator), vars(self.coordinator)
        if _DECODES in own or not MEMBERS.is_in(self.coordinator):
            return
        decode = getattr(kind, _DECODES)
        coordinator = weakref.ref(self.coordinator)  # which would otherwise be kept by what it keeps
        replaceable = needs_only_topics(decode)
        if not replaceable:
            warn("Members are decoded one by one: large groups wait for seconds", (_DECODES,))

        def look_and_decode(leader_id: str, protocol_name: str, members: Sequence[Any]) -> Any:
            leader: Any = coordinator()
            vars(leader)[LEADING_SINCE] = time.monotonic()
            try:
                sent = look(members)
                if sent is not None and replaceable and takes(leader._lookup_assignor(protocol_name)):  # noqa: SLF001
                    members = [AllMembers(members, sent)]
                return decode(leader, leader_id, protocol_name, members)
            finally:
                del vars(leader)[LEADING_SINCE]

        own[_DECODES] = look_and_decode


def calling() -> Host | None:
    """The consumer that calls; None where the assignor is driven by hand."""
    return CALLING.get() or KafkaPythonHost.on_the_stack()
