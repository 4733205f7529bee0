"""A group as a file describes it: topics, members, and who owned what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kafka_assignors._common.tree import HIGHEST_ID, Node, read
from kafka_assignors._common.words import first_of
from kafka_assignors._model.group import MAX_WEIGHT, NOBODY, Group, Member
from kafka_assignors._model.members import MAX_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from kafka_assignors.planners._load import Load

MAX_PARTITIONS: Final = 1_000_000
"""The most partitions of a topic: a zero too many should not fill the memory."""

_IDS_SHOWN: Final = 10
_WORK: Final = {"rate": 1, "lag": 0, "cost": 1000}
"""What is said of a partition's work: records a second, records, microseconds a record; if it is not said."""


@dataclass(frozen=True, kw_only=True)
class GroupFile:
    """The group in a file, and notes of what is allowed and yet may not be meant."""

    group: Group
    notes: tuple[str, ...]
    _topics: Mapping[str, _Topic] = field(repr=False)

    @cached_property
    def load(self) -> Load:
        """What partitions cost, as far as the file says so; members are as fast as their weights say."""
        from kafka_assignors.planners._load import Load  # noqa: PLC0415 - most plans need none

        topics = self._topics
        rows = [
            row
            for name in self.group.topics
            for row in sorted(zip(topics[name].ids, *topics[name].work, strict=True))
        ]
        _, rate, lag, cost = np.array(rows, dtype=np.float64).reshape(-1, 4).T
        mean = self.group.weights.mean()
        seconds = cost / 1e6 / mean  # a member of weight 1 takes the cost, one of speed 1 has the mean weight
        return Load(
            arriving=rate * seconds,
            waiting=lag * seconds,
            speed=self.group.weights / mean,
            stays=np.zeros(self.group.size, dtype=np.bool_),
        )


@dataclass(frozen=True, kw_only=True)
class _Topic:
    ids: tuple[int, ...]
    racks: tuple[frozenset[str], ...] | None
    work: tuple[list[int], ...]


def read_group(file: str | Path, *, cooperative: bool = False) -> GroupFile:
    """Read a file that describes a group; docs/plan-file.md says how.

    Args:
        file: The file, in JSON or YAML; `-` for the standard input.
        cooperative: Whether members hold what they own where the file does not say.

    Raises:
        FileError: It cannot be read, or something in it is not allowed.
    """
    root = read(str(file))
    fields = root.fields("a mapping with topics and members", ("topics", "members"))
    for wanted in ("topics", "members"):
        if wanted not in fields:
            root.fail(f"{wanted} is missing: a mapping of {wanted} by name")
    topics = {
        replace(node, value=name).topic(): _topic(node)
        for name, node in fields["topics"].mapping("a mapping of topics by name").items()
    }
    nodes = fields["members"].mapping("a mapping of members by name")
    if not nodes:
        fields["members"].expected("a mapping of at least one member")
    members = [_member(name, node, topics, holds=cooperative) for name, node in nodes.items()]
    _check_instances(nodes, members)
    racks = {
        (name, partition): at
        for name, topic in topics.items()
        if topic.racks is not None
        for partition, at in zip(topic.ids, topic.racks, strict=True)
    }
    group = Group.of({name: topic.ids for name, topic in topics.items()}, members, racks or None)
    notes = tuple(_notes(group, topics, members))
    return GroupFile(group=group, notes=notes, _topics=topics)


def _topic(node: Node) -> _Topic:
    """A topic: a number of partitions, or a mapping with that or their ids, and maybe racks."""
    what = "a mapping with partitions and racks, or a number of partitions"
    if not isinstance(node.value, list):
        ids = _first(node, what)
        return _Topic(ids=ids, racks=None, work=_work({}, len(ids)))
    fields = node.fields(what, ("partitions", "racks", *_WORK))
    if "partitions" not in fields:
        node.fail("partitions is missing: their number, or a list of their ids")
    ids = _ids(fields["partitions"])
    racks = _racks(fields["racks"], len(ids)) if "racks" in fields else None
    return _Topic(ids=ids, racks=racks, work=_work(fields, len(ids)))


def _work(fields: Mapping[str, Node], partitions: int) -> tuple[list[int], ...]:
    """Rate, lag and cost of each partition, in the order of their ids in the file."""
    columns = []
    for name, usual in _WORK.items():
        what = f"a number, or a list of {partitions} numbers, one for each partition"
        if name not in fields:
            columns.append([usual] * partitions)
        elif type(fields[name].value) is not list:
            columns.append([fields[name].number(what, 0, HIGHEST_ID)] * partitions)
        else:
            columns.append(
                [item.number("a whole number", 0, HIGHEST_ID) for item in fields[name].items(what)]
            )
            if len(columns[-1]) != partitions:
                fields[name].expected(what)
    return tuple(columns)


def _ids(node: Node) -> tuple[int, ...]:
    if type(node.value) is not list:  # a mapping is a list of its own kind
        return _first(node, "a list of partition ids, or a number of partitions")
    ids = node.numbers("a list of partition ids", "a partition id", 0, HIGHEST_ID)
    if not ids:
        node.expected("a list of at least one partition id")
    return tuple(ids)


