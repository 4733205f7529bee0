"""Sets of topics, as columns: what members subscribe to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, Self, TypeVar, overload

import numpy as np

from kafka_assignors._model.arrays import BoolArray, IntArray, ranges
from kafka_assignors._model.tick import Tick, go_on

_Key = TypeVar("_Key")


class Numbers(dict[_Key, int]):
    """Things, numbered as they come first."""

    def __missing__(self, key: _Key) -> int:
        self[key] = number = len(self)
        return number


@dataclass(frozen=True, kw_only=True, eq=False)
class TopicSets(Sequence[frozenset[str]]):
    """Sets of names. As a sequence it makes them one by one, for who asks.

    Set k has the entries bounds[k]..bounds[k + 1] - 1. `entries` (P,) are places in `names`, which has each
    name once. One may come twice in a set.
    """

    names: Sequence[str]
    bounds: IntArray
    entries: IntArray

    @classmethod
    def of(cls, sets: Iterable[Collection[str]], tick: Tick = go_on) -> Self:
        """Put sets into columns; see `Group.of` for the tick."""
        listed = list(sets)
        bounds = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in listed], out=bounds[1:])
        names = Numbers[str]()
        entries = [np.empty(0, dtype=np.int64)]
        for each in listed:
            tick()
            entries.append(np.fromiter(map(names.__getitem__, each), dtype=np.int64, count=len(each)))
        return cls(names=list(names), bounds=bounds, entries=np.concatenate(entries))

    def __len__(self) -> int:
        return self.bounds.size - 1

    @overload
    def __getitem__(self, number: int) -> frozenset[str]: ...
    @overload
    def __getitem__(self, number: slice) -> list[frozenset[str]]: ...
    def __getitem__(self, number: int | slice) -> frozenset[str] | list[frozenset[str]]:
        return self._sets[number]

    @cached_property
    def _sets(self) -> list[frozenset[str]]:
        names = [self.names[entry] for entry in self.entries.tolist()]
        return [frozenset(names[start:stop]) for start, stop in pairwise(self.bounds.tolist())]

    def chosen(self, numbers: IntArray) -> Self:
        """Some of the sets, in this order. `names` stays as it is."""
        sizes = np.diff(self.bounds)[numbers]
        bounds = np.zeros(numbers.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=bounds[1:])
        at, _ = ranges(self.bounds[numbers], sizes)
        return type(self)(names=self.names, bounds=bounds, entries=self.entries[at])


_DENSE: Final = 16


def _each_once(keys: IntArray, end: int) -> IntArray:
    """The different ones of keys below an end, ascending; many of them in a tenth of the time of sorting."""
    if end > _DENSE * keys.size:
        return np.unique(keys)
    there = np.zeros(end, dtype=np.bool_)
    there[keys] = True
    return np.flatnonzero(there)


@dataclass(frozen=True, kw_only=True, eq=False)
class TopicNumbers:
    """Different sets of topics as their numbers, ascending in a set, each once.

    Set k has numbers[bounds[k]:bounds[k + 1]]. `topics` is how many topics there are.
    """

    topics: int
    bounds: IntArray
    numbers: IntArray

    @classmethod
    def of(
        cls, sets: TopicSets, topic_numbers: Mapping[str, int], tick: Tick = go_on
    ) -> tuple[Self, IntArray]:
        """Number the topics in sets; names without a number are left out. See `Group.of` for the tick.

        Returns the different sets that there are then, in the order in which they come first. With them
        comes, for each set given, which of them it is.
        """
        topics = len(topic_numbers)
        number = np.array([topic_numbers.get(name, -1) for name in sets.names], dtype=np.int64)
        entry = number[sets.entries] if number.size else sets.entries
        keys = np.arange(len(sets)).repeat(sets.bounds[1:] - sets.bounds[:-1]) * topics + entry
        tick()
        keys = keys[entry >= 0]
        if (keys[1:] <= keys[:-1]).any():
            keys = _each_once(keys, len(sets) * topics)
        tick()
        bounds = keys.searchsorted(np.arange(len(sets) + 1) * topics)
        numbers = keys % max(topics, 1)
        raw = numbers.tobytes()
        different: dict[bytes, int] = {}
        which = np.array(
            [
                different.setdefault(raw[start:stop], len(different))
                for start, stop in pairwise((bounds * numbers.itemsize).tolist())
            ],
            dtype=np.int64,
        )
        tick()
        if len(different) == len(sets):
            return cls(topics=topics, bounds=bounds, numbers=numbers), which
        bounds = np.array([0, *accumulate(len(each) // numbers.itemsize for each in different)])
        numbers = np.frombuffer(b"".join(different), dtype=np.int64)
        return cls(topics=topics, bounds=bounds, numbers=numbers), which

    @cached_property
    def table(self) -> BoolArray:
        """(K, T) whether a set has a topic."""
        table = np.zeros(len(self) * self.topics, dtype=np.bool_)
        table[self.keys] = True
        return table.reshape(len(self), self.topics)

    @property
    def is_dense(self) -> bool:
        """Whether `table` is not much larger than what it is made of."""
        return len(self) * self.topics <= _DENSE * self.numbers.size

    def __len__(self) -> int:
        return self.bounds.size - 1

    @cached_property
    def keys(self) -> IntArray:
        """(P,) set * topics + topic, ascending."""
        return np.arange(len(self)).repeat(self.bounds[1:] - self.bounds[:-1]) * self.topics + self.numbers

    def contain(self, which: IntArray, topic: IntArray) -> BoolArray:
        """(R,) whether a set has a topic: numbers of sets, and beside them topics, -1 for none."""
        if self.numbers.size == len(self) * self.topics:
            return topic >= 0
        if not self.numbers.size:
            return np.zeros(topic.size, dtype=np.bool_)
        if self.is_dense:
            return (topic >= 0) & self.table[which, topic]
        wanted = which * self.topics + topic
        at = np.minimum(self.keys.searchsorted(wanted), self.keys.size - 1)
        found: BoolArray = (topic >= 0) & (self.keys[at] == wanted)
        return found

    def tuples(self) -> tuple[tuple[int, ...], ...]:
        numbers = self.numbers.tolist()
        return tuple(tuple(numbers[start:stop]) for start, stop in pairwise(self.bounds.tolist()))
