"""What is said of a group that is not stable, in view of what its coordinator and its topics say."""

import re
from dataclasses import replace

import pytest
from kafka import TopicPartition

from kafka_assignors.testing._groups.imports import path_of
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._groups.specs import Topics
from kafka_assignors.testing._groups.stability import BrokersView, against_topics, among_members
from tests.support import members

S0, T0 = TopicPartition("s", 0), TopicPartition("t", 0)
EXISTING = {"s": [S0], "t": [T0]}


def member(
    topics: Topics, assignment: frozenset[TopicPartition] = frozenset(), generation: int = 1
) -> Member:
    """A member m1 that has not started, as if it had this assignment."""
    made = members.member(topics)
    made.member_id, made.assignment, made.generation = "m1-id", assignment, generation
    return made


def view(**subscriptions: str) -> BrokersView:
    """A stable group whose members joined with these topics, a letter each."""
    return BrokersView(
        state="Stable",
        protocol="range",
        assignments={},
        subscriptions={f"{name}-id": frozenset(topics) for name, topics in subscriptions.items()},
    )


def wrong(m1: Member, said: BrokersView) -> list[str]:
    return [*against_topics([m1], said, EXISTING, None, "exclusive")]


def test_a_member_that_joined_with_other_topics_is_named_with_both() -> None:
    m1 = member(["s", "t"], frozenset({S0, T0}))
    assert wrong(m1, view(m1="st")) == []
    assert wrong(m1, view(m1="s")) == ["m1 subscribes to s, t, and joined last with s"]
    assert wrong(m1, view(m1="")) == ["m1 subscribes to s, t, and joined last with none"]
    assert wrong(member(["x"]), view(m1="s"))[0] == (
        "m1 subscribes to no topic that there is, and joined last with s"
    )


def test_topics_that_do_not_exist_are_named_unless_it_is_said_what_must_be_owned() -> None:
    m1 = member(["s", "x", "w"], frozenset({S0}))
    (said,) = wrong(m1, view(m1="swx"))
    assert said == (
        "m1 subscribes to w, x: no such topic; if it is to come later, give wait_stable the partitions= that"
        " must be owned"
    )
    assert [*against_topics([m1], view(m1="swx"), EXISTING, [S0], "exclusive")] == []
    nothing = member("x")
    assert len(wrong(nothing, view(m1="x"))) == 1
    assert [*against_topics([nothing], view(m1="x"), EXISTING, [], "exclusive")] == []


class Compared(TopicPartition):
    """A partition that counts how often one is compared with another."""

    times = 0
    __hash__ = TopicPartition.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return tuple.__eq__(self, other)


def test_a_group_of_many_partitions_is_judged_without_comparing_each_with_each() -> None:
    many = [Compared("s", number) for number in range(400)]
    m1 = member(["s"], frozenset(many))
    assert [*against_topics([m1], view(m1="s"), {"s": many}, many, "exclusive")] == []
    assert Compared.times < 400 * 20


def test_topics_of_a_pattern_may_come_later() -> None:
    assert wrong(member(re.compile("x")), view(m1="")) == []


def test_a_member_whose_subscription_nobody_can_read_is_named() -> None:
    unread = replace(view(), assignments={"m1-id": frozenset({S0})})
    assert wrong(member(["s"], frozenset({S0})), unread) == [
        "the coordinator does not say what m1 joined with"
    ]


def test_of_a_member_that_the_coordinator_does_not_list_no_topics_are_blamed() -> None:
    assert wrong(member(["s"], frozenset({S0})), view(m2="s")) == []


def test_of_a_group_by_epochs_nobody_says_what_members_joined_with() -> None:
    unsaid = replace(view(), assignments={"m1-id": frozenset({S0})}, subscriptions=None)
    assert wrong(member(["s"], frozenset({S0})), unsaid) == []
    assert wrong(member(["s"], frozenset({S0, T0})), unsaid) == ["t-0 is owned by m1"]


class Callable:
    """An object that can be called."""

    def __call__(self) -> None:
        """Do nothing."""

    def __repr__(self) -> str:
        return "Callable()"


def test_what_has_no_name_cannot_be_a_client_and_is_told_so() -> None:
    with pytest.raises(
        ValueError,
        match=r"another process cannot import Callable\(\): .* an object of .*Callable\. Define"
        r" a function at the top of a module that calls it, and give what differs between members by name: ",
    ):
        path_of(Callable())


def test_a_member_whose_consumer_is_not_observed_is_named_with_what_to_call() -> None:
    m1 = member("s", generation=-1)
    assert among_members([m1]) == ["m1 is in no generation"]
    m1.observed = False
    assert among_members([m1]) == [
        "m1 has no observed consumer: its function calls seat.observe(consumer) first"
    ]
