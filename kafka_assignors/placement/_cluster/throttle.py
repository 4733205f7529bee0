"""Kafka's replication quotas: what they are now, set for a reassignment, and put back as they were.

A broker has two rates (KIP-73), one for what it sends as a leader and one for what it fetches as a follower.
They hold for the replicas that a topic lists. Entries for single replicas are the mark of a reassignment, as
of Kafka's own tool. So what a killed run left is known by them, and the brokers that they name lose their
rates. An entry is taken out only when its broker has none: until then it is what says so.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._common.words import named, size
from kafka_assignors.placement._cluster.configs import describe
from kafka_assignors.placement._cluster.topics import Reassignment, read_moving
from kafka_assignors.placement._placement import PlacementError

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
_REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
_ALL: Final = "*"
_NAMED: Final = 5
_TRY_AGAIN: Final = "`placement verify` tries again to remove the throttle"
_WHO_MAY: Final = "a user who may alter configurations has to do that"

_Change = tuple[str, str | None]  # an operation and its value


class Entry(NamedTuple):
    """A replica that a topic lists."""

    topic: str
    name: str  # of the list
    partition: int
    broker: int


class Throttles(NamedTuple):
    """The replication quotas of a cluster.

    Attributes:
        rates: Broker -> name -> bytes per second, where set.
        own: The same, but only what is set for that broker and not for all.
        replicas: Topic -> name -> its list, "partition:broker" each or "*", where set.
        untold: "broker 1" or "topic orders" -> why it does not say what it has, as for want of a permission.
    """

    rates: dict[int, dict[str, int]]
    own: dict[int, dict[str, int]]
    replicas: dict[str, dict[str, list[str]]]
    untold: dict[str, str]

    def to_json(self) -> dict[str, object]:
        """In types that JSON has: what is set."""
        return {
            "brokers": {broker: rates for broker, rates in self.rates.items() if rates},
            "topics": {topic: lists for topic, lists in self.replicas.items() if any(lists.values())},
            "untold": self.untold,
        }

    @property
    def entries(self) -> set[Entry]:
        """The replicas that are listed one by one."""
        return {
            Entry(topic, name, *map(int, one.split(":")))
            for topic, lists in self.replicas.items()
            for name, listed in lists.items()
            for one in listed
            if one != _ALL
        }

    def rate(self, partition: TopicPartition, leader: int | None, target: int) -> int | None:
        """Bytes per second that copying this partition from its leader may take; None for any number."""
        lists = self.replicas.get(partition.topic, {})
        found = [
            self.rates.get(broker, {}).get(rate)
            for broker, rate, name in zip((leader, target), _RATES, _REPLICAS, strict=True)
            if broker is not None and {_ALL, f"{partition.partition}:{broker}"} & {*lists.get(name, ())}
        ]
        return min((quota for quota in found if quota is not None), default=None)


def entries_of(moves: Mapping[TopicPartition, Reassignment]) -> set[Entry]:
    """What to list for reassignments: the replicas that there are, and those that are copied.

    Any broker that has one may become the leader, and so the sender.
    """
    return {
        Entry(tp.topic, name, tp.partition, broker)
        for tp, move in moves.items()
        if move.adding
        for name, brokers in ((LEADER_REPLICAS, move.before), (FOLLOWER_REPLICAS, move.adding))
        for broker in brokers
    }


def read_throttles(admin: Admin, brokers: Collection[int], topics: Collection[str]) -> Throttles:
    """The quotas of these brokers, but for those that do not answer, and of these topics."""
    found = Throttles({}, {}, {}, {})
    for broker in sorted(brokers):
        try:
            said = describe(admin, ConfigResourceType.BROKER, [str(broker)], _RATES, node=broker)
        except (ClusterError, KafkaError):
            continue
        found.untold.update({f"broker {broker}": why for why in said.refused.values()})
        for rates in said.settings.values():
            found.rates[broker] = {name: int(one.value) for name, one in rates.items()}
            found.own[broker] = {name: int(one.value) for name, one in rates.items() if one.own}
    listed = describe(admin, ConfigResourceType.TOPIC, sorted(topics), _REPLICAS)
    found.untold.update({f"topic {topic}": why for topic, why in listed.refused.items()})
    for topic, lists in listed.settings.items():
        found.replicas[topic] = {
            name: [entry.strip() for entry in one.value.split(",") if entry.strip()]
            for name, one in lists.items()
        }
    return found


@contextmanager
def throttled(
    admin: Admin,
    rate: int,
    copies: Collection[Entry],
    *,
    up: Collection[int],
    give_up: Callable[[], Collection[TopicPartition]],
    warn: Callable[[str], None],
) -> Iterator[None]:
    """Hold copies to so many bytes per second, for each broker and each way; put back what was in the end.

    Brokers that are not `up`, or do not answer, are left out. After an error or Ctrl-C `give_up` breaks the
    copies off, which would continue without a throttle, and returns what it broke off.
    """
    partitions = {(one.topic, one.partition) for one in copies}
    if others := [tp for tp in _copied(admin) if tp not in partitions]:
        raise PlacementError(
            f"{named(others, _NAMED)} is copied under another throttle: wait for its end, or break it off"
            " with `placement cancel`"
        )
    now = read_throttles(admin, {*_brokers(copies)} & {*up}, _topics(copies))
    for resource, why in now.untold.items():
        raise ClusterError(f"{resource} does not say which throttle it has: {why}; {_WHO_MAY}")
    left = _brokers(now.entries & {*copies})
    if over := taken_over({broker: now.own.get(broker, {}) for broker in left}, rate):
        warn(over)
    before = {broker: rates for broker, rates in now.own.items() if broker not in left}
    lift = partial(_lift, admin, copies, before, rate)
    try:
        set_throttle(admin, rate, copies, now)
        yield
        _, left_behind = lift()
    except BaseException:
        _give_up(admin, _topics(copies), give_up, lift, warn)
        raise
    for one in left_behind:
        warn(one)


def set_throttle(admin: Admin, rate: int, copies: Collection[Entry], now: Throttles) -> None:
    """Set the quotas of copies. The lists come first: a killed run's rates are known by them."""
    for topic, lists in _lists(copies).items():
        listed = now.replicas.get(topic, {})
        added = {
            name: ("APPEND", entries) for name, entries in lists.items() if _ALL not in listed.get(name, [])
        }
        _alter(admin, ConfigResourceType.TOPIC, topic, added)
    for broker in now.own:
        _alter(admin, ConfigResourceType.BROKER, str(broker), dict.fromkeys(_RATES, ("SET", str(rate))))


