"""A report on a small archive, made in this process; `_archive_report` does it on Spark."""

from __future__ import annotations

import os
from itertools import chain, groupby
from operator import itemgetter
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from kafka_assignors._groups.saving import WhatIf
from kafka_assignors.history._local import of_each_group
from kafka_assignors.history._pieces import add_up
from kafka_assignors.history._stories import check_groups, read_history, story_of, write_page
from kafka_assignors.history._what_if.job import (
    ASSIGNORS,
    SCENARIOS,
    check_wanted,
    read_course,
    replay_parts,
    row_of,
)
from kafka_assignors.history.report import GroupSummary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history.report import GroupHistory, ReportLimits


def report_here(
    archive: Archive,
    records: Any,
    path: Path,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = SCENARIOS,
    limits: ReportLimits | None = None,
) -> int:
    """Write a report; see `report_archive`.

    Args:
        archive: See there.
        records: As `read_groups` of `_local` gives them.
        path: See there.
        assignors: See there.
        scenarios: See there.
        limits: See there.
    """
    parts = check_wanted(assignors, scenarios) if assignors else ()
    told = of_each_group(records, story_of(archive.topics(), replayed=bool(parts)))
    groups: list[GroupSummary] = []
    replayed: list[WhatIf] = []
    with TemporaryFile() as file:
        states = _States(file)
        for group, rows in groupby(told, itemgetter("group")):
            pieces, course = [], []
            for row in rows:
                if "piece" in row:
                    pieces.append(row["piece"])
                    states.add(group, row["states"])
                else:
                    course.append(row)
            groups += map(GroupSummary.from_row, add_up(pieces))
            if course:
                followed, broken = read_course(course)
                replays = replay_parts(group, followed, (*chain.from_iterable(parts),), broken)
                replayed += [WhatIf.from_row(row_of(replay)) for replay in replays]
        check_groups(groups)
        return write_page(archive, path, groups, replayed, states.histories, limits=limits)


class _States:
    """What is drawn of groups' pieces, in a file until it is known which groups are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[str, list[tuple[int, int]]] = {}

    def add(self, group: str, states: bytes) -> None:
        """Add the states of the next piece of a group."""
        self._places.setdefault(group, []).append((self._file.seek(0, os.SEEK_END), len(states)))
        self._file.write(states)

    def histories(self, groups: Collection[str]) -> Iterator[GroupHistory]:
        """The histories of some groups."""
        for group, places in self._places.items():
            if group in groups:
                yield read_history(group, (self._read(*one) for one in places))

    def _read(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return self._file.read(size)
