"""What the report of a failed test says of its consumer groups."""

from __future__ import annotations

import base64
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors.testing._groups.logs import summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.testing._groups.group import ConsumerGroup

_GROUPS: pytest.StashKey[list[ConsumerGroup]] = pytest.StashKey()
_REPORTED: pytest.StashKey[set[str]] = pytest.StashKey()

_LONGEST_NAME = 80  # of a test, group or member in a file's name, for which most systems allow 255 bytes


def groups_of(node: pytest.Item | pytest.Collector) -> list[ConsumerGroup]:
    """The list for the groups that are made for a test, or for all tests of a class, module..."""
    return node.stash.setdefault(_GROUPS, [])


def add_groups(item: pytest.Item, report: pytest.TestReport, folder: Path | None) -> None:
    """Add to a failed test's report what happened in its groups; once, if it fails in several phases.

    The folder gets pictures of the groups and the whole logs of their members as files.
    """
    reported = item.stash.setdefault(_REPORTED, set())
    for node in item.listchain():
        for group in node.stash.get(_GROUPS, []):
            if group.group_id not in reported:
                reported.add(group.group_id)
                _add(group, item, report, folder)


def _add(group: ConsumerGroup, item: pytest.Item, report: pytest.TestReport, folder: Path | None) -> None:
    picture, stem = "", f"{_file_name(item.nodeid)}-{_file_name(group.group_id)}"
    if folder is not None:
        path = folder / f"{stem}.png"
        picture = _or_why_not("picture", lambda: f"picture: {_drawn(group, item, path)}")
    text = _or_why_not("timeline", lambda: _text(group, picture, report.longreprtext))
    report.sections.append((f"timeline of {group.group_id}", text))
    for member in group.members.values():
        if log := member.log():
            kept_as = None if folder is None else folder / f"{stem}-{_file_name(member.name)}.log"
            shown = _or_why_not("log", partial(_shown, log, kept_as))
            report.sections.append((f"log of {member.name} in {group.group_id}", shown))
    # Only pytest-html knows the option, and without a value it writes nothing.
    if item.config.getoption("htmlpath", default=None):
        _embed(group, item, report)


def _text(group: ConsumerGroup, picture: str, failure: str) -> str:
    """The chart, and the events that the failure's own text does not have."""
    timeline = group.timeline
    events = timeline.describe().splitlines()
    more = [line for line in events if line.strip() not in failure]
    if len(more) < len(events):
        more.append(f"         {len(events) - len(more)} events are shown above")
    return "\n\n".join(part for part in (timeline.chart(), picture, "\n".join(more)) if part)


def _drawn(group: ConsumerGroup, item: pytest.Item, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return group.timeline.draw(path, title=f"{item.name}: {group.group_id}")


def _shown(log: str, kept_as: Path | None) -> str:
    """What to show of a member's log, which is written to a file if there is a path for it."""
    shown = summary(log)
    if kept_as is not None:
        kept_as.parent.mkdir(parents=True, exist_ok=True)
        kept_as.write_text(log, encoding="utf-8")
    if shown == log.rstrip("\n"):
        return shown
    return f"{shown}\nall lines: {kept_as or 'with --kafka-timelines=FOLDER'}"


def _embed(group: ConsumerGroup, item: pytest.Item, report: pytest.TestReport) -> None:
    from pytest_html import extras as kinds  # noqa: PLC0415 - optional

    # Other hooks may have put theirs there.
    extras: list[dict[str, Any]] = getattr(report, "extras", [])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.png"
        said = _or_why_not("picture", lambda: str(_drawn(group, item, path)))
        if path.exists():
            content = base64.b64encode(path.read_bytes()).decode("ascii")
            extras.append(kinds.png(content, name=f"timeline of {group.group_id}"))
        else:
            extras.append(kinds.text(said, name=f"timeline of {group.group_id}"))
    report.extras = extras  # type: ignore[attr-defined]  # pytest-html reads it


def _or_why_not(what: str, make: Callable[[], str]) -> str:
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - what the test failed of must not be hidden by this
        return f"no {what}: {error!r}"


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")[:_LONGEST_NAME]
