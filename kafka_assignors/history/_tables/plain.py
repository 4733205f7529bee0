"""The tables' rows of a batch of the archive, by numpy: all of its records at the same time.

It takes the records that `fast` takes, and needs no compiler.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors.history._tables import at_once
from kafka_assignors.history._tables.at_once import SOURCES, Rows, Taken, dictionary_of, lists_of
from kafka_assignors.history._tables.classic import read_groups
from kafka_assignors.history._tables.cursors import Data, Span, only, picked
from kafka_assignors.history._tables.decoded import all_microseconds
from kafka_assignors.history._tables.garbage import no_garbage_collection
from kafka_assignors.history._tables.owners import Owners

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors.history._tables.classic import Groups, Topics
    from kafka_assignors.history._tables.cursors import Each
    from kafka_assignors.history._tables.decoded import Decoded
    from kafka_assignors.history._tables.owners import Told

_ID: Final = np.dtype(">i4")
_OWNED, _STICKY = range(len(SOURCES))


def decode(batch: Any, names: Mapping[str, str]) -> Decoded:
    """Decode a batch of the archive; see `at_once.decode`."""
    return at_once.decode(batch, names, take)


def take(batch: Any) -> Taken:
    """Decode the records of a batch that are as most of them are."""
    key, value = batch["key"], batch["value"]
    rows = np.flatnonzero(np.asarray(key.is_valid()) & np.asarray(value.is_valid()))
    keys, values = Data(key), Data(value)
    groups = read_groups(keys, values, rows)
    columns = _Columns(keys, values, groups)
    taken = columns.taken()
    if taken is None:
        taken = _Columns(keys, values, only(groups, ~columns.odd)).taken()
    assert taken is not None  # noqa: S101 - what was odd is no longer there
    return taken


class _Columns:
    """The columns of records.

    Args:
        keys: The keys of a batch.
        values: Their values.
        groups: What was read of them.

    Attributes:
        odd: (K,) whether a record has a text that is none, or a topic twice in a list. It is known once they
            are taken.
    """

    def __init__(self, keys: Data, values: Data, groups: Groups) -> None:
        self._keys = keys
        self._values = values
        self._rows = groups.rows
        self._fields = groups.records
        self._record, self._said = groups.members
        self.odd = np.zeros(self._rows.size, dtype=np.bool_)

    def taken(self) -> Taken | None:
        """All of them; None if a record is odd."""
        tables = self._records(), self._members(), self._assignments(), self._claims()
        # Lists of partitions can be looked into from here on.
        return None if self.odd.any() else Taken(*tables, self._owners())

    def _texts(self, array: Any, record: IntArray) -> Any:
        """An array of bytes as a dictionary-encoded one of strings.

        Args:
            array: (R,) what should be UTF-8.
            record: (R,) whose it is.
        """
        encoded = array.dictionary_encode()
        try:
            return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.string()))
        except pa.ArrowInvalid:
            bad = [number for number, raw in enumerate(encoded.dictionary.to_pylist()) if not _is_utf8(raw)]
            self.odd[record[np.isin(_indices(encoded), bad)]] = True
            return encoded

    def _records(self) -> Rows:
        records = self._fields
        each = np.arange(self._rows.size)
        return Rows(
            self._rows,
            {
                "group": self._texts(self._keys.slices(records.group), each),
                "generation": pa.array(records.generation, pa.int32()),
                "version": pa.array(records.version, pa.int16()),
                "protocol": self._texts(self._values.slices(records.protocol), each),
                "leader": self._texts(self._values.slices(records.leader), each),
                "members": pa.array(records.members, pa.int32()),
                "state_time": all_microseconds(records.state_time),
            },
        )

    def _members(self) -> Rows:
        members, said, _, _ = self._said
        texts = {
            "member_id": members.id,
            "instance_id": _not_empty(members.instance),
            "client_id": members.client,
            "host": members.host,
            "rack": _not_empty(said.rack),
        }
        topics = self._texts(self._values.slices(said.topics.what), self._record[said.topics.whose])
        counts = np.bincount(said.topics.whose, minlength=self._record.size)
        bounds = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return Rows(
            self._record,
            {
                **{
                    name: self._texts(self._values.slices(span), self._record) for name, span in texts.items()
                },
                "topics": lists_of(bounds, topics).take(pa.array(np.arange(counts.size) - said.same_as)),
                "session_timeout_ms": pa.array(members.session_timeout, pa.int32()),
                "rebalance_timeout_ms": pa.array(members.rebalance_timeout, pa.int32()),
                "subscription_version": pa.array(said.version, pa.int16()),
                "user_data": self._values.slices(said.user_data),
            },
        )

    def _assignments(self) -> Rows:
        given, (_, (whose, topics)) = self._said.assigned
        member = given[whose]
        return Rows(member, self._topics(member, self._record[member], *self._slices(topics)))

    def _claims(self) -> Rows:
        said, (told, sticky) = self._said.subscriptions, self._said.sticky
        claims = [
            self._claimed(_OWNED, np.arange(said.generation.size), said.owned, said.generation),
            self._claimed(_STICKY, told, sticky.topics, sticky.generation),
        ]
        member, source, generation = (
            np.concatenate(columns) for columns in zip(*(claim[:3] for claim in claims), strict=True)
        )
        order = np.argsort(member * len(SOURCES) + source, kind="stable")
        indices = pa.array(order)
        names, partitions = (
            pa.concat_arrays([*columns]).take(indices)
            for columns in zip(*(claim[3:] for claim in claims), strict=True)
        )
        member, source = member[order], source[order]
        columns = self._topics(member * len(SOURCES) + source, self._record[member], names, partitions)
        columns["source"] = dictionary_of(source, SOURCES)
        columns["claimed_generation"] = pa.array(generation[order], pa.int32())
        return Rows(member, columns)

    def _claimed(
        self, source: int, members: IntArray, topics: Each[Topics], generations: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, Any, Any]:
        """Of each row of claims the member, the source and the generation, the topic and the partitions.

        A generation without topics gets a row of its own.
        """
        counts = np.bincount(topics.whose, minlength=members.size)
        alone = np.flatnonzero((counts == 0) & (generations != NO_GENERATION))
        whose = np.concatenate((topics.whose, alone))
        names, partitions = self._slices(topics.what)
        if alone.size:
            none = pa.nulls(alone.size, pa.binary())
            names, partitions = (pa.concat_arrays([array, none]) for array in (names, partitions))
        return members[whose], np.full(whose.size, source), generations[whose], names, partitions

    def _slices(self, topics: Topics) -> tuple[Any, Any]:
        return self._values.slices(topics.name), self._values.slices(topics.partitions)

    def _topics(self, lists: IntArray, record: IntArray, names: Any, partitions: Any) -> dict[str, Any]:
        """Topics of partition lists and their partitions; a list with a topic twice is odd.

        Args:
            lists: (R,) numbers of the lists, in ascending order.
            record: (R,) whose they are.
            names: (R,) bytes of each topic's name.
            partitions: (R,) bytes of its partition ids.
        """
        topics = self._texts(names, record)
        self.odd[record[_twice(lists, _indices(topics))]] = True
        return {"topic": topics, "partitions": _ids(partitions)}

    def _owners(self) -> list[Told | None]:
        given, (lists, (whose, _)) = self._said.assigned
        has_topics = np.bincount(whose, minlength=given.size) > 0
        given = given[has_topics]
        members = picked(self._said.members, given)
        is_static = members.instance.size > 0
        identity = Span(
            *(np.where(is_static, *both) for both in zip(members.instance, members.id, strict=True))
        )
        record = self._record[given]
        identities = _objects(self._texts(self._values.slices(identity), record))
        # Most members have what they had: the same object takes no more memory.
        listed = _objects(self._values.slices(picked(lists, has_topics)).dictionary_encode())
        bounds = np.searchsorted(record, np.arange(self._rows.size + 1)).tolist()
        with no_garbage_collection():
            return [
                Owners(zip(identities[start:end], listed[start:end], strict=True))
                for start, end in pairwise(bounds)
            ]


def _is_utf8(raw: bytes) -> bool:
    try:
        pa.scalar(raw, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _not_empty(span: Span) -> Span:
    """Nulls instead of what is empty."""
    return Span(span.start, np.where(span.size == 0, -1, span.size))


def _indices(encoded: Any) -> Any:
    """Which string of the dictionary each is; -1 for null."""
    return np.asarray(encoded.indices.fill_null(-1))


def _objects(encoded: Any) -> list[Any]:
    """Python's objects: of each value of the dictionary one."""
    return encoded.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _twice(lists: IntArray, topics: IntArray) -> IntArray:
    """The rows whose topic stood in its list before.

    Args:
        lists: (R,) numbers of lists, in ascending order.
        topics: (R,) numbers of topics.
    """
    follows = lists[1:] == lists[:-1]
    if not follows.any():
        return np.flatnonzero(follows)
    of_several = np.flatnonzero(np.append(follows, False) | np.append(False, follows))
    key = lists[of_several] * (int(topics.max()) + 1) + topics[of_several]
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[order]) == 0) + 1
    return of_several[order[again]]


def _ids(partitions: Any) -> Any:
    """An array of lists, of the bytes of each."""
    _, bounds, raw = partitions.buffers()
    ends = np.zeros(1) if len(partitions) == 0 else np.frombuffer(bounds, np.int32)[partitions.offset :]
    ends = ends[: len(partitions) + 1].astype(np.int32)
    ids = np.zeros(0, _ID) if raw is None else np.frombuffer(raw, _ID, ends[-1] // _ID.itemsize)
    return lists_of(ends // _ID.itemsize, pa.array(ids.astype(np.int32)))
