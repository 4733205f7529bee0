"""A classic group on its coordinator, by its requests.

Kafka's own coordinator does the same: tests/oracle/test_java_classic_group.py.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.messages import Error, Join, Joined, Sync
from kafka_assignors.coordinator._simulator.rounds import State
from kafka_assignors.coordinator._simulator.settings import BrokerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors._wire.offsets_topic import GroupMetadataValue

RANGE = {"range": b""}


class Hosted:
    """A group on its coordinator; member ids end with 0, 1, 2... in the order in which they are given out."""

    def __init__(self, *, delay_ms: int = 0, max_size: int = 1000) -> None:
        self.clock = Clock()
        numbers = itertools.count()
        settings = BrokerSettings(initial_rebalance_delay_ms=delay_ms, max_size=max_size)
        self.group = HostedClassicGroup(self.clock, lambda: str(next(numbers)), settings)

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        session_ms: int = 60_000,
        rebalance_ms: int = 20_000,
        protocols: Mapping[str, bytes] = RANGE,
    ) -> list[Joined]:
        """JoinGroup; the answer is there once it is given."""
        answers: list[Joined] = []
        request = Join(
            member_id=member_id,
            client_id="c",
            instance_id=instance_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocols=protocols,
        )
        self.group.join(request, answers.append)
        return answers

    def come(self, *, session_ms: int = 60_000, rebalance_ms: int = 20_000) -> str:
        """Both joins of a new member; the id that it was given."""
        (refused,) = self.join(session_ms=session_ms)
        self.join(refused.member_id, session_ms=session_ms, rebalance_ms=rebalance_ms)
        return refused.member_id

    def sync(self, *member_ids: str) -> None:
        """SyncGroup of each; static members are those of the instance that their id begins with."""
        for member_id in member_ids:
            instance_id, _, _ = member_id.rpartition("-")
            request = Sync(
                member_id=member_id,
                generation=self.group.generation,
                instance_id=None if instance_id == "c" else instance_id,
                assignments=dict.fromkeys(self.group.member_ids, b"its"),
            )
            self.group.sync(request, lambda _: None)

    def wait(self, milliseconds: int) -> None:
        """Let time pass in which members send heartbeats."""
        for _ in range(milliseconds // 1000):
            self.clock.run(self.clock.now + 1000)
            for member in self.group.member_ids:
                self.group.heartbeat(member, None, self.group.generation)
        self.clock.run(self.clock.now + milliseconds % 1000)

    def stable(self, count: int) -> list[str]:
        """Let so many dynamic members be all of a stable group."""
        first = self.come()
        self.wait(1)
        others = [self.come() for _ in range(count - 1)]
        if others:
            self.join(first)
        self.sync(first, *others)
        assert self.now == (State.STABLE, 2 if others else 1, count)
        return [first, *others]

    @property
    def now(self) -> tuple[State, int, int]:
        """State, generation, and how many members there are."""
        return self.group.state, self.group.generation, len(self.group.member_ids)

    @property
    def triggers(self) -> Sequence[str]:
        return [cause.trigger for cause in self.group.causes]


def test_who_leaves_with_the_id_that_it_was_just_given_makes_a_stable_group_rebalance() -> None:
    hosted = Hosted()
    (a,) = hosted.stable(1)
    (refused,) = hosted.join()
    assert hosted.group.leave(refused.member_id) == Error.NONE
    assert hosted.now == (State.PREPARING, 1, 1)
    assert hosted.group.causes[-1].member_id == refused.member_id
    hosted.join(a)
    assert hosted.now == (State.COMPLETING, 2, 1)


def test_who_leaves_an_empty_group_with_the_id_that_it_was_just_given_leaves_it_empty() -> None:
    hosted = Hosted()
    (refused,) = hosted.join()
    assert hosted.group.leave(refused.member_id) == Error.NONE
    assert (hosted.now, hosted.triggers) == ((State.EMPTY, 0, 0), [])


def test_of_a_static_member_that_restarts_before_it_synced_the_old_id_is_waited_for() -> None:
    hosted = Hosted(delay_ms=3000)
    a = hosted.come()
    hosted.join(instance_id="i", rebalance_ms=20_000)
    hosted.wait(6000)
    hosted.sync(a)
    (joined,) = hosted.join(instance_id="i", rebalance_ms=20_000)
    hosted.sync(joined.member_id)
    assert hosted.now == (State.STABLE, 1, 2)
    hosted.wait(19_000)
    assert hosted.now == (State.STABLE, 1, 2)
    hosted.wait(1000)
    # Both members have synced, and stay in the group.
    assert hosted.now == (State.PREPARING, 1, 2)
    assert hosted.triggers == ["member joined", "member did not sync in time"]
    assert hosted.group.causes[-1].member_id == "i-1"


def test_a_static_member_that_restarts_has_its_predecessors_session_at_first() -> None:
    hosted = Hosted()
    hosted.join(instance_id="i", session_ms=60_000)
    hosted.wait(1)
    hosted.sync("i-0")
    hosted.join(instance_id="i", session_ms=6000)
    hosted.clock.run(hosted.clock.now + 59_999)
    assert hosted.now == (State.STABLE, 1, 1)
    hosted.clock.run(hosted.clock.now + 1)
    assert hosted.now == (State.EMPTY, 2, 0)


def test_in_a_rebalance_as_many_may_join_as_the_group_may_have() -> None:
    hosted = Hosted(max_size=2)
    a, b = hosted.stable(2)
    assert hosted.join()[0].error == Error.GROUP_MAX_SIZE_REACHED
    hosted.join(a)
    new = hosted.come()
    assert hosted.now == (State.PREPARING, 2, 3)
    # b's place is given away. That a member is refused continues no round, though all others have joined.
    assert hosted.join(b)[0].error == Error.GROUP_MAX_SIZE_REACHED
    assert hosted.now == (State.PREPARING, 2, 2)
    hosted.join(new)
    assert hosted.now == (State.COMPLETING, 3, 2)
    assert sorted(hosted.group.member_ids) == sorted([a, new])


def test_an_empty_group_gives_ids_to_more_than_it_may_have() -> None:
    hosted = Hosted(max_size=1)
    first, second = (hosted.join()[0] for _ in range(2))
    assert (first.error, second.error) == (Error.MEMBER_ID_REQUIRED, Error.MEMBER_ID_REQUIRED)
    hosted.join(first.member_id)
    assert hosted.join(second.member_id)[0].error == Error.GROUP_MAX_SIZE_REACHED
    # It is forgotten: the round no longer waits for it.
    hosted.wait(1)
    assert hosted.now == (State.COMPLETING, 1, 1)


def test_a_static_member_that_was_replaced_cannot_leave() -> None:
    hosted = Hosted()
    hosted.join(instance_id="i")
    hosted.wait(1)
    hosted.sync("i-0")
    hosted.join(instance_id="i")
    assert hosted.group.leave("i-0", "i") == Error.FENCED_INSTANCE_ID
    assert hosted.now == (State.STABLE, 1, 1)
    assert hosted.group.leave("i-1", "i") == Error.NONE
    assert hosted.now == (State.EMPTY, 2, 0)


def test_strategies_in_another_order_are_other_metadata() -> None:
    hosted = Hosted()
    hosted.stable(1)
    first, second = {"range": b"", "sticky": b""}, {"sticky": b"", "range": b""}
    (refused,) = hosted.join()
    hosted.join(refused.member_id, protocols=first)
    hosted.join("c-0")
    hosted.sync("c-0", refused.member_id)
    assert hosted.join(refused.member_id, protocols=first)[0].generation == 2
    assert hosted.join(refused.member_id, protocols=second) == []
    assert hosted.triggers[-1] == "member joined again with other metadata"


def test_moves_that_overlap_are_over_with_the_one_that_ends_last() -> None:
    hosted = Hosted()
    (a,) = hosted.stable(1)

    def beat() -> Error:
        return hosted.group.heartbeat(a, None, 1)

    hosted.group.move(1000)
    hosted.clock.run(hosted.clock.now + 500)
    hosted.group.move(5000)
    hosted.clock.run(hosted.clock.now + 4999)
    assert beat() == Error.NOT_COORDINATOR
    hosted.clock.run(hosted.clock.now + 1)
    assert beat() == Error.NONE
    hosted.group.move(5000)
    hosted.group.move(1000)
    hosted.clock.run(hosted.clock.now + 4999)
    assert beat() == Error.NOT_COORDINATOR
    hosted.clock.run(hosted.clock.now + 1)
    assert beat() == Error.NONE


def test_a_group_that_is_too_large_rebalances_when_its_coordinator_moves() -> None:
    """A static member that does not join keeps its place beside those that do."""
    hosted = Hosted(delay_ms=3000, max_size=2)
    for instance_id in "ij":
        hosted.join(instance_id=instance_id)
    hosted.wait(6000)
    hosted.sync("i-0", "j-1")
    hosted.join(hosted.group.leader or "", instance_id="i")
    hosted.join(instance_id="k")
    hosted.wait(20_000)
    hosted.sync("i-0", "j-1", "k-2")
    assert hosted.now == (State.STABLE, 2, 3)
    hosted.group.move(1000)
    hosted.wait(1000)
    assert hosted.now == (State.PREPARING, 2, 3)
    assert hosted.triggers[-1] == "coordinator moved"


def test_a_record_says_since_when_the_group_was_as_it_was_written() -> None:
    hosted = Hosted()
    hosted.join(instance_id="i")
    hosted.wait(100)
    all_joined, synced = 0, 100

    def since(record: GroupMetadataValue) -> int:
        return record.current_state_timestamp

    hosted.sync("i-0")
    assert since(hosted.group.record()) == all_joined
    hosted.wait(100)
    hosted.join(instance_id="i")
    assert since(hosted.group.record()) == synced
    hosted.group.move(1000)
    hosted.wait(1000)
    hosted.join(instance_id="i")
    assert since(hosted.group.record()) == synced
