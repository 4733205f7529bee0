"""What a history says, in words for people on call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors.history.report.model import ACTUAL, AS_IT_WAS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from kafka_assignors.history.report.model import GroupSummary, Rebalance, WhatIf

RESTART: Final = timedelta(minutes=10)
"""A consumer of the same name that joins within this time after one was gone has been restarted."""

_WORTH_SECONDS: Final = 30.0
_WORTH_MOVES: Final = 10

_UNITS: Final = ((86_400, "day", "d"), (3600, "hour", "h"), (60, "minute", "min"), (1, "second", "s"))


class ReasonWords(NamedTuple):
    """A kind of reason: as a heading, what it means, and what to do."""

    title: str
    meaning: str
    todo: str


REASONS: Final[Mapping[str, ReasonWords]] = {
    "member joined": ReasonWords(
        "A consumer joined",
        "A consumer started, or came back after it had been lost.",
        "Normal when you deploy or scale up. If it happens all the time, look for consumers that restart or"
        " fall out of the group, and give each its own group.instance.id (static membership).",
    ),
    "member gone": ReasonWords(
        "A consumer left or was lost",
        "It was stopped or killed, sent no sign of life within session.timeout.ms, or did not ask for records"
        " within max.poll.interval.ms.",
        "Look at that consumer's log and its restarts at that time. If it was merely slow: fewer records per"
        " poll (max.poll.records) or a longer max.poll.interval.ms. If it was restarted on purpose: static"
        " membership.",
    ),
    "static member came back": ReasonWords(
        "A static member came back",
        "A consumer with a group.instance.id was restarted, and the group had to rebalance all the same, for"
        " instance because it was away for too long or subscribes to something else.",
        "Make session.timeout.ms longer than a restart takes.",
    ),
    "subscription changed": ReasonWords(
        "A subscription changed",
        "A consumer subscribed to other topics than before.",
        "Normal after a deployment. With subscriptions by pattern, look for topics that come and go.",
    ),
    "hand-over of a cooperative rebalance": ReasonWords(
        "The second step of a cooperative rebalance",
        "Cooperative groups rebalance in two steps: partitions are let go in the first, and given to their new"
        " owners in the second. The others are consumed all the while.",
        "Nothing: it belongs to the rebalance before it.",
    ),
    "strategy changed": ReasonWords(
        "The assignor changed",
        "The group's partitions are given out by another rule than before (partition.assignment.strategy).",
        "Normal once, in a deployment. If it goes back and forth, consumers differ in their configuration.",
    ),
    "partitions added": ReasonWords(
        "A topic got more partitions",
        "The consumers found new partitions, or a new topic, and shared them out.",
        "Nothing: this is how new partitions get an owner.",
    ),
    "unknown": ReasonWords(
        "No reason is on record",
        "Neither consumers nor subscriptions changed. A consumer may have asked for the rebalance, the group"
        " may have moved to another broker, or somebody came and went between two records.",
        "Look at the brokers' logs at that time, for a restart or a change of the group's coordinator.",
    ),
}
"""What `coordinator.reasons.Kind` means to people on call. Kinds that are not here stand for themselves."""

RESTARTED: Final = ReasonWords(
    "A consumer restarted",
    "A consumer was gone, and one with the same client.id (or group.instance.id) joined within 10 minutes. Such"
    " rebalances count here and once more below.",
    "With static membership a restart that takes no longer than session.timeout.ms is no rebalance.",
)
"""What `restarts` counts."""


def reason_words(kind: str) -> ReasonWords:
    """A kind's words; of a kind that is not known the kind itself."""
    return REASONS.get(kind) or ReasonWords(kind[:1].upper() + kind[1:], "", "")


def number(value: float) -> str:
    """A number with commas between thousands; below 10 with one decimal if it has any."""
    if abs(value) < 10 and round(value, 1) != round(value):  # noqa: PLR2004 - one digit before the point
        return f"{value:.1f}"
    return f"{round(value):,}"


def count(value: int, what: str, several: str | None = None) -> str:
    """So many things, such as "1 rebalance" and "2 rebalances"."""
    return f"{value:,} {what if value == 1 else several or what + 's'}"


def times(value: int) -> str:
    """So often: once, twice, 3 times; never."""
    return {0: "never", 1: "once", 2: "twice"}.get(value) or f"{value:,} times"


