"""Pictures of what the strategies do, drawn of simulated groups: `python -m website.drawings` stores them."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    CopartitionedAssignor,
    LoadAwareAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.coordinator import MemberSettings, Simulation
from kafka_assignors.testing.events import Assigned, AssignmentReceived, Joining, Revoked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kafka import TopicPartition

    from kafka_assignors import Assignor

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"

TOPICS: Final = {"orders": 3, "payments": 3}
MEMBERS: Final = ("m1", "m2", "m3")
"""The last one joins a group of the others."""

_STRATEGIES: Final[Mapping[str, Callable[[], Assignor]]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
    "copartitioned": CopartitionedAssignor,
    "load-aware": lambda: LoadAwareAssignor(cost=lambda *one: 4 if one == ("orders", 0) else 1),
    "random": lambda: RandomAssignor(seed=1),
    "broadcast": BroadcastAssignor,
}
_COLOURS: Final = {"m1": "#0072b2", "m2": "#e69f00", "m3": "#009e73"}
_INK: Final = "#333"
_EMPTY: Final = "#eee"
_CELL: Final = 26
_NAME: Final = 40
_GAP: Final = 40
_HEAD: Final = 70

_QUICK: Final = MemberSettings(heartbeat_interval_ms=500)
_BUSY: Final = MemberSettings(heartbeat_interval_ms=500, work_ms=400)
"""The second member works for 400 ms between two polls, and joins when it polls."""

Owned = dict[str, frozenset["TopicPartition"]]
"""What each member has."""


class _Story(NamedTuple):
    """A member joins: what members had in each generation, and what happened from then on, in seconds."""

    generations: list[Owned]
    joins: list[tuple[float, str]]
    changes: list[tuple[float, str, frozenset[TopicPartition]]]
    end: float


def pictures() -> dict[str, str]:
    """Name of a file -> its SVG."""
    grids = {f"{name}.svg": _grids(name, _story(made).generations) for name, made in _STRATEGIES.items()}
    return {
        **grids,
        "rebalance.svg": _lives({"sticky": StickyAssignor, "cooperative-sticky": CooperativeStickyAssignor}),
    }


def _story(assignor: Callable[[], Assignor]) -> _Story:
    group = Simulation(TOPICS, [assignor], member=_QUICK)
    for name in MEMBERS[:-1]:
        group.join(name, settings=_BUSY if name == MEMBERS[1] else None)
    group.run_until_stable()
    before = len(group.timeline.events)
    group.run(0.2)
    group.join(MEMBERS[-1])
    group.run_until_stable()
    generations: dict[int, Owned] = {}
    for got in group.timeline.of(AssignmentReceived):
        generations.setdefault(got.generation or 0, {})[got.member] = frozenset(got.partitions)
    later = group.timeline.events[before:]
    began = later[0].time
    owned: Owned = dict.fromkeys(MEMBERS, frozenset())
    changes: list[tuple[float, str, frozenset[TopicPartition]]] = []
    for event in group.timeline.events:
        if isinstance(event, Assigned | Revoked):
            there = frozenset(event.partitions)
            now = owned[event.member]
            owned[event.member] = now | there if isinstance(event, Assigned) else now - there
            changes.append((max(0.0, event.time - began), event.member, owned[event.member]))
    joins = [(event.time - began, event.member) for event in later if isinstance(event, Joining)]
    stable = [number for number, members in generations.items() if len(members) >= len(MEMBERS) - 1]
    return _Story([generations[number] for number in stable], joins, changes, later[-1].time - began)


# --- members by partitions


def _grids(strategy: str, generations: Sequence[Owned]) -> str:
    titles = ["before", *([f"round {number}" for number in range(1, len(generations) - 1)]), "after"]
    partitions = sorted({one for owned in generations for mine in owned.values() for one in mine})
    wide = _NAME + len(partitions) * _CELL
    parts = [
        f'<g transform="translate({10 + number * (wide + _GAP)},0)">'
        + "".join(_grid(title, owned, generations[0], partitions))
        + "</g>"
        for number, (title, owned) in enumerate(zip(titles, generations, strict=True))
    ]
    width = 20 + len(generations) * wide + (len(generations) - 1) * _GAP
    height = _HEAD + len(MEMBERS) * _CELL + 34
    moved = sum(
        bool(generations[0].get(name, frozenset()) - owned) for name, owned in generations[-1].items()
    )
    words = f"{strategy}: {len(MEMBERS) - 1} members, then {len(MEMBERS)}; {moved} of them gave partitions up"
    return _svg(width, height, strategy, words, parts)


def _grid(title: str, owned: Owned, before: Owned, partitions: Sequence[TopicPartition]) -> Iterator[str]:
    yield _text(0, 36, title, weight="bold")
    for column, one in enumerate(partitions):
        x = _NAME + column * _CELL + _CELL / 2
        yield _text(x, 64, str(one.partition), anchor="middle")
        if one.partition == 0:
            yield _text(x - _CELL / 2 + 2, 51, one.topic)
    for row, member in enumerate(MEMBERS):
        y = _HEAD + row * _CELL
        yield _text(0, y + 17, member, fill=_COLOURS[member])
        mine = owned.get(member, frozenset())
        for column, one in enumerate(partitions):
            new = one in mine and one not in before.get(member, frozenset())
            fill = _COLOURS[member] if one in mine else _EMPTY
            frame = f' stroke="{_INK}" stroke-width="2.5"' if new and owned is not before else ""
            place = f'x="{_NAME + column * _CELL + 3}" y="{y + 3}" width="{_CELL - 6}" height="{_CELL - 6}"'
            yield f'<rect {place} rx="3" fill="{fill}"{frame}/>'
    loads = ", ".join(str(len(owned.get(member, ()))) for member in MEMBERS)
    yield _text(0, _HEAD + len(MEMBERS) * _CELL + 18, f"loads {loads}", fill="#666")


# --- a rebalance over time


def _lives(strategies: Mapping[str, Callable[[], Assignor]]) -> str:
    stories = {name: _story(made) for name, made in strategies.items()}
    longest = max(story.end for story in stories.values()) + 0.3
    scale = 640 / longest
    parts: list[str] = []
    top = 20
    for name, story in stories.items():
        parts += _life(name, story, top, scale, longest)
        top += 150
    parts += _axis(top - 8, scale, longest)
    words = "how many partitions each member has over time; a triangle is a JoinGroup request"
    return _svg(740, top + 22, "a member joins", words, parts)


def _life(name: str, story: _Story, top: int, scale: float, longest: float) -> Iterator[str]:
    kind = "cooperative" if name.startswith("cooperative") else "eager"
    yield _text(10, top + 12, f"{name} ({kind})", weight="bold")
    for row, member in enumerate(MEMBERS):
        y = top + 24 + row * 36
        yield _text(10, y + 16, member, fill=_COLOURS[member])
        mine = [(time, owned) for time, who, owned in story.changes if who == member]
        for (time, owned), (end, _) in zip(mine, [*mine[1:], (longest, frozenset())], strict=True):
            if owned and end > time:
                x, width = 60 + time * scale, (end - time) * scale
                yield (
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="22" fill="{_COLOURS[member]}"'
                    ' stroke="white"/>'
                )
                yield _text(x + 5, y + 15, str(len(owned)), fill="white")
        for time, who in story.joins:
            if who == member:
                x = 60 + time * scale
                yield f'<path d="M{x - 4:.1f},{y + 31} h8 l-4,-7 z" fill="{_INK}"/>'


def _axis(y: int, scale: float, longest: float) -> Iterator[str]:
    yield f'<path d="M60,{y} h{longest * scale:.1f}" stroke="{_INK}"/>'
    for tick in range(int(longest * 2) + 1):
        x = 60 + tick / 2 * scale
        yield f'<path d="M{x:.1f},{y} v4" stroke="{_INK}"/>'
        yield _text(x, y + 16, f"{tick / 2:g} s", anchor="middle")


# --- SVG


def _svg(width: float, height: float, title: str, words: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" font-family="sans-serif" font-size="12">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(words)}</desc>\n"
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f"{_text(10, 14, title, weight='bold') if title in _STRATEGIES else ''}\n{body}\n</svg>\n"
    )


def _text(
    x: float, y: float, text: str, *, fill: str = _INK, anchor: str = "start", weight: str = "normal"
) -> str:
    how = f'fill="{fill}" text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:g}" y="{y:g}" {how}>{escape(text)}</text>'


def main() -> None:
    """Store the pictures in docs/."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
