"""Kafka's reassignment file: the JSON that `kafka-reassign-partitions` reads and prints.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kafka_assignors._common.files import OutputError, write_whole
from kafka_assignors._common.tree import HIGHEST_ID, FileError, Node, describe, parse_json, read_text
from kafka_assignors.placement._placement import Placement, PlacementError, Racks

_MARK = "Current partition replica assignment", "Proposed partition reassignment configuration"


@dataclass(frozen=True, slots=True)
class Placements:
    """Placements of topics, in place of a running cluster.

    Attributes:
        topics: Topic -> partition -> brokers, the preferred leader first.
        racks: The brokers and their racks; None for those that the placements name, without racks.
        name: What errors call them.
    """

    topics: Mapping[str, Placement]
    racks: Racks | None = None
    name: str = "the placements"

    @classmethod
    def read(cls, path: Path | str, racks: Racks | None = None) -> Self:
        """Read a file of Kafka's reassignment JSON. What `kafka-reassign-partitions` refuses is refused.

        Raises:
            PlacementError: The file cannot be read, or has something else in it: the message names the entry.
        """
        try:
            text = read_text(str(path))
        except FileError as error:
            raise PlacementError(str(error)) from error
        return cls(parse_reassignment(text, str(path)), racks, str(path))

    @property
    def text(self) -> str:
        """Kafka's reassignment JSON in one line, by topic and partition."""
        partitions = [
            {"topic": topic, "partition": partition, "replicas": [*replicas]}
            for topic, placement in sorted(self.topics.items())
            for partition, replicas in sorted(placement.items())
        ]
        return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def parse_reassignment(text: str, file: str = "the reassignment") -> dict[str, dict[int, list[int]]]:
    """Read placements of topics; a PlacementError names the entry that is wrong."""
    try:
        return _topics(parse_json(file, text))
    except FileError as error:
        hint = "; keep only the line of JSON" if any(mark in text for mark in _MARK) else ""
        raise PlacementError(f"{error}{hint}") from error


def _topics(root: Node) -> dict[str, dict[int, list[int]]]:
    fields = root.mapping("an object with version and partitions")
    if (version := fields.get("version")) is not None and version.value != 1:
        version.fail(f"{describe(version.value)}: only 1 is known")
    topics: dict[str, dict[int, list[int]]] = {}
    for entry in _field(root, fields, "partitions").items("a list of partitions"):
        named = entry.mapping("an object with topic, partition and replicas")
        topic = _field(entry, named, "topic").topic()
        partition = _field(entry, named, "partition").number("a partition id", 0, HIGHEST_ID)
        if partition in topics.setdefault(topic, {}):
            entry.fail(f"{topic}-{partition} is there twice; keep one")
        topics[topic][partition] = _replicas(_field(entry, named, "replicas"), named.get("log_dirs"))
    if not topics:
        root.fail("no partition is named under partitions: there is nothing to do")
    return topics


def _field(node: Node, fields: Mapping[str, Node], name: str) -> Node:
    return fields[name] if name in fields else node.fail(f"{name} is missing")


def _replicas(node: Node, log_dirs: Node | None) -> list[int]:
    replicas = node.numbers("a list of broker ids", "a broker id", 0, HIGHEST_ID)
    if not replicas:
        node.expected("a list of at least one broker id")
    if log_dirs is not None:
        logs = log_dirs.items("a list")
        if len(logs) != len(replicas):
            log_dirs.fail(f"give one for each of {len(replicas)} replicas")
        for log in logs:
            if log.value != "any":
                log.fail(
                    f"{describe(log.value)}: replicas are not moved between directories here: write "
                    '"any", leave log_dirs out, or use kafka-reassign-partitions'
                )
    return replicas


def write_rollback(path: Path, topics: Mapping[str, Placement]) -> None:
    """Write placements as they are, and never over those of an earlier run: that may have moved replicas.

    Raises:
        PlacementError: The file exists, and has other placements.
        OutputError: It cannot be read or written.
    """
    text = f"{Placements(topics).text}\n"
    try:
        there = path.read_bytes() if path.is_file() else b"" if path.exists() else None
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    if there is None:
        write_whole(path, text)
    elif there != text.encode():
        raise PlacementError(
            f"{path} exists, and has other placements than those of now. It may be the way back of an"
            " interrupted run: to continue that, leave out --rollback; else name another file"
        )
