"""What a group is expected to have done, asserted on its timeline."""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, Never, Self

from kafka import TopicPartition

from kafka_assignors._timelines import losses
from kafka_assignors._timelines.best import Settled, Weights, best_plan, find_settled, unevenness
from kafka_assignors._timelines.chart import chart
from kafka_assignors._timelines.events import (
    NO_GENERATION,
    Failed,
    Holding,
    ListenerReturned,
    format_partitions,
    name_of,
)
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.holdings import find_kept
from kafka_assignors._timelines.lines import lines_of
from kafka_assignors._timelines.ownership import Reading
from kafka_assignors._timelines.pauses import why_paused
from kafka_assignors._timelines.rebalances import SeenRebalance
from kafka_assignors._timelines.records import find_longest_silence

PauseMeasure = Literal["ownership", "records"]
"""A pause of a partition is a time without an owner, or one without records."""

_FAULTS_SHOWN: Final = 10
_LOADS_SHOWN: Final = 10
_ROWS_SHOWN: Final = 12
_EVENTS_SHOWN: Final = 40
_AROUND: Final = 0.1  # of the time in question, shown before and after it
_CHART_WIDTH: Final = 100
_NO_PARTITION: Final = (
    "no member ever had a partition: wait until the group is stable, and look whether its topics exist"
)
_NO_RECORD: Final = "no poll ever returned a record: put the group under load, and wait until it has consumed"