def _first(node: Node, what: str) -> tuple[int, ...]:
    return tuple(range(node.number(what, 1, MAX_PARTITIONS)))


def _racks(node: Node, partitions: int) -> tuple[frozenset[str], ...]:
    what = f"a list of {partitions} lists of racks, one for each partition"
    items = node.items(what)
    if len(items) != partitions:
        node.expected(what)
    return tuple(
        frozenset(rack.text("the name of a rack") for rack in item.items("a list of the racks of replicas"))
        for item in items
    )


_MEMBER_FIELDS: Final[Mapping[str, Callable[[Node], Any]]] = {
    "topics": lambda node: frozenset(
        one.text("the name of a topic") for one in node.items("a list of topics")
    ),
    "rack": lambda node: node.text("the name of a rack"),
    "weight": lambda node: node.number("a whole number", 1, MAX_WEIGHT),
    "priority": lambda node: node.number("a whole number", -MAX_PRIORITY, MAX_PRIORITY),
    "instance_id": lambda node: node.text("an instance id"),
    "owns": lambda node: {
        topic: tuple(ids.numbers("a list of partition ids", "a partition id", 0, HIGHEST_ID))
        for topic, ids in node.mapping("a mapping of partition ids by topic").items()
    },
    "generation": lambda node: node.number("a whole number", 0, HIGHEST_ID),
    "holds": Node.flag,
}


def _member(name: str, node: Node, topics: Mapping[str, _Topic], *, holds: bool) -> Member:
    """A member. One of which there is nothing to say may be null, as YAML reads `c1:`."""
    what = "a mapping of what there is to say about the member"
    fields = {} if node.value is None else node.fields(what, (*_MEMBER_FIELDS,))
    read = {field: _MEMBER_FIELDS[field](one) for field, one in fields.items()}
    claims = read.pop("owns", {})
    usual: dict[str, Any] = {"topics": frozenset(topics), "holds": holds and bool(claims)}
    return Member(member_id=name, claims=claims, **(usual | read))


def _check_instances(nodes: Mapping[str, Node], members: list[Member]) -> None:
    seen: dict[str, str] = {}
    for member in members:
        own = member.instance_id
        if own is not None and (first := seen.setdefault(own, member.member_id)) != member.member_id:
            nodes[member.member_id].fail(
                f"instance_id must differ from the others', but {own} is {first}'s already"
            )


def _notes(group: Group, topics: Mapping[str, _Topic], members: list[Member]) -> Iterator[str]:
    """Whatever Kafka allows as well, but may be a slip in a file."""
    for topic in topics:
        if topic not in group.topics:
            yield f"no member subscribes to topic {topic}: it is not planned"
    ids = {name: frozenset(topic.ids) for name, topic in topics.items()}
    for member in members:
        yield from _notes_on_member(member, ids)
    for member, stands_by in zip(group.members, group.standbys.tolist(), strict=True):
        if stands_by and member.claims:
            yield f"{member.member_id} owned partitions, and stands by for a higher priority: not counted"
    yield from _disputes(group, members)
    has_racks = any(topic.racks is not None for topic in topics.values())
    if has_racks != any(member.rack for member in members):
        missing = "member" if has_racks else "topic"
        yield f"no {missing} has racks: the others' are not looked at"


def _notes_on_member(member: Member, topics: Mapping[str, frozenset[int]]) -> Iterator[str]:
    name = member.member_id
    for topic in sorted(member.topics - topics.keys()):
        yield f"{name} subscribes to topic {topic}, which is not in the file"
    for topic, claimed in member.claims.items():
        if topic not in topics:
            yield f"{name} owned partitions of topic {topic}, which is not in the file: not counted"
        elif topic not in member.topics:
            yield f"{name} owned partitions of topic {topic}, which it does not subscribe to: not counted"
        elif gone := sorted(set(claimed) - topics[topic]):
            yield f"{name} owned partitions of topic {topic} that are gone: {_listed(gone)}; not counted"


def _disputes(group: Group, members: list[Member]) -> Iterator[str]:
    """Partitions that several members say they owned, and whose they are taken to be."""
    claimants: dict[tuple[str, int], list[str]] = defaultdict(list)
    for member in members:
        for topic in member.claims.keys() & member.topics:
            for partition in member.claims[topic]:
                claimants[topic, partition].append(member.member_id)
    if all(len(names) == 1 for names in claimants.values()):
        return
    disputed: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for flat, owner in enumerate(group.owner.tolist()):
        topic, partition = group.name_of(flat)
        if len(claimed_by := claimants.get((topic, partition), [])) > 1:
            disputed[topic, ", ".join(claimed_by), owner].append(partition)
    for (topic, names, owner), partitions in disputed.items():
        whose = "nobody" if owner == NOBODY else group.members[owner].member_id
        yield f"topic {topic} {_listed(partitions)}: owned by {names}; taken to belong to {whose}"


def _listed(ids: list[int]) -> str:
    return first_of(ids, _IDS_SHOWN)
