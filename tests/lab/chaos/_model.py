"""What a script of chaos is made of, and a model of group and cluster that says what makes sense when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

QUORUM: Final = 3
"""Nodes of a cluster that can spare one."""

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

    Topics are "t1", "t2"... `slow` is the share of members that poll briefly and work for long.
    """

    fewest: int = 2
    most: int = 8
    partitions: tuple[int, ...] = (16, 8)
    most_partitions: int = 32
    nodes: int = 3
    slow: float = 0.4

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
    """A member as the script knows it."""

    static: bool
    topics: frozenset[str]
    slow: bool = False
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

    def objection(self, step: ScriptStep) -> str | None:
        """Why a step makes no sense now; None if it does."""
        if step.kind in _BY_GROUP:
            return _BY_GROUP[step.kind](self, step)
        return _BY_MEMBER[step.kind](self, step, self.members[step.target])

    def take(self, step: ScriptStep) -> None:
        match step.kind:
            case "join":
                self._join(step)
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
        self.settle(step)

    def _join(self, step: ScriptStep) -> None:
        self.members[step.target] = MemberModel(
            static=step.static, topics=frozenset(step.topics), slow=step.poll_ms > 0
        )
        self.joined += 1

    def settle(self, step: ScriptStep) -> None:
        """The group settles, if the step wants it to."""
        if step.settle:
            self.grown = False
            for member in self.members.values():
                member.subscribed_anew = False


def _on_join(model: Model, _: ScriptStep) -> str | None:
    if len(model.members) >= model.limits.most:
        return f"there are {model.limits.most} members already"
    return None


def _on_growth(model: Model, step: ScriptStep) -> str | None:
    if model.partitions[step.target] >= step.partitions:
        return f"{step.target} has {model.partitions[step.target]} partitions"
    if model.down is not None:
        return "a broker is down, and new partitions need all for their replicas"
    if model.unwatched:
        return "a static member restarted, so perhaps nobody watches the topics"
    return None


def _on_broker(model: Model, step: ScriptStep) -> str | None:
    if model.limits.nodes < QUORUM:
        return f"a cluster of fewer than {QUORUM} can spare none"
    if step.kind == "start broker":
        return None if model.down == step.target else f"node {step.target} is not down"
    return None if model.down is None else f"node {model.down} is down already"


def _on_coordinator(model: Model, step: ScriptStep) -> str | None:
    del step
    if model.limits.nodes < QUORUM:
        return "there is no other node that could have it"
    return "a broker is down" if model.down is not None else None


def _on_end(model: Model, step: ScriptStep, member: MemberModel) -> str | None:
    if len(model.members) <= model.limits.fewest:
        return f"{model.limits.fewest} members have to stay"
    if step.kind == "leave" and member.frozen:
        return f"{step.target} is frozen"
    return _on_absence(model, step, member) if member.healthy else None


def _on_absence(model: Model, step: ScriptStep, member: MemberModel) -> str | None:
    if not member.healthy:
        return f"{step.target} is frozen or paused"
    if not model.covered_without(step.target, member.topics):
        return f"nobody else is there for the topics of {step.target}"
    return None


def _on_return(model: Model, step: ScriptStep, member: MemberModel) -> str | None:
    del model
    if step.kind == "thaw":
        return None if member.frozen else f"{step.target} is not frozen"
    return None if member.paused else f"{step.target} is not paused"


def _on_topics(model: Model, step: ScriptStep, member: MemberModel) -> str | None:
    topics = frozenset(step.topics)
    if not member.healthy:
        return f"{step.target} is frozen or paused"
    if topics == member.topics:
        return f"{step.target} has {' '.join(sorted(member.topics))}"
    # kafka-python 3.0 forgets a join that it has not sent yet, but given up its partitions for, when the
    # subscription is again what it was: it is expelled, and never comes back.
    if member.subscribed_anew:
        return f"{step.target} may not have joined with its new topics"
    if not model.covered_without(step.target, member.topics - topics):
        return f"nobody else is there for what {step.target} gives up"
    return None


def _on_restart(model: Model, step: ScriptStep, member: MemberModel) -> str | None:
    if not member.static:
        return f"{step.target} is no static member"
    # The coordinator takes a static member back without a rebalance, whatever it wants anew.
    if member.subscribed_anew:
        return f"{step.target} may not have joined with its new topics"
    if model.grown:
        return f"{step.target} may lead, and not have seen that a topic grew"
    return _on_absence(model, step, member)


_BY_GROUP: Final[Mapping[Kind, Callable[[Model, ScriptStep], str | None]]] = {
    "join": _on_join,
    "grow": _on_growth,
    "kill broker": _on_broker,
    "stop broker": _on_broker,
    "start broker": _on_broker,
    "move coordinator": _on_coordinator,
}

_BY_MEMBER: Final[Mapping[Kind, Callable[[Model, ScriptStep, MemberModel], str | None]]] = {
    "leave": _on_end,
    "crash": _on_end,
    "freeze": _on_absence,
    "pause": _on_absence,
    "thaw": _on_return,
    "resume": _on_return,
    "subscribe": _on_topics,
    "restart": _on_restart,
    "crash and restart": _on_restart,
}