def remove_left(
    admin: Admin, topics: Collection[str], say: Callable[[str], None], own: Collection[TopicPartition] = ()
) -> None:
    """Remove the throttle that a killed run left on some topics, unless copies are under way under it.

    With `own`, copies of these partitions are all that is continued without it.
    """
    try:
        if own and not {*own} & {*_copied(admin)}:
            return
        entries = read_throttles(admin, (), topics).entries
    except (ClusterError, KafkaError) as error:
        say(f"topics do not say what is throttled: {error}: {_TRY_AGAIN}")
        return
    if not entries:
        return
    brokers, left = _lift(admin, entries, own=own)
    if brokers:
        say(f"removed what an earlier run left: its throttle on brokers {', '.join(map(str, brokers))}")
    for one in left:
        say(one)


def remove_all(admin: Admin, throttles: Throttles) -> None:
    """Remove these quotas, set by any run or admin."""
    for broker, rates in throttles.own.items():
        _alter(admin, ConfigResourceType.BROKER, str(broker), dict.fromkeys(rates, ("DELETE", None)))
    for topic, lists in throttles.replicas.items():
        _alter(admin, ConfigResourceType.TOPIC, topic, dict.fromkeys(lists, ("DELETE", None)))


def taken_over(left: Mapping[int, Mapping[str, int]], rate: int) -> str:
    """Which rates of an earlier run a new one takes the place of, in words; empty if there are none."""
    brokers = ", ".join(str(broker) for broker, rates in sorted(left.items()) if rates)
    if not brokers:
        return ""
    before = ", ".join(
        f"{size(one)}/s" for one in sorted({one for rates in left.values() for one in rates.values()})
    )
    return (
        f"replaces the throttle that an earlier run left on brokers {brokers}:"
        f" it was {before} and is now {size(rate)}/s"
    )


def _give_up(
    admin: Admin,
    topics: Sequence[str],
    give_up: Callable[[], Collection[TopicPartition]],
    lift: Callable[[], tuple[list[int], list[str]]],
    warn: Callable[[str], None],
) -> None:
    """Break copies off, put back what was, and say what has come of both."""
    cancel = f"`placement cancel {' '.join(topics) if len(topics) <= _NAMED else 'TOPIC...'}`"
    ended, failure = "nothing was under way", ""
    try:
        with suppress(ClusterError):  # the client that there was may know brokers that answer
            admin.reconnect()
        try:
            ended = "broken off" if give_up() else ended
        except (ClusterError, KafkaError) as error:
            failure = str(error)
        _, left = lift()
    except KeyboardInterrupt:
        warn(f"interrupted before all was broken off and the throttle removed: {cancel} does both")
        raise
    for one in left:
        warn(one)
    if failure and left:
        warn(
            f"what is under way is not broken off: {failure}; {cancel} breaks it off and removes the"
            " throttle, and the same command continues with it"
        )
    elif left:
        warn(f"{ended}, but the throttle is not removed: {cancel}, or the same command again, removes it")
    elif ended == "broken off":
        warn(f"{ended}, and the throttle removed; the same command begins again what was under way")
    else:
        warn(f"{ended}, and the throttle is removed; the same command does the rest")


