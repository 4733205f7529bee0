"""All groups of a running cluster at once: a few requests for each broker, however many groups there are."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import LOOK_SECONDS, Admin, ClusterError, reason
from kafka_assignors._cluster.groups import (
    ClassicGroup,
    EpochGroup,
    Extent,
    Leaders,
    ListedGroup,
    Partition,
    Refused,
    committed_offsets,
    describe_classic,
    describe_consumer,
    find_extents,
    list_groups as list_all,
    read_topics,
)
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.account import GroupAccount
from kafka_assignors._groups.epochs import explain_epochs
from kafka_assignors._groups.explanation import explain
from kafka_assignors._groups.finding import is_meant
from kafka_assignors._groups.lag import GroupLag, find_lag, lag_owners
from kafka_assignors._groups.problems import ORDER, Problem, find_lag_problems, in_order
from kafka_assignors.groups._completed import completed
from kafka_assignors.groups._live import is_rebalancing

Described = ClassicGroup | EpochGroup | Refused | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """What a group among all of a cluster is like; its problems are the worst first.

    Its `kind` is "classic", "consumer" (KIP-848), "share", "streams" or "unknown", its `state` "Unknown" if
    the broker does not say. It has no `strategy` while it rebalances, and if it is empty, and an `epoch` by
    KIP-848 only. It has no `account` if brokers do not describe such groups to us. It has no `lag` if it is a
    share group, or its coordinator does not say what it has committed.
    """

    group_id: str
    kind: str
    state: str
    protocol_type: str
    strategy: str | None
    epoch: int | None
    account: GroupAccount | None
    lag: GroupLag | None
    problems: tuple[Problem, ...]

    @property
    def members(self) -> int | None:
        """How many there are; None if its coordinator does not describe it."""
        return None if self.account is None else len(self.account.members)

    @property
    def lag_known(self) -> bool | None:
        """Whether the lag of each partition with a commit is known; None of a share group, which has none."""
        if self.kind == "share":
            return None
        return self.lag is not None and not self.lag.unknown

    @property
    def unowned(self) -> tuple[Partition, ...] | None:
        """Partitions of subscribed topics that nobody has; None if that is not known, as in a rebalance."""
        if self.account is None or self.strategy is None or self.lag is None:
            return None
        wanted = self.account.subscribed
        return tuple(
            (one.topic, one.partition)
            for one in self.lag.partitions
            if one.owner is None and one.topic in wanted
        )

    def to_json(self) -> dict[str, Any]:
        """For machines: how many members there are, and lags without the partitions."""
        lag = self.lag
        return {
            "group": self.group_id,
            "type": self.kind,
            **fields_of(self, without=("group_id", "kind", "account")),
            "members": self.members,
            "lag": None if lag is None else lag.counts(),
        }

    @property
    def badness(self) -> tuple[int, int, str]:
        """Sorts the worst first: by the worst problem, then by lag."""
        worst = min((ORDER[problem.severity] for problem in self.problems), default=len(ORDER))
        return worst, -(0 if self.lag is None else self.lag.total), self.group_id


def list_groups(
    cluster: Cluster,
    groups: Collection[str] = (),
    *,
    observe: float = 5.0,
    max_lag: int | None = None,
    max_lag_seconds: float | None = None,
) -> tuple[GroupStatus, ...]:
    """The groups of a cluster, the worst first: states, lags and what is wrong.

    Each coordinator is asked for all of its groups at once; no log is read.

    Args:
        cluster: The cluster.
        groups: Ids, or patterns as for `fnmatch`; all groups if there are none. One can be given as text.
        observe: For how many seconds to look at groups that are in a rebalance; if it is not over by then,
            that is an error. With 0 it is none: such a look cannot know how long it will take.
        max_lag: How many records a group may lag, more being an error; None for any number.
        max_lag_seconds: For how many seconds records may wait to be committed, more being an error;
            `math.inf` to have these seconds without an error, None not to ask. One batch of records is read
            from each partition that lags, from at most 5,000 and for 10 s.

    Raises:
        ClusterError: The cluster does not say.
    """
    with connect(cluster) as admin:
        return read_groups(admin, groups, observe=observe, max_lag=max_lag, max_lag_seconds=max_lag_seconds)


def read_groups(
    admin: Admin,
    groups: Collection[str],
    *,
    observe: float = 0.0,
    max_lag: int | None = None,
    max_lag_seconds: float | None = None,
) -> tuple[GroupStatus, ...]:
    try:
        listed = [one for one in list_all(admin) if is_meant(one.group_id, groups)]
        described, seconds = _describe(admin, listed, observe)
        topics = read_topics(admin)
        committed = committed_offsets(admin, [group.group_id for group in listed if group.kind != "share"])
        found = [
            _Found(group, described.get(group.group_id), committed.get(group.group_id, {}), topics)
            for group in listed
        ]
        extents = find_extents(admin, {one for group in found for one in group.owners}, topics)
        read = (group.status(extents, seconds.get(group.listed.group_id), max_lag) for group in found)
        there = [one for one in read if one is not None]
        known = completed(admin, topics, there, max_lag_seconds)
    except KafkaError as error:
        raise ClusterError(f"cannot read the cluster's groups: {reason(error)}") from error
    return tuple(sorted(known, key=lambda one: one.badness))


def _describe(
    admin: Admin, listed: Iterable[ListedGroup], observe: float
) -> tuple[dict[str, Described], dict[str, float]]:
    """Groups as they are described, and for how long those were seen in a rebalance that still are."""
    ways: dict[str, Callable[[Admin, Sequence[str]], Mapping[str, Described]]] = {
        "classic": describe_classic,
        "consumer": describe_consumer,
    }
    described: dict[str, Described] = {}
    began, deadline = time.monotonic(), Deadline(observe)
    ids = {kind: [group.group_id for group in listed if group.kind == kind] for kind in ways}
    while True:
        for kind, describe in ways.items():
            described |= describe(admin, ids[kind])
            ids[kind] = [group_id for group_id in ids[kind] if is_rebalancing(described[group_id])]
        if deadline.passed or not any(ids.values()):
            seconds = time.monotonic() - began
            lasting = [group_id for some in ids.values() for group_id in some] if observe > 0 else []
            return described, dict.fromkeys(lasting, seconds)
        time.sleep(LOOK_SECONDS)


class _Found:
    """A group before it is known where partitions end."""

    def __init__(
        self,
        listed: ListedGroup,
        described: Described,
        committed: Mapping[Partition, int] | Refused,
        topics: Leaders,
    ) -> None:
        self.listed, self.described, self._committed = listed, described, committed
        offsets = () if isinstance(committed, Refused) else committed
        account, self._problems = _explained(described, topics, {topic for topic, _ in offsets})
        self._account = account
        self.owners = lag_owners(account.members if account else (), topics, offsets)

    def status(
        self, extents: Mapping[Partition, Extent], seconds: float | None, max_lag: int | None
    ) -> GroupStatus | None:
        """The group; None if it went meanwhile."""
        described, account = self.described, self._account
        if isinstance(described, Refused) and described.unknown:
            return None
        lag = None
        if self.listed.kind != "share" and not isinstance(self._committed, Refused):
            lag = find_lag(self.owners, self._committed, extents)
        return GroupStatus(
            group_id=self.listed.group_id,
            kind=self.listed.kind,
            state=getattr(described, "state", self.listed.state) or "Unknown",
            protocol_type=self.listed.protocol_type,
            strategy=None if account is None else account.strategy,
            epoch=described.epoch if isinstance(described, EpochGroup) else None,
            account=account,
            lag=lag,
            problems=in_order([*self._problems, *self._more_problems(lag, seconds, max_lag)]),
        )

    def _more_problems(
        self, lag: GroupLag | None, seconds: float | None, max_lag: int | None
    ) -> Iterator[Problem]:
        if isinstance(self.described, Refused):
            yield Problem(
                kind="not described",
                severity="warning",
                text=f"its coordinator does not describe it: {self.described.why}",
                advice="the client needs the right to describe the group",
            )
        elif self.described is None:
            yield Problem(
                kind="not described",
                # Its lag is known all the same, and so is its state, if it is listed with one.
                severity="note" if self.listed.state else "warning",
                text=f"its members are not known: groups of type {self.listed.kind} cannot be described here",
                advice="see its members with Kafka's own tools",
            )
        if isinstance(self._committed, Refused):
            yield Problem(
                kind="lag unknown",
                severity="warning",
                text=f"its coordinator does not say what it has committed: {self._committed.why}",
                advice="the lag is not known: the client needs the right to describe the group",
            )
        if seconds is not None:
            yield Problem(
                kind="rebalancing",
                severity="error",
                text=f"a rebalance has been on for {seconds:.0f} s at least",
                advice="kafka-assignors group explain says of the group who holds it up",
            )
        if lag is None:
            return
        yield from find_lag_problems(lag, members=bool(self._account and self._account.members))
        if max_lag is not None and lag.total > max_lag:
            yield Problem(
                kind="lag",
                severity="error",
                text=f"it is {lag.total:,} records behind, more than {max_lag:,}",
                advice="see which partitions, and whose, with kafka-assignors group explain",
            )


def _explained(
    described: Described, topics: Leaders, committed: Collection[str]
) -> tuple[GroupAccount | None, Collection[Problem]]:
    if isinstance(described, ClassicGroup):
        explained = explain(described.group_id, described.value, topics, committed=committed)
        return explained.account, explained.problems
    if isinstance(described, EpochGroup):
        epochs = explain_epochs(described, topics, committed=committed)
        # Whether it is only on its way is known from several looks.
        return epochs.account, [one for one in epochs.problems if one.kind != "behind"]
    return None, ()
