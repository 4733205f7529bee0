"""Classic groups, and what is said of them, against Kafka's own coordinator, on random lives.

The simulator's groups are compared request by request. Of Kafka's groups it is known who has joined; what is
inferred from their descriptions has to be true.

Each life comes from a seed, which a failure names. Kafka gives out the member ids, and ours takes the same.
"""

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from random import Random
from typing import Any, get_args

from kafka_assignors._cluster.groups import ClassicGroup
from kafka_assignors._groups.explanation import read_accounts
from kafka_assignors._groups.joining import REBALANCING, Look, find_joining
from kafka_assignors._wire.offsets_topic import GroupMetadataValue, MemberMetadata, decode_group_metadata
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.messages import Error, Join, Joined, Sync, Synced
from kafka_assignors.coordinator._simulator.rounds import State, Trigger
from kafka_assignors.coordinator._simulator.settings import BrokerSettings
from tests.support.java.oracle import JavaOracle
from tests.support.scale import few, scaled

LIVES = scaled(100)
STEPS = 60
BEGAN_MS = 1_000_000
KINDS = (
    *get_args(Trigger),
    *State,
    "answer FENCED_INSTANCE_ID",
    "answer GROUP_MAX_SIZE_REACHED",
    "answer ILLEGAL_GENERATION",
    "answer INCONSISTENT_GROUP_PROTOCOL",
    "answer MEMBER_ID_REQUIRED",
    "answer NOT_COORDINATOR",
    "answer REBALANCE_IN_PROGRESS",
    "answer UNKNOWN_MEMBER_ID",
)
"""What has to come up in the lives."""

STRATEGIES = (("range",), ("range", "sticky"), ("sticky", "range"), ("range", "roundrobin"))
WAITS = ((50, 3000, 7000, 20_000, 310_000), (40, 40, 10, 5, 1))
"""Milliseconds, and how likely they are. The longest is more than a new member may wait to join."""


@dataclass
class Client:
    """What a member knows of itself, and what it sends."""

    client_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    member_id: str = ""


