"""All schedules of a small group, up to a number of steps.

Three members, three partitions of two topics. Each step changes something, and comes either during an
exchange of requests or after a period of polls. Members are alike, so they join in one order.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from tests.lab.schedules._schedule import ENDS, Schedule, Step

TOPICS: Final[Mapping[str, int]] = {"t": 2, "u": 1}
MEMBERS: Final = ("m1", "m2", "m3")
GAPS_MS: Final = (2, 1101)
"""During an exchange; and longer than a slow member's period, so that it meets each other member's in
turn.
"""

POLL_MS: Final = 100
WORK_MS: Final = 900

_ALL: Final = tuple(TOPICS)
_ONE: Final = _ALL[:1]

_ENDED_BY: Final = {state: kind for kind, state in ENDS.items()}

_Members = tuple[tuple[str, tuple[str, ...]], ...]
"""What each member is, by its place: "", "frozen", "paused", "cut off" or "gone"; and its topics."""


def every(depth: int, *, client: str = "ours", strategy: str = "cooperative-sticky") -> Iterator[Schedule]:
    """All schedules of this many steps after the first member's join."""

    def join(name: str, after_ms: int) -> Step:
        return Step(
            kind="join",
            target=name,
            after_ms=after_ms,
            topics=_ALL,
            client=client,
            poll_ms=POLL_MS,
            work_ms=WORK_MS,
        )

    def go_on(steps: tuple[Step, ...], members: _Members) -> Iterator[tuple[Step, ...]]:
        if len(steps) > depth:
            yield steps
            return
        for gap in GAPS_MS:
            if len(members) < len(MEMBERS):
                step = join(MEMBERS[len(members)], gap)
                yield from go_on((*steps, step), (*members, ("", _ALL)))
            yield from go_on((*steps, Step(kind="move coordinator", after_ms=gap)), members)
            for number, member in enumerate(members):
                for step, becomes in _steps(MEMBERS[number], *member, gap):
                    after = (*members[:number], becomes, *members[number + 1 :])
                    yield from go_on((*steps, step), after)

    for steps in go_on((join(MEMBERS[0], 0),), (("", _ALL),)):
        yield Schedule(strategy=strategy, topics=TOPICS, steps=steps, seed=depth)


def _steps(
    name: str, state: str, topics: tuple[str, ...], after_ms: int
) -> Iterator[tuple[Step, tuple[str, tuple[str, ...]]]]:
    """What can be done to a member, and what that makes of it."""
    if state == "gone":
        return
    if state:
        yield Step(kind=_ENDED_BY[state], target=name, after_ms=after_ms), ("", topics)
        return
    other = _ONE if topics == _ALL else _ALL
    yield Step(kind="subscribe", target=name, topics=other, after_ms=after_ms), ("", other)
    yield Step(kind="lose answer", target=name, after_ms=after_ms), ("", topics)
    yield Step(kind="freeze", target=name, after_ms=after_ms), ("frozen", topics)
    yield Step(kind="pause", target=name, after_ms=after_ms), ("paused", topics)
    yield Step(kind="cut", target=name, after_ms=after_ms), ("cut off", topics)
    yield Step(kind="leave", target=name, after_ms=after_ms), ("gone", topics)
    yield Step(kind="crash", target=name, after_ms=after_ms), ("gone", topics)
