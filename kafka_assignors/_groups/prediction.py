"""What a rebalance would make of a group, by the client that leads it.

Clients deal out the same partitions in range and round robin, and differ in the order of members:

- Java, and the assignors of this library: static members by their instance ids, then the others by member id.
- librdkafka: two static members by their instance ids, any other two by member id. Where static members are
  beside dynamic ones that may be no order at all; then what comes out depends on the C library.
- kafka-python: as Java. But of several runs of static members, or of dynamic ones, in the coordinator's list
  only the last counts. The members before it are left out.
- aiokafka: all by member id.

Racks are left out of account. No protocol says which client leads: it is guessed from what the leader sent.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cmp_to_key, partial
from itertools import combinations, groupby
from operator import attrgetter
from typing import Final

from kafka_assignors._common.strategies import Client
from kafka_assignors._groups.classic import flat
from kafka_assignors._model.group import Group, Member
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    RecordError,
    decode_subscription,
)
from kafka_assignors.planners import _range, _round_robin

Owners = dict[tuple[str, int], str]
"""The member that gets each partition."""

_RACKS_SINCE: Final = 3  # the version of a subscription


def predict(
    strategy: str | None,
    members: Sequence[Member],
    topics: Mapping[str, Collection[int]],
    client: Client,
) -> Owners | None:
    """Who would get what if all joined again now; None if that is not known.

    Members are in the order in which their coordinator lists them. `client` leads.
    """
    planner = {"range": _range.plan_range, "roundrobin": _round_robin.plan_round_robin}.get(strategy or "")
    if planner is None:
        return None
    subscribers: dict[str, list[int]] = {}
    for number, member in enumerate(members):
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(number)
    parts: dict[tuple[int, ...], dict[str, Collection[int]]] = {}
    for topic in topics.keys() & subscribers.keys():
        # Range puts the subscribers of each topic in an order by themselves.
        who = subscribers[topic] if strategy == "range" else range(len(members))
        parts.setdefault(tuple(who), {})[topic] = topics[topic]
    found: Owners = {}
    for numbers, deals in parts.items():
        ordered = _ORDERS[client]([members[number] for number in numbers])
        if ordered is None or not {topic for one in ordered for topic in one.topics} >= deals.keys():
            return None  # kafka-python's own has nobody to give a topic to, and does not end
        # Planners put members in Java's order: these names keep the client's.
        named = [Member(member_id=f"{n:09}", topics=one.topics) for n, one in enumerate(ordered)]
        plan = planner(Group.of(deals, named))
        for number, one in enumerate(ordered):
            found |= dict.fromkeys(flat(plan.of(number)), one.member_id)
    return found


def guess_client(value: GroupMetadataValue) -> Client | None:
    """The client that leads a group, by the bytes that it sent and its client id; None if they do not say."""
    member = next((member for member in value.members if member.member_id == value.leader), None)
    if member is None:
        return None
    for name in ("kafka-python", "aiokafka"):  # their client ids, if the application chose none
        if member.client_id.startswith(f"{name}-"):
            return "aiokafka" if name == "aiokafka" else "kafka-python"
    if member.client_id == "rdkafka":
        return "librdkafka"
    try:
        subscription = decode_subscription(member.subscription)
    except RecordError:
        return None
    if subscription.version >= _RACKS_SINCE and subscription.rack_id == "" and subscription.user_data == b"":
        return "librdkafka"
    return "java" if subscription.version > 0 and subscription.user_data is None else None


def _kafka_python(members: Sequence[Member]) -> list[Member]:
    last_runs = {
        static: [*run] for static, run in groupby(members, key=lambda one: one.instance_id is not None)
    }
    return [
        *sorted(last_runs.get(True, ()), key=lambda one: (one.instance_id, one.member_id)),
        *sorted(last_runs.get(False, ()), key=lambda one: one.member_id),
    ]


def _librdkafka(members: Sequence[Member]) -> list[Member] | None:
    """As `rd_kafka_group_member_cmp` orders them; None if it puts them in no order."""
    ordered = sorted(members, key=cmp_to_key(_compare))
    if len({one.instance_id is None for one in members}) <= 1:
        return ordered
    return ordered if all(_compare(one, other) < 0 for one, other in combinations(ordered, 2)) else None


def _compare(one: Member, other: Member) -> int:
    a, b = one.instance_id, other.instance_id
    if a is None or b is None:
        a, b = one.member_id, other.member_id
    return (a > b) - (a < b)


_ORDERS: Final[Mapping[Client, Callable[[Sequence[Member]], list[Member] | None]]] = {
    "java": partial(sorted, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id)),
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
    "aiokafka": partial(sorted, key=attrgetter("member_id")),
}
