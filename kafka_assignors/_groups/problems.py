"""What is wrong with a group, or will be."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from kafka_assignors._common.strategies import STICKY
from kafka_assignors._common.words import first_of, named
from kafka_assignors._groups.account import GroupAccount
from kafka_assignors._groups.lag import GroupLag, PartitionLag
from kafka_assignors._groups.snapshots import EAGER_STRATEGIES

Kind = Literal[
    "nothing to do",
    "unread topic",
    "missing topic",
    "hidden topic",
    "no owner",
    "two owners",
    "double claim",
    "unreadable member",
    "foreign user data",
    "no memory",
    "timeouts",
    "record size",
    "uneven",
    "eager",
    "rebalancing",
    "behind",
    "offsets",
    "no commit",
    "lost records",
    "end unknown",
    "lag",
    "lag unknown",
    "not described",
]
"""What can be wrong."""

SHARED: Final = frozenset({"broadcast", "share"})
"""Strategies, and types of groups, that give a partition to several members."""

ORDER: Final[Mapping[str, int]] = {"error": 0, "warning": 1, "note": 2}
"""Severities, the worst first."""

_NEAR: Final = 0.7  # of the limit of a record
_MANY: Final = 3  # members, from which on eager rebalances are worth a word
_NAMED: Final = 5
_HEARTBEAT_MS: Final = 3000  # the clients' default; no record tells a member's own
_HEARTBEATS: Final = 3  # that are to fit into a session, as Kafka's documentation asks for
_SHORT_MS: Final = 10_000  # of a static member, whose restarts are to go unnoticed


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong, or will be, and what to do.

    It is an "error" if records are not consumed, or not rightly, a "warning" if they may not be, and a "note"
    if it could be better.
    """

    kind: Kind
    severity: Literal["error", "warning", "note"]
    text: str
    advice: str


_error = partial(Problem, severity="error")
_warning = partial(Problem, severity="warning")
_note = partial(Problem, severity="note")


def find_problems(
    found: GroupAccount, topics: Mapping[str, Collection[int]], committed: Collection[str]
) -> tuple[Problem, ...]:
    """Find what is wrong, the worst first; `topics` has the partition ids of each topic that exists."""
    problems = [
        *_about_bytes(found),
        *_about_partitions(found, topics, committed),
        *_about_members(found),
        *_about_claims(found),
        *_about_timeouts(found),
        *_about_record(found),
    ]
    return in_order(problems)


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: ORDER[problem.severity]))


def find_lag_problems(lag: GroupLag, *, members: bool) -> Iterator[Problem]:
    """What is wrong with what a group has committed; `members` says whether it has any."""
    if beyond := [one for one in lag.partitions if one.beyond]:
        yield _warning(
            kind="offsets",
            text=f"the group has committed offsets beyond the end of {_some(beyond)}",
            advice="the topic was created again, or lost records: consumers go where auto.offset.reset says."
            " Lag is not known until they have committed again",
        )
    if lag.unknown:
        yield _warning(
            kind="end unknown",
            text=f"the end of {_some(lag.unknown)} is not known: there is no leader, or it does not say",
            advice="the lag may be greater than the one shown: see which partitions are offline with"
            " kafka-assignors placement describe",
        )
    if lag.lost:
        offsets = sum(one.lost for one in lag.lost)
        yield _note(
            kind="lost records",
            text=f"deleted before the group had read them: {offsets:,} offsets of {_some(lag.lost)}",
            advice="the group was behind for longer than retention.ms or retention.bytes allow;"
            " auto.offset.reset says where it goes on",
        )
    if members and lag.uncommitted:
        yield _note(
            kind="no commit",
            text=f"the group has no commit of {_some(lag.uncommitted)}, where there are records",
            advice="a new owner of such a partition begins where auto.offset.reset says",
        )


