"""The report as one HTML page that needs nothing else: no script, style, font or picture from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kafka_assignors._common.escaping import escaped, get_logger
from kafka_assignors._common.files import write_whole
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
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import Saving, WhatIf
    from kafka_assignors.history.report._model import Drawing, GroupSummary, ReportData


_LOG = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    """A group in the overview, and its own part as HTML; that is empty if it has none.

    `failed` is whether it could not be shown; its part says why then.
    """

    rank: int
    summary: GroupSummary
    part: str = ""
    strip: Markup | None = None
    reason: str = ""
    advice: str = ""
    failed: bool = False

    @property
    def key(self) -> str:
        """What the ids of its elements begin with."""
        return f"g{self.rank}"


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
    page = render(data, limits=limits).encode()
    write_whole(path, page)
    return len(page)


def render(data: ReportData, *, limits: ReportLimits | None = None) -> str:
    """The page; see `write_report`."""
    limits = limits or ReportLimits()
    ranked = by_restlessness(data.groups)
    places = {summary.group: place for place, summary in enumerate(ranked)}
    what_if: dict[str, list[WhatIf]] = {}
    for row in data.what_if:
        what_if.setdefault(row.group, []).append(row)
    since, until = data.span
    shown: dict[str, ShownGroup] = {}
    histories: Iterable[GroupHistory | Drawing] = chain(data.drawings, data.histories)
    for history in histories:
        if history.group not in places:
            raise ValueError(
                f"there is a history of {history.group!r}, but no such group: add its row to groups"
            )
        place = places[history.group]
        if place < limits.groups:
            bare = ShownGroup(rank=place + 1, summary=ranked[place])
            shown[history.group] = _shown(data, bare, what_if.get(history.group, ()), history, limits)
    for place, summary in enumerate(ranked[: limits.rows]):
        if summary.group not in shown:
            bare = ShownGroup(rank=place + 1, summary=summary)
            shown[summary.group] = _shown(data, bare, what_if.get(summary.group, ()), None, limits)
    hidden = ranked[limits.rows :]
    parts = [one for one in sorted(shown.values(), key=lambda one: one.rank) if one.part]
    return (
        _environment()
        .get_template("page.html")
        .render(
            data=data,
            since=since,
            until=until,
            headline=sentences.headline(ranked, since, until),
            figures=_figures(ranked, what_if),
            rows=[shown[one.group] for one in ranked[: limits.rows]],
            hidden=hidden,
            hidden_rebalances=sum(one.rebalances for one in hidden),
            sections=[one.part for one in parts],
            undrawn=[one.summary.group for one in parts if one.failed],
            without=len(ranked) - len(parts),
            step=words.duration(bar_step(since, until).total_seconds()),
            colours=range(COLOURS),
        )
    )


def _shown(
    data: ReportData,
    bare: ShownGroup,
    rows: Sequence[WhatIf],
    history: GroupHistory | Drawing | None,
    limits: ReportLimits,
) -> ShownGroup:
    """A group, with a part of its own if it was drawn; if anything fails, that says why."""
    try:
        saving = best_saving(rows)
        drawing = draw(history, limits) if isinstance(history, GroupHistory) else history
        found = replace(bare, reason=_reason(bare.summary, drawing), advice=_advice(rows, saving))
        if drawing is None:
            return found
        return _with_part(data, found, rows, drawing, saving=saving, limits=limits)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is of this group alone
        _LOG.exception("the report cannot show all of group %r", bare.summary.group)
        template = _environment().get_template("undrawn.html")
        part = template.render(group=bare, why=f"{type(error).__name__}: {error}")
        return replace(bare, part=part, failed=True)


def _with_part(
    data: ReportData,
    group: ShownGroup,
    rows: Sequence[WhatIf],
    drawing: Drawing,
    *,
    saving: Saving | None,
    limits: ReportLimits,
) -> ShownGroup:
    """The same with its own part."""
    summary = group.summary
    since, until = data.span
    drawn = drawing.columns_until(until)
    reasons = [
        (reason_words(kind), often)
        for kind, often in sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0]))
        if often and (kind != "member restarted" or not drawing.restarts)  # these are among the restarts
    ]
    if drawing.restarts:
        reasons.insert(0, (causes.RESTARTED, drawing.restarts))
    most = max((often for _, often in reasons), default=1)
    strip_of = strip(drawing.ended, since, until)
    part = (
        _environment()
        .get_template("group.html")
        .render(
            key=group.key,
            rank=group.rank,
            summary=summary,
            strategy=drawing.strategy,
            sentences=sentences.group_sentences(summary, drawing, saving),
            since=since,
            until=until,
            strip=strip_of,
            timeline=timeline(drawn, limits, key=group.key, title=f"The course of {summary.group}"),
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
    return replace(group, part=part, strip=strip_of)


def _reason(summary: GroupSummary, drawing: Drawing | None) -> str:
    """Why it rebalanced most often."""
    if drawing is not None and drawing.restarts >= max(summary.reasons.values(), default=1):
        return causes.RESTARTED.title
    kind = causes.main_reason(summary.reasons)
    return "" if kind is None else reason_words(kind).title


def _advice(rows: Sequence[WhatIf], saving: Saving | None) -> str:
    """What would help."""
    if saving is not None:
        advice = f"{saved_words.change(saving.row, None)}: {saved_words.saved(saving)} less"
    else:
        advice = "nothing that was tried helps much" if savings(rows) else ""
    return f"{advice[:1].upper()}{advice[1:]}"


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


def _printable(value: Any) -> Any:
    """What the page shows of a value; what is markup has gone through this before."""
    return escaped(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kafka_assignors.history.report"),
        autoescape=True,
        finalize=_printable,
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
