"""The consumer that is calling an assignor.

kafka-python hands an assignor topics, members and assignments, but tells it neither whether the consumer
rebalances eagerly or cooperatively, nor that it fell out of the group, nor even which consumer it is. A
cooperative assignor that guesses leaves partitions without an owner, or with two. All of it
is known to the consumer's coordinator, and that is always the caller: so it is looked up on the call stack,
in this module and nowhere else.
"""

import inspect
import sys
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from types import FrameType

_MAX_FRAMES: Final = 16
"""How far up the stack to look: the coordinator calls directly, subclasses and wrappers add a few frames."""

_CALLS_LISTENERS: Final = "_invoke_rebalance_listener_async"

_DECODES: Final = "_perform_assignment"
_DECODES_GIVEN: Final = ("self", "leader_id", "protocol_name", "members")


@dataclass(frozen=True, slots=True)
class Host:
    """What an assignor may know of its consumer, read at the moment of the call.

    Attributes:
        coordinator: kafka-python's ConsumerCoordinator.
    """

    coordinator: Any

    @classmethod
    def calling(cls) -> Self | None:
        """The consumer whose coordinator is on the call stack; None where the assignor is driven by hand.

        What a rebalance listener does, it does by hand, although a coordinator called the listener.
        """
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no public way to the caller
        for _ in range(_MAX_FRAMES):
            if frame is None:
                break
            caller = frame.f_locals.get("self")
            if isinstance(caller, ConsumerCoordinator):
                return None if frame.f_code.co_name == _CALLS_LISTENERS else cls(caller)
            frame = frame.f_back
        return None

    @property
    def cooperative(self) -> bool:
        """Whether the consumer keeps its partitions through a rebalance (KIP-429); fixed when it is made."""
        return bool(self.coordinator._rebalance_protocol == RebalanceProtocol.COOPERATIVE)  # noqa: SLF001

    @property
    def generation(self) -> int:
        """The generation that the consumer is in; negative when it is in none, or fell out of it."""
        return int(self.coordinator.group_metadata().generation_id)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has at this moment."""
        return frozenset(self.coordinator._subscription.assigned_partitions())  # noqa: SLF001

    @property
    def heartbeat_interval(self) -> float:
        """The consumer's `heartbeat_interval_ms`, in seconds."""
        return float(self.coordinator.config["heartbeat_interval_ms"]) / 1000

    @property
    def patience(self) -> float:
        """Seconds for which the consumer may be silent before it or its followers are given up."""
        config = self.coordinator.config
        limits = ("session_timeout_ms", "max_poll_interval_ms", "request_timeout_ms")
        return min(float(config[limit]) for limit in limits if config.get(limit)) / 1000

    @property
    def closed(self) -> bool:
        """Whether the consumer was closed."""
        return bool(self.coordinator._heartbeat_closed)  # noqa: SLF001

    @property
    def strategies(self) -> list[str]:
        """The names of the consumer's assignors, in the order of its configuration."""
        return list(self.coordinator._assignors)  # noqa: SLF001

    @property
    def has_namesakes(self) -> bool:
        """Whether assignors were configured that kafka-python dropped for having another one's name."""
        listed = self.coordinator.config["assignors"]
        # Of an iterator nothing is left to count.
        return bool(self.repeated_names) or (
            isinstance(listed, Collection) and len(listed) > len(self.strategies)
        )

    @property
    def repeated_names(self) -> list[str]:
        """The names that more than one configured class or instance has; factories tell none."""
        listed = self.coordinator.config["assignors"]
        names = (
            [getattr(assignor, "name", None) for assignor in listed] if isinstance(listed, Collection) else []
        )
        return sorted({name for name in names if isinstance(name, str) and names.count(name) > 1})

    def request_rejoin(self) -> None:
        """Let the consumer join the group again with its next poll."""
        self.coordinator.request_rejoin()

    def show_members_first(self, look: Callable[[Sequence[Any]], None]) -> None:
        """Let a function see and change the group's members before this consumer decodes what they sent.

        The consumer decodes before it calls an assignor, and what fails there is nobody's to catch but the
        application's. So its coordinator gets that method anew, once. A release of kafka-python that has
        no such method, or another, is left as it is.

        Args:
            look: Called on the leader, with members whose `metadata` is still bytes.
        """
        kind, own = type(self.coordinator), vars(self.coordinator)
        decode = getattr(kind, _DECODES, None)
        if decode is None or _DECODES in own or tuple(inspect.signature(decode).parameters) != _DECODES_GIVEN:
            return
        coordinator = weakref.ref(self.coordinator)  # which would otherwise be kept by what it keeps

        def look_and_decode(leader_id: str, protocol_name: str, members: Sequence[Any]) -> Any:
            look(members)
            return decode(coordinator(), leader_id, protocol_name, members)

        own[_DECODES] = look_and_decode
