"""Kafka's replication quotas: what they are now, set for a reassignment, and put back as they were.

A broker has two rates (KIP-73), one for what it sends as a leader and one for what it fetches as a follower.
They hold for the replicas that a topic lists. Nobody can see who set them. So what a run replaces is written
to a file first (`ThrottleJournal`), and the next run puts back what a killed one could not.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._common.words import first_of, size
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
_PATIENCE_SECONDS: Final = 3.0
_TRY_AGAIN: Final = "`reassign --verify` tries again to remove the throttle"
_OWN: Final = "DYNAMIC_BROKER_CONFIG"  # not the one that all brokers have by default


class Throttles(NamedTuple):
    """The replication quotas of a cluster.

    Attributes:
        rates: Broker -> name -> bytes per second, where set.
        own: The same, but only what is set for that broker and not for all.
        replicas: Topic -> name -> its list, "partition:broker" each or "*", where set.
    """

    rates: dict[int, dict[str, int]]
    own: dict[int, dict[str, int]]
    replicas: dict[str, dict[str, list[str]]]

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
    found = Throttles({}, {}, {})
    for broker in sorted(brokers):
        try:
            configs = _describe(admin, ConfigResourceType.BROKER, [str(broker)], _RATES)[str(broker)]
        except (ClusterError, KafkaError):
            continue
        found.rates[broker] = {name: int(one["value"]) for name, one in configs.items()}
        found.own[broker] = {
            name: int(one["value"]) for name, one in configs.items() if one["config_source"] == _OWN
        }
    for topic, configs in _describe(admin, ConfigResourceType.TOPIC, sorted(topics), _REPLICAS).items():
        found.replicas[topic] = {name: _entries(one["value"]) for name, one in configs.items()}
    return found


@contextmanager
def throttled(
    admin: Admin, throttle: Throttle, copies: Copies, give_up: Callable[[], object]
) -> Iterator[None]:
    """Hold copies to so many bytes per second, for each broker and each way; put back what was in the end.

    Args:
        admin: The cluster.
        throttle: The rate, and where what is replaced is kept meanwhile.
        copies: What is copied; brokers that do not answer are left out.
        give_up: Breaks the copies off, after an error or Ctrl-C: they would continue without a throttle.

    Raises:
        PlacementError: Another run has its throttle on this cluster.
        ClusterError: The cluster does not take it.
    """
    with throttle.journal.alone():
        try:
            _set(admin, throttle, copies)
            yield
        except BaseException:
            try:
                admin.reconnect()
                give_up()
            except (ClusterError, KafkaError) as error:
                throttle.warn(f"what is under way continues: {error}")
            raise
        finally:
            for one in _put_back(admin, throttle.journal):
                throttle.warn(one)


class Throttle(NamedTuple):
    """How fast a reassignment may copy.

    Attributes:
        rate: Bytes per second that a broker may send, and as many that it may get.
        journal: Where what is replaced is kept.
        warn: Gets what is taken over from an earlier run, and what could not be put back.
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
        journal.store(Replaced({}, {}))


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


def _set(admin: Admin, throttle: Throttle, copies: Copies) -> None:
    rate, journal = throttle.rate, throttle.journal
    now = read_throttles(admin, copies.brokers, copies.replicas)
    replaced = journal.load()
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
    # In this order: whatever is set stands in the journal.
    journal.store(replaced)
    for topic, lists in copies.replicas.items():
        added = {
            name: ("APPEND", ",".join(entries))
            for name, entries in lists.items()
            if name in replaced.topics.get(topic, {})
        }
        if added:
            _alter(admin, ConfigResourceType.TOPIC, topic, added)
    for broker in now.own:
        _alter(admin, ConfigResourceType.BROKER, str(broker), {name: ("SET", str(rate)) for name in _RATES})


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
                f"the throttle is still on broker {broker}, which does not answer:"
                " `reassign --verify` removes it once it is up"
            )
            continue
        changes: dict[str, tuple[str, str | None]] = {}
        for name, (before, ours) in rates.items():
            # What somebody else has set meanwhile stays.
            if now.own[broker].get(name) in ours:
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
        now = _describe(admin, ConfigResourceType.TOPIC, [topic], _REPLICAS).get(topic, {})
    except (ClusterError, KafkaError) as error:
        return [f"topic {topic} does not say what is throttled: {error}: {_TRY_AGAIN}"]
    changes: dict[str, tuple[str, str | None]] = {}
    for name, (was_set, ours) in lists.items():
        if name not in now:
            continue
        rest = [entry for entry in _entries(now[name]["value"]) if entry not in ours]
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


def _describe(
    admin: Admin, kind: ConfigResourceType, resources: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The named settings of each resource, where they are set at run time."""
    if not resources:
        return {}
    wanted = [ConfigResource(kind, resource, [*names]) for resource in resources]
    answer = admin.ask(lambda client: client.describe_configs(wanted), patience=_PATIENCE_SECONDS)
    return dict(answer[kind.name.lower()])


def _entries(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",") if entry.strip()]
