"""Kafka's reassignment file: the JSON that `kafka-reassign-partitions` reads and prints.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kafka_assignors.placement._placement import Placement

_MARK = "Current partition replica assignment", "Proposed partition reassignment configuration"


def format_reassignment(topics: Mapping[str, Placement]) -> str:
    """Placements of topics as one line of JSON, by topic and partition."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": [*replicas]}
        for topic, placement in sorted(topics.items())
        for partition, replicas in sorted(placement.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def parse_reassignment(text: str) -> dict[str, dict[int, list[int]]]:
    """Read placements of topics. What `kafka-reassign-partitions` refuses is refused.

    Raises:
        PlacementError: It is not such a file; the message names the entry and what is wrong with it.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "; keep only the line of JSON" if any(mark in text for mark in _MARK) else ""
        raise PlacementError(f"a reassignment must be JSON: {error}{hint}") from error
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise PlacementError('a reassignment must be an object with a list under "partitions"')
    if (version := document.get("version", 1)) != 1:
        raise PlacementError(f"the reassignment has version {version!r}: only 1 is known")
    topics: dict[str, dict[int, list[int]]] = {}
    for place, entry in enumerate(document["partitions"]):
        topic, partition, replicas = _read(place, entry)
        if partition in topics.setdefault(topic, {}):
            raise PlacementError(f"partitions[{place}]: {topic}-{partition} is there twice; keep one")
        topics[topic][partition] = replicas
    if not topics:
        raise PlacementError('the reassignment names no partition under "partitions": there is nothing to do')
    return topics


def read_reassignment(path: Path) -> dict[str, dict[int, list[int]]]:
    """Read placements of topics from a file, as `parse_reassignment` does.

    Raises:
        PlacementError: The file cannot be read, or has something else in it.
    """
    try:
        return parse_reassignment(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlacementError(f"cannot read {path}: {error}") from error


def write_rollback(path: Path, topics: Mapping[str, Placement]) -> None:
    """Write placements as they are, and never over those of an earlier run: that may have moved replicas.

    Raises:
        PlacementError: The file exists, and has other placements.
    """
    text = f"{format_reassignment(topics)}\n"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if path.read_bytes() != text.encode():
            raise PlacementError(
                f"{path} exists, and has other placements than those of now. It may be the way back of an"
                " interrupted run: to continue that, leave out --rollback; else name another file"
            ) from None


def _read(place: int, entry: Any) -> tuple[str, int, list[int]]:
    where = f"partitions[{place}]"
    if not isinstance(entry, dict):
        raise PlacementError(f"{where}: {entry!r} is no object with topic, partition and replicas")
    topic, partition, replicas = (entry.get(key) for key in ("topic", "partition", "replicas"))
    if not isinstance(topic, str) or not topic:
        raise PlacementError(f"{where}: topic is {topic!r}, not a name")
    if not _is_id(partition):
        raise PlacementError(f"{where}: partition of {topic} is {partition!r}, not a number from 0")
    if not isinstance(replicas, list) or not replicas or not all(map(_is_id, replicas)):
        raise PlacementError(f"{where}: replicas of {topic}-{partition} are {replicas!r}, not broker ids")
    if len({*replicas}) < len(replicas):
        raise PlacementError(f"{where}: replicas of {topic}-{partition} name a broker twice: {replicas}")
    logs = entry.get("log_dirs", ["any"] * len(replicas))
    if not isinstance(logs, list) or len(logs) != len(replicas):
        raise PlacementError(
            f"{where}: log_dirs of {topic}-{partition} are {logs!r}: give one for each replica of {replicas}"
        )
    if moved := [log for log in logs if log != "any"]:
        raise PlacementError(
            f"{where}: {topic}-{partition} names log directory {moved[0]!r}; replicas are not moved between "
            'directories here: write "any", leave log_dirs out, or use kafka-reassign-partitions'
        )
    assert isinstance(partition, int)  # noqa: S101 - for the type checker: looked at above
    return topic, partition, replicas


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
