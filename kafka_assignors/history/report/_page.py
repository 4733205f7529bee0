"""The report as one HTML page that needs nothing else: no script, style, font or picture from elsewhere."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined

from kafka_assignors._groups.advice import reason_words
from kafka_assignors._groups.saving import ACTUAL, best_saving, savings
from kafka_assignors.history.report import (
    _causes as causes,
    _savings as saved_words,
    _sentences as sentences,
    _words as words,
)
from kafka_assignors.history.report._drawing import draw
from kafka_assignors.history.report._layout import COLOURS
from kafka_assignors.history.report._model import GroupHistory, ReportLimits, by_restlessness
from kafka_assignors.history.report._strip_svg import bar_step, strip
from kafka_assignors.history.report._timeline_svg import timeline, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import Saving, WhatIf
    from kafka_assignors.history.report._model import Drawing, GroupSummary, ReportData


_LOG = logging.getLogger(__name__)

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewRow:
    """A group in the overview; `anchor` is None if it has no part of its own."""

    rank: int
    summary: GroupSummary
    anchor: str | None
    strip: Markup | None
    reason: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A group's own part, and what the overview needs of it; `strip` is None if it cannot be drawn."""

    html: str
    strip: Markup | None
    restarts: int


def write_report(data: ReportData, path: Path, *, limits: ReportLimits | None = None) -> int:
    """Write a report.

    Args:
        data: What it shows.
        path: The HTML file.
        limits: How much of it.

    Returns:
        How many bytes were written.

    Raises:
        OSError: The file cannot be written.
        ValueError: A history is of a group that `data.groups` does not have.
    """
    return path.write_bytes(render(data, limits=limits).encode())


def render(data: ReportData, *, limits: ReportLimits | None = None) -> str:
    """The page; see `write_report`."""
    limits = limits or ReportLimits()
    ranked = by_restlessness(data.groups)
    places = {summary.group: place for place, summary in enumerate(ranked)}
    what_if: dict[str, list[WhatIf]] = {}
    for row in data.what_if:
        what_if.setdefault(row.group, []).append(row)
    since, until = data.span
    parts: dict[str, _Part] = {}
    undrawn: dict[str, str] = {}
    incomplete: dict[str, str] = {}
    histories: Iterable[GroupHistory | Drawing] = chain(data.drawings, data.histories)
    for history in histories:
        if history.group not in places:
            raise ValueError(
                f"there is a history of {history.group!r}, but no such group: add its row to groups"
            )
        place = places[history.group]
        if place < limits.groups:
            rows = what_if.get(history.group, ())
            part = partial(_part, data, history, ranked[place], rows, limits=limits, place=place)
            none = partial(_no_part, ranked[place], place)
            parts[history.group] = _safely(part, none, undrawn, history.group)
    listed = []
    for place, summary in enumerate(ranked[: limits.rows]):
        rows, part_of = what_if.get(summary.group, ()), parts.get(summary.group)
        full = partial(_overview_row, place, summary, rows, part_of)
        bare = partial(_bare_row, place, summary, part_of)
        listed.append(_safely(full, bare, incomplete, summary.group))
    hidden = ranked[limits.rows :]
    return (
        _environment()
        .get_template("page.html")
        .render(
            data=data,
            since=since,
            until=until,
            headline=sentences.headline(ranked, since, until),
            figures=_figures(ranked, what_if),
            rows=listed,
            hidden=hidden,
            hidden_rebalances=sum(one.rebalances for one in hidden),
            sections=[parts[one.group].html for one in ranked if one.group in parts],
            undrawn=[one.group for one in ranked if one.group in undrawn],
            incomplete={group: why for group, why in incomplete.items() if group not in undrawn},
            without=len(ranked) - len(parts),
            step=words.duration(bar_step(since, until).total_seconds()),
            colours=range(COLOURS),
        )
    )