class TimelineAssertions(TimelineFacts):
    """What is expected of a group, asserted on its timeline; `Timeline` has the arguments and attributes.

    Each raises an `AssertionError` that says what was wrong, and shows that part of the timeline. Those that
    speak of partitions, generations or records also do so if there was never any: then nothing is shown.
    """

    def assert_balanced(
        self,
        *,
        at: int | None = None,
        partitions: Collection[TopicPartition] | None = None,
        weights: Weights | None = None,
    ) -> None:
        """The loads are as even as the subscriptions allow, and every partition has one owner.

        Args:
            at: The generation; by default the newest one.
            partitions: The partitions that there are; by default all that anybody had up to that generation,
                of topics that somebody subscribes to.
            weights: How much members take on beside others, by their names (1 for those that are not named).

        Raises:
            AssertionError: They are not, or there is no such generation.
        """
        rebalance = _generation(self, at)
        if partitions is None and not (partitions := _seen_until(self, rebalance)):
            raise AssertionError(_NO_PARTITION)
        headline, faults, owners = _balance(self, rebalance, partitions, weights or {})
        if faults:
            _fail(self, headline, faults, since=rebalance.start, until=rebalance.end, partitions=owners)

    def assert_sticky(self, *, after: int = NO_GENERATION, weights: Weights | None = None) -> None:
        """No rebalance moved more partitions than the best balance wanted.

        What counts is who had what before, who is there now, and their subscriptions; partitions of members
        that are gone do not move. A rebalance lasts until every partition has an owner, so a cooperative
        hand-over of several generations is one. One that is overtaken by the next is not judged. Racks are
        not looked at; an assignor may move more for their sake.

        Args:
            after: Only rebalances that end in generations above this one.
            weights: As in `assert_balanced`.

        Raises:
            AssertionError: One moved more, or no member ever had a partition.
        """
        _look_for_owners(self, "generation")
        settled = find_settled(self.rebalances, self.events, self.identity, weights)
        wrong = [one for one in settled if one.generations[-1] > after and len(one.moves) > one.least]
        if not wrong:
            return
        first = wrong[0]
        before = [one.end for one in self.rebalances if one.generation < first.generations[0]]
        _fail(
            self,
            "more partitions moved than had to",
            [_what_moved(one) for one in wrong],
            since=before[-1] if before else first.start,
            until=first.end,
            partitions=[move.partition for move in first.moves],
        )

    def assert_never_owned_twice(self, reading: Reading = "generation") -> None:
        """No partition had two owners at once.

        Args:
            reading: "generation": no generation gave one partition to two members, which an assignor must
                never do. "callback": no two applications had it at the same time. That may happen when a
                member freezes or loses its connection, and then its records come twice.

        Raises:
            AssertionError: One had, or none ever had an owner.
        """
        _look_for_owners(self, reading)
        if reading == "callback":
            found = [*_twice_at_once(self)]
            headline = "two members' applications had the same partitions at once"
        else:
            found = [*_twice_in_a_generation(self)]
            headline = "two members of a generation were given the same partitions"
        if found:
            since, until, _, _ = found[0]
            partitions = [partition for _, _, partition, _ in found]
            faults = [fault for *_, fault in found]
            _fail(self, headline, faults, since=since, until=until, partitions=partitions)

    def assert_paused_at_most(
        self,
        ms: float,
        *,
        by: PauseMeasure = "ownership",
        since: float | None = None,
        until: float | None = None,
    ) -> None:
        """No partition stood still for longer than so many milliseconds.

        The message says what members did meanwhile that kept the group waiting. They did not poll, or were
        frozen or gone. It also says how long their listeners and a leader's assignor took.

        Args:
            ms: The longest pause that is allowed.
            by: "ownership": without an owner, by callback, after its first one; a frozen member still owns.
                "records": without records, for partitions that had any: put the group under load.
            since: Where to begin to count, on the clock of the events; by default at each partition's first
                owner or record.
            until: Where to end; by default at the end of the record, and by records at the last one of the
                partition's topic.

        Raises:
            AssertionError: One did, or none ever had an owner, or a record.
        """
        if by == "ownership":
            _look_for_owners(self, "callback")
        elif not self.deliveries:
            raise AssertionError(_NO_RECORD)
        pauses = _without_owner if by == "ownership" else _without_records
        long = [
            (end - start, start, partition)
            for partition, start, end in pauses(self, since, until)
            if 1000 * (end - start) > ms
        ]
        if not long:
            return
        long.sort(key=lambda pause: (-pause[0], pause[2]))
        seconds, start, _ = long[0]
        _fail(
            self,
            f"partitions were without {'an owner' if by == 'ownership' else 'records'}"
            f" for longer than {ms:g} ms",
            _why_long(self, long),
            count=len(long),
            since=start,
            until=start + seconds,
            partitions=[partition for _, _, partition in long],
        )

    def assert_all_consumed(self, produced: Mapping[TopicPartition, int]) -> None:
        """No record was lost.

        Of members whose applications say what they have processed (`Seat.processed`), what they said counts;
        of others, what their polls returned. The message names which it is.

        Args:
            produced: Partition -> the number of its records, as `Load.stop` returns it.

        Raises:
            AssertionError: Some were lost; the message counts them, and says who polled and committed them.
                Or nothing was produced, so there is nothing to judge.
        """
        if not any(produced.values()):
            raise AssertionError(
                "nothing was produced: wait until load.produced has records, or give what load.stop() returns"
            )
        missing = self.missing(produced)
        if not missing:
            return
        times = [report.time for partition in missing for report in self.deliveries.get(partition, ())]
        count, total = sum(map(len, missing.values())), sum(produced.values())
        word, counts = losses.what_counts(self)
        headline = f"{count} of {total} records were not {word} ({counts})"
        faults = losses.why_missing(self, missing, produced)
        since = min(times, default=None)
        _fail(self, headline, faults, count=len(missing), since=since, partitions=sorted(missing))

    def assert_no_duplicates(self, *, at_most: int = 0) -> None:
        """No record came twice; what counts is as in `assert_all_consumed`.

        Args:
            at_most: So many may: a service that commits what it has processed gets some again after a crash.

        Raises:
            AssertionError: More did; the message counts them, and names who had not committed them. Or there
                was no record.
        """
        if not self.handled:
            raise AssertionError(_NO_RECORD)
        duplicates = self.duplicates()
        if sum(duplicates.values()) > at_most:
            word, counts = losses.what_counts(self)
            allowed = f", and at most {at_most} may be" if at_most else ""
            headline = f"{sum(duplicates.values())} records were {word} more than once{allowed} ({counts})"
            faults = (
                losses.named(partition, str(count), losses.why_twice(self, partition))
                for partition, count in sorted(duplicates.items())
            )
            _fail(self, headline, faults, count=len(duplicates), partitions=sorted(duplicates))

    def assert_in_order(self) -> None:
        """Each member took the records of a partition by ascending offsets; what counts is as above.

        A member that is given a partition, again or for the first time, may begin at any offset. When it is
        taken away, it may not come behind its next owner. One call of `Seat.processed` names records at once.

        Raises:
            AssertionError: One went back, or came too late; the message says why. Or there was no record.
        """
        if not self.handled:
            raise AssertionError(_NO_RECORD)
        wrong = losses.find_backward(self)
        if wrong:
            word, counts = losses.what_counts(self)
            headline = f"records of a partition were {word} out of order ({counts})"
            faults = (
                losses.named(partition, *losses.why_backward(self, partition, each))
                for partition, each in wrong.items()
            )
            _fail(self, headline, faults, count=len(wrong), partitions=wrong)

    def assert_released_on_revoke(self, what: str | None = None) -> None:
        """When a member's listener had returned, it had released all it held for revoked partitions.

        Args:
            what: Only what is called so in `Seat.holds`; by default everything.

        Raises:
            AssertionError: Something was still held. Or nothing was ever held, so there is nothing to judge.
        """
        holdings = [one for one in self.of(Holding) if what in (None, one.what)]
        if not holdings:
            raise AssertionError(
                f"no application held {what or 'anything'}: call seat.holds(partition, what) in it"
            )
        kept = [one for one in find_kept(self.events) if what in (None, one.held.what)]
        if not kept:
            return
        faults = []
        for (member, thing, partition), time, kind, until in kept:
            later = "never released it" if until is None else f"released it {self.at(until)}"
            faults.append(
                f"{name_of(partition)}: {member} held its {thing} when the partition was {kind}"
                f" {self.at(time)}, and {later}"
            )
        headline = "members held on to what they had for partitions that were taken from them"
        partitions = [one.held.partition for one in kept]
        _fail(self, headline, faults, since=kept[0].time, until=kept[-1].time, partitions=partitions)

    def assert_that(self, holds: Callable[[Self], Iterable[str]], what: str) -> None:
        """A rule of your own holds.

        Args:
            holds: Gets the timeline, and returns what is wrong, a sentence each; nothing if all is well.
            what: What is wrong then, for the message's first line.

        Raises:
            AssertionError: Something is wrong; the message shows the timeline, too.
        """
        faults = [*holds(self)]
        if faults:
            _fail(self, what, faults)

    def assert_no_errors(self) -> None:
        """No listener of an application raised, and no poll.

        Clients log what a listener raises, and continue as if it had returned. The group is stable, and the
        application has not made itself ready. A commit that fails is no error here: in a rebalance it may,
        and `assert_no_duplicates` says what came of it.

        Raises:
            AssertionError: One did.
        """
        returned = (one for one in self.of(ListenerReturned) if one.error)
        raised = [(one.time, one.member, one.callback, one.error) for one in returned]
        failed = self.of(Failed)
        raised += ((one.time, one.member, one.command or "poll", f"{one.type}: {one.text}") for one in failed)
        if raised:
            raised.sort(key=lambda one: one[0])
            faults = [
                f"{member}, {self.at(time)}: its {what} raised {error}"
                for time, member, what, error in raised
            ]
            since, until = raised[0][0], raised[-1][0]
            _fail(self, "applications of members raised", faults, since=since, until=until)

    def assert_no_rebalance(self, *, after: int) -> None:
        """No member came to a newer generation, as when a static member restarts in time.

        Args:
            after: The generation that was to be the last, as `wait_stable` returns it.

        Raises:
            AssertionError: One did, or none was ever in a generation.
        """
        _generation(self, None)
        newer = [one for one in self.rebalances if one.generation > after]
        if newer:
            older = [one.end for one in self.rebalances if one.generation <= after]
            faults = why_paused(self, max(older, default=self.begin), newer[-1].end)
            for one in newer:
                since = f"from {one.start - self.begin:.3f} s"
                faults.append(f"generation {one.generation}, {since}: {', '.join(one.assignments)}")
            _fail(
                self,
                f"the group rebalanced after generation {after}",
                faults,
                since=newer[0].start,
                until=newer[-1].end,
                partitions=sorted(frozenset[TopicPartition]().union(*newer[-1].assignments.values())),
            )


