"""What a script of chaos is made of, and a model of group and cluster that says what makes sense when."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, Literal

NODES: Final = 3
"""Of a cluster, which can spare one."""

Kind = Literal[
    "join",
    "leave",
    "crash",
    "freeze",
    "thaw",
    "pause",
    "resume",
    "restart",
    "crash and restart",
    "subscribe",
    "grow",
    "kill broker",
    "stop broker",
    "start broker",
    "move coordinator",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Within what a script stays.

    Topics are "t1", "t2"... `slow` is the share of members that poll briefly and work for long, `wanted` the
    chance of each topic to be subscribed to.
    """

    fewest: int = 2
    most: int = 8
    partitions: tuple[int, ...] = (16, 8)
    most_partitions: int = 32
    slow: float = 0.4
    wanted: float = 0.8

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(f"t{number}" for number in range(1, len(self.partitions) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStep:
    """One thing that is done.

    Its target is a member, a topic or a node; empty for the coordinator, which moves to another node. `gap`
    is the seconds to let pass before it. If it settles, the group is waited for afterwards.
    """

    kind: Kind
    target: str = ""
    topics: tuple[str, ...] = ()
    static: bool = False
    poll_ms: int = 0
    work_ms: int = 0
    partitions: int = 0
    gap: float = 0.0
    settle: bool = True

    def __str__(self) -> str:
        words = [self.kind, self.target]
        if self.static:
            words.append("static")
        if self.poll_ms:
            words.append(f"slow ({self.poll_ms} ms polls, {self.work_ms / 1000:g} s of work)")
        if self.topics:
            words.append(f"to {' '.join(self.topics)}")
        if self.partitions:
            words.append(f"to {self.partitions} partitions")
        text = " ".join(word for word in words if word)
        return f"{f'after {self.gap:g} s: ' if self.gap else ''}{text}{'; settle' if self.settle else ''}"


@dataclass(slots=True)
class MemberModel:
    static: bool
    topics: frozenset[str]
    frozen: bool = False
    paused: bool = False
    subscribed_anew: bool = False

    @property
    def healthy(self) -> bool:
        """Whether it is up and polling."""
        return not self.frozen and not self.paused

    def take(self, step: ScriptStep) -> None:
        match step.kind:
            case "freeze" | "thaw":
                self.frozen = step.kind == "freeze"
            case "pause" | "resume":
                self.paused = step.kind == "pause"
            case "subscribe":
                self.topics = frozenset(step.topics)
                self.subscribed_anew = True


@dataclass(slots=True)
class Model:
    """Group and cluster as the steps so far leave them.

    `unwatched` is whether a static member restarted and no rebalance is sure to have come since. If it was
    the leader nobody watches the topics meanwhile (kafka-python 3.0): a topic that grows is seen in the next
    rebalance only.
    """

    limits: Limits
    members: dict[str, MemberModel] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    down: str | None = None
    joined: int = 0
    unwatched: bool = False
    grown: bool = False

    def __post_init__(self) -> None:
        self.partitions = dict(zip(self.limits.topics, self.limits.partitions, strict=True))

    @property
    def open(self) -> int:
        """How many steps it takes until nothing is frozen, paused or down."""
        return sum(not member.healthy for member in self.members.values()) + (self.down is not None)

    def covered_without(self, name: str, topics: Collection[str]) -> bool:
        """Whether each of the topics has a healthy member besides this one; some other has to be healthy."""
        others = [member for other, member in self.members.items() if other != name and member.healthy]
        return bool(others) and all(any(topic in member.topics for member in others) for topic in topics)

    def allows(self, step: ScriptStep) -> bool:
        match step.kind:
            case "join":
                return len(self.members) < self.limits.most
            case "grow":
                # New partitions need all brokers for their replicas, and somebody who sees them.
                return self.partitions[step.target] < step.partitions and not self.down and not self.unwatched
            case "start broker":
                return self.down == step.target
            case "kill broker" | "stop broker" | "move coordinator":
                return self.down is None
            case _:
                return self._allows_of(self.members[step.target], step)

    def _allows_of(self, member: MemberModel, step: ScriptStep) -> bool:
        spared = member.healthy and self.covered_without(step.target, member.topics)
        topics = frozenset(step.topics)
        match step.kind:
            case "thaw":
                return member.frozen
            case "resume":
                return member.paused
            case "leave" | "crash":
                ends = not member.healthy and not (step.kind == "leave" and member.frozen)
                return len(self.members) > self.limits.fewest and (ends or spared)
            case "restart" | "crash and restart":
                # The coordinator takes a static member back without a rebalance, whatever it wants anew. If
                # it leads, it may not have seen that a topic grew.
                return member.static and not member.subscribed_anew and not self.grown and spared
            case "subscribe":
                # kafka-python 3.0 forgets a join that it has not sent yet, but given up its partitions for,
                # when the subscription is again what it was: it is expelled, and never comes back.
                changes = member.healthy and topics != member.topics and not member.subscribed_anew
                return changes and self.covered_without(step.target, member.topics - topics)
            case _:
                return spared

    def take(self, step: ScriptStep) -> None:
        match step.kind:
            case "join":
                self.members[step.target] = MemberModel(static=step.static, topics=frozenset(step.topics))
                self.joined += 1
            case "leave" | "crash":
                del self.members[step.target]
            case "grow":
                self.partitions[step.target] = step.partitions
                self.grown = True
            case "kill broker" | "stop broker":
                self.down = step.target
            case "start broker":
                self.down = None
            case "move coordinator":
                pass
            case _:
                self.members[step.target].take(step)
        if step.kind in {"restart", "crash and restart"}:
            self.unwatched = True
        elif step.kind in {"join", "leave", "crash", "subscribe"}:
            self.unwatched = False
        if step.settle:
            self._settle()

    def _settle(self) -> None:
        self.grown = False
        for member in self.members.values():
            member.subscribed_anew = False
