"""The report as one HTML page that needs nothing else: no script, style, font or picture from elsewhere."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
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
from kafka_assignors.history.report._columns import columns, listed_rebalances
from kafka_assignors.history.report._layout import COLOURS
from kafka_assignors.history.report._model import ReportLimits, by_restlessness
from kafka_assignors.history.report._strip_svg import bar_step, strip
from kafka_assignors.history.report._timeline_svg import timeline, told

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from markupsafe import Markup

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import Saving, WhatIf
    from kafka_assignors.history.report._model import (
        GroupHistory,
        GroupSummary,
        ReportData,
    )


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
    for history in data.histories:
        if history.group not in places:
            raise ValueError(
                f"there is a history of {history.group!r}, but no such group: add its row to groups"
            )
        place = places[history.group]
        if place < limits.groups:
            rows = what_if.get(history.group, ())
            parts[history.group] = _part(data, history, ranked[place], rows, limits=limits, place=place)
    failed: dict[str, str] = {}
    listed = [
        _row(place, summary, what_if.get(summary.group, ()), parts.get(summary.group), failed)
        for place, summary in enumerate(ranked[: limits.rows])
    ]
    headline = _of_all(lambda groups: sentences.headline(groups, since, until), ranked, failed)
    figures = _of_all(lambda groups: _figures(groups, _replayed(groups, what_if, places)), ranked, failed)
    undrawn = [one.group for one in ranked if one.group in parts and parts[one.group].strip is None]
    hidden = ranked[limits.rows :]
    return (
        _environment()
        .get_template("page.html")
        .render(
            data=data,
            since=since,
            until=until,
            headline=headline,
            figures=figures,
            rows=listed,
            hidden=hidden,
            hidden_rebalances=sum(one.rebalances for one in hidden),
            sections=[parts[one.group].html for one in ranked if one.group in parts],
            undrawn=undrawn,
            incomplete={group: why for group, why in failed.items() if group not in undrawn},
            without=len(ranked) - len(parts),
            step=words.duration(bar_step(since, until).total_seconds()),
            colours=range(COLOURS),
        )
    )


def _part(
    data: ReportData,
    history: GroupHistory,
    summary: GroupSummary,
    rows: Sequence[WhatIf],
    *,
    limits: ReportLimits,
    place: int,
) -> _Part:
    """A group's own part; what cannot be drawn must not take the page of all groups with it."""
    try:
        return _Part(
            html=_section(data, history, summary, rows, limits=limits, place=place),
            strip=strip(history.rebalances, *data.span),
            restarts=causes.restarts(history.rebalances),
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is of this group alone
        _LOG.exception("the report's part of group %r cannot be drawn", history.group)
        template = _environment().get_template("undrawn.html")
        why = _words_of(error)
        html = template.render(key=f"g{place + 1}", rank=place + 1, summary=summary, why=why)
        return _Part(html=html, strip=None, restarts=0)


def _section(
    data: ReportData,
    history: GroupHistory,
    summary: GroupSummary,
    rows: Sequence[WhatIf],
    *,
    limits: ReportLimits,
    place: int,
) -> str:
    """A group's own part."""
    rebalances = sorted(history.rebalances, key=lambda one: one.ended)
    since, until = data.span
    drawn = columns(history, until, limits)
    strategy = next((one.strategy for one in reversed(rebalances) if one.strategy), None)
    listed = listed_rebalances(rebalances, limits.rebalances)
    saving = best_saving(rows)
    restarted = causes.restarts(rebalances)
    reasons = [
        (reason_words(kind), often)
        for kind, often in sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
        if often and (kind != "member restarted" or not restarted)  # these are among the restarts
    ]
    if restarted:
        reasons.insert(0, (causes.RESTARTED, restarted))
    most = max((often for _, often in reasons), default=1)
    key = f"g{place + 1}"
    return (
        _environment()
        .get_template("group.html")
        .render(
            key=key,
            rank=place + 1,
            summary=summary,
            strategy=strategy,
            sentences=sentences.group_sentences(summary, rebalances, saving, strategy),
            since=since,
            until=until,
            strip=strip(rebalances, since, until),
            timeline=timeline(drawn, limits, key=key, title=f"The course of {summary.group}"),
            told=told(drawn, limits),
            bunched=max((one.states for one in drawn), default=1),
            states=sum(one.states for one in drawn),
            drawn=len(drawn),
            reasons=[(said, often, round(100 * often / most)) for said, often in reasons],
            what_if=_what_if_rows(rows, saving, strategy),
            failed=any(row.failed for row in rows),
            listed=listed,
            left_out=len(rebalances) - len(listed),
            latest=limits.rebalances // 2,
        )
    )


def _row(
    place: int, summary: GroupSummary, rows: Sequence[WhatIf], part: _Part | None, failed: dict[str, str]
) -> OverviewRow:
    """A group's row; if that fails, without its reason and advice, and `failed` gets the group."""
    try:
        return _overview_row(place, summary, rows, part)
    except Exception as error:  # noqa: BLE001 - as in `_part`
        _note(failed, summary.group, error)
        return OverviewRow(
            rank=place + 1,
            summary=summary,
            anchor=None if part is None else f"g{place + 1}",
            strip=None if part is None else part.strip,
            reason="",
            advice="",
        )


def _of_all(
    make: Callable[[Sequence[GroupSummary]], _Made], groups: Sequence[GroupSummary], failed: dict[str, str]
) -> _Made:
    """What is made of all groups; if that fails, of those that allow it, and `failed` gets the others."""
    try:
        return make(groups)
    except Exception:  # noqa: BLE001 - as in `_part`
        sound = []
        for one in groups:
            try:
                make([one])
            except Exception as error:  # noqa: BLE001 - as in `_part`
                _note(failed, one.group, error)
            else:
                sound.append(one)
        return make(sound)


def _note(failed: dict[str, str], group: str, error: Exception) -> None:
    if group not in failed:
        _LOG.error("the report's summary of group %r is incomplete", group, exc_info=error)
        failed[group] = _words_of(error)


def _words_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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
    return OverviewRow(
        rank=place + 1,
        summary=summary,
        anchor=None if part is None else f"g{place + 1}",
        strip=None if part is None else part.strip,
        reason=reason,
        advice=f"{advice[:1].upper()}{advice[1:]}",
    )


def _replayed(
    groups: Sequence[GroupSummary], what_if: Mapping[str, Sequence[WhatIf]], known: Collection[str]
) -> dict[str, Sequence[WhatIf]]:
    """What-if of these groups, and of those that are not in the report."""
    names = {one.group for one in groups}
    return {group: rows for group, rows in what_if.items() if group in names or group not in known}


def _figures(
    groups: Sequence[GroupSummary], what_if: Mapping[str, Sequence[WhatIf]]
) -> list[tuple[str, str]]:
    """The numbers at the top: value and what it is."""
    rebalances = sum(one.rebalances for one in groups)
    moved = sum(one.moved for one in groups)
    unowned = {one.group: one.unowned_seconds for one in groups}
    found = [
        (f"{len(groups):,}", "consumer group" if len(groups) == 1 else "consumer groups"),
        (f"{rebalances:,}", "rebalance" if rebalances == 1 else "rebalances"),
        (f"{moved:,}", "move of a partition" if moved == 1 else "moves of partitions"),
        (words.duration(sum(unowned.values()), short=True), "without an owner"),
    ]
    best = [saving for rows in what_if.values() if (saving := best_saving(rows)) is not None]
    if best:
        # What-if counts by a rule of its own, and may see more than there is in the table.
        avoidable = sum(min(max(one.unowned_seconds, 0.0), unowned.get(one.row.group, 0.0)) for one in best)
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