def _what_moved(one: Settled) -> str:
    moved = ", ".join(f"{name_of(move.partition)} {move.source} → {move.target}" for move in one.moves)
    return f"{_numbers(one.generations)}: moved {len(one.moves)}, least possible {one.least}: {moved}"


def _why_long(timeline: TimelineFacts, long: Iterable[tuple[float, float, TopicPartition]]) -> Iterator[str]:
    """Pauses in words; reasons that several in a row share are named once."""
    named_before = list[str]()
    for lasted, begun, partition in long:
        reasons = why_paused(timeline, begun, begun + lasted)
        took = f"{1000 * lasted:.0f} ms, from {begun - timeline.begin:.3f} s"
        yield losses.named(partition, took, [] if reasons == named_before else reasons)
        named_before = reasons


def _generation(timeline: TimelineFacts, number: int | None) -> SeenRebalance:
    if not timeline.rebalances:
        raise AssertionError("no member was ever assigned anything: wait until the group is stable")
    if number is None:
        return timeline.rebalances[-1]
    for one in timeline.rebalances:
        if one.generation == number:
            return one
    seen = [one.generation for one in timeline.rebalances]
    raise AssertionError(f"no member was in a generation {number}: they saw {_numbers(seen)}")


def _look_for_owners(timeline: TimelineFacts, reading: Reading) -> None:
    """Refuse a timeline in which nobody ever had a partition: nothing follows from it."""
    if not timeline.ownership(reading):
        raise AssertionError(_NO_PARTITION)