def duration(seconds: float, *, short: bool = False) -> str:
    """A time in its two largest units, such as "9 minutes 20 seconds", or "9 min 20 s" if short."""
    seconds = max(seconds, 0.0)
    if 0 < seconds < 10:  # noqa: PLR2004 - one digit before the point
        value = number(max(seconds, 0.1))
        return f"{value} s" if short else f"{value} second{'' if value == '1' else 's'}"
    # Rounded in the smaller unit that is shown, so that a minute never has 60 seconds.
    smallest = 60 if seconds >= 86_400 else 1  # noqa: PLR2004 - a day
    smallest = 3600 if seconds >= 10 * 86_400 else smallest
    rest = round(seconds / smallest) * smallest
    parts: list[str] = []
    for unit, name, letters in _UNITS:
        value, rest = divmod(rest, unit)
        if value and len(parts) < 2:  # noqa: PLR2004 - of the units
            parts.append(f"{value:,} {letters}" if short else count(value, name))
        elif parts:
            break
    return " ".join(parts) or ("0 s" if short else "0 seconds")


def moment(time: datetime, *, seconds: bool = False) -> str:
    """A time of UTC, such as "20 Nov 2026 14:02"."""
    return f"{time.day} {time:%b %Y %H:%M:%S}" if seconds else f"{time.day} {time:%b %Y %H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a change would have avoided.

    Attributes:
        row: The what-if row with the change.
        rebalances: How many rebalances; negative if there had been more.
        moved: How many moves of partitions.
        unowned_seconds: How many partition-seconds without an owner.
    """

    row: WhatIf
    rebalances: int
    moved: int
    unowned_seconds: float


def savings(rows: Iterable[WhatIf]) -> list[Saving]:
    """What each change of a group would have avoided, the best first; nothing without a row of what happened.

    Best is what avoids most time without an owner, then most rebalances, then most moves. A change with which
    partitions would have been left out is never better than one without.
    """
    rows = list(rows)
    actual = next((row for row in rows if row.assignor == ACTUAL), None)
    if actual is None:
        return []
    found = [
        Saving(
            row=row,
            rebalances=actual.rebalances - row.rebalances,
            moved=actual.moved - row.moved,
            unowned_seconds=actual.unowned_seconds - row.unowned_seconds,
        )
        for row in rows
        if row is not actual
    ]
    return sorted(
        found,
        key=lambda one: (
            one.row.failed > 0,
            -round(one.unowned_seconds, 1),
            -one.rebalances,
            -one.moved,
            one.row.scenario != AS_IT_WAS,
            one.row.assignor,
        ),
    )


def best_saving(rows: Iterable[WhatIf]) -> Saving | None:
    """The change to recommend; None if none would have avoided much."""
    best = next(iter(savings(rows)), None)
    if best is None or best.row.failed:
        return None
    gains = best.unowned_seconds >= _WORTH_SECONDS or best.rebalances > 0 or best.moved >= _WORTH_MOVES
    return best if gains and best.unowned_seconds > -1 else None


def change(row: WhatIf, strategy: str | None) -> str:
    """A what-if row's change, in words.

    Args:
        row: The row.
        strategy: The assignor that the group uses now, which is not named again.
    """
    if row.assignor == ACTUAL:
        return "what happened"
    parts = [] if row.scenario == AS_IT_WAS else [_scenario(row.scenario)]
    if row.assignor != strategy:
        parts.append(f"the {row.assignor} assignor")
    return " and ".join(parts) or f"the {row.assignor} assignor, replayed"


def _scenario(scenario: str) -> str:
    name, _, value = scenario.partition("=")
    if scenario == "static members":
        return "static membership"
    if name == "session.timeout.ms" and value.isdigit():
        return f"a session timeout of {duration(int(value) / 1000)}"
    return scenario


def saved(saving: Saving) -> str:
    """What a change would have avoided, such as "33 rebalances and 9 minutes without an owner"; or "nothing"."""
    parts = []
    if saving.rebalances > 0:
        parts.append(count(saving.rebalances, "rebalance"))
    if saving.moved > 0 and saving.rebalances <= 0:
        parts.append(count(saving.moved, "move of a partition", "moves of partitions"))
    if saving.unowned_seconds >= 1:
        parts.append(f"{duration(saving.unowned_seconds)} without an owner")
    return " and ".join(parts) or "nothing"


def spared(saving: Saving) -> str:
    """As `saved`, with what would have been worse: "33 rebalances, but 2 minutes more without an owner"."""
    worse = []
    if saving.rebalances < 0:
        worse.append(f"{count(-saving.rebalances, 'rebalance')} more")
    if saving.moved < 0 and saving.rebalances >= 0:
        worse.append(f"{count(-saving.moved, 'move', 'moves')} more")
    if saving.unowned_seconds <= -1:
        worse.append(f"{duration(-saving.unowned_seconds)} more without an owner")
    return ", but ".join(part for part in (saved(saving), " and ".join(worse)) if part)


def restarts(rebalances: Iterable[Rebalance]) -> int:
    """How many rebalances are the doing of a consumer that was gone and joined again within `RESTART`.

    Consumers are the same here if their client ids are (or instance ids): what is before a "/" in a reason's
    `member`. A consumer that comes back on another host is one that was restarted.
    """
    ordered = sorted(rebalances, key=lambda one: one.ended)
    waiting: dict[str, list[int]] = {}
    found: set[int] = set()
    for position, rebalance in enumerate(ordered):
        # Who was gone in a rebalance can be the one that joined in the same.
        for reason in rebalance.reasons:
            if reason.kind == "member gone":
                waiting.setdefault(_client(reason.member), []).append(position)
            elif reason.kind == "static member came back":
                found.add(position)
        for reason in rebalance.reasons:
            left = waiting.get(_client(reason.member), [])
            while left and reason.kind == "member joined":
                before = left.pop(0)
                if ordered[position].ended - ordered[before].ended <= RESTART:
                    found |= {before, position}
                    break
    return len(found)


def _client(member: str) -> str:
    return member.partition("/")[0]


def main_reason(reasons: Mapping[str, int]) -> str | None:
    """The kind that was seen most often."""
    return min(reasons, key=lambda kind: (-reasons[kind], kind), default=None)


def group_sentences(
    summary: GroupSummary, rebalances: Sequence[Rebalance], saving: Saving | None, strategy: str | None
) -> list[str]:
    """A group's course in a few sentences, the most important first."""
    lasted = (summary.until - summary.since).total_seconds()
    if not summary.rebalances:
        return [f"{summary.group} did not rebalance in {duration(lasted)}."]
    head = f"{summary.group} rebalanced {times(summary.rebalances)} in {duration(lasted)}"
    often, why, restarted = _main_cause(summary, rebalances)
    if often:
        head += f", {_of(often, summary.rebalances)}because {why}"
    if saving is not None:
        head += f"; {change(saving.row, strategy)} would have avoided {_avoided(saving, restarted)}"
    sentences = [f"{head}."]
    if summary.moved:
        needless = summary.moved - summary.least_moved
        often = f"Partitions went from one consumer to another {times(summary.moved)}"
        if needless > 0 and summary.least_moved > 0:
            often += f"; {number(needless)} of these moves an even share did not need"
        sentences.append(f"{often}.")
    if summary.unowned_seconds >= 1:
        sentences.append(
            f"Its partitions were without an owner for {duration(summary.unowned_seconds)}, added up; the"
            f" longest rebalance took {duration(summary.longest_seconds)}."
        )
    if summary.flapping:
        names = _listed(summary.flapping)
        sentences.append(f"{names} came and went at least three times within an hour.")
    return sentences


