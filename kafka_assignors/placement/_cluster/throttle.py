"""Kafka's replication quotas: what they are now, set for a reassignment, and put back as they were.

A broker has two rates (KIP-73), one for what it sends as a leader and one for what it fetches as a follower.
They hold for the replicas that a topic lists. Entries for single replicas are the mark of a reassignment, as
of Kafka's own tool. So what a killed run left is known by them, and the brokers that they name lose their
rates. An entry is taken out only when its broker has none: until then it is what says so.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._common.words import named, size
from kafka_assignors.placement._cluster.configs import describe_broker, describe_topics
from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from kafka import TopicPartition

    from kafka_assignors._cluster.admin import Admin

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


Lists = dict[str, dict[str, list[str]]]


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

    def rate(self, partition: TopicPartition, leader: int | None, target: int) -> int | None:
        """Bytes per second that copying this partition from its leader may take; None for any number."""
        found = []
        for broker, rate, listed in (
            (leader, LEADER_RATE, LEADER_REPLICAS),
            (target, FOLLOWER_RATE, FOLLOWER_REPLICAS),
        ):
            entries = self.replicas.get(partition.topic, {}).get(listed, [])
            quota = None if broker is None else self.rates.get(broker, {}).get(rate)
            if quota is not None and {_ALL, f"{partition.partition}:{broker}"} & {*entries}:
                found.append(quota)
        return min(found, default=None)


class Copies(NamedTuple):
    """What a reassignment copies, as the quotas name it."""

    replicas: Lists  # "partition:broker" each
    brokers: frozenset[int]  # those that send or get something
    partitions: frozenset[TopicPartition]

    @classmethod
    def of(cls, moves: Mapping[TopicPartition, tuple[Collection[int], Collection[int]]]) -> Copies:
        """The copies of these partitions: the brokers that have a replica, and those that get one.

        Any broker that has one may become the leader, and so the sender.
        """
        replicas: dict[str, dict[str, list[str]]] = {}
        brokers: set[int] = set()
        for tp, (present, added) in sorted(moves.items()):
            if not added:
                continue
            of_topic = replicas.setdefault(tp.topic, {name: [] for name in _REPLICAS})
            of_topic[LEADER_REPLICAS] += [f"{tp.partition}:{broker}" for broker in sorted(present)]
            of_topic[FOLLOWER_REPLICAS] += [f"{tp.partition}:{broker}" for broker in sorted(added)]
            brokers.update(present, added)
        return cls(replicas, frozenset(brokers), frozenset(tp for tp, (_, added) in moves.items() if added))


def read_throttles(admin: Admin, brokers: Collection[int], topics: Collection[str]) -> Throttles:
    """The quotas of these brokers, but for those that do not answer, and of these topics."""
    found = Throttles({}, {}, {}, {})
    for broker in sorted(brokers):
        try:
            said = describe_broker(admin, broker, _RATES)
        except (ClusterError, KafkaError):
            continue
        found.untold.update({f"broker {broker}": why for why in said.refused.values()})
        for rates in said.settings.values():
            found.rates[broker] = {name: int(one.value) for name, one in rates.items()}
            found.own[broker] = {name: int(one.value) for name, one in rates.items() if one.own}
    listed = describe_topics(admin, sorted(topics), _REPLICAS)
    found.untold.update({f"topic {topic}": why for topic, why in listed.refused.items()})
    for topic, lists in listed.settings.items():
        found.replicas[topic] = {name: _entries(one.value) for name, one in lists.items()}
    return found


class Throttle(NamedTuple):
    """How fast a reassignment may copy, and who gets what is taken over, left or broken off."""

    rate: int  # bytes per second that a broker may send, and as many that it may get
    warn: Callable[[str], None]


class _Set(NamedTuple):
    """Quotas that are to go."""

    replicas: Lists
    before: Mapping[int, Mapping[str, int]]  # broker -> name -> the rate to put back
    rate: int | None  # the one that was set; None for any


@contextmanager
def throttled(
    admin: Admin, throttle: Throttle, copies: Copies, give_up: Callable[[], Collection[TopicPartition]]
) -> Iterator[None]:
    """Hold copies to so many bytes per second, for each broker and each way; put back what was in the end.

    Brokers that do not answer are left out. After an error or Ctrl-C `give_up` breaks the copies off, which
    would continue without a throttle, and returns what it broke off.
    """
    if others := [tp for tp in _copied(admin) if tp not in copies.partitions]:
        raise PlacementError(
            f"{named(others, _NAMED)} is copied under another throttle: wait for its end, or break it off"
            " with `placement cancel`"
        )
    now = read_throttles(admin, copies.brokers, copies.replicas)
    for resource, why in now.untold.items():
        raise ClusterError(f"{resource} does not say which throttle it has: {why}; {_WHO_MAY}")
    marks = {topic: _common(lists, now.replicas.get(topic, {})) for topic, lists in copies.replicas.items()}
    left = _brokers_in(marks)
    if over := taken_over({broker: now.own.get(broker, {}) for broker in left}, throttle.rate):
        throttle.warn(over)
    before = {broker: rates for broker, rates in now.own.items() if broker not in left}
    done = _Set(copies.replicas, before, throttle.rate)
    try:
        set_throttle(admin, throttle.rate, copies, now)
        yield
    except BaseException:
        _give_up(admin, throttle, done, give_up)
        raise
    for one in _lift(admin, done)[1]:
        throttle.warn(one)


def set_throttle(admin: Admin, rate: int, copies: Copies, now: Throttles) -> None:
    """Set the quotas of copies. The lists come first: a killed run's rates are known by them."""
    for topic, lists in copies.replicas.items():
        listed = now.replicas.get(topic, {})
        added = {
            name: ("APPEND", ",".join(entries))
            for name, entries in lists.items()
            if _ALL not in listed.get(name, [])
        }
        if added:
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
        found = read_throttles(admin, (), topics).replicas
    except (ClusterError, KafkaError) as error:
        say(f"topics do not say what is throttled: {error}: {_TRY_AGAIN}")
        return
    replicas = {
        topic: {name: [one for one in entries if one != _ALL] for name, entries in lists.items()}
        for topic, lists in found.items()
    }
    if not _brokers_in(replicas):
        return
    brokers, left = _lift(admin, _Set(replicas, {}, None), own)
    if brokers:
        say(f"removed what an earlier run left: its throttle on brokers {', '.join(map(str, brokers))}")
    for one in left:
        say(one)


