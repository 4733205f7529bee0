"""Why did a group rebalance? Two of its records compared, that of a generation and that of the next.

A record says who the members were, not what happened to them: whether one left or was lost is not in it, but
often shows in how long the group took (see `Change.kind`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kafka_assignors.protocol.offsets_topic import RecordError, decode_assignment, decode_subscription

if TYPE_CHECKING:
    from kafka_assignors.protocol.offsets_topic import GroupMetadataValue, MemberMetadata, Subscription

Kind = Literal[
    "member joined",
    "member gone",
    "static member came back",
    "subscription changed",
    "hand-over of a cooperative rebalance",
    "strategy changed",
    "partitions added",
    "unknown",
]
"""What is seen. "member gone" is one that left, or that was lost: it was killed, sent no heartbeat within its
session timeout, or did not poll within `max.poll.interval.ms`."""


HAND_OVER: Final = "hand-over of a cooperative rebalance"
"""The second round of a rebalance, whose reason is that of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that differs between two generations.

    Attributes:
        kind: What.
        member: Whose doing it was: client id and host; empty if nobody's.
        text: The same for people.
    """

    kind: Kind
    member: str
    text: str


def find_changes(before: GroupMetadataValue, after: GroupMetadataValue) -> tuple[Change, ...]:
    """What differs between a generation and a later one; "unknown" alone if nothing does.

    Where nothing differs, a leader has joined again, the coordinator moved, or a member was there and gone
    between the two records.
    """
    old = {member.member_id: member for member in before.members}
    new = {member.member_id: member for member in after.members}
    instances = {member.group_instance_id: member for member in before.members if member.group_instance_id}
    found: list[Change] = []
    returned: set[str] = set()
    for member_id, member in new.items():
        if member_id in old:
            continue
        if member.group_instance_id in instances and member.group_instance_id:
            returned.add(instances[member.group_instance_id].member_id)
            found.append(_change("static member came back", member, "came back"))
        else:
            found.append(_change("member joined", member, "joined"))
    found += [
        _change("member gone", member, "left, or was lost")
        for member_id, member in old.items()
        if member_id not in new and member_id not in returned
    ]
    if before.protocol != after.protocol and before.members and after.members:
        found.append(
            Change(
                kind="strategy changed",
                member="",
                text=f"the strategy is {after.protocol} instead of {before.protocol}",
            )
        )
    for member_id in old.keys() & new.keys():
        found += _changed_subscription(old[member_id], new[member_id])
    if not found:
        found += _hand_over(before, after) or _added(before, after)
    return tuple(found) or (
        Change(
            kind="unknown",
            member="",
            text="no member and no subscription changed: a leader joined again, or the coordinator moved",
        ),
    )


def name_of(member: MemberMetadata) -> str:
    """A member as people know it: its instance id, or its client id and host."""
    return member.group_instance_id or f"{member.client_id}{member.client_host}"


def _change(kind: Kind, member: MemberMetadata, what: str) -> Change:
    return Change(kind=kind, member=name_of(member), text=f"{name_of(member)} {what}")


def _changed_subscription(before: MemberMetadata, after: MemberMetadata) -> list[Change]:
    old, new = _read(before), _read(after)
    if old is None or new is None or {*old.topics} == {*new.topics}:
        return []
    more, less = sorted({*new.topics} - {*old.topics}), sorted({*old.topics} - {*new.topics})
    words = [f"subscribed to {', '.join(more)}"] if more else []
    words += [f"no longer subscribes to {', '.join(less)}"] if less else []
    return [_change("subscription changed", after, " and ".join(words))]


def _hand_over(before: GroupMetadataValue, after: GroupMetadataValue) -> list[Change]:
    """The second round of a cooperative rebalance: what the first kept back is given away."""
    missing = _partitions(after) - _partitions(before)
    owned = {
        (topic, partition)
        for member in before.members
        if (subscription := _read(member)) is not None
        for topic, partitions in subscription.owned_partitions.items()
        for partition in partitions
    }
    if not missing or not missing <= owned:
        return []
    count = len(missing)
    return [
        Change(
            kind="hand-over of a cooperative rebalance",
            member="",
            text=f"{count} partition{'' if count == 1 else 's'} that others let go of in the round before"
            " got new owners",
        )
    ]


def _added(before: GroupMetadataValue, after: GroupMetadataValue) -> list[Change]:
    found = []
    old, new = _partitions(before), _partitions(after)
    for topic in sorted({topic for topic, _ in new - old}):
        count = sum(one == topic for one, _ in new - old)
        text = f"{topic} has {count} more partition{'' if count == 1 else 's'}"
        found.append(Change(kind="partitions added", member="", text=text))
    return found


def _partitions(value: GroupMetadataValue) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for member in value.members:
        try:
            assignment = decode_assignment(member.assignment)
        except RecordError:
            continue
        if assignment is not None:
            found.update((topic, p) for topic, ids in assignment.assigned_partitions.items() for p in ids)
    return found


def _read(member: MemberMetadata) -> Subscription | None:
    try:
        return decode_subscription(member.subscription)
    except RecordError:
        return None