class Life:
    """A group as time goes by, ours and Kafka's."""

    def __init__(
        self,
        java: JavaOracle,
        seed: int,
        *,
        max_sizes: Sequence[int] = (3, 4, 1000, 1000),
        look: Callable[["Life"], None] | None = None,
    ) -> None:
        self.java = java
        self.look = look
        self.seed = seed
        self.rng = rng = Random(seed)
        self.clock = Clock()
        self.clock.run(BEGAN_MS)
        settings = BrokerSettings(
            initial_rebalance_delay_ms=rng.choice([0, 3000, 3000, 8000]),
            max_size=rng.choice(max_sizes),
        )
        self.ids: list[str] = []
        self.group = HostedClassicGroup(self.clock, self.ids.pop, settings)
        self.clients: list[Client] = []
        self.requests = 0
        self.answered: list[tuple[int, Joined | Synced]] = []
        self.written: list[GroupMetadataValue] = []
        self.seen: Counter[str] = Counter()
        begun = {
            "group.initial.rebalance.delay.ms": str(settings.initial_rebalance_delay_ms),
            "group.max.size": str(settings.max_size),
        }
        self.kafkas: dict[str, Any] | None = self.ask("classic", begun, {"topics": {}, "topic_ids": {}})[
            "group"
        ]

    def live(self) -> None:
        acts: list[Callable[[], None]] = (
            [self.come, self.come_static] * 4
            + [self.settle] * 8
            + [self.join_all, self.sync_all, self.join_again, self.sync_one] * 3
            + [self.beat_all, self.wait] * 3
            + [self.linger]
            + [self.commit, self.leave, self.misbehave, self.move] * 2
        )
        for _ in range(STEPS):
            self.rng.choice(acts)()
        self.check_what_was_written()

    # What is done to both

    def ask(self, what: str, *arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.java.ask("host", [what, *arguments])
        return answer

    def do(self, ours: Callable[[], str | None], what: str, *arguments: Any) -> None:
        """Let a request, or time, do the same to both; a request comes a millisecond after what was last."""
        self.requests += 1
        said = self.ask(what, *arguments)
        answered = [(number, read_answer(answer)) for number, answer in said["answered"]]
        if what == "request":
            self.find_new_id(arguments, answered, said["group"])
            self.clock.run(self.clock.now + 1)
        answer = ours()
        where = f"seed {self.seed}, request {self.requests}: {what} {arguments}"
        assert (answer or "") == (said["answer"] or {"error": ""})["error"], where
        assert sorted(self.answered, key=itemgetter(0)) == sorted(answered, key=itemgetter(0)), where
        assert self.shown() == (said["group"] or self.nobody()), where
        self.kafkas = said["group"]
        self.seen.update(f"answer {shown.error}" for _, shown in self.answered if shown.error)
        self.seen.update([f"answer {answer}"] if answer else [])
        self.seen[self.group.state] += 1
        self.answered.clear()
        if self.group._written is not None and self.group._written not in self.written[-1:]:
            self.written.append(self.group._written)
        if self.look is not None:
            self.look(self)

    def find_new_id(
        self,
        arguments: Sequence[Any],
        answered: Iterable[tuple[int, Joined | Synced]],
        group: dict[str, Any] | None,
    ) -> None:
        """Note the id that Kafka gave to a new member, for ours to give it the same."""
        self.ids.clear()
        name, asked, number, _ = arguments
        if name != "JoinGroup" or asked["memberId"]:
            return
        before = {member["member_id"] for member in (self.kafkas or self.nobody())["members"]}
        after = [member["member_id"] for member in (group or self.nobody())["members"]]
        given = [one.member_id for place, one in answered if place == number and isinstance(one, Joined)]
        new = [member_id for member_id in [*after, *given] if member_id and member_id not in before]
        self.ids.extend(member_id[-36:] for member_id in new[:1])

    @staticmethod
    def nobody() -> dict[str, Any]:
        return {
            "state": "Empty",
            "generation": 0,
            "strategy": "",
            "leader": None,
            "not_synced": [],
            "to_come": [],
            "members": [],
        }

    def shown(self) -> dict[str, Any]:
        group = self.group
        return {
            "state": group.state,
            "generation": group.generation,
            "strategy": group.strategy,
            "leader": group.leader,
            "not_synced": sorted(group._not_synced),
            "to_come": sorted(group._pending),
            "members": [
                {
                    "member_id": member.member_id,
                    "client_id": member.join.client_id,
                    "instance_id": member.join.instance_id,
                    "session_timeout_ms": member.join.session_timeout_ms,
                    "rebalance_timeout_ms": member.join.rebalance_timeout_ms,
                    "protocols": [[name, data.hex()] for name, data in member.join.protocols.items()],
                    "assignment": member.assignment.hex(),
                    "awaits_join": member.member_id in group._joins,
                    "awaits_sync": member.member_id in group._syncs,
                }
                for member in group._members.in_order()
            ],
        }

    def request(
        self, ours: Callable[[], str | None], name: str, asked: dict[str, Any], client_id: str = ""
    ) -> None:
        self.do(ours, "request", name, asked, self.requests, client_id)

    def join(self, client: Client) -> None:
        number = self.requests

        def hear(answer: Joined) -> None:
            self.answered.append((number, heard(answer)))
            if answer.member_id and (not answer.error or answer.error == "MEMBER_ID_REQUIRED"):
                client.member_id = answer.member_id

        asked = {
            "memberId": client.member_id,
            "groupInstanceId": client.instance_id,
            "sessionTimeoutMs": client.session_timeout_ms,
            "rebalanceTimeoutMs": client.rebalance_timeout_ms,
            "protocolType": "consumer",
            "protocols": [
                {"name": name, "metadata": in_json(data)} for name, data in client.protocols.items()
            ],
        }
        join = Join(**asdict(client))
        self.request(lambda: self.group.join(join, hear), "JoinGroup", asked, client.client_id)

    def sync(self, client: Client, generation: int) -> None:
        leads = client.member_id == self.group.leader
        # A leader may forget somebody.
        members = [member for member in self.group.member_ids if leads and self.rng.random() < 0.95]
        sync = Sync(
            member_id=client.member_id,
            generation=generation,
            instance_id=client.instance_id,
            assignments={member: f"{member[-3:]} {generation}".encode() for member in members},
        )
        asked = {
            "memberId": sync.member_id,
            "groupInstanceId": sync.instance_id,
            "generationId": generation,
            "assignments": [
                {"memberId": member, "assignment": in_json(data)} for member, data in sync.assignments.items()
            ],
        }
        number = self.requests

        def hear(answer: Synced) -> None:
            self.answered.append((number, heard(answer)))

        self.request(lambda: self.group.sync(sync, hear), "SyncGroup", asked)

    def tell(self, what: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """A heartbeat, or a commit of no offsets."""
        ask = self.group.heartbeat if what == "Heartbeat" else self.group.commit
        counted = "generationId" if what == "Heartbeat" else "generationIdOrMemberEpoch"
        asked = {"memberId": member_id, "groupInstanceId": instance_id, counted: generation}
        self.request(lambda: ask(member_id, instance_id, generation), what, asked)

    def say_goodbye(self, member_id: str, instance_id: str | None) -> None:
        member = {"memberId": member_id, "groupInstanceId": instance_id, "reason": None}
        self.request(lambda: self.group.leave(member_id, instance_id), "LeaveGroup", {"members": [member]})

    # What may happen

    def is_in(self, state: State) -> bool:
        return self.group.state == state

    def new_client(self, instance_id: str | None) -> Client:
        client = Client(f"client-{self.rng.randrange(3)}", instance_id, 0, 0, {})
        self.configure(client)
        return client

    def configure(self, client: Client) -> None:
        """Settings with odd milliseconds, as of two timers that are due at once the order is not Kafka's."""
        rng = self.rng
        client.session_timeout_ms = rng.randint(6000, 20_000)
        client.rebalance_timeout_ms = rng.choice([rng.randint(4000, 30_000), rng.randint(4000, 600_000)])
        names = ("other",) if rng.random() < 0.01 else rng.choice(STRATEGIES)
        client.protocols = {name: rng.randbytes(1) for name in names}

    @property
    def members(self) -> list[Client]:
        """Those of the clients that are members, or were given an id to come back with."""
        return [client for client in self.clients if client.member_id]

    def come(self) -> None:
        if len(self.group.member_ids) < 8:
            client = self.new_client(None)
            self.clients.append(client)
            self.join(client)
            if self.rng.random() < 0.8:
                self.join(client)

    def come_static(self) -> None:
        """A static member that is new, or restarts."""
        instance_id = f"instance-{self.rng.randrange(3)}"
        known = [client for client in self.clients if client.instance_id == instance_id]
        client = replace(known[-1], member_id="") if known else self.new_client(instance_id)
        client.client_id = f"client-{self.rng.randrange(3)}"
        if self.rng.random() < 0.2:
            self.configure(client)
        elif self.rng.random() < 0.3:
            client.protocols = dict(reversed(client.protocols.items()))
        self.clients.append(client)
        self.join(client)

    def join_again(self) -> None:
        if self.members:
            client = self.rng.choice(self.members)
            if self.rng.random() < 0.3:
                self.configure(client)
            elif self.rng.random() < 0.2:
                client.protocols = dict(reversed(client.protocols.items()))
            self.join(client)

    def settle(self) -> None:
        """What good clients do."""
        for act in (self.wait, self.join_all, self.sync_all, self.beat_all):
            act()

    def join_all(self) -> None:
        """What follows when members hear of a rebalance."""
        if self.group.state == State.PREPARING or self.rng.random() < 0.2:
            for client in self.shuffled(self.members):
                if client.member_id in self.group.member_ids and self.rng.random() < 0.9:
                    self.join(client)

    def sync_all(self) -> None:
        if self.group.state != State.PREPARING or self.rng.random() < 0.2:
            for client in self.shuffled(self.members):
                if client.member_id in self.group.member_ids and self.rng.random() < 0.9:
                    self.sync(client, self.group.generation)

    def sync_one(self) -> None:
        if self.members:
            self.sync(self.rng.choice(self.members), self.group.generation)

    def beat_all(self) -> None:
        for client in self.members:
            if client.member_id in self.group.member_ids and self.rng.random() < 0.7:
                self.tell("Heartbeat", client.member_id, client.instance_id, self.group.generation)

    def commit(self) -> None:
        if self.members:
            client = self.rng.choice(self.members)
            self.tell("OffsetCommit", client.member_id, client.instance_id, self.group.generation)

    def leave(self) -> None:
        if self.members:
            client = self.rng.choice(self.members)
            by_instance = client.instance_id is not None and self.rng.random() < 0.3
            self.say_goodbye("" if by_instance else client.member_id, client.instance_id)

    def misbehave(self) -> None:
        """What no good client does, or does too late."""
        rng = self.rng
        member_id = rng.choice(["", "nobody", *(client.member_id for client in self.clients)])
        # Kafka fails if a member that it waits for comes back with an instance id.
        instances = [None, *([] if member_id in self.group._pending else ["instance-0", "nobody's"])]
        instance_id = rng.choice(instances)
        generation = self.group.generation + rng.choice([-1, 0, 1])
        kind = rng.randrange(5)
        if kind == 0:
            client = self.new_client(instance_id)
            self.join(replace(client, member_id=member_id or "nobody"))
        elif kind == 1:
            self.sync(replace(self.new_client(instance_id), member_id=member_id), generation)
        elif kind == 2:
            self.say_goodbye(member_id, instance_id)
        elif self.kafkas is not None:  # with a generation of -1 a commit would make a group of its own
            self.tell(rng.choice(["Heartbeat", "OffsetCommit"]), member_id, instance_id, max(generation, 0))

    def linger(self) -> None:
        """Time in which heartbeats are all that members send."""
        for _ in range(6):
            self.wait(5000)
            self.beat_all()

    def wait(self, milliseconds: int = 0) -> None:
        milliseconds = milliseconds or self.rng.choices(*WAITS)[0]
        self.do(lambda: self.clock.run(self.clock.now + milliseconds), "wait", milliseconds)

    def move(self) -> None:
        milliseconds = self.rng.choice([1, 1000, 30_000])

        def ours() -> None:
            self.group.move(milliseconds)
            self.clock.run(self.clock.now + milliseconds)

        held = {*self.group._joins, *self.group._syncs}
        waited = [client for client in self.members if client.member_id in held]
        self.do(ours, "move", milliseconds)
        for client in self.shuffled(waited):
            self.join(client)

    def shuffled(self, clients: list[Client]) -> list[Client]:
        return self.rng.sample(clients, len(clients))

    # What is left of it

    def check_what_was_written(self) -> None:
        records = [decode_group_metadata(bytes.fromhex(data)) for data in self.ask("written")["answer"]]
        # The first is of a group that is made, and has nobody.
        kafkas = [with_our_host(record) for record in records[1:]]
        assert self.written == kafkas, f"seed {self.seed}"

    def described(self) -> ClassicGroup:
        """Kafka's group by its own description."""
        said = self.ask("describe")["answer"]
        members = tuple(
            MemberMetadata(
                member_id=one["memberId"],
                group_instance_id=one["groupInstanceId"],
                client_id=one["clientId"],
                client_host=one["clientHost"],
                session_timeout=-1,
                subscription=b64decode(one["memberMetadata"]),
                assignment=b64decode(one["memberAssignment"]),
            )
            for one in said["members"]
        )
        value = GroupMetadataValue(
            version=4, protocol_type="", generation=-1, protocol=None, leader=None, members=members
        )
        return ClassicGroup("group", said["groupState"], value)


def in_json(data: bytes) -> str:
    return b64encode(data).decode()


def read_answer(said: dict[str, Any]) -> Joined | Synced:
    """An answer of Kafka's to a join or a sync."""
    error = Error(said["error"])
    if "members" not in said:
        return heard(Synced(error=error, assignment=b64decode(said["assignment"])))
    members = [
        (one["memberId"], one["groupInstanceId"], b64decode(one["metadata"])) for one in said["members"]
    ]
    return heard(
        Joined(
            error=error,
            member_id=said["memberId"],
            generation=said["generationId"],
            strategy=said["protocolName"],
            leader=said["leader"],
            members=members,
            skip_assignment=said["skipAssignment"],
        )
    )


def heard(answer: Joined | Synced) -> Joined | Synced:
    """What a client reads: of an error no member id, unless it is to come back with that."""
    if isinstance(answer, Synced):
        return Synced(error=answer.error) if answer.error else answer
    if not answer.error:
        return replace(answer, members=[*answer.members])
    comes_back = answer.error is Error.MEMBER_ID_REQUIRED
    return Joined(error=answer.error, member_id=answer.member_id if comes_back else "")


def with_our_host(record: GroupMetadataValue) -> GroupMetadataValue:
    members = tuple(replace(member, client_host="/127.0.0.1") for member in record.members)
    return replace(record, members=members)


def test_every_answer_and_all_that_is_kept_and_written_is_that_of_kafkas_coordinator(
    java: JavaOracle,
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(LIVES):
        life = Life(java, seed)
        life.live()
        seen += life.seen
        seen["requests"] += life.requests
        seen.update(cause.trigger for cause in life.group.causes)
    rare = {kind: seen[kind] for kind in KINDS if seen[kind] < LIVES // 100}
    assert few() or not rare, seen
    assert few() or seen["requests"] > LIVES * STEPS


def test_a_group_with_more_than_it_may_have_rebalances_when_its_coordinator_moves(java: JavaOracle) -> None:
    """A static member that does not join keeps its place beside those that do."""
    for seed in range(scaled(20)):
        life = Life(java, seed, max_sizes=[2])
        first, second, third = life.clients = [life.new_client(f"instance-{number}") for number in range(3)]
        for client in life.clients:
            client.protocols, client.rebalance_timeout_ms = {"range": b""}, 20_000
        life.join(first)
        life.join(second)
        while not (life.is_in(State.COMPLETING) and len(life.group.member_ids) == 2):
            life.wait(1000)
            life.join_all()
        life.sync(first, life.group.generation)
        life.sync(second, life.group.generation)
        life.join(first if life.group.leader == first.member_id else second)
        life.join(third)
        while life.is_in(State.PREPARING):
            life.wait(1000)
            for client in life.members:
                life.tell("Heartbeat", client.member_id, client.instance_id, life.group.generation)
        for client in life.clients:
            life.sync(client, life.group.generation)
        assert life.is_in(State.STABLE)
        assert len(life.group.member_ids) == 3
        life.move()
        assert life.group.causes[-1].trigger == "coordinator moved"


def test_who_is_said_to_have_joined_has_and_who_is_missing_has_not(java: JavaOracle) -> None:
    """In groups with room: once Kafka has refused a member, a round may wait though all have joined."""
    seen: Counter[str] = Counter()

    def look(life: Life) -> None:
        if life.group.state in REBALANCING:
            seen.update(compare_with_truth(life))

    for seed in range(LIVES):
        Life(java, seed, max_sizes=[1000], look=look).live()
    assert few() or min(seen[kind] for kind in ("joined", "missing", "one of several", "unknown")) > LIVES, (
        seen
    )


def compare_with_truth(life: Life) -> Iterator[str]:
    """Check what is said of a rebalance; what that was."""
    group = life.described()
    found = find_joining([Look(0, group)], life.written[-1] if life.written else None, 0)
    where = f"seed {life.seed}, request {life.requests}: {found}"
    names = {one.member_id: one.name for one in read_accounts(group.value)}
    assert found is not None, where
    assert life.kafkas is not None, where
    assert sorted([*found.joined, *found.unsure]) == sorted(names.values()), where
    if found.state == "CompletingRebalance":
        assert not found.unsure, where
        return
    waiting = {names[one["member_id"]] for one in life.kafkas["members"] if one["awaits_join"]}
    assert waiting.issuperset(found.joined), where
    if found.joined:
        yield "joined"
    if not found.unbroken:
        yield "unknown"
    else:
        assert life.kafkas["to_come"] or not waiting.issuperset(found.unsure), where
        yield "one of several" if found.missing is None else "missing"
