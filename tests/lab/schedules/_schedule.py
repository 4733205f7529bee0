"""A schedule: what happens to a simulated group, and when, to the millisecond. Plain data, drawn from a seed.

    schedule = draw(seed=7, length=40)
    print(schedule.script())

A schedule can be printed as a script that runs it again, and shortened. If a step makes no sense any more,
because the step before it is gone, it does nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from random import Random
from typing import Final, Self

WEIGHTS: Final[Mapping[str, int]] = {
    "join": 8,
    "leave": 3,
    "crash": 3,
    "restart": 10,
    "freeze": 2,
    "thaw": 4,
    "pause": 2,
    "resume": 4,
    "cut": 2,
    "reconnect": 4,
    "subscribe": 6,
    "grow": 2,
    "delete": 1,
    "create": 2,
    "move coordinator": 2,
    "lose answer": 2,
}
"""What can happen to a member, to a topic or to the coordinator: how often each kind is drawn."""

RARE: Final[Mapping[str, int]] = {"take over": 6}
"""The same for kinds that are drawn if asked for. Without them each seed draws what it always drew.

Another consumer takes over a member's instance id.
"""

FENCED: Final = ("ours", "waits", "unaided", "java", "librdkafka", "aio")
"""Clients that end when another consumer has their instance id. aiokafka's own throw each other out."""

GAPS_MS: Final = (0, 0, 1, 2, 3, 10, 50, 100, 200, 300, 300, 700, 1000, 1000, 1500, 2000, 4000, 8000)
"""Milliseconds between two steps: some fall into one exchange of requests, most into one rebalance."""

BURSTS_MS: Final = (700, 1000, 1000, 1300, 1500, 2000)
"""The same for schedules that never let a group come to rest."""

LONG_MS: Final = (300, 1000, 4000, 4000, 8000, 8000, 16_000)
"""The same for schedules in which sessions and rebalances time out."""

PACES_MS: Final = ((100, 0), (100, 0), (100, 300), (50, 500), (100, 1000), (100, 1000), (50, 3000), (0, 500))
"""How long members poll at a time, and work between polls."""

LATENCIES_MS: Final = (1, 1, 1, 5, 40)

MOST_MEMBERS: Final = 8

ENDS: Final[Mapping[str, str]] = {"thaw": "frozen", "resume": "paused", "reconnect": "cut off"}
"""What ends a state that a member can be in beside running."""