def remove_all(admin: Admin, throttles: Throttles) -> None:
    """Remove these quotas, set by any run or admin."""
    for broker, rates in throttles.own.items():
        if rates:
            _alter(admin, ConfigResourceType.BROKER, str(broker), dict.fromkeys(rates, ("DELETE", None)))
    for topic, lists in throttles.replicas.items():
        if lists:
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
    admin: Admin, throttle: Throttle, done: _Set, give_up: Callable[[], Collection[TopicPartition]]
) -> None:
    """Break copies off, put back what was, and say what has come of both."""
    topics = sorted(done.replicas)
    cancel = f"`placement cancel {' '.join(topics) if len(topics) <= _NAMED else 'TOPIC...'}`"
    broken_off: Collection[TopicPartition] = ()
    failure = ""
    try:
        with suppress(ClusterError):  # the client that there was may know brokers that answer
            admin.reconnect()
        try:
            broken_off = give_up()
        except (ClusterError, KafkaError) as error:
            failure = str(error)
        _, left = _lift(admin, done)
    except KeyboardInterrupt:
        throttle.warn(f"interrupted before all was broken off and the throttle removed: {cancel} does both")
        raise
    for one in left:
        throttle.warn(one)
    if failure and left:
        said = (
            f"what is under way is not broken off: {failure}; {cancel} breaks it off and removes the"
            " throttle, and the same command continues with it"
        )
    elif failure:
        said = (
            f"what was under way was not broken off: {failure}; the throttle is removed, as nothing is copied"
            " under it any more"
        )
    elif left:
        ended = "broken off" if broken_off else "nothing was under way"
        said = f"{ended}, but the throttle is not removed: {cancel}, or the same command again, removes it"
    elif broken_off:
        said = "broken off, and the throttle removed; the same command begins again what was under way"
    else:
        said = "nothing was under way, and the throttle is removed; the same command does the rest"
    throttle.warn(said)


