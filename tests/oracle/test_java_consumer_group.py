"""The simulator's KIP-848 groups against Kafka's own coordinator, step by step, on random lives.

The planners are given what Kafka tells of a group, and have to make the target that Kafka makes of it.

Each life comes from a seed, which a failure names.
"""

import base64
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from random import Random
from typing import Any, get_args
from uuid import UUID

from kafka_assignors._model.group import Group, Member
from kafka_assignors._wire.java.orders import hash_order, spread_hash, string_hash, string_order, uuid_hash
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup
from kafka_assignors.coordinator._simulator.messages import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    Error,
    TopicIdPartition,
)
from kafka_assignors.coordinator._simulator.reconciliation import EpochState, GroupMember, reconcile
from kafka_assignors.coordinator._simulator.rounds import EpochTrigger
from kafka_assignors.coordinator._simulator.settings import BrokerSettings
from kafka_assignors.coordinator._simulator.target_assignment import Target, TargetTopic, preferred_assignor
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import plan_kip848_uniform, slot_hash
from tests.support.java.oracle import JavaOracle
from tests.support.random_groups import ALPHABET
from tests.support.scale import few, scaled

STEPS_OF_MEMBERS = scaled(4000)
LIVES = scaled(200)
STEPS = 60
SESSION_MS = 45_000
KINDS = (
    *get_args(EpochTrigger),
    *get_args(EpochState),
    "answer FENCED_INSTANCE_ID",
    "answer FENCED_MEMBER_EPOCH",
    "answer GROUP_MAX_SIZE_REACHED",
    "answer INVALID_REQUEST",
    "answer UNKNOWN_MEMBER_ID",
    "answer UNRELEASED_INSTANCE_ID",
    "answer UNSUPPORTED_ASSIGNOR",
)
"""What has to come up in the lives."""

NAMES = ("a", "b", "c", "d", "Aa", "BB", "missing")
"""Aa and BB have one hash."""


