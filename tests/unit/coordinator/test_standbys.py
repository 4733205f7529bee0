"""Groups in which some members are active and others stand by, in virtual time."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._cli.main import main
from kafka_assignors._timelines.events import Assigned
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.support.pages import defined, listing, listings
from tests.support.simulations import classic, loads

PAGE = "docs/how-to/active-and-passive.md"

BOTH = pytest.mark.parametrize("assignor", [CooperativeStickyAssignor, StickyAssignor])


def joined(group: Simulation, name: str, assignor: type[StickyAssignor], **options: Any) -> None:
    group.join(name, assignors=[partial(assignor, **options)])


def owners(group: Simulation) -> dict[str, int]:
    """How many partitions each member has that has some, when all has come to rest."""
    assert group.timeline.double_assigned() == {}
    return {name: load for name, load in loads(group.run_until_stable()).items() if load}


def times_given(group: Simulation) -> int:
    return sum(len(event.partitions) for event in group.timeline.events if isinstance(event, Assigned))


@BOTH
@pytest.mark.parametrize("crash", [False, True], ids=["leaves", "crashes"])
def test_when_the_last_active_member_goes_a_standby_has_all_until_another_comes(
    assignor: type[StickyAssignor], *, crash: bool
) -> None:
    group = classic()
    for name, priority in (("a", 1), ("b", 1), ("c", 0), ("d", -7)):
        joined(group, name, assignor, priority=priority)
    assert owners(group) == {"a": 6, "b": 6}
    for name, left in (("a", {"b": 12}), ("b", {"c": 12})):
        member = group.members[name]
        member.crash() if crash else member.leave()
        assert owners(group) == left
    joined(group, "a2", assignor, priority=1)
    assert owners(group) == {"a2": 12}


def test_a_limit_chooses_the_same_members_while_a_hand_over_goes_on() -> None:
    # What is revoked in the first round is nobody's in the second.
    topics = {"t0": 1, "t1": 1, "t2": 2, "t3": 1}
    group = Simulation(topics, [partial(CooperativeStickyAssignor, max_active=2)])
    group.join("d", topics=["t2", "t3"])
    group.join("c", topics=["t0", "t2", "t3"])
    group.run_until_stable()
    for name in ("b", "a"):
        group.join(name, topics=[*topics])
    assert sum(owners(group).values()) == 5


@BOTH
def test_a_standby_that_comes_or_goes_moves_nothing(assignor: type[StickyAssignor]) -> None:
    group = classic()
    joined(group, "active", assignor, priority=1)
    assert owners(group) == {"active": 12}
    for number in range(3):
        joined(group, f"standby{number}", assignor)
        assert owners(group) == {"active": 12}
    group.members["standby0"].leave()
    assert owners(group) == {"active": 12}
    if assignor is CooperativeStickyAssignor:
        assert times_given(group) == 12


@BOTH
def test_active_are_those_of_the_highest_priority_and_of_them_so_many(assignor: type[StickyAssignor]) -> None:
    group = classic()
    for name, priority in (
        ("low", 0),
        ("c", 1),
        ("b", 1),
        ("a", 1),
    ):  # who has most stays, not who sorts first
        joined(group, name, assignor, priority=priority, max_active=2)
        group.run_until_stable()
    assert owners(group) == {"b": 6, "c": 6}
    group.members["c"].leave()
    assert owners(group) == {"a": 6, "b": 6}
    group.members["b"].leave()
    assert owners(group) == {"a": 12}
    group.members["a"].leave()
    assert owners(group) == {"low": 12}


@BOTH
def test_who_comes_back_takes_over_after_so_long_and_once(assignor: type[StickyAssignor]) -> None:
    group = classic()
    joined(group, "passive", assignor, return_after=60)
    assert owners(group) == {"passive": 12}
    joined(group, "active", assignor, priority=1, return_after=60)
    group.run(59)
    assert owners(group) == {"passive": 12}
    before = group.group.generation
    group.run(10)
    assert owners(group) == {"active": 12}
    rounds = 2 if assignor is CooperativeStickyAssignor else 1
    assert group.group.generation == before + rounds
    group.run(300)
    assert group.group.generation == before + rounds  # no rebalance follows
    group.members["active"].crash()
    assert owners(group) == {"passive": 12}


@BOTH
def test_a_member_that_comes_and_goes_moves_nothing(assignor: type[StickyAssignor]) -> None:
    group = classic()
    joined(group, "passive", assignor, return_after=60)
    group.run_until_stable()
    for number in range(10):
        joined(group, f"active{number}", assignor, priority=1, return_after=60)
        group.run(40)
        assert owners(group) == {"passive": 12}
        group.members[f"active{number}"].crash()
        group.run(20)
    assert owners(group) == {"passive": 12}
    if assignor is CooperativeStickyAssignor:
        assert times_given(group) == 12


@BOTH
def test_who_waits_takes_over_at_once_if_the_active_go(assignor: type[StickyAssignor]) -> None:
    group = classic()
    for name, priority in (("third", 0), ("second", 1), ("first", 2)):
        joined(group, name, assignor, priority=priority, return_after=600)
        group.run(20)
        assert owners(group) == {"third": 12}
    joined(group, "fourth", assignor, priority=-1, return_after=600)
    group.run(20)
    group.members["third"].leave()
    assert owners(group) == {"first": 12}


@BOTH
def test_with_the_first_that_has_waited_its_whole_priority_takes_over(assignor: type[StickyAssignor]) -> None:
    group = classic()
    joined(group, "passive", assignor, return_after=60)
    group.run_until_stable()
    joined(group, "one", assignor, priority=1, return_after=60)
    group.run(50)
    joined(group, "two", assignor, priority=1, return_after=60)
    group.run(20)
    assert owners(group) == {"one": 6, "two": 6}


@BOTH
def test_a_new_leader_counts_anew(assignor: type[StickyAssignor]) -> None:
    group = classic()
    joined(group, "leader", assignor, return_after=60)
    group.run_until_stable()
    for name, priority in (("passive", 0), ("active", 1)):
        joined(group, name, assignor, priority=priority, return_after=60)
    group.run(40)
    group.members["leader"].leave()
    group.run(40)
    assert owners(group) == {"passive": 12}
    group.run(30)
    assert owners(group) == {"active": 12}


def test_a_static_member_that_restarts_in_time_has_waited_all_along() -> None:
    group = classic()
    passive = partial(CooperativeStickyAssignor, return_after=60)
    group.join("passive", assignors=[passive], instance_id="p")
    group.run_until_stable()
    active = partial(CooperativeStickyAssignor, priority=1, return_after=60)
    group.join("active", assignors=[active], instance_id="i")
    group.run(40)
    group.restart("active", assignors=[active])
    group.run(22)  # its static leader does not wait for longer, as after a restart
    assert owners(group) == {"active.2": 12}


@BOTH
def test_a_static_leader_that_restarts_still_sees_to_it_that_who_waits_takes_over(
    assignor: type[StickyAssignor],
) -> None:
    """It gets its assignment back without a rebalance, as static members do. Then it counts anew."""
    group = classic()
    passive = partial(assignor, return_after=60)
    group.join("passive", assignors=[passive], instance_id="i")
    group.run_until_stable()
    joined(group, "active", assignor, priority=1)
    group.run(30)
    group.restart("passive", assignors=[passive])
    group.run(60)
    assert owners(group) == {"passive.2": 12}
    group.run(80)
    assert owners(group) == {"active": 12}


# docs/how-to/active-and-passive.md


def test_the_lists_of_the_page_make_members_active_and_passive() -> None:
    lists = [code for code in listings(PAGE) if "partition_assignment_strategy" in code]
    group = classic()
    for name, code in zip(("first", "second"), lists[:2], strict=True):
        group.join(name, assignors=[defined(code)["partition_assignment_strategy"].pop])
    assert owners(group) == {"first": 12}
    one = classic()
    for name in "abc":
        one.join(name, assignors=[defined(lists[2])["partition_assignment_strategy"].pop])
    assert [*owners(one).values()] == [12]
    returning = defined(lists[3])["partition_assignment_strategy"]
    assert len(lists) == 4
    late = classic()
    joined(late, "second", CooperativeStickyAssignor, return_after=300)
    late.run_until_stable()
    late.join("first", assignors=[returning.pop])
    late.run(290)
    assert owners(late) == {"second": 12}
    late.run(20)
    assert owners(late) == {"first": 12}


def test_the_simulation_of_the_page_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    defined(listing(PAGE, "Simulation("))
    assert capsys.readouterr().out == listing(PAGE, "'second'", "text")


def test_the_plan_of_the_page_is_that_of_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(listing(PAGE, "priority: 1", "yaml"), encoding="utf-8")
    assert main(["plan", str(file), "--cooperative"]) == 0
    printed = capsys.readouterr().out.splitlines()
    command, *shown = listing(PAGE, "plan group.yaml", "console").splitlines()
    assert command == "$ kafka-assignors plan group.yaml --cooperative"
    assert [line for line in shown if line not in printed] == ["...", "..."]
