"""What an assignor promises in all events, compared with a timeline."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from kafka import TopicPartition

from kafka_assignors._timelines.events import (
    NO_GENERATION,
    Assigned,
    AssignmentReceived,
    Event,
    Joining,
    Led,
    OfPartitions,
    Started,
    name_of,
)
from kafka_assignors._timelines.ownership import Overlap
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.testing._groups.specs import Sharing

Balance = Literal["best", "best of equals", "by topic", "none"]
"""How even loads are: the best that subscriptions allow; the same where all subscribe alike; of each topic,
within one among its subscribers; or anyhow.
"""


Active = Literal["all", "one", "highest priority"]
"""Who has partitions of a topic, of its subscribers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What holds of a group with this assignor.

    If partitions are together, no two members have some of one id at any instant, whatever the topics.

    If it keeps silent ones, nobody else gets what a static member has that does not join again, unless it
    claimed nothing when it joined: another leader takes it for new. The coordinator keeps a silent member
    until its session ends, and a leader of an eager strategy gives its partitions away.
    """

    sharing: Sharing = "exclusive"
    balance: Balance = "none"
    sticky: bool = False
    keeps_silent: bool = False
    together: bool = False
    active: Active = "all"


EXCLUSIVE: Final = Promise()

PROMISES: Final[Mapping[str, Promise]] = {
    "range": Promise(balance="by topic"),
    "roundrobin": Promise(balance="best of equals"),
    "sticky": Promise(balance="best", sticky=True),
    "cooperative-sticky": Promise(balance="best", sticky=True, keeps_silent=True),
    "copartitioned": Promise(keeps_silent=True, together=True),
    "load-aware": Promise(keeps_silent=True),
    "random": Promise(),
    "broadcast": Promise(sharing="broadcast"),
}
"""Those of this library's assignors, by their names. Of any other one owner of each partition is expected."""


def keep(
    promise: Promise, timeline: Timeline, generation: int, partitions: Collection[TopicPartition], after: int
) -> None:
    """Make sure that a promise was kept up to now.

    Generations up to `after` have been looked at before.
    """
    if promise.together:
        keep(replace(promise, together=False), of_ids(timeline), generation, partitions, after)
    if promise.sharing == "exclusive":
        timeline.assert_never_owned_twice("generation")
        for overlap in without_excuse(timeline, keeps_silent=promise.keeps_silent):
            raise AssertionError(
                f"{name_of(overlap.partition)} was still {overlap.members[0]}'s by its application when"
                f" {overlap.members[1]} got it, {overlap.start - timeline.begin:.3f} s from the start,"
                f" for {overlap.seconds:.3f} s. Both were in the group\n"
                f"{timeline.chart(partitions=[overlap.partition])}"
            )
    if promise.sticky:
        timeline.assert_sticky(after=after)
    _keep_balance(promise.balance, timeline, generation, partitions)
    _keep_active(promise.active, timeline, generation)


def of_ids(timeline: Timeline) -> Timeline:
    """The timeline as if partitions of one id, in whichever topic, were one."""
    return Timeline(
        replace(one, partitions=frozenset(TopicPartition("any", each.partition) for each in one.partitions))
        if isinstance(one, OfPartitions)
        else one
        for one in timeline.events
    )


def priority_of(name: str) -> int:
    """The priority of a member, m1 or m1.2, where members have some: 0 or 1, in turn."""
    return int(name.lstrip("m").split(".")[0]) % 2


def without_excuse(timeline: Timeline, *, keeps_silent: bool = True) -> Iterator[Overlap]:
    """Where two applications had a partition at once though the coordinator had expelled neither.

    A member that is frozen, does not poll or cannot reach the brokers still owns by its application's word.
    The group gives its partitions to others when it is out. That is nobody's fault. Its member id shows
    whether it was out: no generation has it from then on, as it is never given again. A member that has
    joined and not yet taken its assignment is in the group, even if its application does not know it.

    If the assignor does not keep silent, a static member is excused that has not begun to join again.
    """
    static = {event.member for event in timeline.of(Started) if event.instance_id is not None}
    joining: dict[str, list[Joining]] = defaultdict(list)
    for joined in timeline.of(Joining):
        joining[joined.member].append(joined)
    newest = _newest_generations(timeline)
    given: dict[str, list[OfPartitions]] = defaultdict(list)
    for event in timeline.of(AssignmentReceived, Assigned):
        given[event.member].append(event)
    got = {(one.partition, one.member, one.start): one.generation for one in timeline.ownership("callback")}
    for overlap in timeline.overlaps("callback"):
        first, second = overlap.members
        generation = got[overlap.partition, second, overlap.start]
        had = _last_given(given[first], overlap.partition, overlap.start)
        said = [one for one in joining[first] if one.time < overlap.start]
        silent = first in static and not any(had.time < one.time for one in said)
        kept = keeps_silent and bool(said) and said[-1].claimed_generation != NO_GENERATION
        if newest[_id_of(had)] >= generation and (kept or not silent):
            yield overlap


def _newest_generations(timeline: Timeline) -> Mapping[str, int]:
    """The newest generation in which each member id is known, by its own word or by a leader's list."""
    newest: dict[str, int] = defaultdict(lambda: NO_GENERATION)
    for event in timeline.events:
        listed = event.claims if isinstance(event, Led) else ()
        for member_id in {_id_of(event), *listed}:
            newest[member_id] = max(newest[member_id], event.generation)
    return newest


def _last_given(given: Sequence[OfPartitions], partition: TopicPartition, until: float) -> OfPartitions:
    """The event by which a member was last given a partition that it has by its application's word.

    It tells the member id. A member that was expelled amid a join may come back under another, and not be
    told that it lost anything.
    """
    return next(event for event in reversed(given) if event.time <= until and partition in event.partitions)


def _id_of(event: Event) -> str:
    """The member id at an event; where it is not told, the member's name has to do."""
    return event.member_id or event.member


def _keep_active(active: Active, timeline: Timeline, generation: int) -> None:
    settled = next(one for one in timeline.rebalances if one.generation == generation)
    for topic in {one.topic for had in settled.assignments.values() for one in had}:
        having = sorted(
            name for name, had in settled.assignments.items() if any(one.topic == topic for one in had)
        )
        wanting = [name for name in settled.assignments if topic in settled.subscriptions[name]]
        highest = max(map(priority_of, wanting)) if active == "highest priority" else None
        standbys = [name for name in having if highest is not None and priority_of(name) < highest]
        if (active == "one" and len({timeline.identity[name] for name in having}) > 1) or standbys:
            raise AssertionError(f"generation {generation}: {', '.join(having)} have {topic}, not {active}")


def _keep_balance(
    balance: Balance, timeline: Timeline, generation: int, partitions: Collection[TopicPartition]
) -> None:
    settled = next(one for one in timeline.rebalances if one.generation == generation)
    alike = len({*settled.subscriptions.values()}) == 1
    if balance == "best" or (balance == "best of equals" and alike):
        timeline.assert_balanced(at=generation, partitions=partitions)
    if balance == "by topic":
        # A static member that restarts in a generation is in it once.
        members = {timeline.identity[name]: name for name in settled.assignments}.values()
        loads: dict[str, dict[str, int]] = defaultdict(dict)
        for name in members:
            for topic in settled.subscriptions[name]:
                loads[topic][name] = sum(one.topic == topic for one in settled.assignments[name])
        for topic, found in loads.items():
            if max(found.values()) - min(found.values()) > 1:
                raise AssertionError(
                    f"generation {generation} does not share {topic} out evenly:"
                    f" {', '.join(f'{name} has {load}' for name, load in found.items())}"
                )
