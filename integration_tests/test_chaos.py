"""Random events to groups of our assignors, on three brokers; and chaos finds assignors that are wrong."""

import itertools
from typing import Any

import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    Group,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.testing import Cluster
from tests.lab.chaos import ChaosError, Limits, plan_events, unleash
from tests.lab.chaos._run import Client

pytestmark = pytest.mark.slow

EVENTS = 10  # for each, so 60 in all
WRONG_WITH = 4  # members

Owned = dict[str, dict[str, list[int]]]


class Tampering(RangeAssignor):
    """Range, but that the plans for groups of four are tampered with behind the check."""

    def lead(self, group: Group) -> dict[str, Any]:
        sent = super().lead(group)
        if len(sent) != WRONG_WITH:
            return sent
        owned: Owned = {
            member: {topic: [*ids] for topic, ids in assignment.assigned_partitions}
            for member, assignment in sent.items()
        }
        self.tamper(owned)
        return {
            member: ConsumerProtocolAssignment(1, [*topics.items()], b"") for member, topics in owned.items()
        }

    def tamper(self, owned: Owned) -> None:
        raise NotImplementedError


class GivesToTwo(Tampering):
    """What one has of a topic, the next one who has partitions of it has, too."""

    def tamper(self, owned: Owned) -> None:
        for first, second in itertools.pairwise(owned.values()):
            for topic in first.keys() & second.keys():
                second[topic] = sorted({*first[topic], *second[topic]})


class ForgetsOne(Tampering):
    """One partition is nobody's."""

    def tamper(self, owned: Owned) -> None:
        next(ids for topics in owned.values() for ids in topics.values()).pop()


# Each with a seed of its own, so that together they do more than one script would.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("members", "assignor", "seed"),
    [
        ("kafka-python", RangeAssignor, 101),
        ("kafka-python", RoundRobinAssignor, 102),
        ("kafka-python", StickyAssignor, 103),
        ("kafka-python", CooperativeStickyAssignor, 104),
        ("kafka-python", RandomAssignor, 105),
        ("kafka-python", BroadcastAssignor, 106),
        ("aiokafka", CooperativeStickyAssignor, 107),
        ("aiokafka", StickyAssignor, 108),
        ("mixed", CooperativeStickyAssignor, 109),
    ],
)
def test_a_group_gets_over_random_events_with_its_promises_kept(
    members: Client, assignor: Any, seed: int, chaos_brokers: Cluster
) -> None:
    script = plan_events(seed, EVENTS)
    outcome = unleash(script, assignor, chaos_brokers, client=members)
    assert outcome.assignor == assignor.name
    assert outcome.events.total() == len(script.steps)
    assert outcome.consumed == outcome.produced > 0
    assert outcome.failure == ""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("assignor", "what"),
    [
        (GivesToTwo, r"is owned by m\d+, m\d+"),
        (ForgetsOne, r"is owned by nobody"),
    ],
)
def test_chaos_finds_an_assignor_that_is_wrong_with_some_groups_only(
    assignor: Any, what: str, chaos_brokers: Cluster
) -> None:
    script = plan_events(235, 20, Limits(slow=0))
    joins = [number for number, step in enumerate(script.steps, 1) if step.kind == "join"]
    with pytest.raises(ChaosError, match=what) as failure:
        unleash(script, assignor, chaos_brokers, within=20, repeat="the command")
    told = str(failure.value)
    outcome = failure.value.outcome
    done = joins[WRONG_WITH - 1]  # nobody leaves until then
    assert outcome.events.total() == done
    assert told.startswith("chaos of seed 235: ")
    assert "to repeat: the command" in told
    assert f"at step {done} of 20: {script.steps[done - 1]}" in told
    assert str(script.first(done)) in told
    assert " assign generation" in told
    assert outcome.failure.startswith(f"step {done} ")
