"""Histories of groups: by hand, and from the simulator with the records that its coordinator writes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from kafka_assignors._assignors import Assignor
from kafka_assignors._assignors._messages import make_subscription
from kafka_assignors._common.words import by_topic
from kafka_assignors._groups.activity import Activity, GroupFollower
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot, SnapshotMember
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors.coordinator._simulator.settings import MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from kafka_assignors.history._snapshots import SnapshotReader
from tests.support.wire import NOTHING, partition_list

QUICK = MemberSettings(
    session_timeout_ms=6000, heartbeat_interval_ms=300, max_poll_interval_ms=20_000, poll_ms=50
)
START_US = 1_700_000_000_000_000
_STEP = 0.01


def partitions_of(text: str) -> frozenset[tuple[str, int]]:
    """ "t0 t1 u3" as partitions: a topic of one letter and an id each."""
    return frozenset((one[0], int(one[1:])) for one in text.split())


def member(name: str, has: str = "", *, had: str = "", topics: str = "t", **fields: Any) -> SnapshotMember:
    """A member; dynamic ones are called "name" or "name#id", static ones "=name" or "=name#id".

    The name is its client id or instance id. It has and had partitions as in `partitions_of`, and subscribes
    to topics of one letter.
    """
    bare, _, number = name.lstrip("=").partition("#")
    settings: dict[str, Any] = {"host": "/h", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000}
    return SnapshotMember(
        member_id=f"{bare}-{number or 0}",
        instance_id=bare if name.startswith("=") else None,
        client_id=bare,
        topics=frozenset(topics),
        claims={topic: tuple(ids) for topic, ids in by_topic(partitions_of(had)).items()},
        assignment=partitions_of(has),
        **{**settings, **fields},
    )


def snapshot(
    generation: int,
    seconds: float,
    *members: SnapshotMember,
    joined: float | None = None,
    strategy: str = "sticky",
    start_us: int = START_US,
    **fields: Any,
) -> Snapshot:
    """A snapshot so many seconds after the start; `joined` is when all had joined, at once by default."""
    return Snapshot(
        group="g",
        generation=generation,
        time_us=start_us + round(seconds * 1e6),
        state_time_us=start_us + round((seconds if joined is None else joined) * 1e6),
        offset=round(seconds * 1000),
        strategy=strategy if members else None,
        members=tuple(sorted(members, key=lambda one: (one.identity, one.member_id))),
        **fields,
    )


def read_snapshots(
    records: Iterable[ArchivedRecord], topic_names: Mapping[str, str] | None = None
) -> Iterator[Snapshot]:
    """The snapshots of one group's records; those that cannot be read are left out."""
    reader = SnapshotReader(topic_names)
    for record in records:
        yield from reader.add(record)
    yield from reader.flush()


def topics_seen(topics: Mapping[str, int] | TopicsSeen | None) -> TopicsSeen:
    """Counts that never changed, counts over time, or nothing."""
    return topics if isinstance(topics, TopicsSeen) else TopicsSeen.always(topics or {})


def find_rebalances(
    snapshots: Iterable[Snapshot], topics: Mapping[str, int] | TopicsSeen | None = None
) -> list[Rebalance]:
    """The rebalances of one group, in the order in which they ended, without quiet ones."""
    follower = GroupFollower(topics_seen(topics))
    found = [rebalance for one in snapshots for rebalance in follower.add(one)]
    return [one for one in (*found, *follower.finish()) if not one.quiet]


def activity_of(snapshots: Iterable[Snapshot], topics: TopicsSeen | None = None) -> Activity:
    follower = GroupFollower(topics_seen(topics))
    for one in snapshots:
        follower.add(one)
    follower.finish()
    assert follower.activity is not None
    return follower.activity


def recorded(snapshot: Snapshot) -> ArchivedRecord:
    """The record of which a classic group's snapshot is made."""
    assert snapshot.state_time_us is not None
    value = GroupMetadataValue(
        version=3,
        protocol_type=snapshot.protocol_type,
        generation=snapshot.generation,
        protocol=snapshot.strategy,
        leader=snapshot.members[0].member_id if snapshot.members else None,
        current_state_timestamp=snapshot.state_time_us // 1000,
        members=tuple(
            MemberMetadata(
                member_id=one.member_id,
                group_instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=one.host,
                rebalance_timeout=one.rebalance_timeout_ms,
                session_timeout=one.session_timeout_ms,
                subscription=make_subscription(
                    sorted(one.topics),
                    owned={topic: [*ids] for topic, ids in one.claims.items()},
                    generation=snapshot.generation - 1,
                    rack=one.rack,
                    user_data=b"",
                ).encode(),
                assignment=b"\0\3" + partition_list([*by_topic(one.assignment).items()]) + NOTHING,
            )
            for one in snapshot.members
        ),
    )
    return ArchivedRecord(
        group_metadata_key(snapshot.group),
        encode_group_metadata(value),
        snapshot.partition,
        snapshot.offset,
        snapshot.time_us,
        snapshot.leader_epoch,
    )