_BEGINS: Final[Mapping[str, str]] = {"freeze": "frozen", "pause": "paused", "cut": "cut off"}
_FEW: Final = 16  # steps of which any two are tried to leave out together
_STATIC: Final = (0, 0.2, 0.5, 1, 1)  # of the members; only these restart, and that showed the rarest faults
_ALL_TOPICS: Final = 0.5  # of the subscriptions
_RESTARTS_OTHERWISE: Final = 0.2  # of the restarts, with another subscription


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens, so many milliseconds after the step before.

    Its target is a member or a topic; empty for the coordinator. Without topics a member restarts with the
    same; `partitions` is how many the topic has from now on.
    """

    after_ms: int = 0
    kind: str
    target: str = ""
    topics: tuple[str, ...] = ()
    client: str = "ours"
    poll_ms: int = 100
    work_ms: int = 0
    latency_ms: int = 1
    static: bool = False
    partitions: int = 0

    def __str__(self) -> str:
        said = [
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"Step({', '.join(said)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Steps that happen to a group.

    Its seed decides member ids, and so who leads.
    """

    strategy: str
    topics: Mapping[str, int]
    steps: tuple[Step, ...]
    seed: int = 0
    delay_ms: int = 0

    def script(self) -> str:
        """A Python script that runs it again."""
        steps = "\n".join(f"        {step}," for step in self.steps)
        return (
            "from tests.lab.schedules import Schedule, Step, run\n\n"
            "schedule = Schedule(\n"
            f"    strategy={self.strategy!r},\n"
            f"    topics={dict(self.topics)!r},\n"
            f"    seed={self.seed},\n"
            f"    delay_ms={self.delay_ms},\n"
            f"    steps=(\n{steps}\n    ),\n"
            ")\n"
            "print(run(schedule))\n"
        )

    def shorter(self) -> Iterator[Self]:
        """Schedules that are simpler, the boldest cuts first."""
        yield from self._with_fewer_steps()
        for number, step in enumerate(self.steps):
            for simpler in _simpler(step):
                yield self._with(number, simpler)
        yield from self._with_fewer_partitions()

    def _with_fewer_steps(self) -> Iterator[Self]:
        size = len(self.steps)
        length = size // 2
        while length:
            for start in range(0, size, length):
                yield self._without(range(start, min(start + length, size)))
            length //= 2
        if size <= _FEW:
            for pair in combinations(range(size), 2):
                yield self._without(pair)

    def _with_fewer_partitions(self) -> Iterator[Self]:
        for topic, count in self.topics.items():
            if count > 1:
                yield replace(self, topics={**self.topics, topic: count - 1})
        if len(self.topics) > 1:
            for topic in self.topics:
                others = [
                    replace(step, topics=tuple(name for name in step.topics if name != topic))
                    for step in self.steps
                    if step.target != topic and step.topics != (topic,)
                ]
                topics = {name: count for name, count in self.topics.items() if name != topic}
                yield replace(self, topics=topics, steps=tuple(others))

    def _without(self, numbers: Collection[int]) -> Self:
        """It without some steps; what came after them still comes when it did."""
        kept: list[Step] = []
        late = 0
        for number, step in enumerate(self.steps):
            if number in numbers:
                late += step.after_ms
            else:
                kept.append(replace(step, after_ms=step.after_ms + late))
                late = 0
        return replace(self, steps=tuple(kept))

    def _with(self, number: int, step: Step) -> Self:
        return replace(self, steps=(*self.steps[:number], step, *self.steps[number + 1 :]))


