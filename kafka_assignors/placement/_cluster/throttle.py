"""Kafka's replication quotas: what they are now, set for a reassignment, and put back as they were.

A broker has two rates (KIP-73), one for what it sends as a leader and one for what it fetches as a follower.
They hold for the replicas that a topic lists. Nobody can see who set them. So what a run replaces is written
to a file first (`ThrottleJournal`), and the next run puts back what a killed one could not.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._common.words import first_of, size
from kafka_assignors.placement._cluster.configs import describe_broker, describe_topics
from kafka_assignors.placement._cluster.throttle_journal import Replaced, RunsTogetherError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from kafka import TopicPartition

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors.placement._cluster.throttle_journal import ThrottleJournal

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
_REPLICAS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
_ALL: Final = "*"
_NAMED: Final = 5
_TRY_AGAIN: Final = "`reassign --verify` tries again to remove the throttle"
_WHO_MAY: Final = "a user who may alter configurations has to do that"


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
    """What a reassignment copies, as the quotas name it.

    Attributes:
        replicas: Topic -> name of the list -> "partition:broker" each.
        brokers: The brokers that send or get something.
    """

    replicas: dict[str, dict[str, list[str]]]
    brokers: frozenset[int]

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
        return cls(replicas, frozenset(brokers))


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


@contextmanager
def throttled(
    admin: Admin, throttle: Throttle, copies: Copies, give_up: Callable[[], Collection[TopicPartition]]
) -> Iterator[None]:
    """Hold copies to so many bytes per second, for each broker and each way; put back what was in the end.

    Args:
        admin: The cluster.
        throttle: The rate, and where what is replaced is kept meanwhile.
        copies: What is copied; brokers that do not answer are left out.
        give_up: Breaks the copies off, after an error or Ctrl-C: they would continue without a throttle.
            Returns what it broke off.

    Raises:
        PlacementError: Another run has its throttle on this cluster.
        ClusterError: The cluster does not take it.
    """
    with throttle.journal.alone():
        now, replaced = _replace(admin, throttle, copies)
        try:
            _set(admin, throttle, copies, now, replaced)
            yield
        except BaseException:
            _give_up(admin, throttle, sorted(copies.replicas), give_up)
            raise
        for one in _put_back(admin, throttle.journal):
            throttle.warn(one)


class Throttle(NamedTuple):
    """How fast a reassignment may copy.

    Attributes:
        rate: Bytes per second that a broker may send, and as many that it may get.
        journal: Where what is replaced is kept.
        warn: Gets what is taken over from an earlier run, and what could not be put back. After an error or
            Ctrl-C it gets what has become of the run.
    """

    rate: int
    journal: ThrottleJournal
    warn: Callable[[str], None]


class PutBack(NamedTuple):
    """What became of the throttles that an earlier run left.

    Attributes:
        brokers: Those that have none of them any more.
        left: What could not be put back, in words.
        busy: Whether a run that is under way has them.
    """

    brokers: tuple[int, ...] = ()
    left: tuple[str, ...] = ()
    busy: bool = False


def put_back(admin: Admin, journal: ThrottleJournal, own: Collection[TopicPartition] = ()) -> PutBack:
    """Put back what a run replaced that was killed; nothing while another run, or its copies, are under way.

    Copies of partitions in `own` do not count: a run without a throttle continues them.
    """
    if not journal.exists:
        return PutBack()
    try:
        with journal.alone():
            brokers = tuple(sorted(journal.load().brokers))
            left = _put_back(admin, journal, own)
            return PutBack(tuple(b for b in brokers if b not in journal.load().brokers), tuple(left))
    except RunsTogetherError:
        return PutBack(busy=True)


def remove_all(admin: Admin, journal: ThrottleJournal, throttles: Throttles) -> None:
    """Remove these quotas, set by any run or admin.

    Raises:
        PlacementError: Another run has its throttle on this cluster.
        ClusterError: The cluster does not do it.
    """
    with journal.alone():
        for broker, rates in throttles.own.items():
            if rates:
                _alter(admin, ConfigResourceType.BROKER, str(broker), dict.fromkeys(rates, ("DELETE", None)))
        for topic, lists in throttles.replicas.items():
            if lists:
                _alter(admin, ConfigResourceType.TOPIC, topic, dict.fromkeys(lists, ("DELETE", None)))
        replaced = journal.load()
        for broker in throttles.own:
            replaced.forget(broker)
        for topic in throttles.replicas:
            replaced.forget(topic)
        # What did not say what it has may still have it.
        journal.store(replaced)


def taken_over(replaced: Replaced, own: Mapping[int, Mapping[str, int]], rate: int) -> str:
    """Which throttle of an earlier run a new rate takes the place of, in words; empty if there is none.

    Args:
        replaced: What runs have set, and what was there before.
        own: Broker -> name -> the rate that it has now.
        rate: The new rate.
    """
    left = [
        (broker, own[broker][name])
        for broker, names in replaced.brokers.items()
        for name, (_, ours) in names.items()
        if own.get(broker, {}).get(name) in ours
    ]
    if not left:
        return ""
    brokers = ", ".join(map(str, sorted({broker for broker, _ in left})))
    before = ", ".join(f"{size(one)}/s" for one in sorted({one for _, one in left}))
    return (
        f"replaces the throttle that an earlier run left on brokers {brokers}:"
        f" it was {before} and is now {size(rate)}/s"
    )


def _replace(admin: Admin, throttle: Throttle, copies: Copies) -> tuple[Throttles, Replaced]:
    """What there is now, and what the throttle is to replace; nothing is set."""
    rate = throttle.rate
    now = read_throttles(admin, copies.brokers, copies.replicas)
    for resource, why in now.untold.items():
        raise ClusterError(f"{resource} does not say which throttle it has: {why}; {_WHO_MAY}")
    replaced = throttle.journal.load()
    if over := taken_over(replaced, now.own, rate):
        throttle.warn(over)
    for broker, own in now.own.items():
        for name in _RATES:
            replaced.add_rate(broker, name, before=own.get(name), ours=rate)
    for topic, lists in copies.replicas.items():
        for name, entries in lists.items():
            before = now.replicas.get(topic, {}).get(name)
            if _ALL not in (before or []):
                replaced.add_replicas(topic, name, before=before, ours=entries)
    return now, replaced


def _set(admin: Admin, throttle: Throttle, copies: Copies, now: Throttles, replaced: Replaced) -> None:
    # In this order: whatever is set stands in the journal.
    throttle.journal.store(replaced)
    for topic, lists in copies.replicas.items():
        added = {
            name: ("APPEND", ",".join(entries))
            for name, entries in lists.items()
            if name in replaced.topics.get(topic, {})
        }
        if added:
            _alter(admin, ConfigResourceType.TOPIC, topic, added)
    rate = str(throttle.rate)
    for broker in now.own:
        _alter(admin, ConfigResourceType.BROKER, str(broker), dict.fromkeys(_RATES, ("SET", rate)))


def _give_up(
    admin: Admin,
    throttle: Throttle,
    topics: Sequence[str],
    give_up: Callable[[], Collection[TopicPartition]],
) -> None:
    """Break copies off, put back what was, and say what has come of both."""
    named = " ".join(topics) if len(topics) <= _NAMED else "TOPIC..."
    cancel = f"`reassign {named} --cancel`"
    broken_off: Collection[TopicPartition] = ()
    failure = ""
    try:
        with suppress(ClusterError):  # the client that there was may know brokers that answer
            admin.reconnect()
        try:
            broken_off = give_up()
        except (ClusterError, KafkaError) as error:
            failure = str(error)
        left = _put_back(admin, throttle.journal)
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


def _put_back(admin: Admin, journal: ThrottleJournal, own: Collection[TopicPartition] = ()) -> list[str]:
    """Put back what the journal has, and forget it. Says of what it could not that it is left.

    Nothing is put back while a copy that it holds is under way: that would go on without a throttle.
    """
    replaced = journal.load()
    if held := _held(admin, replaced, own):
        return [held]
    now = read_throttles(admin, replaced.brokers, ())
    left = []
    for broker, rates in sorted(replaced.brokers.items()):
        if broker not in now.own:
            left.append(
                f"broker {broker} does not say whether the throttle is on it: {why}: {_TRY_AGAIN}; {_WHO_MAY}"
                if (why := now.untold.get(f"broker {broker}"))
                else f"the throttle is still on broker {broker}, which does not answer:"
                " `reassign --verify` removes it once it is up"
            )
            continue
        changes: dict[str, tuple[str, str | None]] = {}
        for name, (before, ours) in rates.items():
            # What somebody else has set meanwhile stays. What was there before may be what the broker has not
            # yet heard to be replaced.
            if now.own[broker].get(name) in {before, *ours}:
                changes[name] = ("DELETE", None) if before is None else ("SET", str(before))
        left += _try(admin, ConfigResourceType.BROKER, str(broker), changes) or replaced.forget(broker)
    for topic, lists in sorted(replaced.topics.items()):
        left += _remove_replicas(admin, topic, lists) or replaced.forget(topic)
    journal.store(replaced)
    return left


def _held(admin: Admin, replaced: Replaced, own: Collection[TopicPartition]) -> str:
    """Which copies are under way that runs have throttled, in words; empty if none is."""
    if not replaced.topics:
        return ""
    try:
        moving = admin.ask(lambda client: client.list_partition_reassignments())
    except (ClusterError, KafkaError) as error:
        return f"the throttle stays, as the cluster does not say what is under way: {error}: {_TRY_AGAIN}"
    names = [
        f"{tp.topic}-{tp.partition}"
        for tp, state in sorted(moving.items())
        for _, ours in [replaced.topics.get(tp.topic, {}).get(FOLLOWER_REPLICAS, (False, []))]
        if tp not in own and {f"{tp.partition}:{broker}" for broker in state["adding_replicas"]} & {*ours}
    ]
    if not names:
        return ""
    return f"the throttle stays while {first_of(names, _NAMED)} is copied: {_TRY_AGAIN} after that"


def _remove_replicas(admin: Admin, topic: str, lists: Mapping[str, tuple[bool, Sequence[str]]]) -> list[str]:
    try:
        said = describe_topics(admin, [topic], _REPLICAS)
    except (ClusterError, KafkaError) as error:
        return [f"topic {topic} does not say what is throttled: {error}: {_TRY_AGAIN}"]
    if topic in said.refused:
        return [
            f"topic {topic} does not say what is throttled: {said.refused[topic]}: {_TRY_AGAIN}; {_WHO_MAY}"
        ]
    if topic not in said.settings:  # it was deleted, and its lists with it
        return []
    now = said.settings[topic]
    changes: dict[str, tuple[str, str | None]] = {}
    for name, (was_set, ours) in lists.items():
        # A list that was not there before may be one of which the broker has not yet heard.
        if was_set and name not in now:
            continue
        entries = _entries(now[name].value) if name in now else []
        rest = [entry for entry in entries if entry not in ours]
        changes[name] = ("SUBTRACT", ",".join(ours)) if rest or was_set else ("DELETE", None)
    return _try(admin, ConfigResourceType.TOPIC, topic, changes)


def _try(
    admin: Admin, kind: ConfigResourceType, name: str, changes: Mapping[str, tuple[str, str | None]]
) -> list[str]:
    try:
        if changes:
            _alter(admin, kind, name, changes)
    except (ClusterError, KafkaError) as error:
        return [f"{error}: {_TRY_AGAIN}"]
    return []


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
