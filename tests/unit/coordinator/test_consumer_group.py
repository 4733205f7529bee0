"""KIP-848 groups in virtual time: what becomes of their members.

Their coordinator says what Kafka's own says: tests/oracle/test_java_consumer_group.py.
"""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._timelines.events import Assigned, Failed, Lost, Revoked
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup
from kafka_assignors.coordinator._simulator.messages import JOIN, LEAVE, ConsumerHeartbeat, TopicIdPartition
from kafka_assignors.coordinator._simulator.settings import (
    BrokerSettings,
)
from kafka_assignors.coordinator._simulator.simulation import (
    ConsumerGroupSimulation,
    NotStableError,
)
from kafka_assignors.coordinator._simulator.target_assignment import ASSIGNORS, Assignor, TargetTopic
from tests.support.scale import examples
from tests.support.simulations import (
    QUICK_BROKER,
    at_rest,
    by_epochs,
    classic,
    gathered,
    loads,
    restarted,
    triggers,
)

# The coordinator --------------------------------------------------------------------------------------------


def test_a_group_that_never_was_is_not_found_and_one_that_is_empty_is() -> None:
    group = HostedConsumerGroup(Clock(), {"orders": TargetTopic(UUID(int=7), 4)})

    def error(epoch: int, **said: Any) -> str:
        return group.heartbeat(ConsumerHeartbeat(member_id="a", epoch=epoch, **said)).error

    assert error(2) == error(LEAVE) == "GROUP_ID_NOT_FOUND"
    topics, owned = frozenset({"orders"}), frozenset[TopicIdPartition]()
    assert error(JOIN, topics=topics, rebalance_timeout_ms=10_000, owned=owned) == ""
    assert error(LEAVE) == ""
    assert error(2) == "UNKNOWN_MEMBER_ID"


# Groups in virtual time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_group_lives(assignor: Assignor) -> None:
    group = gathered(by_epochs(assignor), "abc")
    assert loads(group.run_until_stable()) == {"a": 4, "b": 4, "c": 4}
    group.join("d")
    assert loads(group.run_until_stable()) == {"a": 3, "b": 3, "c": 3, "d": 3}
    group.members["b"].crash()
    crashed = group.now
    assert loads(group.run_until_stable()) == {"a": 4, "c": 4, "d": 4}
    assert 6 - 0.3 < group.now - crashed < 6 + 2
    group.members["d"].leave()
    assert loads(group.run_until_stable()) == {"a": 6, "c": 6}
    group.grow("orders", 16)
    assert loads(group.run_until_stable()) == {"a": 8, "c": 8}
    assert triggers(group) == [*["member joined"] * 4, "member lost", "member left", "topics changed"]
    group.timeline.assert_never_owned_twice()


def test_only_what_moves_is_ever_without_an_owner() -> None:
    group = gathered(by_epochs(), "abc")
    before = group.run_until_stable()
    stable = group.now
    group.join("d")
    after = group.run_until_stable()
    gaps = [gap for gap in group.timeline.gaps() if gap.start >= stable]
    assert {gap.partition for gap in gaps} == after["d"]
    assert all(after[name] < before[name] for name in "abc")


def test_a_member_that_gets_new_ones_waits_for_no_one_who_keeps_what_it_has() -> None:
    group = at_rest(by_epochs(), "abc")
    group.members["a"].pause_polling()
    group.join("d")
    group.run(5)
    # Two have let go of one each; the third does not poll, and holds nobody else up.
    assert loads({name: member.held for name, member in group.members.items()}) == {
        "a": 4,
        "b": 3,
        "c": 3,
        "d": 2,
    }
    group.members["a"].resume_polling()
    assert loads(group.run_until_stable()) == {"a": 3, "b": 3, "c": 3, "d": 3}
    assert "member did not revoke in time" not in triggers(group)


def test_a_member_that_does_not_poll_leaves_by_itself_and_comes_back_under_its_id() -> None:
    group = at_rest(by_epochs(), "ab")
    hangs = group.members["b"]
    hangs.pause_polling()
    group.run(19)
    assert triggers(group) == ["member joined"] * 2
    group.run(3)
    assert triggers(group)[-1] == "member left"
    assert loads({"a": group.members["a"].held, "b": hangs.held}) == {"a": 12, "b": 0}
    member_id = hangs.member_id
    hangs.resume_polling()
    assert loads(group.run_until_stable()) == {"a": 6, "b": 6}
    assert hangs.member_id == member_id


def test_a_static_member_that_was_killed_is_refused_while_its_session_lasts() -> None:
    group = at_rest(by_epochs(), "ab", static=True)
    group.restart("b", crash=True)
    group.run(1)
    assert not group.members["b.2"].running
    assert group.timeline.of(Failed)[-1].text == "UNRELEASED_INSTANCE_ID"
    group.run(6)
    group.join("b.3", instance_id="instance-b")
    assert loads(group.run_until_stable()) == {"a": 6, "b.3": 6}


@examples(60)
@given(st.integers(1, 8), st.integers(1, 30), st.sampled_from(ASSIGNORS), st.integers(0, 2**32))
def test_a_static_member_that_returns_has_its_partitions_back_and_nobody_else_is_touched(
    members: int, partitions: int, assignor: Assignor, seed: int
) -> None:
    group = ConsumerGroupSimulation({"orders": partitions}, assignor, seed=seed, broker=QUICK_BROKER)
    for number in range(members):
        group.join(f"m{number}", instance_id=f"i{number}")
    before = group.run_until_stable()
    epoch, back = group.group.epoch, f"m{seed % members}"
    group.run((seed % 7) / 10)
    others = len(group.timeline.of(Revoked, Lost, Assigned))
    group.restart(back)
    after = group.run_until_stable()
    assert after == {(f"{name}.2" if name == back else name): held for name, held in before.items()}
    assert group.group.epoch == epoch
    touched = group.timeline.of(Revoked, Lost, Assigned)[others:]
    assert {event.member for event in touched} <= {back, f"{back}.2"}


# What if ----------------------------------------------------------------------------------------------------


def test_a_restart_of_dynamic_members_makes_two_epochs_each_and_range_moves_more_than_uniform() -> None:
    uniform, by_range = (restarted(by_epochs(assignor)) for assignor in ASSIGNORS)
    assert uniform.generations == by_range.generations == 4 * 2
    assert uniform.moved == 2 * 12
    assert by_range.moved > uniform.moved


def test_static_members_that_are_killed_cost_a_session_that_the_classic_protocol_does_not_ask_for() -> None:
    kept, killed = (restarted(group, static=True, crash=True) for group in (classic(), by_epochs()))
    assert (kept.generations, killed.generations) == (0, 4 * 2)
    assert kept.longest < 2.2
    assert killed.longest > 6 - 0.3


def test_a_group_that_does_not_let_all_members_in_is_said() -> None:
    with pytest.raises(NotStableError, match=r"does not let \['m00001'\] in"):
        restarted(by_epochs(broker=BrokerSettings(max_size=1)), 2)