def _lift(
    admin: Admin,
    entries: Collection[Entry],
    before: Mapping[int, Mapping[str, int]] | None = None,
    rate: int | None = None,
    own: Collection[TopicPartition] = (),
) -> tuple[list[int], list[str]]:
    """Put rates back, and take out the entries of brokers that have none any more.

    Rates are those of `before`, in place of `rate`; None for any. Nothing is put back while a copy is under
    way under a throttle, but for `own`: that would go on without it.

    Returns the brokers without it, and what is left, in words.
    """
    try:
        held = [tp for tp in _copied(admin) if tp not in own]
        now = read_throttles(admin, _brokers(entries), _topics(entries))
    except (ClusterError, KafkaError) as error:
        return [], [
            f"the throttle stays, as the cluster does not say what is under way: {error}: {_TRY_AGAIN}"
        ]
    if held:
        return [], [f"the throttle stays while {named(held, _NAMED)} is copied: {_TRY_AGAIN} after that"]
    left = {
        broker: _lift_from(admin, broker, now, (before or {}).get(broker, {}), rate)
        for broker in _brokers(entries)
    }
    cleared = [broker for broker, why in left.items() if not why]
    said = [*left.values()]
    for topic, gone in _lists([one for one in entries if one.broker in cleared]).items():
        if why := now.untold.get(f"topic {topic}"):
            said.append(f"topic {topic} does not say what is throttled: {why}: {_TRY_AGAIN}; {_WHO_MAY}")
        elif topic in now.replicas:  # else it was deleted, and its lists with it
            listed = now.replicas[topic]
            # No list may be one of which the broker has not yet heard.
            changes: dict[str, _Change] = {
                name: ("SUBTRACT", ours) if {*listed.get(name, ())} - {*ours.split(",")} else ("DELETE", None)
                for name, ours in gone.items()
            }
            said.append(_try(admin, ConfigResourceType.TOPIC, topic, changes))
    return cleared, [one for one in said if one]


def _lift_from(admin: Admin, broker: int, now: Throttles, before: Mapping[str, int], rate: int | None) -> str:
    """Put a broker's rates back; why they are not, or nothing."""
    if why := now.untold.get(f"broker {broker}"):
        return f"broker {broker} does not say whether the throttle is on it: {why}: {_TRY_AGAIN}; {_WHO_MAY}"
    if broker not in now.own:
        return (
            f"the throttle is still on broker {broker}, which does not answer: `placement verify` removes it"
            " once it is up"
        )
    changes: dict[str, _Change] = {}
    for name in _RATES:
        first, current = before.get(name), now.own[broker].get(name)
        # What somebody else has set meanwhile stays. What was there before may be what the broker has not yet
        # heard to be replaced.
        if current in {first, rate} if rate is not None else current is not None:
            changes[name] = ("DELETE", None) if first is None else ("SET", str(first))
    return _try(admin, ConfigResourceType.BROKER, str(broker), changes)


def _brokers(entries: Collection[Entry]) -> list[int]:
    return sorted({one.broker for one in entries})


def _topics(entries: Collection[Entry]) -> list[str]:
    return sorted({one.topic for one in entries})


def _lists(entries: Collection[Entry]) -> dict[str, dict[str, str]]:
    """Entries as the lists of topics, by name."""
    found: dict[str, dict[str, str]] = {}
    for name in _REPLICAS:
        of_name = sorted(one for one in entries if one.name == name)
        for topic, listed in groupby(of_name, key=lambda one: one.topic):
            found.setdefault(topic, {})[name] = ",".join(f"{one.partition}:{one.broker}" for one in listed)
    return found


def _copied(admin: Admin) -> list[TopicPartition]:
    """The partitions that are copied under a throttle."""
    moving = read_moving(admin)
    listed = read_throttles(admin, (), {tp.topic for tp in moving}).entries
    return [
        tp
        for tp, move in sorted(moving.items())
        if any(Entry(tp.topic, FOLLOWER_REPLICAS, tp.partition, broker) in listed for broker in move.adding)
    ]


def _try(admin: Admin, kind: ConfigResourceType, name: str, changes: Mapping[str, _Change]) -> str:
    """Change settings; why it could not be, or nothing."""
    try:
        _alter(admin, kind, name, changes)
    except (ClusterError, KafkaError) as error:
        return f"{error}: {_TRY_AGAIN}"
    return ""


def _alter(admin: Admin, kind: ConfigResourceType, name: str, changes: Mapping[str, _Change]) -> None:
    if not changes:
        return
    resource = ConfigResource(kind, name, dict(changes))
    try:
        answer = admin.ask(
            lambda client: client.alter_configs([resource], raise_on_unknown=False, incremental=True)
        )
    except KafkaError as error:
        raise ClusterError(
            f"{kind.name.lower()} {name} does not take {', '.join(changes)}: {error}"
        ) from error
    if (said := answer[kind.name.lower()][name]) != "OK":
        raise ClusterError(f"{kind.name.lower()} {name} does not take {', '.join(changes)}: {said}")
