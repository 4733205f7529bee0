"""The members of a classic group as its coordinator knows them, and their sessions."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka_assignors._wire.java.orders import HashKeys, string_hash
from kafka_assignors.coordinator._simulator.clock import Clock, Timer
from kafka_assignors.coordinator._simulator.messages import Join


@dataclass(slots=True)
class KnownMember:
    """A member, as the coordinator knows it by its latest `join`; `is_new` until it was in a generation."""

    member_id: str
    join: Join
    assignment: bytes = b""
    is_new: bool = False
    session: Timer | None = field(default=None, repr=False)
    session_ends: int = 0


class KnownMembers(dict[str, KnownMember]):
    """Members by id, in the order in which they came; `order` is that of Kafka's map.

    They are known by instance id, too, and which strategies they know.
    """

    def __init__(self, members: Iterable[KnownMember] = ()) -> None:
        super().__init__()
        self._by_instance: dict[str, str] = {}
        self._strategies: Counter[str] = Counter()
        self.order: HashKeys[str] = HashKeys((), string_hash)
        for member in members:
            self.add(member)

    def in_order(self) -> list[KnownMember]:
        """The members, in the order of Kafka's map."""
        return [self[member_id] for member_id in self.order]

    def of_instance(self, instance_id: str) -> str | None:
        return self._by_instance.get(instance_id)

    def add(self, member: KnownMember) -> None:
        self[member.member_id] = member
        self._strategies.update(list(member.join.protocols))
        self.order.add(member.member_id)
        if member.join.instance_id is not None:
            self._by_instance[member.join.instance_id] = member.member_id

    def remove(self, member_id: str) -> KnownMember:
        member = self.pop(member_id)
        self._strategies.subtract(list(member.join.protocols))
        self.order.discard(member_id)
        if member.join.instance_id is not None:
            self._by_instance.pop(member.join.instance_id, None)
        return member

    def rejoin(self, member: KnownMember, request: Join) -> None:
        self._strategies.subtract(list(member.join.protocols))
        self._strategies.update(list(request.protocols))
        member.join = replace(request, client_id=member.join.client_id, instance_id=member.join.instance_id)

    def supports(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether one of these strategies is known to all members."""
        if not self:
            return bool(protocols)
        return any(self._strategies[name] == len(self) for name in protocols)

    def preferences(self) -> dict[str, list[str]]:
        """Member id -> its strategies, the preferred first; in the order of Kafka's map."""
        return {member.member_id: list(member.join.protocols) for member in self.in_order()}

    def subscriptions(self, strategy: str) -> list[tuple[str, str | None, bytes]]:
        """Member id, instance id and subscription of each, in the order of Kafka's map."""
        return [
            (member.member_id, member.join.instance_id, member.join.protocols[strategy])
            for member in self.in_order()
        ]

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.join.rebalance_timeout_ms for member in self.values()), default=0)


class Sessions:
    """The sessions of members."""

    def __init__(self, clock: Clock, expired: Callable[[KnownMember], None]) -> None:
        self._clock = clock
        self._expired = expired

    def renew(self, member: KnownMember, timeout_ms: int | None = None) -> None:
        """Begin a member's session again, for its own timeout or another."""
        timeout = member.join.session_timeout_ms if timeout_ms is None else timeout_ms
        member.session_ends = self._clock.now + timeout
        if member.session is None or not member.session.pending or member.session.time > member.session_ends:
            self.end(member)
            member.session = self._clock.after(timeout, lambda: self._look(member))

    def _look(self, member: KnownMember) -> None:
        # A timer for each heartbeat would be most of what a simulation does.
        if self._clock.now < member.session_ends:
            rest = member.session_ends - self._clock.now
            member.session = self._clock.after(rest, lambda: self._look(member))
        else:
            self._expired(member)

    @staticmethod
    def end(member: KnownMember) -> None:
        if member.session is not None:
            member.session.cancel()