def find_lag_seconds_problems(lag: GroupLag, most: float) -> Iterator[Problem]:
    """What is wrong with how long records have waited, if more than so many seconds are."""
    if lag.seconds is not None and lag.seconds > most:
        yield _error(
            kind="lag",
            text=f"it is {lag.seconds:,.0f} s behind, more than {most:,.0f} s",
            advice="see which partitions, and whose, with kafka-assignors group explain --max-lag-seconds",
        )
    undated: dict[str, list[PartitionLag]] = {}
    for one in lag.partitions:
        if one.undated:
            undated.setdefault(one.undated, []).append(one)
    for why, partitions in undated.items():
        yield _warning(
            kind="lag unknown",
            text=f"for how long records of {_some(partitions)} have waited is not known: {why}",
            advice="the lag in seconds may be greater than the one shown; the lag in records is known",
        )


def _about_bytes(found: GroupAccount) -> Iterator[Problem]:
    for account in found.members:
        if account.unreadable is not None:
            yield _error(
                kind="unreadable member",
                text=f"what {account.name} or its leader sent cannot be read: {account.unreadable}",
                advice="find out what client it is: leaders of kafka-python fail on such members, and ours"
                " give them nothing",
            )


def find_topic_problems(missing: Collection[str], hidden: Collection[str] = ()) -> Iterator[Problem]:
    """What is wrong with topics that do not exist, or that the user may not describe."""
    if missing:
        yield _warning(
            kind="missing topic",
            text=f"members subscribe to topics that do not exist: {', '.join(sorted(missing))}",
            advice="create it, or correct the subscription: kafka-python's leaders wait for such topics",
        )
    if hidden:
        yield _warning(
            kind="hidden topic",
            text=f"members subscribe to topics that this user may not describe: {', '.join(sorted(hidden))}",
            advice="their lag, and what would move, is not known: the user needs DESCRIBE on them",
        )


def _about_partitions(
    found: GroupAccount, topics: Mapping[str, Collection[int]], committed: Collection[str]
) -> Iterator[Problem]:
    wanted = found.subscribed
    existing = {(topic, partition) for topic in wanted & topics.keys() for partition in topics[topic]}
    owners = Counter(partition for account in found.members for partition in account.assignment)
    yield from find_topic_problems(wanted - topics.keys())
    if free := sorted(existing - owners.keys()):
        yield _error(
            kind="no owner",
            text=f"nobody has {named(free, _NAMED)}",
            advice="in a rebalance that passes; else the strategy left it out: see who subscribes to it",
        )
    if found.strategy not in SHARED and (twice := sorted(one for one, count in owners.items() if count > 1)):
        yield _error(
            kind="two owners",
            text=f"two members have {named(twice, _NAMED)}",
            advice="the leader's assignor is wrong: its records are processed twice",
        )
    if unread := sorted({*committed} & topics.keys() - wanted) if found.members else []:
        yield _warning(
            kind="unread topic",
            text=f"the group has offsets of {', '.join(unread)}, to which no member subscribes",
            advice="if that is meant, delete the offsets; else look for the members that are missing",
        )


def _about_members(found: GroupAccount) -> Iterator[Problem]:
    idle = [account.name for account in found.members if not (account.assignment or account.stands_by)]
    if idle:
        few = len(found.members) > sum(found.loads.values())
        yield Problem(
            kind="nothing to do",
            severity="note" if few else "warning",
            text=f"{have(idle)} no partitions",
            advice=f"there are {sum(found.loads.values())} partitions for {len(found.members)} members"
            if few
            else "see what it subscribes to; "
            + (
                "its leader's max_active or return_after may let it stand by"
                if found.strategy in STICKY
                else "range gives nothing to the last members of small topics"
            ),
        )
    if found.strategy not in SHARED and found.imbalance > found.best_imbalance:
        yield _note(
            kind="uneven",
            text=f"loads differ by {found.imbalance}, where {found.best_imbalance} is possible",
            advice="a sticky strategy balances over all topics, range topic by topic",
        )
    eager = found.strategy in EAGER_STRATEGIES
    if eager and len(found.members) >= _MANY:
        yield _note(
            kind="eager",
            text=f"{found.strategy} is eager: in each rebalance all members revoke everything",
            advice="cooperative-sticky takes away only what moves; two rolling restarts lead to it",
        )


