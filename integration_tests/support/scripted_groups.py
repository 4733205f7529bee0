"""Groups on a real broker that are put through something, step by step."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._timelines.events import Assigned, Revoked
from kafka_assignors.testing import Cluster, ConsumerGroup, create_topic, grow_topic
from kafka_assignors.testing._groups.stability import StableGroup

Partitions = frozenset[tuple[str, int]]
Reason = tuple[str, str]
"""A kind, and whose doing it was."""

NOTHING: Partitions = frozenset()
HOST = "/127.0.0.1"
MODERN = "modern"
PARTITIONS = 6
LONG_MS = 45_000
"""A session that ends in no script."""
QUICK = {"session_timeout_ms": 12_000}
"""Of a member that is killed."""
SECONDS = 90.0


class Step(NamedTuple):
    """Something that was done to a group, and what it was like when it was stable again."""

    reasons: frozenset[Reason]
    after: Mapping[str, Partitions]
    generation_before: int
    generation: int

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has to rebalance for it."""
        return {kind for kind, _ in self.reasons} == {"static member came back"}


class Script:
    """A group that is put through something, step by step."""

    def __init__(self, group: ConsumerGroup, strategy: str) -> None:
        self.group = group
        self.strategy = strategy
        self.steps: list[Step] = []
        self._settings: dict[str, Mapping[str, Any]] = {}
        self._stable: StableGroup | None = None

    def session_ms(self, name: str) -> int:
        """The session timeout of a member, which one that is restarted has, too."""
        base = name.partition(".")[0]
        return int({**self.group.settings, **self._settings[base]}["session_timeout_ms"])

    def join(self, name: str, **how: Any) -> None:
        self._settings[name] = how.get("settings", {})
        self.group.join(name, **how)
        self._settle(("member joined", how.get("instance_id") or f"{name}{HOST}"))

    def crash(self, name: str) -> None:
        """A dynamic member is killed, and the group waits for its session to end."""
        self.group.members[name].crash()
        self._settle(("member gone", f"{name}{HOST}"))

    def lose(self, name: str) -> None:
        """A static member is killed, and its session ends."""
        member = self.group.members[name]
        member.crash()
        self._settle(("static member gone", str(member.instance_id)))

    def leave(self, name: str) -> None:
        """A dynamic member leaves."""
        self.group.members[name].leave()
        self._settle(("member left", f"{name}{HOST}"))

    def restart(self, name: str) -> None:
        """A static member ends, and is back before its session is over."""
        member = self.group.members[name]
        member.restart()
        self._settle(("static member came back", str(member.instance_id)))

    def grown(self) -> None:
        self._settle(("topics changed", ""))

    def _settle(self, *reasons: Reason) -> None:
        before, self._stable = self._stable, self.group.wait_stable()
        assert self._stable.protocol == self.strategy
        self.steps.append(
            Step(
                reasons=frozenset(reasons),
                after=self._owned(self._stable),
                generation_before=0 if before is None else before.generation,
                generation=self._stable.generation,
            )
        )

    def _owned(self, stable: StableGroup) -> dict[str, Partitions]:
        """By instance id, or member id."""
        return {
            self.group.members[name].instance_id or self.group.members[name].member_id: named(partitions)
            for name, partitions in stable.assignments.items()
        }


def eager(cluster: Cluster, script: Script, topic: str) -> None:
    """Members of ours that rebalance eagerly."""
    script.join("a", place="process", settings=QUICK)
    script.join("b")
    script.join("c", instance_id="static-c")
    script.crash("a")
    script.restart("c")
    script.join("d", place="process", instance_id="static-d", settings=QUICK)
    script.leave("b")
    grow_topic(cluster, topic, PARTITIONS + 2)
    script.grown()
    script.lose("d")


def cooperative(cluster: Cluster, script: Script, topic: str) -> None:
    """Members of ours that hand over."""
    script.join("a", place="process", settings=QUICK)
    script.join("b")
    script.join("c", instance_id="static-c")
    script.crash("a")
    script.restart("c")
    script.join("d")
    grow_topic(cluster, topic, PARTITIONS + 2)
    script.grown()
    script.leave("b")


def mixed(cluster: Cluster, script: Script, topic: str) -> None:
    """Ours lead, then others' do."""
    script.join("ours")
    script.join("confluent", client="confluent-kafka", assignors=["roundrobin"], instance_id="static-one")
    script.join("stock", assignors=["roundrobin"])
    script.join("aio", client="aiokafka", assignors=["roundrobin"], place="process", settings=QUICK)
    script.restart("confluent")
    script.leave("stock")
    script.leave("ours")
    grow_topic(cluster, topic, PARTITIONS + 2)
    script.grown()
    script.join("ours too")
    script.crash("aio")


def sticky(cluster: Cluster, script: Script, topic: str) -> None:
    """Members of three libraries that all remember what they had."""
    script.join("ours")
    script.join("aio", client="aiokafka", assignors=["sticky"])
    script.join("java", client="java", assignors=["sticky"], place="process", settings=QUICK)
    script.join("static", instance_id="static-one")
    script.restart("static")
    grow_topic(cluster, topic, PARTITIONS + 3)
    script.grown()
    script.crash("java")
    script.leave("ours")


SCRIPTS = {
    "eager": (eager, RangeAssignor),
    "cooperative": (cooperative, CooperativeStickyAssignor),
    "mixed": (mixed, RoundRobinAssignor),
    "sticky": (sticky, StickyAssignor),
}


def named(partitions: Any) -> Partitions:
    return frozenset((one.topic, one.partition) for one in partitions)


class ModernGroup:
    """A group of KIP-848's, whose members come and go, and whose topic grows."""

    def __init__(self, cluster: Cluster) -> None:
        self.topic = create_topic(cluster, PARTITIONS)
        self.group = ConsumerGroup(
            cluster,
            self.topic,
            client="confluent-kafka",
            group_id=MODERN,
            place="thread",
            settings={"group_protocol": "consumer"},
            timeout=SECONDS,
        )
        self.stable: list[dict[str, Partitions]] = []
        self.epochs: list[int] = []

    def play(self, cluster: Cluster) -> None:
        for name in ("one", "two"):
            self.group.join(name)
            self._settle()
        grow_topic(cluster, self.topic, PARTITIONS + 2)
        self._settle()
        self.group.members["one"].leave()
        self._settle()

    def _settle(self) -> None:
        stable = self.group.wait_stable()
        self.stable.append({name: named(partitions) for name, partitions in stable.assignments.items()})
        self.epochs.append(stable.generation)

    @property
    def ids(self) -> dict[str, str]:
        return {name: member.member_id for name, member in self.group.members.items()}

    def life(self, name: str) -> list[Partitions]:
        """What a member had after each callback."""
        had = NOTHING
        life = [had]
        for event in self.group.timeline.of(Assigned, Revoked, member=name):
            partitions = named(event.partitions)
            had = had | partitions if isinstance(event, Assigned) else had - partitions
            life.append(had)
        return life