def _simpler(step: Step) -> Iterator[Step]:
    """A step with one of its settings simpler."""
    yield from (
        simpler
        for simpler in (
            replace(step, static=False),
            replace(step, latency_ms=1),
            replace(step, work_ms=0),
            replace(step, poll_ms=100),
        )
        if simpler != step
    )
    if step.after_ms:
        for shorter in (0, step.after_ms // 2, step.after_ms // 10 * 10, step.after_ms // 100 * 100):
            if shorter < step.after_ms:
                yield replace(step, after_ms=shorter)


def draw(
    seed: int,
    length: int,
    *,
    strategy: str = "cooperative-sticky",
    clients: Sequence[str] = ("ours",),
    rare: Sequence[str] = (),
) -> Schedule:
    """Draw a schedule; the same for the same arguments.

    `rare` are kinds of `RARE` that are drawn, too.
    """
    return _Draw(Random(seed), clients, rare).schedule(seed, length, strategy)


class _Draw:
    """A schedule that is being drawn, and who is what in it."""

    def __init__(self, random: Random, clients: Sequence[str], rare: Sequence[str]) -> None:
        self._random = random
        self._clients = clients
        self._topics = {name: random.randint(1, 4) for name in ("t", "u", "v")[: random.randint(1, 3)]}
        self._started = dict(self._topics)
        self._alive: dict[str, str] = {}  # member -> "" or what it is beside running
        self._static: set[str] = set()
        self._fenced: set[str] = set()  # static ones whose client ends if it is fenced
        self._count = 0
        # Each schedule has its own mixture, so that some are of a few kinds of steps only.
        self._weights = {kind: weight * random.choice((0, 1, 1, 3)) for kind, weight in WEIGHTS.items()}
        self._weights["join"] = max(self._weights["join"], 4)
        self._paces = random.choice((PACES_MS, PACES_MS, ((100, 0), (100, 1000)), ((100, 0),)))
        self._gaps = random.choice((GAPS_MS, GAPS_MS, BURSTS_MS, LONG_MS))
        self._share_static = random.choice(_STATIC)
        self._weights |= {kind: RARE[kind] * random.choice((1, 1, 3)) for kind in rare}

    def schedule(self, seed: int, length: int, strategy: str) -> Schedule:
        random = self._random
        steps = [self._joins() for _ in range(random.randint(1, 3))]
        # Most are short: what is wrong shows in few steps, and there is time for more of them.
        wanted = len(steps) + 1 + int((length - len(steps)) * random.random() ** 2)
        kinds = list(self._weights)
        for kind in random.choices(kinds, [self._weights[kind] for kind in kinds], k=3 * length):
            if len(steps) < wanted and (step := self._step(kind)) is not None:
                steps.append(replace(step, after_ms=random.choice(self._gaps)))
        return Schedule(
            strategy=strategy,
            topics=self._started,
            steps=tuple(steps),
            seed=seed,
            delay_ms=random.choice((0, 0, 3000)),
        )

    def _step(self, kind: str) -> Step | None:
        """A step of a kind, None if none makes sense now."""
        if kind == "join":
            return self._joins() if len(self._alive) < MOST_MEMBERS else None
        if kind in {"grow", "delete", "create"}:
            return self._topic_step(kind)
        if kind == "move coordinator":
            return Step(kind=kind)
        if kind == "take over":
            return self._takes_over()
        state = ENDS.get(kind, "")
        those = [name for name, now in self._alive.items() if now == state]
        if kind == "restart":
            those = [name for name in those if name in self._static]
        if not those or (kind in {"leave", "crash"} and len(self._alive) == 1):
            return None
        target = self._random.choice(those)
        if kind in {"leave", "crash"}:
            del self._alive[target]
        elif kind in _BEGINS or kind in ENDS:
            self._alive[target] = _BEGINS.get(kind, "")
        changes = kind == "subscribe" or (kind == "restart" and self._random.random() < _RESTARTS_OTHERWISE)
        return Step(kind=kind, target=target, topics=self._wanted() if changes else ())

    def _takes_over(self) -> Step | None:
        """Another consumer with a member's instance id, which may stand still."""
        those = [name for name in self._alive if name in self._fenced]
        if not those:
            return None
        target = self._random.choice(those)
        self._alive[target] = ""
        changes = self._random.random() < _RESTARTS_OTHERWISE
        return Step(kind="take over", target=target, topics=self._wanted() if changes else ())

    def _topic_step(self, kind: str) -> Step | None:
        target = self._random.choice(list(self._started))
        if kind == "delete":
            if target not in self._topics or len(self._topics) == 1:
                return None
            del self._topics[target]
            return Step(kind=kind, target=target)
        if (kind == "create") == (target in self._topics):
            return None
        partitions = self._topics.get(target, 0) + self._random.randint(1, 2)
        self._topics[target] = partitions
        return Step(kind=kind, target=target, partitions=partitions)

    def _joins(self) -> Step:
        random = self._random
        self._count += 1
        name = f"m{self._count}"
        self._alive[name] = ""
        poll_ms, work_ms = random.choice(self._paces)
        static = random.random() < self._share_static
        if static:
            self._static.add(name)
        after_ms, topics, client = random.choice(self._gaps), self._wanted(), random.choice(self._clients)
        if static and client in FENCED:
            self._fenced.add(name)
        return Step(
            kind="join",
            target=name,
            after_ms=after_ms,
            topics=topics,
            client=client,
            poll_ms=poll_ms,
            work_ms=work_ms,
            latency_ms=random.choice(LATENCIES_MS),
            static=static,
        )

    def _wanted(self) -> tuple[str, ...]:
        names = list(self._started)
        if self._random.random() < _ALL_TOPICS:
            return tuple(names)
        return tuple(sorted(self._random.sample(names, self._random.randint(1, len(names)))))
