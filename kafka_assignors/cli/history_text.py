"""How captures, imports and archives look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_assignors.cli.placement_text import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.history.archive import Archive, Counts
    from kafka_assignors.history.capture import Captured
    from kafka_assignors.history.dump import Imported
    from kafka_assignors.history.info import Info

GROUPS_SHOWN: Final = 20
"""How many groups are listed; all of them are in the JSON."""


def captured_lines(done: Captured) -> Iterator[str]:
    """What a capture did."""
    batches = "1 batch" if done.batches == 1 else f"{done.batches:,} batches"
    yield f"captured {done.counts.read:,} records in {batches}, of {done.offsets:,} offsets of the log"
    yield from count_lines(done.counts)


def imported_lines(done: Imported) -> Iterator[str]:
    """What an import did."""
    yield f"imported {done.counts.read:,} records as {done.source}; {done.known:,} were there already"
    yield from count_lines(done.counts)


def info_lines(archive: Archive, found: Info) -> Iterator[str]:
    """What an archive has."""
    known = archive.description
    cluster = "of dumps only" if known.cluster_id is None else f"of cluster {known.cluster_id}"
    partitions = "" if known.partitions is None else f", {known.partitions} partitions"
    yield f"{archive.path}: {known.topic} {cluster}{partitions}"
    for source, counts in found.counts.items():
        yield f"from {source}: {counts.read:,} records"
        yield from count_lines(counts)
    if found.since is None or found.until is None:
        yield "no records of groups"
        return
    form = "%Y-%m-%d %H:%M:%S"
    yield f"records of groups from {found.since.strftime(form)} to {found.until.strftime(form)} UTC:"
    shown = [*found.groups.items()][:GROUPS_SHOWN]
    yield from table([["group", "records"], *([name, f"{count:,}"] for name, count in shown)])
    if len(found.groups) > len(shown):
        yield f"and {len(found.groups) - len(shown):,} groups more: see --json"


def count_lines(counts: Counts) -> Iterator[str]:
    """Records by the name of their type; those that are kept first."""
    rows = [
        *([f"  {name}", f"{count:,}", "kept"] for name, count in counts.kept.most_common()),
        *([f"  {name}", f"{count:,}", "counted only"] for name, count in counts.counted.most_common()),
    ]
    yield from table(rows, left=(0, 2)) if rows else ()
