"""What is to happen to a group, drawn at random from a seed: plain data, the same for the same seed.

    script = plan_events(seed=7, count=50)
    print(script)

Decisions depend on the seed and on a model of what the steps before did. They never depend on a clock or a
real group. So a script can be run again.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from tests.lab.chaos._model import NODES, Kind, Limits, Model, ScriptStep

WEIGHTS: Final[Mapping[Kind, int]] = {
    "join": 6,
    "leave": 3,
    "crash": 4,
    "freeze": 4,
    "thaw": 5,
    "pause": 3,
    "resume": 4,
    "restart": 3,
    "crash and restart": 4,
    "subscribe": 4,
    "grow": 4,
    "kill broker": 5,
    "stop broker": 5,
    "start broker": 4,
    "move coordinator": 5,
}
"""How often each kind is drawn, beside the others that are possible at that moment."""

OPENING: Final = frozenset[Kind]({"freeze", "pause", "kill broker", "stop broker"})
"""What another step has to end."""

_CLOSING: Final = frozenset[Kind]({"thaw", "resume", "start broker"})
_CALM: Final = 0.5  # of the steps that follow a settled group come alone
_LED: Final = 0.6  # of the scripts have a first member that is alone at first
_MOST_NEW_PARTITIONS: Final = 3
_STATIC: Final = 0.5  # of the members
_POLLS_MS: Final = (50, 75, 100)  # of slow members
_WORKS_MS: Final = (500, 1000, 1000, 1500, 2000, 3000)

SLOWEST_MS: Final = max(_POLLS_MS) + max(_WORKS_MS)
"""The longest time from the begin of a slow member's poll to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Burst:
    """Steps that come one upon the other.

    Gaps are seconds between two steps. If kinds are empty, they are any.
    """

    weight: int
    fewest: int
    most: int
    gaps: tuple[float, ...]
    first: frozenset[Kind] = frozenset()
    then: frozenset[Kind] = frozenset()