def _seen_until(timeline: TimelineFacts, rebalance: SeenRebalance) -> set[TopicPartition]:
    """The partitions that anybody had up to a generation, of topics that somebody subscribes to in it."""
    topics = frozenset[str]().union(*rebalance.subscriptions.values())
    return {
        partition
        for one in timeline.rebalances
        if one.generation <= rebalance.generation
        for owned in one.assignments.values()
        for partition in owned
        if partition.topic in topics
    }


def _balance(
    timeline: TimelineFacts,
    rebalance: SeenRebalance,
    partitions: Collection[TopicPartition],
    weights: Weights,
) -> tuple[str, list[str], list[TopicPartition]]:
    """What is wrong with the balance of a generation, and the partitions that it is about."""
    identity = timeline.identity
    # A static member that restarts in a generation is in it once.
    holdings = {identity[name]: each for name, each in rebalance.assignments.items()}
    topics = {identity[name]: each for name, each in rebalance.subscriptions.items()}
    names = {identity[name]: name for name in rebalance.assignments}
    weights = {member: weights.get(name, 1) for member, name in names.items()}
    owners: dict[TopicPartition, list[str]] = {partition: [] for partition in partitions}
    for member, owned in holdings.items():
        for partition in owned:
            owners.setdefault(partition, []).append(names[member])
    faults = [
        f"{name_of(partition)} was given to {' and '.join(found) or 'nobody'}"
        for partition, found in sorted(owners.items())
        if len(found) != 1
    ]
    if faults:
        headline = f"generation {rebalance.generation} does not give each partition to one member"
        return headline, faults, sorted(owners)
    plan = best_plan(owners, topics, holdings, weights=weights)
    loads = {member: len(owned) for member, owned in holdings.items()}
    best = dict(zip(plan.group.members.ids, plan.loads.tolist(), strict=True))
    if unevenness(loads, weights) > unevenness(best, weights):
        moved = [TopicPartition(*plan.group.name_of(number)) for number in plan.moved.tolist()]
        most_first = sorted(loads.items(), key=lambda item: -item[1])
        faults = [
            f"it would be balanced if {format_partitions(moved)} went to others",
            *(f"{names[member]} has {load}" for member, load in most_first),
        ]
    headline = (
        f"generation {rebalance.generation} is not balanced: the subscriptions allow loads of"
        f" {_loads(best.values())}, and it has {_loads(loads.values())}"
    )
    return headline, faults, sorted(owners)


_Twice = tuple[float, float, TopicPartition, str]
"""From when to when a partition had two owners, and that in words."""


