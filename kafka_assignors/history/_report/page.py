"""The report as one HTML page that needs nothing else: no script, style, font or picture from elsewhere."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kafka_assignors._common.words import first_of
from kafka_assignors._groups.advice import reason_words
from kafka_assignors._groups.reasons import RESTARTED
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.saving import ACTUAL, Saving, WhatIf, best_saving, savings
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._metrics import GroupSummary
from kafka_assignors.history._report import sentences, words
from kafka_assignors.history._report.drawing import Drawing, ReportedGroup, restlessness
from kafka_assignors.history._report.timeline_svg import COLOURS, bar_step, safe, strip, timeline, told


def render(
    groups: Sequence[ReportedGroup], *, source: str, made: datetime, asked: datetime | None = None
) -> str:
    """The page; `source` is a cluster's id or an archive's location, `asked` when groups were to begin."""
    ranked = sorted(groups, key=lambda one: restlessness(one.summary))
    summaries = [one.summary for one in ranked]
    since, until = min(one.since for one in summaries), max(one.until for one in summaries)
    listed = enumerate(ranked[: limits.GROUPS_LISTED], 1)
    rows = [_shown(one, rank, since, until, asked) for rank, one in listed]
    hidden = summaries[limits.GROUPS_LISTED :]
    figures = (
        (len(ranked), "consumer group"),
        (sum(one.rebalances for one in summaries), "rebalance"),
        (sum(one.moved for one in summaries), "move of a partition", "moves of partitions"),
    )
    parts = [one["part"] for one in rows if one["part"]]
    return (
        _environment()
        .get_template("page.html")
        .render(
            source=source,
            made=made,
            since=since,
            until=until,
            brief=words.is_brief(since, until),
            headline=sentences.headline(summaries, since, until),
            figures=[words.count(*one).split(" ", 1) for one in figures],
            rows=rows,
            hidden=hidden,
            hidden_rebalances=sum(one.rebalances for one in hidden),
            sections=parts,
            without=len(ranked) - len(parts),
            step=words.duration(bar_step(since, until).total_seconds()),
            colours=COLOURS,
        )
    )


def _shown(
    one: ReportedGroup, rank: int, since: datetime, until: datetime, asked: datetime | None
) -> dict[str, Any]:
    """What the overview shows of a group, and its own part as HTML; that is empty if it is not drawn."""
    summary, saving = one.summary, best_saving(one.what_if)
    found = {
        "rank": rank,
        "key": f"g{rank}",  # what the ids of its elements begin with
        "summary": summary,
        "reason": _reason(summary),
        "advice": _advice(summary, saving),
    }
    drawing = one.drawing if rank <= limits.GROUPS_DRAWN else None
    if drawing is None:
        return {**found, "part": "", "strip": ""}
    strip_of = strip(drawing.ended, since, until)
    shown = _of_drawing(drawing, one, saving, key=f"g{rank}", until=until)
    said = sentences.group_sentences(summary, drawing, saving, asked)
    template = _environment().get_template("group.html")
    shown["brief"] = words.is_brief(since, until)
    part = template.render(group=found, since=since, until=until, strip=strip_of, sentences=said, **shown)
    return {**found, "part": part, "strip": strip_of}


def _of_drawing(
    drawing: Drawing, one: ReportedGroup, saving: Saving | None, *, key: str, until: datetime
) -> dict[str, Any]:
    """What a group's own part shows of its drawing and replays."""
    summary, drawn = one.summary, drawing.columns_until(until)
    reasons = sorted(summary.reasons.items(), key=lambda item: (-item[1], item[0] != RESTARTED, item[0]))
    most = max((often for _, often in reasons), default=1)
    return {
        "strategy": drawing.strategy,
        "timeline": timeline(drawn, drawing.partitions, key=key, title=f"The course of {summary.group}"),
        "told": told(drawn),
        "bunched": max((column.states for column in drawn), default=1),
        "states": sum(column.states for column in drawn),
        "drawn": len(drawn),
        "reasons": [(reason_words(kind), often, 100 * often // most) for kind, often in reasons if often],
        "what_if": _what_if_rows(one.what_if, saving, drawing.strategy),
        "failed": any(row.failed for row in one.what_if),
        "hottest": any(row.hottest for row in one.what_if),
        "listed": drawing.listed,
        "left_out": len(drawing.ended) - len(drawing.listed),
        "latest": limits.REBALANCES_LISTED // 2,
    }


def _reason(summary: GroupSummary) -> str:
    titles = [reason_words(kind).title for kind in summary.mostly]
    return ", ".join(titles) if len(titles) < 2 else f"Equally often: {', '.join(titles)}"  # noqa: PLR2004


def _advice(summary: GroupSummary, saving: Saving | None) -> str:
    """What would help, or else what the group's rebalances were for, or where to look."""
    if saving is None:
        return " ".join(dict.fromkeys(reason_words(kind).verdict for kind in summary.mostly))
    saved = f"{sentences.saved(saving)} less{sentences.condition(saving)}"
    advice = f"{sentences.change(saving.row, None)}: {saved}"
    return f"{advice[:1].upper()}{advice[1:]}"


def _what_if_rows(
    rows: Sequence[WhatIf], saving: Saving | None, strategy: str | None
) -> list[tuple[str, WhatIf, str, bool]]:
    """What happened, then the changes, the best first: words, row, what it saves, whether to recommend it."""
    found = [("what happened", row, "", False) for row in rows if row.assignor == ACTUAL]
    changes = ((one, sentences.change(one.row, strategy), sentences.spared(one)) for one in savings(rows))
    found += [(name, one.row, saves, one == saving) for one, name, saves in changes]
    found += [(sentences.change(row, strategy), row, row.problem, False) for row in rows if row.problem]
    return found


def _why(rebalance: Rebalance) -> str:
    return first_of([reason.text for reason in rebalance.reasons], 3, "; ")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kafka_assignors.history._report"),
        autoescape=True,
        finalize=lambda value: safe(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for filter_ in (words.count, words.number, words.duration, words.moment, _why):
        environment.filters[filter_.__name__.strip("_")] = filter_
    return environment