_ANY: Final = _Burst(weight=3, fewest=2, most=5, gaps=(0.0, 0.0, 0.2, 0.5, 1.0, 1.5))
_JOINS: Final = _Burst(
    weight=5,
    fewest=3,
    most=6,
    gaps=(0.0, 0.5, 1.0, 1.0, 1.5, 2.0),
    first=frozenset({"join"}),
    then=frozenset({"join"}),
)
# Those who change their topics are amid a join then, or just heard that there is one.
_SUBSCRIPTIONS: Final = _Burst(
    weight=3,
    fewest=2,
    most=4,
    gaps=(0.0, 0.0, 0.1, 0.3, 0.6),
    first=frozenset({"join", "leave", "crash", "thaw", "restart", "subscribe"}),
    then=frozenset({"subscribe"}),
)
# One rebalance upon the other, as long as it takes a slow member to poll: it is overtaken again and again.
_RESTLESS: Final = frozenset[Kind]({"join", "leave", "subscribe"})
_REBALANCES: Final = _Burst(
    weight=4, fewest=5, most=8, gaps=(0.5, 1.0, 1.0, 1.5), first=_RESTLESS, then=_RESTLESS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Steps, and the seed that they are from."""

    seed: int
    limits: Limits
    steps: tuple[ScriptStep, ...]

    def __str__(self) -> str:
        return "\n".join(f"{number:4}  {step}" for number, step in enumerate(self.steps, 1))

    def first(self, count: int) -> Self:
        """Its first steps, the last of which settles."""
        steps = self.steps[:count]
        return replace(self, steps=(*steps[:-1], *(replace(step, settle=True) for step in steps[-1:])))


def plan_events(seed: int, count: int, limits: Limits | None = None) -> Script:
    """Draw a script.

    The first members join, most often one alone at first. Then steps come alone, and the group settles after
    each, or in bursts. Bursts are of any steps, of joins, of changed subscriptions upon another step, or of
    joins, leaves and changed subscriptions in a row. A healthy member is always there for each topic, at most
    one broker is down, and in the end nothing is frozen, paused or down.

    Raises:
        ValueError: There are fewer steps than members to begin with.
    """
    limits = limits or Limits()
    if count < limits.fewest:
        raise ValueError(f"{count} events: {limits.fewest} members have to join to begin with")
    rng = random.Random(seed)
    model = Model(limits)
    steps: list[ScriptStep] = []
    burst = _ANY
    length = 1 if rng.random() < _LED else limits.fewest
    place = 0  # in the burst
    while len(steps) < count:
        if place == length:
            burst, length = _next_burst(rng, model)
            place = 0
        left = count - len(steps)
        wanted = burst.first if place == 0 else burst.then
        step = _draw(rng, model, left, wanted)
        if place > 0:
            step = replace(step, gap=rng.choice(burst.gaps))
        place += 1
        step = replace(step, settle=place == length or left == 1)
        model.take(step)
        steps.append(step)
    return Script(seed=seed, limits=limits, steps=tuple(steps))


def count_kinds(scripts: Iterable[Script]) -> Counter[Kind]:
    return Counter(step.kind for script in scripts for step in script.steps)


def _next_burst(rng: random.Random, model: Model) -> tuple[_Burst, int]:
    """What comes when the group has settled, and how many steps of it."""
    if model.joined < model.limits.fewest or rng.random() < _CALM:
        return _ANY, 1
    room = model.limits.most - len(model.members)
    possible = [_ANY, _SUBSCRIPTIONS, _REBALANCES, *([_JOINS] if room >= _JOINS.fewest else [])]
    burst = rng.choices(possible, [one.weight for one in possible])[0]
    most = min(burst.most, room) if burst is _JOINS else burst.most
    return burst, rng.randint(burst.fewest, most)


def _draw(rng: random.Random, model: Model, left: int, wanted: Collection[Kind]) -> ScriptStep:
    """A step that makes sense, and leaves enough of those that are left to end what is open."""
    if model.joined < model.limits.fewest:
        return _joins(rng, model)[0]
    possible: dict[Kind, list[ScriptStep]] = {}
    for kind in WEIGHTS:
        spare = left - model.open - (kind not in _CLOSING) - (kind in OPENING)
        if spare >= 0:
            steps = [step for step in _candidates(kind)(rng, model) if model.allows(step)]
            if steps:
                possible[kind] = steps
    kinds = [kind for kind in possible if kind in wanted] or [*possible]
    kind = rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
    return rng.choice(possible[kind])


def _candidates(kind: Kind) -> Callable[[random.Random, Model], Sequence[ScriptStep]]:
    match kind:
        case "join":
            return _joins
        case "subscribe":
            return _subscriptions
        case "grow":
            return _growths
        case "kill broker" | "stop broker" | "start broker":
            return lambda *_: [ScriptStep(kind=kind, target=str(node)) for node in range(1, NODES + 1)]
        case "move coordinator":
            return lambda *_: [ScriptStep(kind=kind)]
    return lambda _, model: [ScriptStep(kind=kind, target=name) for name in model.members]


def _joins(rng: random.Random, model: Model) -> Sequence[ScriptStep]:
    topics = model.limits.topics
    # Most want everything, as in real groups.
    some = tuple(topic for topic in topics if not model.members or rng.random() < model.limits.wanted)
    step = ScriptStep(
        kind="join",
        target=f"m{model.joined + 1}",
        topics=some or topics,
        static=rng.random() < _STATIC,
    )
    if rng.random() < model.limits.slow:
        step = replace(step, poll_ms=rng.choice(_POLLS_MS), work_ms=rng.choice(_WORKS_MS))
    return [step]


def _subscriptions(rng: random.Random, model: Model) -> Sequence[ScriptStep]:
    topics = model.limits.topics
    some = tuple(topic for topic in topics if rng.random() < model.limits.wanted) or topics
    return [ScriptStep(kind="subscribe", target=name, topics=some) for name in model.members]


def _growths(rng: random.Random, model: Model) -> Sequence[ScriptStep]:
    more = rng.randint(1, _MOST_NEW_PARTITIONS)
    return [
        ScriptStep(kind="grow", target=topic, partitions=min(count + more, model.limits.most_partitions))
        for topic, count in model.partitions.items()
    ]