def _twice_at_once(timeline: TimelineFacts) -> Iterator[_Twice]:
    for one in timeline.overlaps("callback"):
        lasted = f"{1000 * one.seconds:.0f} ms, from {one.start - timeline.begin:.3f} s"
        fault = f"{name_of(one.partition)}: {' and '.join(one.members)} for {lasted}"
        yield one.start, one.start + one.seconds, one.partition, fault


def _twice_in_a_generation(timeline: TimelineFacts) -> Iterator[_Twice]:
    # Not by times: if one died before the other knew, it is an assignor's error all the same.
    twice = timeline.double_assigned()
    for one in timeline.rebalances:
        for partition in sorted(twice.get(one.generation, ())):
            owners = " and ".join(name for name, owned in one.assignments.items() if partition in owned)
            fault = f"{name_of(partition)}: {owners} in generation {one.generation}"
            yield one.start, one.end, partition, fault


_Pause = tuple[TopicPartition, float, float]


def _without_owner(timeline: TimelineFacts, since: float | None, until: float | None) -> Iterable[_Pause]:
    for gap in timeline.gaps("callback"):
        start = gap.start if since is None else max(since, gap.start)
        end = gap.start + gap.seconds
        yield gap.partition, start, end if until is None else min(until, end)


def _without_records(timeline: TimelineFacts, since: float | None, until: float | None) -> Iterable[_Pause]:
    # One that falls silent for good has no later report of its own: its topic's other partitions have.
    ends: dict[str, float] = {}
    for partition, reports in timeline.deliveries.items():
        ends[partition.topic] = max(reports[-1].time, ends.get(partition.topic, reports[-1].time))
    for partition, reports in timeline.deliveries.items():
        end = until
        if end is None:
            last = ends[partition.topic]
            # Without a single record since then, the silence lasts until now.
            end = last if since is None or last > since else timeline.end
        yield partition, *find_longest_silence(reports, since=since, until=end)


def _fail(
    timeline: TimelineFacts,
    headline: str,
    faults: Iterable[str],
    *,
    count: int | None = None,
    since: float | None = None,
    until: float | None = None,
    partitions: Iterable[TopicPartition] | None = None,
) -> Never:
    """Show a part of the timeline below what is wrong in it: by default all; of many partitions the first.

    If their `count` is given, only as many faults are asked for as are shown: each can take long to explain.
    """
    if count is None:
        faults = [*faults]
        count = len(faults)
    since = timeline.begin if since is None else since
    until = timeline.end if until is None else until
    if partitions is None:
        partitions = sorted(one.partition for one in timeline.ownership())
    shown = [f"  {fault}" for fault in itertools.islice(faults, _FAULTS_SHOWN)]
    if count > _FAULTS_SHOWN:
        shown.append(f"  … and {count - _FAULTS_SHOWN} more")
    around = max(_AROUND * (until - since), 0.05)
    rows = sorted(itertools.islice(dict.fromkeys(partitions), _ROWS_SHOWN))
    begin, end = max(since - around, timeline.begin), min(until + around, timeline.end)
    parts = [headline + ":", *shown, ""]
    if rows:
        drawn = chart(
            timeline, width=_CHART_WIDTH, reading="callback", partitions=rows, since=begin, until=end
        )
        parts += [drawn, ""]
    lines = [*lines_of((event for event in timeline.events if begin <= event.time <= end), timeline.begin)]
    if len(lines) > _EVENTS_SHOWN:
        half = _EVENTS_SHOWN // 2
        left_out = len(lines) - 2 * half
        lines = [*lines[:half], f"         … {left_out} more events …", *lines[-half:]]
    raise AssertionError("\n".join([*parts, *lines]).rstrip())


def _loads(loads: Iterable[int]) -> str:
    """Loads from the highest: "3, 2", or of many members "20 x 5, 30 x 4"."""
    ordered = sorted(loads, reverse=True)
    if len(ordered) <= _LOADS_SHOWN:
        return ", ".join(map(str, ordered))
    return ", ".join(f"{count} x {load}" for load, count in Counter(ordered).items())


def _numbers(generations: Sequence[int]) -> str:
    word = "generation" if len(generations) == 1 else "generations"
    return f"{word} {', '.join(map(str, generations))}"