def _main_cause(summary: GroupSummary, rebalances: Sequence[Rebalance]) -> tuple[int, str, int]:
    """How many rebalances had the most frequent cause, which it was, and how many of them were restarts."""
    restarted = restarts(rebalances)
    known = {kind: often for kind, often in summary.reasons.items() if kind != "unknown"}
    kind = main_reason(known)
    if kind is None or restarted >= known[kind]:
        return restarted, "consumers restarted", restarted
    often = sum(any(reason.kind == kind for reason in one.reasons) for one in rebalances)
    title = reason_words(kind).title
    return often, f"{title[:1].lower()}{title[1:]}", 0


def _of(some: int, everything: int) -> str:
    """Some of so many: "35 of them ", "all of them ", "both of them "; nothing of one."""
    if some >= everything:
        return {1: "", 2: "both of them "}.get(everything, "all of them ")
    return f"{some:,} of them "


def _avoided(saving: Saving, restarted: int) -> str:
    """As `saved`, with the rebalances as some of those just told."""
    words = saved(saving)
    if restarted and 0 < saving.rebalances <= restarted:
        plain = count(saving.rebalances, "rebalance")
        return words.replace(plain, f"{saving.rebalances:,} of these", 1)
    return words


def _listed(names: Sequence[str]) -> str:
    most = 5
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {count(len(names) - most, 'other')}"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def headline(groups: Sequence[GroupSummary], since: datetime, until: datetime) -> str:
    """The whole report in a sentence or two."""
    span = f"between {moment(since)} and {moment(until)} UTC"
    total = sum(one.rebalances for one in groups)
    if not total:
        return f"{count(len(groups), 'consumer group')} did not rebalance {span}."
    most = max(groups, key=lambda one: (one.rebalances, one.unowned_seconds))
    words = f"{count(len(groups), 'consumer group')} rebalanced {times(total)} {span}."
    if len(groups) > 1:
        words += f" The most restless was {most.group}: {times(most.rebalances)}."
    return words
