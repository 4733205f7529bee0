"""Whether an answer may be timed at all: every partition once, to a subscriber, and how well it was done."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.cases import NOBODY, IntArray, Problem, rack_of, replica_racks
from benchmarks.wire import read_assignment


class WrongAnswerError(Exception):
    """An answer that would leave a partition without a reader, or give it two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How good a valid answer is.

    Attributes:
        least: The lowest load of a member.
        most: The highest.
        kept: Partitions that stay with the member that has them.
        moved: Partitions that another member gets, or will get, though their member is still there.
        withheld: Partitions that nobody gets in this round, for their member to let go of first (KIP-429).
        local: With racks, the share of partitions with a replica in the rack of the member that gets them.
        led: With racks, the share of those whose leader, the first replica, is there.
    """

    least: int
    most: int
    kept: int
    moved: int
    withheld: int = 0
    local: float | None = None
    led: float | None = None


def judge(problem: Problem, answer: Mapping[str, bytes], *, cooperative: bool) -> Verdict:
    """Look at the bytes that the members would get.

    Args:
        problem: The group.
        answer: The assignment of each member by its id.
        cooperative: Whether a partition that some member has may be withheld.

    Raises:
        WrongAnswerError: With the first fault found.
    """
    if answer.keys() != set(problem.members):
        odd = sorted(answer.keys() ^ set(problem.members))
        raise WrongAnswerError(f"{len(odd)} members are missing or unknown, say {odd[0]}")
    numbers = {topic: number for number, topic in enumerate(problem.topics)}
    got = [
        _partitions(problem, number, answer[member], numbers) for number, member in enumerate(problem.members)
    ]
    loads = np.array([partitions.size for partitions in got], dtype=np.int64)
    given = np.concatenate(got)
    times = np.bincount(given, minlength=problem.size)
    if (times > 1).any():
        raise WrongAnswerError(f"{_name(problem, int(times.argmax()))} is given away more than once")
    owner = np.full(problem.size, NOBODY, dtype=np.int64)
    owner[given] = np.repeat(np.arange(loads.size), loads)
    _check_complete(problem, owner, cooperative=cooperative)
    had = problem.owner != NOBODY
    kept = int((had & (owner == problem.owner)).sum())
    return Verdict(
        least=int(loads.min()),
        most=int(loads.max()),
        kept=kept,
        moved=int(had.sum()) - kept,
        withheld=int((had & (owner == NOBODY)).sum()),
        **(_local(problem, owner) if problem.racks else {}),
    )


def _local(problem: Problem, owner: IntArray) -> dict[str, float]:
    partitions = np.arange(problem.size) - np.repeat(problem.bounds[:-1], problem.sizes)
    here = {"local": 0, "led": 0}
    for partition, member in zip(partitions[owner != NOBODY], owner[owner != NOBODY], strict=True):
        racks = replica_racks(int(partition))
        here["local"] += rack_of(int(member)) in racks
        here["led"] += rack_of(int(member)) == racks[0]
    return {name: count / int((owner != NOBODY).sum()) for name, count in here.items()}


def _partitions(problem: Problem, member: int, data: bytes, numbers: Mapping[str, int]) -> IntArray:
    """The flat numbers of a member's partitions, which exist and are of its topics."""
    bounds, subscribed = problem.bounds, set(problem.subscriptions[member])
    found = [np.empty(0, dtype=np.int64)]
    for name, ids in read_assignment(data):
        topic = numbers.get(name)
        if topic not in subscribed:
            raise WrongAnswerError(f"{problem.members[member]} gets partitions of {name}, a foreign topic")
        if ids.size and not 0 <= ids.min() <= ids.max() < problem.sizes[topic]:
            raise WrongAnswerError(f"{problem.members[member]} gets partitions of {name} that do not exist")
        found.append(ids + bounds[topic])
    return np.concatenate(found)


def _check_complete(problem: Problem, owner: IntArray, *, cooperative: bool) -> None:
    wanted = np.zeros(len(problem.topics), dtype=np.bool_)
    for topics in set(problem.subscriptions):
        wanted[list(topics)] = True
    missing = np.repeat(wanted, problem.sizes) & (owner == NOBODY)
    if cooperative:
        missing &= problem.owner == NOBODY
    if missing.any():
        raise WrongAnswerError(f"nobody gets {_name(problem, int(missing.argmax()))}")


def _name(problem: Problem, partition: int) -> str:
    topic = int(np.searchsorted(problem.bounds, partition, side="right")) - 1
    return f"{problem.topics[topic]}-{partition - int(problem.bounds[topic])}"