class RecordedGroup:
    """A simulated group whose records are kept as the coordinator writes them."""

    def __init__(self, topics: Mapping[str, int], *assignors: Callable[[], Assignor], **options: Any) -> None:
        options.setdefault("member", QUICK)
        self.simulation = Simulation(topics, assignors, **options)
        self.records: list[ArchivedRecord] = []
        self.leader_epoch = 0
        self._last: tuple[object, ...] | None = None

    def run(self, seconds: float) -> None:
        until = self.simulation.now + seconds
        while self.simulation.now < until - 1e-9:
            self.simulation.run(_STEP)
            self._look()

    def settle(self, *, timeout: float = 120) -> None:
        """Let time pass until the group is stable, or empty, and nobody is about to join."""
        until = self.simulation.now + timeout
        self.run(0.2)
        while True:
            running = [one for one in self.simulation.members.values() if one.running and not one.frozen]
            group = self.simulation.group
            state = "Stable" if group.member_ids else "Empty"
            if group.state == state and all(one.stable for one in running):
                return
            assert self.simulation.now < until, f"{group.state} after {timeout} s"
            self.run(0.1)

    def run_until(self, state: str) -> None:
        for _ in range(100_000):
            if self.simulation.group.state == state:
                return
            self.simulation.run(0.001)
            self._look()
        raise AssertionError(f"never {state}")

    def move_coordinator(self) -> None:
        """Another broker leads the group's partition from now on."""
        self.leader_epoch += 1
        self.simulation.move_coordinator()

    def _look(self) -> None:
        group = self.simulation.group
        if group.state not in {"Stable", "Empty"} or not group.generation:
            return
        picture = (group.generation, tuple(group.member_ids))
        if picture != self._last:
            self._last = picture
            self.records.append(
                ArchivedRecord(
                    key=group_metadata_key("g"),
                    value=encode_group_metadata(group.record()),
                    partition=0,
                    offset=len(self.records),
                    time_us=round(self.simulation.now * 1000) * 1000,
                    leader_epoch=self.leader_epoch,
                )
            )


def random_life(seed: int, assignors: Sequence[type[Assignor]], *, acts: int = 12) -> RecordedGroup:
    """A group to which anything may happen."""
    rng = Random(seed)
    group = RecordedGroup(
        {"orders": 6, "payments": 2}, rng.choice(assignors), seed=seed, metadata_max_age_ms=1000
    )
    simulation = group.simulation
    simulation.join()
    partitions = 6
    for _ in range(acts):
        running = [name for name, one in simulation.members.items() if one.running]
        act = rng.choice(["join", "join", "leave", "crash", "restart", "grow", "subscribe"])
        if act == "join" or not running:
            simulation.join(instance_id=f"i{len(simulation.members)}" if rng.random() < 0.4 else None)
        elif act == "leave":
            simulation.members[rng.choice(running)].leave()
        elif act == "crash":
            simulation.members[rng.choice(running)].crash()
        elif act == "restart":
            simulation.restart(rng.choice(running), crash=rng.random() < 0.5)
        elif act == "grow" and partitions < 12:
            partitions += rng.randint(1, 3)
            simulation.grow("orders", partitions)
        elif act == "subscribe":
            simulation.members[rng.choice(running)].subscribe(
                rng.choice([["orders"], ["payments"], ["orders", "payments"]])
            )
        if rng.random() < 0.6:
            group.settle()
        else:
            group.run(rng.choice([0.1, 0.5, 2]))
    group.settle()
    return group


def random_records(seed: int, *, group: str = "g", records: int = 150) -> list[ArchivedRecord]:
    """Records of a group in which anything stands: hand-overs without end, generations that come again."""
    rng = Random(seed)
    made: list[ArchivedRecord] = []
    generation = now_ms = 0
    settling, never = rng.random(), rng.random() < 0.4
    for offset in range(records):
        if rng.random() < 0.05:
            settling, never = rng.random(), not never
        generation += never or rng.random() < 0.9
        now_ms += rng.choice([1, 500] if never else [1, 500, 3000, 200_000])
        names = [name for name in "abc" if never or rng.random() < 0.8]
        given = {name: [p for p in range(6) if p % 3 == ord(name) % 3] for name in names}
        members = [
            SnapshotMember(
                member_id=f"{name}-{rng.randrange(3)}",
                instance_id=name if name != "c" else None,
                client_id=name,
                host="/h",
                topics=frozenset("t"),
                claims={}
                if not never and rng.random() < settling
                else {"t": (*given[name], 99 if never else rng.randrange(6))},
                assignment=frozenset(("t", number) for number in given[name][: rng.randint(1, 2)]),
                session_timeout_ms=500,
                rebalance_timeout_ms=1000,
            )
            for name in names
        ]
        told = Snapshot(
            group=group,
            generation=generation,
            time_us=now_ms * 1000,
            state_time_us=(now_ms - rng.choice([0, 1])) * 1000,
            offset=offset,
            leader_epoch=0,
            strategy="cooperative-sticky" if members else None,
            members=tuple(members),
        )
        made.append(recorded(told))
        if rng.random() < 0.01:
            made[-1] = made[-1]._replace(value=None)
            generation = 0
    return made