def in_java(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def with_epochs(partitions: Mapping[TopicIdPartition, int]) -> dict[str, dict[str, int]]:
    shown: dict[str, dict[str, int]] = {}
    for (topic, partition), epoch in partitions.items():
        shown.setdefault(in_java(topic), {})[str(partition)] = epoch
    return shown


def in_request(partitions: Collection[TopicIdPartition] | None) -> list[dict[str, Any]] | None:
    """Partitions as a heartbeat names them."""
    if partitions is None:
        return None
    return [
        {"topicId": in_java(topic), "partitions": [partition for _, partition in those]}
        for topic, those in groupby(sorted(partitions), lambda one: one.topic_id)
    ]


def in_answer(assignment: dict[str, Any] | None) -> frozenset[TopicIdPartition] | None:
    if assignment is None:
        return None
    return frozenset(
        TopicIdPartition(UUID(bytes=base64.urlsafe_b64decode(one["topicId"] + "==")), partition)
        for one in assignment["topicPartitions"]
        for partition in one["partitions"]
    )


def in_bins_of_their_own(member_ids: Collection[str]) -> bool:
    """Whether no two members share a bin of both of the coordinator's maps of members."""
    bins, slots = 16, 2
    while 4 * len(member_ids) > 3 * bins:
        bins *= 2
    while 3 * len(member_ids) > 4 * slots:
        slots *= 2
    hashes = map(string_hash, member_ids)
    places = {(spread_hash(value) % bins, slot_hash(value) * slots >> 64) for value in hashes}
    return len(places) == len(member_ids)


def fields_of(member: GroupMember) -> dict[str, Any]:
    return {
        "epoch": member.epoch,
        "previous_epoch": member.previous_epoch,
        "state": member.state,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "topics": sorted(member.topics),
        "instance_id": member.instance_id,
        "rack": member.rack,
        "assigned": with_epochs(member.assigned),
        "pending_revocation": with_epochs(member.pending_revocation),
    }


def as_java_has(topics: Mapping[str, TargetTopic]) -> dict[str, Any]:
    return {
        "topics": {name: topic.partitions for name, topic in topics.items()},
        "topic_ids": {name: topic.topic_id.hex for name, topic in topics.items()},
    }


# One member's steps -----------------------------------------------------------------------------------------


@dataclass
class Case:
    """A member at any point, likely or not."""

    rng: Random
    topics: dict[str, TargetTopic] = field(init=False)
    member: GroupMember = field(init=False)

    def __post_init__(self) -> None:
        rng = self.rng
        self.topics = {
            name: TargetTopic(UUID(int=rng.getrandbits(128)), 4)
            for name in rng.sample("abc", rng.randint(0, 3))
        }
        gone = UUID(int=rng.getrandbits(128))
        ids = [topic.topic_id for topic in self.topics.values()]
        every = [TopicIdPartition(topic, number) for topic in [*ids, gone] for number in range(4)]
        epoch = rng.randint(0, 5)
        ours = rng.sample(every, rng.randint(0, len(every)))
        cut = rng.randint(0, len(ours))
        state: EpochState = rng.choice(get_args(EpochState))
        pending = {p: rng.randint(0, epoch) for p in ours[cut:] if state == "UNREVOKED_PARTITIONS"}
        self.member = GroupMember(
            member_id="m",
            epoch=epoch,
            previous_epoch=rng.randint(-1, epoch),
            state=state,
            topics=frozenset(rng.sample("abc", rng.randint(0, 3))),
            assigned={p: rng.randint(0, epoch) for p in ours[:cut]},
            pending_revocation=pending,
        )
        self.target = rng.sample(every, rng.randint(0, len(every)))
        self.target_epoch = rng.choice([epoch, epoch, epoch + 1, epoch + 3])
        held = [*self.member.assigned, *pending]
        self.owned = rng.choice([None, [], held, rng.sample(held, rng.randint(0, len(held)))])
        self.changed = rng.random() < 0.4
        free = [partition for partition in every if partition not in held]
        self.epochs = dict.fromkeys(held, epoch)
        self.epochs |= {p: rng.randint(-2, 5) for p in rng.sample(free, rng.randint(0, len(free)))}

    @property
    def request(self) -> dict[str, Any]:
        def triples(partitions: Mapping[TopicIdPartition, int]) -> list[tuple[str, int, int]]:
            return [(topic.hex, number, epoch) for (topic, number), epoch in partitions.items()]

        member = self.member
        return {
            **as_java_has(self.topics),
            "member": {
                "member_id": "m",
                "epoch": member.epoch,
                "previous_epoch": member.previous_epoch,
                "state": member.state,
                "topics": sorted(member.topics),
                "assigned": triples(member.assigned),
                "pending_revocation": triples(member.pending_revocation),
            },
            "target": [(topic.hex, partition) for topic, partition in self.target],
            "target_epoch": self.target_epoch,
            "owned": in_request(self.owned),
            "subscription_changed": self.changed,
            "epochs": triples(self.epochs),
        }

    @property
    def outcome(self) -> GroupMember:
        return reconcile(
            self.member,
            target=self.target,
            target_epoch=self.target_epoch,
            topic_ids={self.topics[name].topic_id for name in self.member.topics & self.topics.keys()},
            subscription_changed=self.changed,
            owned=self.owned,
            is_owned=lambda partition: self.epochs.get(partition, -1) != -1,
        )


def test_a_members_next_step_is_that_of_kafkas_current_assignment_builder(java: JavaOracle) -> None:
    cases = [Case(Random(seed)) for seed in range(STEPS_OF_MEMBERS)]
    answers = java.ask("reconcile", [case.request for case in cases])
    steps: Counter[tuple[str, str]] = Counter()
    for seed, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        assert fields_of(case.outcome) == answer, f"seed {seed}"
        steps[case.member.state, case.outcome.state] += case.outcome != case.member
    assert few() or all(
        steps[before, after] > scaled(30) for before in get_args(EpochState) for after in get_args(EpochState)
    ), steps


# A group's life ---------------------------------------------------------------------------------------------


@dataclass
class Client:
    """What a member knows of itself: its last heartbeat's answer may have got lost."""

    member_id: str
    instance_id: str | None
    epoch: int = 0
    owned: frozenset[TopicIdPartition] = frozenset()
    assigned: frozenset[TopicIdPartition] = frozenset()


class Life:
    """A group as time goes by, ours and Kafka's."""

    def __init__(
        self,
        java: JavaOracle,
        seed: int,
        *,
        topics: dict[str, TargetTopic] | None = None,
        settings: BrokerSettings | None = None,
    ) -> None:
        self.java = java
        self.seed = seed
        self.rng = rng = Random(seed)
        self.letters = ALPHABET if seed % 2 else ("Aa", "BB", "C#", "x")
        many = ["".join(rng.choices(ALPHABET, k=rng.choice([1, 2, 3]))) for _ in range(30)]
        self.names = NAMES if seed % 4 else (*dict.fromkeys([*many, *NAMES]),)
        self.topics = topics or {
            name: self.new_topic(1, 2, 5, 20, 40)
            for name in rng.sample(self.names[:-1], rng.randint(1, len(self.names) - 1))
        }
        self.settings = settings or BrokerSettings(
            assignment_interval_ms=rng.choice([0, 0, 0, 1000]), max_size=rng.choice([6, 1000, 1000])
        )
        self.clock = Clock()
        self.clock.run(1_000_000)
        self.group = HostedConsumerGroup(self.clock, self.topics, self.settings)
        properties = {
            "group.consumer.assignment.interval.ms": str(self.settings.assignment_interval_ms),
            "group.consumer.max.size": str(self.settings.max_size),
        }
        java.ask("host", ["consumer", properties, as_java_has(self.topics)])
        self.assignors = rng.choice([(None,), (None,), ("range",), (None, "uniform", "range")])
        self.equal = rng.random() < 0.6
        self.clients: list[Client] = []
        self.away: list[str] = []
        self.seen: Counter[str] = Counter()
        self.known: set[str] = set()
        self.moves: list[int] = []

    def live(self) -> None:
        # Hash tables of 16 bins and of 32 grow with the 13th and the 25th key. With many keys of one hash
        # Java makes trees, whose order depends on where objects lie.
        for _ in range(self.rng.choice([0, 11, 23] if self.letters == ALPHABET else [0, 0, 4])):
            self.join()
        acts = (
            [self.beat] * 12
            + [self.join] * 3
            + [self.wait] * 3
            + [
                self.leave,
                self.resubscribe,
                self.come_back,
                self.change_topics,
                self.misbehave,
            ]
        )
        for _ in range(STEPS):
            act = self.rng.choice(acts)
            (act if self.clients else self.join)()

    @property
    def came_up(self) -> Counter[str]:
        return self.seen + Counter(cause.trigger for cause in self.group.causes)

    # What may happen

    def new_topic(self, *sizes: int) -> TargetTopic:
        """Of a small id, or one whose halves may be negative numbers in Java."""
        bits = self.rng.choice([32, 64, 128, 128])
        return TargetTopic(UUID(int=self.rng.getrandbits(bits)), self.rng.choice(sizes))

    def new_id(self) -> str:
        """Of any length up to that of a client's; hashes of short ones are equal, or near each other."""
        while True:
            name = "".join(self.rng.choices(self.letters, k=self.rng.choice([1, 2, 3, 22])))
            if name not in self.known:
                self.known.add(name)
                return name

    def subscription(self) -> frozenset[str]:
        if self.equal:
            return frozenset(self.names[: 3 + self.seed % len(self.names)])
        return frozenset(self.rng.sample(self.names, self.rng.randint(1, len(self.names))))

    def send(self, client: Client, **said: Any) -> ConsumerHeartbeatAnswer:
        request = ConsumerHeartbeat(member_id=client.member_id, instance_id=client.instance_id, **said)
        target_epoch = self.group.target_epoch
        listed, targets = [*self.group.member_ids], dict(self.group.targets)
        answer = self.group.heartbeat(request)
        self.seen[f"answer {answer.error}"] += 1
        timeout_ms = -1 if request.rebalance_timeout_ms is None else request.rebalance_timeout_ms
        asked = {
            "memberId": request.member_id,
            "memberEpoch": request.epoch,
            "instanceId": request.instance_id,
            "rackId": request.rack,
            "rebalanceTimeoutMs": timeout_ms,
            "subscribedTopicNames": None
            if request.topics is None
            else sorted(request.topics, key=string_order),
            "serverAssignor": request.assignor,
            "topicPartitions": in_request(request.owned),
        }
        said = self.step("request", "ConsumerGroupHeartbeat", asked)
        expected = ConsumerHeartbeatAnswer(error=Error(said["error"]))
        if not expected.error:
            expected = replace(expected, epoch=said["memberEpoch"], assignment=in_answer(said["assignment"]))
        assert answer == expected, f"seed {self.seed}, step {self.seen['steps']}: {asked}"
        # A static member that takes its predecessor's place may make the table of members grow.
        if self.group.target_epoch > target_epoch and self.group.members.keys() >= {*listed}:
            check_plans(self, client.member_id, listed, targets)
        return answer

    def step(self, what: str, *arguments: Any) -> Any:
        """Let the same happen to Kafka's group, and compare all that is kept; what Kafka's answers."""
        self.seen["steps"] += 1
        said = self.java.ask("host", [what, *arguments])
        where = f"seed {self.seed}, step {self.seen['steps']}: {what} {arguments}"
        ours, kafkas = self.shown(), said["group"]
        assert (ours is None) == (kafkas is None), where
        for part, kept in (ours or {}).items():
            assert kept == kafkas[part], where
        self.seen.update(member.state for member in self.group.members.values())
        return said["answer"]

    def shown(self) -> dict[str, Any] | None:
        group = self.group
        if group.epoch == 1 and not group.members:
            return None
        return {
            "epoch": group.epoch,
            "target_epoch": group.target_epoch,
            "state": group.state,
            "targets": {
                member_id: [
                    [in_java(topic), hash_order(target[topic], int)]
                    for topic in hash_order(target, uuid_hash)
                ]
                for member_id, target in group.targets.items()
            },
            "listed": [*group.member_ids],
            "members": {member_id: fields_of(member) for member_id, member in group.members.items()},
        }

    def join(self) -> None:
        instance = f"i{len(self.known)}" if self.rng.random() < 0.3 else None
        client = Client(self.new_id(), instance)
        self.clients.append(client)
        self.enter(client)

    def enter(self, client: Client) -> None:
        """Ask to join, as a new member or after an error."""
        client.epoch, client.owned, client.assigned = 0, frozenset(), frozenset()
        answer = self.send(
            client,
            epoch=0,
            rack=self.rng.choice([None, "r1"]),
            rebalance_timeout_ms=self.rng.choice([5000, 60_000]),
            topics=self.subscription(),
            assignor=self.rng.choice(self.assignors),
            owned=frozenset(),
        )
        self.hear(client, answer)

    def hear(self, client: Client, answer: ConsumerHeartbeatAnswer) -> None:
        if answer.error in {"UNRELEASED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID"}:
            self.clients.remove(client)
        elif answer.error:
            self.enter(client)
        elif self.rng.random() < 0.9:  # the answer gets there
            client.epoch = answer.epoch
            client.assigned = client.assigned if answer.assignment is None else answer.assignment

    def beat(self) -> None:
        """A heartbeat; most clients have done by now what they were told to do."""
        client = self.rng.choice(self.clients)
        if client.epoch == 0:
            self.enter(client)
            return
        if self.rng.random() < 0.8 or client.owned <= client.assigned:
            client.owned = client.assigned
        says = self.rng.random() < 0.8
        self.hear(client, self.send(client, epoch=client.epoch, owned=client.owned if says else None))

    def wait(self, milliseconds: int = 0) -> None:
        milliseconds = milliseconds or self.rng.choice([1, 300, 1000, 3000, 20_000])
        self.clock.run(self.clock.now + milliseconds)
        self.step("wait", milliseconds)

    def leave(self) -> None:
        client = self.clients.pop(self.rng.randrange(len(self.clients)))
        if client.instance_id is not None and self.rng.random() < 0.8:
            self.send(client, epoch=-2)
            self.away.append(client.instance_id)
        elif self.rng.random() < 0.5:
            self.send(client, epoch=-1)

    def come_back(self) -> None:
        """A static member that left is back, or one that did not leave is there twice."""
        there = [client.instance_id for client in self.clients if client.instance_id is not None]
        instances = [*self.away] * 5 + there
        if instances:
            instance = self.rng.choice(instances)
            self.away = [other for other in self.away if other != instance]
            known = [m.member_id for m in self.group.members.values() if m.instance_id == instance]
            same = bool(known) and self.rng.random() < 0.2  # one process that subscribes again
            client = Client(known[0] if same else self.new_id(), instance)
            self.clients.append(client)
            self.enter(client)

    def resubscribe(self) -> None:
        client = self.rng.choice(self.clients)
        if client.epoch == 0:
            self.enter(client)
            return
        self.equal = self.equal and self.rng.random() < 0.8
        topics = (
            self.rng.choice([self.subscription(), frozenset()]) if not self.equal else self.subscription()
        )
        full = self.rng.random() < 0.3
        answer = self.send(
            client,
            epoch=client.epoch,
            topics=topics,
            owned=client.owned if full or self.rng.random() < 0.5 else None,
            rebalance_timeout_ms=7000 if full else None,
            assignor=self.rng.choice(self.assignors),
        )
        self.hear(client, answer)

    def change_topics(self) -> None:
        name = self.rng.choice(self.names[:-1])
        old = self.topics.get(name)
        if old is None or self.rng.random() < 0.2:
            # New, or deleted and made anew.
            self.topics[name] = self.new_topic(1, 3, 30)
        elif self.rng.random() < 0.3 and len(self.topics) > 1:
            del self.topics[name]
        else:
            self.topics[name] = old._replace(partitions=old.partitions + self.rng.randint(1, 9))
        self.group.change_topics(self.topics)
        self.step("change_topics", as_java_has(self.topics))

    def misbehave(self) -> None:
        """What no good client does."""
        client = replace(self.rng.choice(self.clients))
        said: dict[str, Any] = {"epoch": client.epoch or -1, "owned": client.owned}
        kind = self.rng.randrange(6)
        if kind == 0:
            said["epoch"] += self.rng.choice([-1, 1])
        elif kind == 1:
            client.member_id = self.rng.choice(["nobody", ""])
        elif kind == 2:
            client.instance_id = self.rng.choice(["nobody's", "i1", "", None])
        elif kind == 3:
            said["owned"] = frozenset({TopicIdPartition(UUID(int=5), 0)})
        elif kind == 4:
            said |= {"epoch": 0, "topics": self.rng.choice([None, frozenset({"a"})])}
            said |= {"rebalance_timeout_ms": self.rng.choice([None, 7000])}
        else:
            said |= self.rng.choice([{"epoch": -3}, {"epoch": -2}, {"assignor": "sticky"}, {"rack": ""}])
        self.send(client, **said)


def check_plans(life: Life, asking: str, listed: Sequence[str], targets: Mapping[str, Target]) -> None:
    """Have the planners make the target that followed these targets and this list of members.

    It came with the heartbeat of the member that is asking. They make it again without the list, and without
    ids and orders, and it is compared as far as these make no difference.
    """
    # No topic can have a slash in its name.
    names = {topic: f"/{topic}" for target in targets.values() for topic in target}
    names |= {topic.topic_id: name for name, topic in life.topics.items()}
    topic_ids = {name: topic for topic, name in names.items()}
    sizes = {name: range(topic.partitions) for name, topic in life.topics.items()}
    members = [
        Member(
            member_id=member.member_id,
            topics=member.topics,
            instance_id=member.instance_id,
            claims={names[topic]: ids for topic, ids in targets.get(member.member_id, {}).items()},
        )
        for member in life.group.members.values()
    ]
    expected = {
        member_id: {names[topic]: sorted(ids) for topic, ids in target.items()}
        for member_id, target in life.group.targets.items()
    }
    group, where = Group.of(sizes, members), f"seed {life.seed}, step {life.seen['steps']}"
    if preferred_assignor(life.group.members.values(), asking=asking) == "range":
        assert plan_kip848_range(group).assignments() == expected, where
        life.seen["plans, of range"] += 1
        return
    plan = plan_kip848_uniform(group, topic_ids=topic_ids, listed=listed)
    assert plan.assignments() == expected, where
    life.moves.append(plan.moves)
    assert plan.moves == sum(
        len({*ids} - {*expected[member.member_id].get(topic, ())})
        for member in members
        for topic, ids in member.claims.items()
        if topic in member.topics & sizes.keys()
    ), where
    equal = plan_kip848_uniform(group, topic_ids=topic_ids).assignments() == expected
    assert equal or asking not in listed or not in_bins_of_their_own(listed), where
    life.seen["plans, not listed"] += equal
    if len({member.topics for member in members}) > 1:
        life.seen["plans, unequal"] += 1
        return
    # Loads and moves need no ids, and no order of claims.
    members = [replace(m, claims={t: sorted(m.claims[t]) for t in sorted(m.claims)}) for m in members]
    bare = plan_kip848_uniform(Group.of(sizes, members), listed=listed)
    assert (bare.loads.tolist(), bare.moves) == (plan.loads.tolist(), plan.moves), where
    life.seen["plans, equal"] += 1
    life.seen["plans, equal without ids"] += bare.assignments() == expected


def test_every_answer_and_all_that_is_kept_and_planned_is_that_of_kafkas_coordinator(
    java: JavaOracle,
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(LIVES):
        life = Life(java, seed)
        life.live()
        seen += life.came_up
    rare = {kind: seen[kind] for kind in KINDS if seen[kind] < LIVES // 50}
    assert few() or not rare, seen
    assert few() or seen["steps"] > LIVES * STEPS / 2
    plans = [seen[f"plans, {kind}"] for kind in ("equal", "unequal", "of range")]
    assert few() or min(plans) > 2 * LIVES, seen
    assert few() or LIVES // 10 < seen["plans, equal without ids"] < seen["plans, equal"] - LIVES // 10, seen
    assert few() or seen["plans, not listed"] > 0.9 * (seen["plans, equal"] + seen["plans, unequal"]), seen


def test_a_static_member_that_comes_back_otherwise_may_make_the_table_of_members_grow(
    java: JavaOracle,
) -> None:
    """A table of 16 bins is full with 12 members; for an instant the coordinator has one more."""
    lives = 0
    seen: Counter[str] = Counter()
    for seed in range(60):
        life = Life(java, seed)
        if life.settings.max_size <= 12:
            continue
        life.equal = False
        while len(life.clients) < 12:
            life.join()
        statics = [client for client in life.clients if client.instance_id is not None]
        for client in statics:
            life.wait(1000)
            life.send(client, epoch=-2)
            life.enter(Client(life.new_id(), client.instance_id))
        lives += 1
        seen += life.came_up
    assert seen["member changed its subscription"] > lives


def test_loads_are_evened_out_in_16_rounds_at_most_as_in_java(java: JavaOracle) -> None:
    """In a chain of topics with two subscribers each, loads move on by few topics a round."""
    names = [f"t{number:02}" for number in range(25)]
    topics = {name: TargetTopic(UUID(int=25 - number), 100) for number, name in enumerate(names)}
    life = Life(java, 0, topics=topics, settings=BrokerSettings(assignment_interval_ms=1000))
    clients = [Client(f"m{number:02}", None) for number in range(26)]

    def subscribe(number: int, *topics: str) -> None:
        said = {"topics": frozenset(topics), "owned": frozenset(), "rebalance_timeout_ms": 60_000}
        clients[number].epoch = life.send(clients[number], epoch=clients[number].epoch, **said).epoch

    def make_target() -> None:
        life.wait(1000)
        subscribe(0, names[0])

    for number, topic in enumerate([*names, "missing"]):
        subscribe(number, topic)
    make_target()
    for number, link in enumerate(pairwise([*names, "missing"]), 1):
        subscribe(number, *link)
    make_target()
    # The next rebalances, of the same group, go on where that ended.
    for other in ([], ["missing"]):
        subscribe(25, names[24], *other)
        make_target()
    assert life.moves == [0, 0, 366, 79, 0]
