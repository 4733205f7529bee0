"""How captures, imports and archives look on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import fitted
from kafka_assignors._cli.output import count, table
from kafka_assignors._common.progress import progress_bar
from kafka_assignors._common.times import begins_after
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, best_saving

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rich.console import Console

    from kafka_assignors._groups.saving import Saving, WhatIf
    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._capture import Captured
    from kafka_assignors.history._counts import Counts
    from kafka_assignors.history._dump import Imported
    from kafka_assignors.history._info import ArchiveInfo
    from kafka_assignors.history._maintenance import Maintenance
    from kafka_assignors.history._metrics import GroupSummary
    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._tables.job import TableCounts

GROUPS_SHOWN: Final = 20
"""How many groups are listed, of what-if those that could have saved the most; all are in the JSON."""


@contextmanager
def show_capture(
    console: Console | None = None, *, continuous: bool = False
) -> Iterator[Callable[[Captured], None]]:
    """What `capture` takes as `watch`: a bar, or lines of a continuous one where stderr is no terminal."""
    with progress_bar(console, transient=True) as bar:
        task = bar.add_task("reading __consumer_offsets", total=None)

        def watch(captured: Captured) -> None:
            counts = captured.counts
            text = f"{counts.kept.total():,} records kept, {counts.counted.total():,} counted; offsets"
            if bar.disable and continuous:
                now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
                bar.console.print(f"{now}: {text} {captured.offsets:,}", soft_wrap=True, highlight=False)
            # Groups write while they are captured: there may be more than there were.
            total = max(captured.total, captured.offsets)
            bar.update(task, description=text, completed=captured.offsets, total=total)

        yield watch


def captured_lines(done: Captured) -> Iterator[str]:
    batches = "1 batch" if done.batches == 1 else f"{done.batches:,} batches"
    yield f"captured {done.counts.read:,} records in {batches}, of {done.offsets:,} offsets of the log"
    yield from count_lines(done.counts)
    if done.lost:
        yield (
            f"{done.lost:,} of these offsets are lost: retention removed them before this capture, so capture"
            " more often"
        )


def imported_lines(done: Imported) -> Iterator[str]:
    yield f"imported {done.counts.read:,} records as {done.source}; {done.known:,} were there already"
    yield from count_lines(done.counts)
    if done.rejected:
        yield f"{done.rejected:,} of these cannot be decoded: history tables has why, in the table rejected"


def info_lines(where: str, found: ArchiveInfo) -> Iterator[str]:
    cluster = "of dumps only" if found.cluster_id is None else f"of cluster {found.cluster_id}"
    partitions = "" if found.partitions is None else f", {found.partitions} partitions"
    yield f"{where}: {found.topic} {cluster}{partitions}"
    yield f"version {found.version}: {count(found.files, 'file')}, {found.bytes / 1e6:,.1f} MB"
    for source, counts in found.sources.items():
        yield f"from {source}: {counts.read:,} records in all"
        yield from count_lines(counts)
    if found.since is None or found.until is None:
        yield "no records of groups"
        return
    form = "%Y-%m-%d %H:%M:%S"
    yield f"records of groups from {found.since.strftime(form)} to {found.until.strftime(form)} UTC:"
    shown = [*found.groups.items()][:GROUPS_SHOWN]
    columns = {"group": [name for name, _ in shown], "records": [f"{number:,}" for _, number in shown]}
    yield from fitted(columns, left={"group"}, cut=("group",))
    if len(found.groups) > len(shown):
        yield f"and {len(found.groups) - len(shown):,} groups more: see --json"


def maintenance_lines(
    archive: Archive, plan: Maintenance, bad: Sequence[DataFile] = (), *, executed: bool
) -> Iterator[str]:
    passed_over = {file.path for file in bad}
    good = [[file for file in day if file.path not in passed_over] for day in plan.compacted]
    days = [day for day in good if len(day) > 1]
    compacted = [file for day in days for file in day]
    did = "" if executed else "would be "
    yield (
        f"{archive.where}: {count(len(compacted), 'file')} of {count(len(days), 'day')}"
        f" ({_megabytes(compacted)}) {did}made one for each day"
    )
    if plan.removed:
        old = sorted({file.values["day"] for file in plan.removed})
        left = ", but for what groups begin with" if plan.keeps else ""
        yield (
            f"{count(len(plan.removed), 'file')} ({_megabytes(plan.removed)}) of {old[0]} to {old[-1]}"
            f" {did}removed{left}"
        )
    kept = _days(plan.retention)
    yield f"{count(len(plan.deleted), 'file')} {did}deleted: no version of the last {kept} has them"
    removed = {file.path for file in plan.removed}
    for file in bad:
        went = "was removed with its day" if file.path in removed else "stays as it is"
        yield f"{archive.where}/records/{file.path} cannot be read, and {went}"
    if not executed:
        yield "nothing is changed: --execute does it"


def _megabytes(files: Iterable[DataFile]) -> str:
    return f"{sum(file.size for file in files) / 1e6:,.1f} MB"


def _days(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours / 24:g} days" if hours % 24 == 0 else f"{hours:g} hours"


def tables_lines(out: str, counts: TableCounts) -> Iterator[str]:
    yield (
        f"{out}: {count(counts.read, 'record')} read,"
        f" {counts.decoded:,} decoded, {counts.rejected:,} rejected"
    )
    yield from table([[f"  {name}", f"{rows:,}"] for name, rows in counts.rows.items()])


def metrics_lines(groups: Sequence[GroupSummary], asked: datetime | None = None) -> Iterator[str]:
    """How restless groups were, the most restless first; `asked` is when they were to begin."""
    if not groups:
        yield "no groups"
        return
    shown = groups[:GROUPS_SHOWN]
    columns = {
        "group": [row.group for row in shown],
        "rebalances": [f"{row.rebalances:,}" for row in shown],
        "a day": ["-" if row.per_day is None else f"{row.per_day:.1f}" for row in shown],
        "moved": [f"{row.moved:,}" for row in shown],
        "needless": [f"{row.needless:,}" for row in shown],
        "longest": [f"{row.longest_seconds:.1f} s" for row in shown],
        "mostly": [" and ".join(row.mostly) or "-" for row in shown],
    }
    yield from fitted(columns, left={"group", "mostly"}, cut=("mostly", "group"))
    if len(groups) > len(shown):
        yield f"and {count(len(groups) - len(shown), 'group')} more: see --json"
    for row in shown:
        if row.flapping:
            yield f"{row.group}: {', '.join(row.flapping)} came and went three times within an hour"
        yield from _begun(row, asked)


def _begun(row: GroupSummary | WhatIf, asked: datetime | None) -> Iterator[str]:
    if begins_after(row.since, asked):
        since = f"{row.since:%Y-%m-%d %H:%M:%S}"
        yield f"{row.group}: its records begin at {since} UTC, what was before is not known"


def count_lines(counts: Counts) -> Iterator[str]:
    """Records by the name of their type; those that are kept first."""
    rows = [
        *([f"  {name}", f"{count:,}", "kept"] for name, count in counts.kept.most_common()),
        *([f"  {name}", f"{count:,}", "counted only"] for name, count in counts.counted.most_common()),
    ]
    yield from table(rows, left=(0, 2))


def what_if_lines(rows: Iterable[WhatIf], asked: datetime | None = None) -> Iterator[str]:
    """All that there is to say of replays; `asked` is when histories were to begin."""
    listed = sorted(rows, key=lambda row: row.group)
    if not listed:
        yield "there are no groups of consumers to replay"
        return
    by_group = {group: list(each) for group, each in groupby(listed, key=lambda row: row.group)}
    saved = {group: best_saving(each) for group, each in by_group.items()}
    found = [saving for saving in saved.values() if saving is not None]
    shown = sorted(by_group, key=lambda group: _most_saved(group, saved[group]))[:GROUPS_SHOWN]
    for group in shown:
        happened = any(row.assignor == ACTUAL for row in by_group[group])
        yield f"{group}: {_text(saved[group], by_group[group])}" if happened else group
        yield from _replays(by_group[group])
        yield from _begun(by_group[group][0], asked)
        yield ""
    if len(by_group) > len(shown):
        yield f"and {len(by_group) - len(shown)} more groups"
    yield (
        "in all, by what is recommended for each group: "
        f"{sum(saving.rebalances for saving in found):,} fewer rebalances and "
        f"{sum(saving.moved for saving in found):,} fewer moves"
    )


def _most_saved(group: str, saving: Saving | None) -> tuple[object, ...]:
    """Sorts groups: those that could have saved the most first."""
    return (True, group) if saving is None else (False, -saving.rebalances, -saving.moved, group)


def _text(saving: Saving | None, rows: Sequence[WhatIf]) -> str:
    """What a group could have saved, in a sentence."""
    told = [*([] if saving is None else [_saved(saving)]), *_cooler(rows)]
    is_tried = any(row.assignor != ACTUAL and row.problem is None for row in rows)
    return (
        "; ".join(told) or "nothing that was tried would have helped much"
        if is_tried
        else "nothing was replayed"
    )


def _cooler(rows: Sequence[WhatIf]) -> Iterator[str]:
    """With what the most loaded member would have had less; within a tenth that is noise."""
    tried = (row for row in rows if row.scenario == AS_IT_WAS and not row.failed)
    hottest = {row.assignor: row.hottest for row in tried if row.hottest is not None}
    best = min(hottest, key=hottest.__getitem__, default=ACTUAL)
    if ACTUAL in hottest and hottest[best] < 0.9 * hottest[ACTUAL]:
        yield f"{best} would have had its hottest member at {hottest[best]:.2f}x, not {hottest[ACTUAL]:.2f}x"


def _saved(saving: Saving) -> str:
    change, actual = saving.row, saving.actual
    told = change.assignor if change.scenario == actual.scenario else f"{change.assignor} ({change.scenario})"
    saved = []
    if saving.rebalances > 0:
        saved.append(f"{saving.rebalances:,} of {actual.rebalances:,} rebalances")
    if saving.moved > 0:
        saved.append(f"{saving.moved:,} of {actual.moved:,} moves")
    told += f" would have saved {' and '.join(saved)}"
    told += f", for {-saving.moved:,} more moves" if saving.moved < 0 else ""
    return told if saving.is_certain else f"{told}, if members were restarted, not lost or late to poll"


def _replays(rows: Collection[WhatIf]) -> Iterator[str]:
    """What happened first, then by cost; then what was not replayed."""
    listed = sorted(rows, key=lambda row: (row.assignor != ACTUAL, row.rebalances, row.moved))
    rows = [row for row in listed if row.problem is None]
    hottest = ["-" if row.hottest is None else f"{row.hottest:.2f}x" for row in rows]
    columns = {
        "": [row.assignor for row in rows],
        "scenario": [row.scenario for row in rows],
        "rebalances": [f"{row.rebalances:,}" for row in rows],
        "moved": [f"{row.moved:,}" for row in rows],
        "imbalance": [f"{row.imbalance:.2f}" for row in rows],
        "worst": [f"{row.worst_imbalance:,}" for row in rows],
        "hottest": hottest if any(row.hottest for row in rows) else [],
        "failed": [f"{row.failed:,}" for row in rows] if any(row.failed for row in rows) else [],
    }
    yield from fitted(columns, left={"", "scenario"}, cut=("scenario", ""))
    yield from dict.fromkeys(f"{row.assignor}: {row.problem}" for row in listed if row.problem)
