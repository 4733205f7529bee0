"""Why did a group rebalance? Two of its snapshots compared, that of a generation and that of the next.

A record says who the members were, not what happened to them. Reasons for members that are gone follow from
Kafka's own rules. Static members send no LeaveGroup. The coordinator takes nobody for lost before a session
timeout is over (or a rebalance timeout, of one that did not join). A new process has no memory.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from kafka_assignors._groups.snapshots import KIP848, Snapshot, SnapshotMember

Kind = Literal[
    "member joined",
    "member left",
    "member lost",
    "member gone",
    "member removed",
    "static member gone",
    "member restarted",
    "static member came back",
    "subscription changed",
    "strategy changed",
    "topics changed",
    "hand-over of a cooperative rebalance",
    "coordinator moved",
    "unknown",
]
"""What is seen; docs/history_rebalances.md says what each means, `advice` what to do about it."""

RESTARTED: Final = "member restarted"
_RESTARTED: Final = frozenset({RESTARTED, "static member came back"})
_GONE: Final = frozenset({"member gone", "member left", "member lost", "static member gone"})
_HOST: Final = re.compile(r"/[0-9a-fA-F.:]+(%\w+)?\Z")
"""What stands behind a client id in `Change.member`."""

RESTART: Final = timedelta(minutes=10)
"""A member of the same name that joins within this time after one was gone has been restarted."""

HAND_OVER: Final[Kind] = "hand-over of a cooperative rebalance"
"""The second round of a rebalance, whose reason is that of the first."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that differs between two generations.

    `member` is whose doing it was, by client id and host, empty if nobody's. `text` is for people.
    """

    kind: Kind
    member: str = ""
    text: str


def find_changes(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """What differs between two generations; "coordinator moved" or "unknown" if nothing does.

    Of several records of the earlier generation, `before` is the last.
    """
    found = [*_members(before, after), *_strategy(before, after), *_subscriptions(before, after)]
    found += _topics(before, after, alone=not found)
    if not found:
        found += _hand_over(before, after)
    return tuple(found) or (_nothing(before, after),)


def began_us(last: Snapshot, snapshot: Snapshot) -> int:
    """When all had joined, in microseconds since 1970; if that is unknown, when the record was written.

    `last` was written earlier than all can have joined.
    """
    noted = snapshot.state_time_us
    return noted if noted is not None and last.time_us < noted <= snapshot.time_us else snapshot.time_us


def hands_over(last: Snapshot, snapshot: Snapshot) -> bool:
    """Whether a generation assigns what the last one made members of a cooperative group give up.

    It comes at once, as members that revoked partitions join again; or it assigns them at last. A topic that
    nobody had any partition of was deleted, and may come back as another one.
    """
    if not last.given_up:
        return False
    if began_us(last, snapshot) - last.time_us <= last.patience_us:
        return True
    kept = last.owned_topics
    return any(one[0] in kept and one in snapshot.owned for one in last.given_up)


class ReasonCounter:
    """Counts in how many rebalances each kind of reason was seen, as they come.

    A rebalance is also due to a member that restarted if a member is gone with it that joined again within
    `RESTART`, or if that one joined with it. Members are the same if their instance ids or client ids are.
    """

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._restarts: set[int] = set()
        self._gone: dict[str, list[tuple[int, datetime]]] = {}
        self._rebalances = 0

    def add(self, reasons: Iterable[Change], ended: datetime) -> None:
        self._rebalances += 1
        kinds = {reason.kind for reason in reasons}
        self.kinds.update(kinds - {RESTARTED})
        if kinds & _RESTARTED:
            self._restarts.add(self._rebalances)
        # Who is gone with a rebalance can be the one that joined with it.
        for reason in reasons:
            if reason.kind in _GONE:
                self._gone.setdefault(_HOST.sub("", reason.member), []).append((self._rebalances, ended))
        for reason in reasons:
            if reason.kind != "member joined":
                continue
            left = self._gone.get(_HOST.sub("", reason.member), [])
            while left:
                number, before = left.pop(0)
                if ended - before <= RESTART:
                    self._restarts |= {number, self._rebalances}
                    break
        if self._restarts:
            self.kinds[RESTARTED] = len(self._restarts)


def name_of(member: SnapshotMember) -> str:
    """A member as people know it: its instance id, or its client id and host."""
    return member.instance_id or f"{member.client_id}{member.host}"


def _nothing(before: Snapshot, after: Snapshot) -> Change:
    nothing = "no member and no subscription changed"
    if _has_moved(before, after):
        return Change(kind="coordinator moved", text=f"{nothing}, but the coordinator moved")
    return Change(kind="unknown", text=f"{nothing}: a leader joined again, or the coordinator moved")


def _has_moved(before: Snapshot, after: Snapshot) -> bool:
    """Whether another coordinator wrote the later one, so that the two are by different clocks."""
    epochs = {before.leader_epoch, after.leader_epoch}
    return None not in epochs and len(epochs) > 1


def _members(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    old, new = before.by_member_id, after.by_member_id
    if old.keys() == new.keys():
        return
    came = [member for who, member in new.items() if who not in old]
    for member in came:
        if member.instance_id in before.instances:
            yield _change("static member came back", member, "came back")
    gone = [
        member for who, member in old.items() if who not in new and member.instance_id not in after.instances
    ]
    joined = [member for member in came if member.instance_id not in before.instances]
    successors = _successors(gone, joined)
    replacing = {one.member_id for one in successors.values()}
    for member in joined:
        if member.member_id not in replacing:
            yield _change("member joined", member, "joined")
    for member in gone:
        yield _gone(member, successors.get(member.member_id), before, after)


def _successors(
    gone: Iterable[SnapshotMember], joined: Iterable[SnapshotMember]
) -> dict[str, SnapshotMember]:
    """By the member id of one that is gone: one that came from the same client and host; no static ones."""
    free: dict[tuple[str, str], list[SnapshotMember]] = {}
    for member in joined:
        if member.instance_id is None:
            free.setdefault((member.client_id, member.host), []).append(member)
    found = {}
    for member in gone:
        others = free.get((member.client_id, member.host))
        if member.instance_id is None and others:
            same = next((one for one in others if remembers(one, member)), others[0])
            others.remove(same)
            found[member.member_id] = same
    return found


def _gone(
    member: SnapshotMember, successor: SnapshotMember | None, before: Snapshot, after: Snapshot
) -> Change:
    if successor is not None and remembers(successor, member):
        return _change(
            "member lost", member, "was out of the group and came back: it remembers what it had before"
        )
    if successor is not None:
        return _change("member restarted", member, "is gone, and another of its client id and host came")
    soon = _cannot_be_lost(member, before, after)
    if member.instance_id is not None:
        if soon:
            return _change("member removed", member, "was removed by an admin: its session was not over")
        return _change("static member gone", member, "is gone: its session ended, or an admin removed it")
    if soon:
        return _change("member left", member, "left: no timeout was over")
    return _change("member gone", member, "left, or was lost")


def remembers(member: SnapshotMember, other: SnapshotMember) -> bool:
    """Whether a new member claims only what another had; a new process remembers nothing."""
    claims = {(topic, one) for topic, partitions in member.claims.items() for one in partitions}
    return bool(claims) and claims <= other.assignment


def _cannot_be_lost(member: SnapshotMember, before: Snapshot, after: Snapshot) -> bool:
    """Whether less time went by than the coordinator needs to take a member for lost.

    A session begins again when all have joined, which is what `Snapshot.state_time_us` says, and when the
    member syncs. Of KIP-848, whose session timeout is in no record, nothing follows. Neither does anything if
    the coordinator moved, or a clock was set back: nobody knows then how much time went by.
    """
    timeouts = [member.session_timeout_ms, member.rebalance_timeout_ms]
    began, ended = before.state_time_us, after.state_time_us
    if began is None or ended is None or min(timeouts) < 0 or before.protocol_type == KIP848:
        return False
    return not _has_moved(before, after) and 0 <= ended - began < min(timeouts) * 1000


def _strategy(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    if not before.members or not after.members:
        return
    if before.protocol_type != after.protocol_type:
        text = f"the group's protocol is {after.protocol_type} instead of {before.protocol_type}"
        yield Change(kind="strategy changed", text=text)
    elif before.strategy != after.strategy:
        text = f"the strategy is {after.strategy} instead of {before.strategy}"
        yield Change(kind="strategy changed", text=text)


def _subscriptions(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    """Of members that are in both, static ones by their instance id."""
    if len(after.subscriptions) == 1 and before.subscriptions == after.subscriptions:
        return
    old = before.by_identity
    for identity, member in after.by_identity.items():
        other = old.get(identity)
        if other is None or not other.topics or not member.topics or other.topics == member.topics:
            continue
        more, less = sorted(member.topics - other.topics), sorted(other.topics - member.topics)
        words = [f"subscribed to {', '.join(more)}"] if more else []
        words += [f"no longer subscribes to {', '.join(less)}"] if less else []
        yield _change("subscription changed", member, " and ".join(words))


def _topics(before: Snapshot, after: Snapshot, *, alone: bool) -> Iterator[Change]:
    """Partitions that were not there, or are no more, in topics that are subscribed to in both.

    In a cooperative group those that are new may come from another member, and those that are missing may be
    on their way to one. There a topic counts as deleted if it is missing as a whole, and nothing else is
    missing or happened: as nobody came or went, there is nothing to balance.
    """
    if not (before.members and after.members and before.settled and after.settled):
        return
    if before.owned is after.owned or before.owned == after.owned:
        return
    both = before.topics & after.topics
    more = {one for one in after.owned - before.owned if one[0] in both}
    less = {one for one in before.owned - after.owned if one[0] in both}
    if after.cooperative:
        if hands_over(before, after):
            more -= before.claimed
        if not alone or {topic for topic, _ in less} & after.owned_topics:
            less = set()
    for word, partitions in (("more", more), ("fewer", less)):
        for topic, count in sorted(Counter(topic for topic, _ in partitions).items()):
            text = f"{topic} has {count} {word} partition{'' if count == 1 else 's'}"
            yield Change(kind="topics changed", text=text)


def _hand_over(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    given = after.owned - before.owned
    if given and given <= before.given_up and hands_over(before, after):
        count = len(given)
        partitions = f"{count} partition{'' if count == 1 else 's'}"
        text = f"{partitions} that others revoked in the round before got new owners"
        yield Change(kind=HAND_OVER, text=text)


def _change(kind: Kind, member: SnapshotMember, what: str) -> Change:
    return Change(kind=kind, member=name_of(member), text=f"{name_of(member)} {what}")
