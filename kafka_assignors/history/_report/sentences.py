"""A history in sentences, for people on call."""

from collections.abc import Sequence
from datetime import datetime

from kafka_assignors._common.times import begins_after
from kafka_assignors._common.words import first_of
from kafka_assignors._groups.advice import reason_words
from kafka_assignors._groups.reasons import RESTARTED
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, Saving, WhatIf
from kafka_assignors.history._metrics import GroupSummary
from kafka_assignors.history._report import words
from kafka_assignors.history._report.drawing import Drawing, restlessness


def group_sentences(
    summary: GroupSummary, drawing: Drawing, saving: Saving | None, asked: datetime | None = None
) -> list[str]:
    """A group's course in a few sentences, the most important first; `asked` is when it was to begin."""
    since, until = (words.moment(one, seconds=True) for one in (summary.since, summary.until))
    begun = f"Its records begin at {since} UTC: what was before is not known."
    before = [begun] if begins_after(summary.since, asked) else []
    if not summary.rebalances and summary.since == summary.until:
        return [f"{summary.group} has one state on record, of {since} UTC: what was before is not known."]
    if not summary.rebalances:
        calm = f"{summary.group} did not rebalance between {since} and {until} UTC."
        return [calm, *_returned(summary), *before]
    lasted = (summary.until - summary.since).total_seconds()
    head = f"{summary.group} rebalanced {words.times(summary.rebalances)} in {words.duration(lasted)}"
    kinds = summary.mostly
    often = sum(summary.reasons[kind] for kind in kinds[:1])
    why = (" and " if often == summary.rebalances else f" and {often:,} ").join(map(_because, kinds))
    if often:
        head += f", {_of(often, summary.rebalances)}{why}"
    sentences = [f"{head}."]
    if saving is not None:
        what = change(saving.row, drawing.strategy)
        avoided = _avoided(saving, often if kinds == (RESTARTED,) else 0)
        sentences[0] += f" {what[:1].upper()}{what[1:]} would have avoided {avoided}{explained(saving)}"
    if summary.moved:
        moves = f"Partitions moved from one consumer to another {words.times(summary.moved)}."
        if summary.needless:
            moves += f" {words.number(summary.needless)} of these moves were needless."
        sentences.append(moves)
    if summary.longest_seconds >= 1:
        sentences.append(f"The longest rebalance took at least {words.duration(summary.longest_seconds)}.")
    sentences += _returned(summary)
    if summary.flapping:
        names = first_of(summary.flapping, 5)
        sentences.append(f"{names} joined and left at least three times within an hour.")
    return sentences + before


def _returned(summary: GroupSummary) -> list[str]:
    often = words.times(summary.returned)
    return [f"Static members came back {often} without a rebalance."] if summary.returned else []


def _because(kind: str) -> str:
    title = reason_words(kind).title
    return "without a reason on record" if kind == "unknown" else f"because {title[:1].lower()}{title[1:]}"


def _of(some: int, everything: int) -> str:
    """Some of so many: "35 of them ", "all of them ", "both of them "; nothing of one."""
    if some >= everything:
        return {1: "", 2: "both of them "}.get(everything, "all of them ")
    return f"{some:,} of them "


def _avoided(saving: Saving, restarted: int) -> str:
    """As `saved`, with the rebalances as some of those just named."""
    phrase = saved(saving)
    if restarted and 0 < saving.rebalances <= restarted:
        plain = words.count(saving.rebalances, "rebalance")
        return phrase.replace(plain, f"{saving.rebalances:,} of these", 1)
    return phrase


def headline(groups: Sequence[GroupSummary], since: datetime, until: datetime) -> str:
    """The whole report in a sentence or two."""
    brief = words.is_brief(since, until)
    span = " and ".join(words.moment(one, seconds=brief) for one in (since, until))
    total = sum(one.rebalances for one in groups)
    if not total:
        return (
            f"No rebalance of {words.count(len(groups), 'consumer group')} is on record between {span} UTC."
        )
    most = min(groups, key=restlessness)
    phrase = (
        f"{words.count(len(groups), 'consumer group')} rebalanced {words.times(total)} between {span} UTC."
    )
    if len(groups) > 1:
        phrase += f" The most restless was {most.group}: {words.times(most.rebalances)}."
    return phrase


# What another assignor or setting would have avoided; the rule is in `_groups.saving`.


def change(row: WhatIf, strategy: str | None) -> str:
    """A what-if row's change, in words; the assignor that the group uses now is not named again."""
    if row.assignor == ACTUAL:
        return "what happened"
    parts = []
    if row.scenario != AS_IT_WAS:
        parts.append("static membership" if row.scenario == "static members" else row.scenario)
    if row.assignor != strategy:
        parts.append(_assignor(row.assignor))
    return " and ".join(parts) or f"the {row.assignor} assignor, replayed"


def _assignor(name: str) -> str:
    family, _, strategy = name.partition(":")
    if family == "kip848" and strategy:
        return f"the new protocol (KIP-848) with its {strategy} assignor"
    if family == "kafka-python" and strategy:
        return f"kafka-python's own {strategy} assignor"
    if name == "kip54":
        return "the sticky assignor of Kafka's Java clients"
    return f"the {name} assignor"


def saved(saving: Saving) -> str:
    """What a change would have avoided, such as "33 rebalances and 9 moves of partitions"."""
    parts = []
    if saving.rebalances > 0:
        parts.append(words.count(saving.rebalances, "rebalance"))
    if saving.moved > 0:
        parts.append(words.count(saving.moved, "move of a partition", "moves of partitions"))
    return " and ".join(parts) or "nothing"


def condition(saving: Saving) -> str:
    """What a saving depends on that no record says."""
    return "" if saving.is_certain else ", if the consumers were restarted, not lost or late to poll"


def explained(saving: Saving) -> str:
    """From which rebalances a change of membership saves, what it depends on, and its price."""
    if saving.is_certain:
        return "."
    avoided = [words.moment(one, seconds=True) for one in saving.row.avoided]
    which = f" ({first_of(avoided, 3)})" if avoided else ""
    return (
        f"{which}{condition(saving)}: their logs say which. Until a static member is back, nobody reads its"
        " partitions."
    )


def spared(saving: Saving) -> str:
    """As `saved`, with what would have been worse: "33 rebalances, but 2 moves more"."""
    worse = []
    if saving.rebalances < 0:
        worse.append(f"{words.count(-saving.rebalances, 'rebalance')} more")
    if saving.moved < 0:
        worse.append(f"{words.count(-saving.moved, 'move', 'moves')} more")
    return ", but ".join(part for part in (saved(saving), " and ".join(worse)) if part)