def _safely(
    make: Callable[[], _Made], instead: Callable[[str], _Made], failed: dict[str, str], group: str
) -> _Made:
    """What is made of a group; if that fails, what there is instead: the page has the other groups."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is of this group alone
        _LOG.exception("the report cannot show all of group %r", group)
        failed[group] = why = f"{type(error).__name__}: {error}"
        return instead(why)


def _no_part(summary: GroupSummary, place: int, why: str) -> _Part:
    template = _environment().get_template("undrawn.html")
    html = template.render(key=f"g{place + 1}", rank=place + 1, summary=summary, why=why)
    return _Part(html=html, strip=None, restarts=0)


def _part(
    data: ReportData,
    history: GroupHistory | Drawing,
    summary: GroupSummary,
    rows: Sequence[WhatIf],
    *,
    limits: ReportLimits,
    place: int,
) -> _Part:
    """A group's own part."""
    drawing = draw(history, limits) if isinstance(history, GroupHistory) else history
    since, until = data.span
    drawn = drawing.columns_until(until)
    saving = best_saving(rows)
    reasons = [
        (reason_words(kind), often)
        for kind, often in sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
        if often and (kind != "member restarted" or not drawing.restarts)  # these are among the restarts
    ]
    if drawing.restarts:
        reasons.insert(0, (causes.RESTARTED, drawing.restarts))
    most = max((often for _, often in reasons), default=1)
    key = f"g{place + 1}"
    strip_of = strip(drawing.ended, since, until)
    html = (
        _environment()
        .get_template("group.html")
        .render(
            key=key,
            rank=place + 1,
            summary=summary,
            strategy=drawing.strategy,
            sentences=sentences.group_sentences(summary, drawing, saving),
            since=since,
            until=until,
            strip=strip_of,
            timeline=timeline(drawn, limits, key=key, title=f"The course of {summary.group}"),
            told=told(drawn, limits),
            bunched=max((one.states for one in drawn), default=1),
            states=sum(one.states for one in drawn),
            drawn=len(drawn),
            reasons=[(said, often, round(100 * often / most)) for said, often in reasons],
            what_if=_what_if_rows(rows, saving, drawing.strategy),
            failed=any(row.failed for row in rows),
            listed=drawing.listed,
            left_out=len(drawing.ended) - len(drawing.listed),
            latest=limits.rebalances // 2,
        )
    )
    return _Part(html=html, strip=strip_of, restarts=drawing.restarts)


def _bare_row(place: int, summary: GroupSummary, part: _Part | None, _: str = "") -> OverviewRow:
    return OverviewRow(
        rank=place + 1,
        summary=summary,
        anchor=None if part is None else f"g{place + 1}",
        strip=None if part is None else part.strip,
        reason="",
        advice="",
    )


def _overview_row(
    place: int, summary: GroupSummary, rows: Sequence[WhatIf], part: _Part | None
) -> OverviewRow:
    kind = causes.main_reason(summary.reasons)
    reason = "" if kind is None else reason_words(kind).title
    if part is not None and part.restarts >= max(summary.reasons.values(), default=1):
        reason = causes.RESTARTED.title
    saving = best_saving(rows)
    if saving is not None:
        advice = f"{saved_words.change(saving.row, None)}: {saved_words.saved(saving)} less"
    else:
        advice = "nothing that was tried helps much" if savings(rows) else ""
    advice = f"{advice[:1].upper()}{advice[1:]}"
    return replace(_bare_row(place, summary, part), reason=reason, advice=advice)


def _figures(
    groups: Sequence[GroupSummary], what_if: Mapping[str, Sequence[WhatIf]]
) -> list[tuple[str, str]]:
    """The numbers at the top: value and what it is."""
    rebalances = sum(one.rebalances for one in groups)
    moved = sum(one.moved for one in groups)
    unowned = sum(one.unowned_seconds for one in groups)
    found = [
        (f"{len(groups):,}", "consumer group" if len(groups) == 1 else "consumer groups"),
        (f"{rebalances:,}", "rebalance" if rebalances == 1 else "rebalances"),
        (f"{moved:,}", "move of a partition" if moved == 1 else "moves of partitions"),
        (words.duration(unowned, short=True), "without an owner"),
    ]
    best = [saving for rows in what_if.values() if (saving := best_saving(rows)) is not None]
    if best:
        avoidable = sum(max(one.unowned_seconds, 0.0) for one in best)
        found.append((words.duration(avoidable, short=True), "of that avoidable"))
    return found


def _what_if_rows(
    rows: Sequence[WhatIf], saving: Saving | None, strategy: str | None
) -> list[tuple[str, WhatIf, str, bool]]:
    """What happened, then the changes, the best first: words, row, what it saves, whether to recommend it."""
    found = [("What happened", row, "", False) for row in rows if row.assignor == ACTUAL]
    for one in savings(rows):
        name = saved_words.change(one.row, strategy)
        found.append((f"{name[:1].upper()}{name[1:]}", one.row, saved_words.spared(one), one == saving))
    return found


def _why(rebalance: Rebalance) -> str:
    most = 3
    texts = [reason.text for reason in rebalance.reasons]
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return f"{'; '.join(texts[:most])}{more}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kafka_assignors.history.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "count": words.count,
        "number": words.number,
        "duration": words.duration,
        "moment": words.moment,
        "why": _why,
    }
    environment.filters.update(filters)
    return environment
