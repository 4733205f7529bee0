"""What the members of a group sent to its leader: read once, before kafka-python decodes it.

docs/design.md says under "What members sent is read once" what that saves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

from kafka_assignors._assignors._member_warnings import MemberWarnings
from kafka_assignors._model.members import canonical_order
from kafka_assignors._wire.codec import Subscriptions, read_subscriptions, write_topics
from kafka_assignors._wire.repair import read_repaired

_Assign = TypeVar("_Assign", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sent:
    """What members sent, in `size` bytes. Instance ids are None or empty for dynamic members."""

    ids: Sequence[str]
    instance_ids: Sequence[str | None]
    subscriptions: Subscriptions
    size: int

    @classmethod
    def by(cls, members: Sequence[Any]) -> Self:
        """What members sent that kafka-python gives to an assignor.

        They are `AllMembers` alone, or JoinGroupResponseMember objects with decoded metadata.
        """
        match members:
            case [AllMembers(sent=cls() as sent)]:
                return sent
        members = _in_order(members)
        blobs = [member.metadata.encode() for member in members]
        return cls.of(members, read_subscriptions(blobs), sum(map(len, blobs)))

    @classmethod
    def of(cls, members: Sequence[Any], subscriptions: Subscriptions, size: int) -> Self:
        """What members sent, whose subscriptions have been read and have so many bytes."""
        return cls(
            ids=[member.member_id for member in members],
            instance_ids=[member.group_instance_id for member in members],
            subscriptions=subscriptions,
            size=size,
        )


class AllMembers:
    """Stands for all members while kafka-python's leader decodes what they sent.

    The members' `metadata` is bytes. Its own is a subscription to all their topics; kafka-python puts the
    decoded one in its place.
    """

    __slots__ = ("members", "metadata", "sent")

    def __init__(self, members: Sequence[Any], sent: Sent) -> None:
        self.members = members
        self.sent = sent
        self.metadata: Any = write_topics(sent.subscriptions.topics.names)

    def __repr__(self) -> str:  # kafka-python logs it
        return f"<{len(self.sent.ids)} members, read before; together: {self.metadata}>"


class MembersReader:
    """Reads what members sent, and puts right what kafka-python would fail on, with a warning for each."""

    def __init__(self) -> None:
        self._warnings = MemberWarnings("Member %s %s")

    def __call__(self, members: Sequence[Any]) -> Sent | None:
        """Read members whose `metadata` is still bytes; None if kafka-python has decoded them already."""
        members = _in_order(members)
        blobs = [member.metadata for member in members]
        if not {bytes}.issuperset(map(type, blobs)):
            return None  # then there is nothing left to fail
        subscriptions, repairs = read_repaired(blobs)
        faults = {}
        for number, (repaired, fault) in repairs.items():
            member = members[number]
            member.metadata = repaired
            faults[member.member_id] = fault
        self._warnings.warn(faults)
        return Sent.of(members, subscriptions, sum(map(len, blobs)))


def _in_order(members: Sequence[Any]) -> list[Any]:
    ids, instance_ids = [each.member_id for each in members], [each.group_instance_id for each in members]
    return [members[number] for number in canonical_order(ids, instance_ids)]


_TAKERS: Final = WeakSet[Callable[..., Any]]()


def takes_all_members(assign: _Assign) -> _Assign:
    """Marks a method `assign` that may be given `AllMembers` in place of the members."""
    _TAKERS.add(assign)
    return assign


def takes(assignor: Any) -> bool:
    """Whether an assignor may be given `AllMembers`.

    Others need what members sent: kafka-python's own, and classes with an `assign` of their own around ours.
    """
    method = getattr(getattr(assignor, "assign", None), "__func__", None)
    return method is not None and method in _TAKERS


_USED: Final = frozenset(
    (
        *("ConsumerProtocolSubscription", "ValueError", "assign", "debug", "decode", "group_id"),
        *("group_subscribe", "group_subscription", "items", "log", "metadata", "name", "request_update"),
        *("set", "set_topics", "topics", "update"),
        *("_assignment_snapshot", "_cluster", "_is_leader", "_lookup_assignor", "_metadata_snapshot"),
        "_subscription",
    )
)
"""What kafka-python 3.0.12's `_perform_assignment` uses: of members their metadata, of that the topics."""


def needs_only_topics(decodes: Any) -> bool:
    """Whether a coordinator's method that decodes what members sent is one that needs their topics alone.

    A release that uses more, say the partitions that members own, is given the members' own bytes.
    """
    code = getattr(decodes, "__code__", None)
    return isinstance(code, CodeType) and _USED.issuperset(code.co_names)
