"""Reassignments that are under way: shown, explained and broken off; and the throttles of earlier runs."""

import sys
from collections.abc import Collection, Iterator, Sequence

from kafka import TopicPartition

from kafka_assignors._cli.arguments import Where
from kafka_assignors._cli.output import Answer, count, filled, joined
from kafka_assignors._cli.placement_cluster import Topics, open_cluster
from kafka_assignors._cli.placement_text import throttle_lines
from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._common.words import size
from kafka_assignors.placement._cluster import reassign as moving, topics as live
from kafka_assignors.placement._cluster.stall import Reason, StallSituation, reasons
from kafka_assignors.placement._cluster.throttle import (
    PutBack,
    Throttles,
    put_back,
    read_throttles,
    remove_all,
)
from kafka_assignors.placement._cluster.throttle_journal import ThrottleJournal


def warn(text: str) -> None:
    """Say something beside the result."""
    print(joined(text.split("\n")), file=sys.stderr, flush=True)


def journal_of(admin: Admin) -> ThrottleJournal:
    """Where this machine's runs keep what their throttles replaced on a cluster."""
    return ThrottleJournal(live.read_cluster_id(admin))


def remove_left(admin: Admin, journal: ThrottleJournal, own: Topics | None = None) -> PutBack:
    """Put back what the throttle of a killed run has replaced, and say so."""
    done = put_back(admin, journal, _partitions(own or {}))
    if done.brokers:
        ids = ", ".join(map(str, done.brokers))
        warn(f"removed what an earlier run left: its throttle on brokers {ids}")
    for one in done.left:
        warn(one)
    return done


def cancel(where: Where, topics: Sequence[str], *, remove_throttles: bool) -> Answer:
    """Break off what is under way in some topics, and remove the throttle of a killed run."""
    with open_cluster(where, topics) as cluster:
        if cluster.admin is None:
            return Answer(dict, [])
        partitions = _partitions(cluster.topics)
        try:
            cancelled = moving.cancel(cluster.admin, partitions)
        except ClusterError:
            if not moving.under_way(cluster.admin, partitions):
                _clear(cluster.admin, cluster.topics, everything=remove_throttles)
            raise
        left = _clear(cluster.admin, cluster.topics, everything=remove_throttles)
    return Answer(
        lambda: {"cancelled": [[tp.topic, tp.partition] for tp in cancelled], "throttles": _json(left)},
        [
            *(
                [f"{tp.topic}-{tp.partition} stays where it was" for tp in cancelled]
                or ["nothing is under way"]
            ),
            *throttle_lines(left),
        ],
    )


def verify(where: Where, topics: Sequence[str], *, remove_throttles: bool) -> Answer:
    """What is under way in some topics and why it does not get on; status 1 if something is.

    If nothing is, the throttle of a killed run is removed.
    """
    with open_cluster(where, topics) as cluster:
        if cluster.admin is None:
            return Answer(dict, [])
        situation = moving.read_situation(cluster.admin, _partitions(cluster.topics))
        if situation.adding:
            left = read_throttles(cluster.admin, cluster.racks, cluster.topics)
        else:
            left = _clear(cluster.admin, cluster.topics, everything=remove_throttles)
    why = reasons(situation, stalled=False)
    return Answer(
        lambda: {
            "under_way": [[tp.topic, tp.partition] for tp in sorted(situation.adding)],
            "waits_for": [one._asdict() for one in why],
            "throttles": _json(left),
        },
        [*_under_way(situation), *reason_lines(why), *throttle_lines(left)],
        1 if situation.adding else 0,
    )


def reason_lines(why: Sequence[Reason]) -> Iterator[str]:
    """Why something does not get on, and below it what to do."""
    for one in why:
        yield from filled(one.why, "  ", "    ")
        yield from filled(one.way_out, "    ", "      ")


def _partitions(topics: Topics) -> dict[TopicPartition, None]:
    return {
        TopicPartition(topic, partition): None for topic, placed in topics.items() for partition in placed
    }


def _under_way(situation: StallSituation) -> Iterator[str]:
    if not situation.adding:
        yield "nothing is under way"
        return
    behind = situation.behind()
    missing = sum(one or 0 for one in behind.values())
    yield (
        f"{count(len(situation.adding), 'partition')} under way,"
        f" {count(len(behind), 'new replica')} not in sync, {size(missing)} to copy"
    )


def _clear(admin: Admin, topics: Collection[str], *, everything: bool) -> Throttles:
    """Remove what a killed run left, or all that there is; what is still there."""
    journal = journal_of(admin)
    remove_left(admin, journal)
    brokers = live.read_brokers(admin).up
    left = read_throttles(admin, brokers, topics)
    if not everything:
        return left
    remove_all(admin, journal, left)
    return read_throttles(admin, brokers, topics)


def _json(throttles: Throttles) -> dict[str, object]:
    return {
        "brokers": {broker: rates for broker, rates in throttles.rates.items() if rates},
        "topics": {topic: lists for topic, lists in throttles.replicas.items() if any(lists.values())},
        "untold": throttles.untold,
    }
