"""Which brokers are up, and which partitions are not as they should be."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kafka import TopicPartition
from kafka.admin import ConfigResourceType

from kafka_assignors._cluster.admin import Admin, SilentBrokerError
from kafka_assignors._common.plain import fields_of
from kafka_assignors.placement._cluster.configs import describe
from kafka_assignors.placement._cluster.logs import Logs
from kafka_assignors.placement._cluster.topics import Brokers, PartitionState, read_moving
from kafka_assignors.placement._quality import TopicPartitions

BrokerState = Literal["up", "fenced", "no answer", "gone"]
"""Of a broker: fenced, not fenced but without an answer, or unknown to the cluster, although it has replicas.
Fenced means that it has died, has shut down, or is not through with starting (KIP-631). A broker during a
controlled shutdown is "up": the protocol does not say more until it is fenced.
"""

_KINDS: Final = ("offline", "under_replicated", "under_min_isr", "led_by_others", "reassigned")
_MIN_IN_SYNC: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How brokers and partitions are.

    Attributes:
        brokers: The state of each broker, by id.
        silent: Why those that do not answer do not.
        untold: Why those that do not say what their logs hold do not.
        offline: Partitions without a leader.
        under_replicated: Those with a replica that is not in sync, which no reassignment is adding.
        under_min_isr: Those with fewer in-sync replicas than the topic's `min.insync.replicas`: nothing can
            be produced to them with `acks=all`.
        led_by_others: Those that the preferred leader does not lead, also if nobody does.
        reassigned: Those that are being reassigned.
        controller: Why the controller does not say what is being reassigned; empty if it does.
    """

    brokers: dict[int, BrokerState]
    silent: dict[int, str]
    untold: dict[int, str]
    offline: TopicPartitions
    under_replicated: TopicPartitions
    under_min_isr: TopicPartitions
    led_by_others: TopicPartitions
    reassigned: TopicPartitions
    controller: str = ""

    @property
    def healthy(self) -> bool:
        """Whether the controller and all brokers are up, and all partitions have all replicas in sync."""
        down = self.controller or any(state != "up" for state in self.brokers.values())
        return not (down or self.offline or self.under_replicated or self.under_min_isr)

    @property
    def partitions(self) -> dict[str, TopicPartitions]:
        """What there is to know of partitions, and of which it is true."""
        return {name: getattr(self, name) for name in _KINDS}

    def to_json(self) -> dict[str, object]:
        return {
            **fields_of(self, "healthy"),
            "counts": {name: len(found) for name, found in self.partitions.items()},
        }


def judge(
    topics: Mapping[str, Mapping[int, PartitionState]],
    brokers: Brokers,
    *,
    logs: Logs,
    min_in_sync: Mapping[str, int],
    adding: Mapping[TopicPartition, Collection[int]],
    controller: str = "",
) -> Health:
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in _KINDS}
    holders: set[int] = set()
    for topic, states in sorted(topics.items()):
        for partition, state in sorted(states.items()):
            holders.update(state.replicas)
            added = adding.get(TopicPartition(topic, partition))
            wrong = {
                "offline": state.leader is None,
                "under_replicated": not {*state.replicas} - {*(added or ())} <= state.in_sync,
                "under_min_isr": len(state.in_sync) < min_in_sync.get(topic, 1),
                "led_by_others": state.leader != state.replicas[0],
                "reassigned": added is not None,
            }
            for name, one in found.items():
                if wrong[name]:
                    one.append((topic, partition))
    states_of: dict[int, BrokerState] = {
        broker: "no answer" if broker in logs.silent else "up" if broker in brokers.up else "fenced"
        for broker in brokers.all
    }
    states_of |= dict.fromkeys(holders - states_of.keys(), "gone")
    return Health(
        brokers=dict(sorted(states_of.items())),
        silent=logs.silent,
        untold=logs.untold,
        controller=controller,
        **{name: tuple(partitions) for name, partitions in found.items()},
    )


def read_health(
    admin: Admin, topics: Mapping[str, Mapping[int, PartitionState]], brokers: Brokers, logs: Logs
) -> Health:
    """Ask the cluster for what else is needed to judge it, and judge it."""
    adding: Mapping[TopicPartition, Collection[int]] = {}
    controller = ""
    try:
        adding = {tp: one.adding for tp, one in read_moving(admin, patient=False).items()}
    except SilentBrokerError as error:
        controller = str(error)
    min_in_sync = _read_min_in_sync(admin, topics)
    return judge(topics, brokers, logs=logs, min_in_sync=min_in_sync, adding=adding, controller=controller)


def _read_min_in_sync(admin: Admin, topics: Collection[str]) -> dict[str, int]:
    found = describe(admin, ConfigResourceType.TOPIC, sorted(topics), [_MIN_IN_SYNC], default=True).settings
    # A topic has none without the permission to describe configurations.
    return {topic: int(one[_MIN_IN_SYNC].value) for topic, one in found.items() if one}