def _lift(admin: Admin, done: _Set, own: Collection[TopicPartition] = ()) -> tuple[list[int], list[str]]:
    """Put rates back, and take out the entries of brokers that have none any more.

    Nothing is put back while a copy is under way under a throttle: that would go on without it.

    Returns the brokers without it, and what is left, in words.
    """
    try:
        held = [tp for tp in _copied(admin) if tp not in own]
    except (ClusterError, KafkaError) as error:
        return [], [
            f"the throttle stays, as the cluster does not say what is under way: {error}: {_TRY_AGAIN}"
        ]
    if held:
        return [], [f"the throttle stays while {named(held, _NAMED)} is copied: {_TRY_AGAIN} after that"]
    brokers = _brokers_in(done.replicas)
    now = read_throttles(admin, brokers, ())
    left: dict[int, str] = {}
    for broker in brokers:
        if broker in now.own:
            changes = _rates_back(now.own[broker], done.before.get(broker, {}), done.rate)
            left[broker] = _try(admin, ConfigResourceType.BROKER, str(broker), changes)
        elif why := now.untold.get(f"broker {broker}"):
            left[broker] = (
                f"broker {broker} does not say whether the throttle is on it: {why}: {_TRY_AGAIN}; {_WHO_MAY}"
            )
        else:
            left[broker] = (
                f"the throttle is still on broker {broker}, which does not answer: `placement verify`"
                " removes it once it is up"
            )
    cleared = [broker for broker in brokers if not left[broker]]
    said = [*left.values()]
    for topic, lists in sorted(done.replicas.items()):
        gone = {
            name: [one for one in entries if int(one.partition(":")[2]) in cleared]
            for name, entries in lists.items()
        }
        said.append(_remove_replicas(admin, topic, gone))
    return cleared, [one for one in said if one]


def _rates_back(
    now: Mapping[str, int], before: Mapping[str, int], rate: int | None
) -> dict[str, tuple[str, str | None]]:
    changes: dict[str, tuple[str, str | None]] = {}
    for name in _RATES:
        first, current = before.get(name), now.get(name)
        # What somebody else has set meanwhile stays. What was there before may be what the broker has not yet
        # heard to be replaced.
        if current in {first, rate} if rate is not None else current is not None:
            changes[name] = ("DELETE", None) if first is None else ("SET", str(first))
    return changes


def _common(some: Mapping[str, list[str]], others: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: [*{*entries} & {*others.get(name, [])}] for name, entries in some.items()}


def _brokers_in(replicas: Lists) -> list[int]:
    """The brokers that entries name."""
    found = (one for lists in replicas.values() for entries in lists.values() for one in entries)
    return sorted({int(one.partition(":")[2]) for one in found})


def _copied(admin: Admin) -> list[TopicPartition]:
    """The partitions that are copied under a throttle."""
    moving = admin.ask(lambda client: client.list_partition_reassignments())
    listed = read_throttles(admin, (), {tp.topic for tp in moving}).replicas
    return [
        tp
        for tp, state in sorted(moving.items())
        if {f"{tp.partition}:{broker}" for broker in state["adding_replicas"]}
        & {*listed.get(tp.topic, {}).get(FOLLOWER_REPLICAS, [])}
    ]


def _remove_replicas(admin: Admin, topic: str, gone: Mapping[str, Sequence[str]]) -> str:
    try:
        said = describe_topics(admin, [topic], _REPLICAS)
    except (ClusterError, KafkaError) as error:
        return f"topic {topic} does not say what is throttled: {error}: {_TRY_AGAIN}"
    if topic in said.refused:
        return (
            f"topic {topic} does not say what is throttled: {said.refused[topic]}: {_TRY_AGAIN}; {_WHO_MAY}"
        )
    if topic not in said.settings:  # it was deleted, and its lists with it
        return ""
    now = said.settings[topic]
    changes: dict[str, tuple[str, str | None]] = {}
    for name, ours in gone.items():
        if not ours:
            continue
        entries = _entries(now[name].value) if name in now else []
        # No list may be one of which the broker has not yet heard.
        rest = [entry for entry in entries if entry not in ours]
        changes[name] = ("SUBTRACT", ",".join(ours)) if rest else ("DELETE", None)
    return _try(admin, ConfigResourceType.TOPIC, topic, changes)


def _try(
    admin: Admin, kind: ConfigResourceType, name: str, changes: Mapping[str, tuple[str, str | None]]
) -> str:
    """Change settings if there is something to change; why it could not be, or nothing."""
    try:
        if changes:
            _alter(admin, kind, name, changes)
    except (ClusterError, KafkaError) as error:
        return f"{error}: {_TRY_AGAIN}"
    return ""


def _alter(
    admin: Admin, kind: ConfigResourceType, name: str, changes: Mapping[str, tuple[str, str | None]]
) -> None:
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


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",") if entry.strip()]