def _about_claims(found: GroupAccount) -> Iterator[Problem]:
    if found.strategy not in STICKY:
        return
    claimed: dict[tuple[tuple[str, int], int], list[str]] = {}
    for account in found.members:
        for claim in account.claims:
            claimed.setdefault((claim, account.claimed_generation), []).append(account.name)
    double = sorted((key[0], members) for key, members in claimed.items() if len(members) > 1)
    if double:
        (topic, partition), members = double[0]
        yield _warning(
            kind="double claim",
            text=f"{' and '.join(members)} said that they had {topic}-{partition} in one generation"
            + (f", and {len(double) - 1} more such" if len(double) > 1 else ""),
            advice="one of them missed a rebalance; such claims do not count, and the partition may move",
        )
    forgetful = [account.name for account in found.members if account.version == 0]
    if forgetful and found.strategy == "cooperative-sticky":
        yield _error(
            kind="no memory",
            text=f"{_some(forgetful)} cannot say what it has: its subscription is of version 0",
            advice="its client is too old for a cooperative rebalance: update it",
        )
    layouts: dict[str, list[str]] = {}
    for account in found.members:
        if account.layout is not None:
            layout = "kafka-python's" if account.layout == "kafka-python" else "Java's"
            layouts.setdefault(layout, []).append(account.name)
    if len(layouts) < 2:  # noqa: PLR2004 - one layout is as it should be
        return
    who = "; ".join(f"{_some(sorted(names))}: {layout}" for layout, names in sorted(layouts.items()))
    yield _warning(
        kind="foreign user data",
        text=f"members say what they had in different layouts ({who})",
        advice="a leader of kafka-python's own class, or of Java, forgets what the others had, and their"
        " partitions move. Give all members the same assignor (ours reads all layouts)",
    )


def _about_timeouts(found: GroupAccount) -> Iterator[Problem]:
    for account in found.members:
        if 0 < account.rebalance_timeout_ms < account.session_timeout_ms:
            yield _warning(
                kind="timeouts",
                text=f"{account.name} has max.poll.interval.ms {account.rebalance_timeout_ms}, less than its"
                f" session.timeout.ms {account.session_timeout_ms}",
                advice="it is expelled for a slow poll sooner than for a crash: raise the first",
            )
    least = _HEARTBEATS * _HEARTBEAT_MS
    if short := [account.name for account in found.members if 0 <= account.session_timeout_ms < least]:
        yield _warning(
            kind="timeouts",
            text=f"{have(short)} a session.timeout.ms below {least}: less than three"
            f" heartbeats, if one comes each {_HEARTBEAT_MS} ms, the clients' default (theirs is unknown)",
            advice="a member that lives is expelled for a late heartbeat: raise it to three times"
            " heartbeat.interval.ms at least",
        )
    if hasty := [
        account.name
        for account in found.members
        if account.instance_id is not None and 0 <= account.session_timeout_ms <= _SHORT_MS
    ]:
        yield _note(
            kind="timeouts",
            text=f"{have(hasty)} an instance id and a session.timeout.ms of at most {_SHORT_MS}",
            advice="a restart that takes longer starts two rebalances, as without an instance id: raise"
            " it to what a restart takes",
        )
    sessions = {account.session_timeout_ms for account in found.members}
    if len(sessions) > 1:
        yield _note(
            kind="timeouts",
            text=f"members have session timeouts from {min(sessions)} to {max(sessions)} ms",
            advice="some are missed later than others: give all the same, unless that is meant",
        )


def _about_record(found: GroupAccount) -> Iterator[Problem]:
    if found.record_bytes < _NEAR * found.record_limit:
        return
    over = found.record_bytes > found.record_limit
    yield Problem(
        kind="record size",
        severity="error" if over else "warning",
        text=f"the group's record has {found.record_bytes:,} bytes of {found.record_limit:,}",
        advice="above that the group never settles: raise max.message.bytes of __consumer_offsets, or use"
        " fewer members or a strategy without user data",
    )


def _some(names: Sequence[object]) -> str:
    return first_of(names, _NAMED)


def have(names: Sequence[str]) -> str:
    """Names and the verb: "a has", "a, b have"."""
    return f"{_some(names)} {'has' if len(names) == 1 else 'have'}"
