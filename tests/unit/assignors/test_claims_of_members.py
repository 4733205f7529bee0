"""What a member claims: all that it holds, nothing that it lost, and never as of too new a generation."""

import copy
import gc
import pickle
import time
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from kafka_assignors import Assignor, CooperativeStickyAssignor, RandomAssignor, StickyAssignor
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._model.group import Group, Member
from kafka_assignors._wire.user_data import encode_generation
from tests.support.by_hand import HandHost

HELD_NOTHING = encode_generation(-1)
STICKY = [StickyAssignor, CooperativeStickyAssignor]


def parts(topic: str, *numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


def joined(host: HandHost, assignor: Assignor, topics: set[str]) -> tuple[dict[str, list[int]], int]:
    """What the assignor claims in a join, and as of which generation."""
    with calls(host):
        said = assignor.metadata(topics)
    owned = {entry.topic: list(entry.partitions) for entry in said.owned_partitions}
    return owned, said.generation_id


def took(host: HandHost, assignor: Assignor, generation: int, partitions: frozenset[TopicPartition]) -> None:
    """Give an assignment to the consumer and its assignor."""
    with calls(host):
        assignor.supported_protocols()  # what makes it the consumer's own
    host.generation, host.partitions = generation, partitions
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    with calls(host):
        assignor.on_assignment(ConsumerProtocolAssignment(1, list(topics.items()), b""), generation)


def holding(partitions: frozenset[TopicPartition]) -> tuple[HandHost, CooperativeStickyAssignor]:
    """A consumer that was assigned these partitions in generation 3."""
    host, assignor = HandHost(), CooperativeStickyAssignor()
    took(host, assignor, 3, partitions)
    return host, assignor


class TestWhatIsHeld:
    def test_a_cooperative_member_claims_topics_that_it_no_longer_subscribes_to(self) -> None:
        """kafka-python may still hold them: it revokes before the first try of a join only."""
        host, assignor = holding(parts("t", 0) | parts("u", 1))
        assert joined(host, assignor, {"t"}) == ({"t": [0], "u": [1]}, 3)

    def test_an_eager_member_wishes_for_nothing_that_it_does_not_subscribe_to(self) -> None:
        host, assignor = HandHost(), StickyAssignor()
        host.cooperative = False
        took(host, assignor, 3, parts("t", 0) | parts("u", 1))
        with calls(host):
            said = assignor.metadata({"t"})
        assert b"u" not in said.user_data

    def test_a_generation_of_0_is_one(self) -> None:
        host, assignor = HandHost(), CooperativeStickyAssignor()
        took(host, assignor, 0, parts("t", 0))
        assert joined(host, assignor, {"t"}) == ({"t": [0]}, 0)
        took(host, assignor, -1, frozenset())
        host.generation = host.refused = 0
        assert joined(host, assignor, {"t"}) == ({}, 0)

    def test_a_part_of_an_assignment_is_as_old_as_that(self) -> None:
        """Topics given up, an assignment that the client rejected."""
        host, assignor = holding(parts("t", 0, 1) | parts("u", 0))
        host.generation, host.partitions = 6, parts("t", 0, 1)
        assert joined(host, assignor, {"t"}) == ({"t": [0, 1]}, 3)

    def test_what_another_strategy_gave_is_as_new_as_the_generation_joined_before(self) -> None:
        host, assignor = holding(parts("t", 0))
        host.generation, host.partitions = 4, parts("t", 2, 3)
        assert joined(host, assignor, {"t"}) == ({"t": [2, 3]}, 4)

    def test_who_refused_its_assignment_and_has_something_claims_that(self) -> None:
        host, assignor = holding(parts("t", 0))
        host.generation = host.refused = 7
        assert joined(host, assignor, {"t"}) == ({"t": [0]}, 3)

    @pytest.mark.parametrize("cooperative", [True, False])
    @pytest.mark.parametrize(("refused", "claimed"), [(7, 7), (6, 3), (-1, 3)])
    def test_who_refused_its_assignment_says_that_it_has_nothing_of_that_generation(
        self, refused: int, claimed: int, cooperative: bool
    ) -> None:
        """Said as before, the coordinator would give it the same assignment without a rebalance."""
        host, assignor = holding(parts("t", 0))
        host.generation, host.cooperative, host.partitions = 7, cooperative, frozenset()
        host.refused = refused
        assert joined(host, assignor, {"u"}) == ({}, claimed)


class TestWhatWasLost:
    @pytest.mark.parametrize("left", [parts("t", 0, 1), frozenset()], ids=["before", "after it let go"])
    def test_nothing_is_claimed_out_of_the_group(self, left: frozenset[TopicPartition]) -> None:
        host, assignor = holding(parts("t", 0, 1))
        host.generation = -1
        for host.partitions in (left, frozenset()):  # the client lets go of them before it joins
            with calls(host):
                said = assignor.metadata({"t"})
            assert (said.owned_partitions, said.generation_id, said.user_data) == ([], -1, HELD_NOTHING)

    def test_what_it_has_beyond_what_it_lost_is_claimed(self) -> None:
        """It was given that since, under another strategy."""
        host, assignor = holding(parts("t", 0, 1))
        host.generation = -1
        joined(host, assignor, {"t"})
        host.generation, host.partitions = 7, parts("t", 1, 2)
        assert joined(host, assignor, {"t"}) == ({"t": [1, 2]}, 7)
        host.partitions = parts("t", 1)
        assert joined(host, assignor, {"t"}) == ({"t": [1]}, 7)

    def test_what_is_left_of_it_is_not_claimed_in_the_next_generation_either(self) -> None:
        """Expelled while rejoining, subscription narrowed, assignment rejected."""
        host, assignor = holding(parts("t", 0, 1) | parts("u", 0))
        host.generation = -1
        assert joined(host, assignor, {"t"}) == ({}, -1)
        host.generation = 7
        for left in (parts("t", 0, 1) | parts("u", 0), parts("t", 0, 1)):
            host.partitions = left
            assert joined(host, assignor, {"t"}) == ({}, -1)
        host.partitions = parts("t", 1)
        assert joined(host, assignor, {"t"}) == ({}, -1)

    def test_what_it_is_given_anew_it_claims(self) -> None:
        host, assignor = holding(parts("t", 0, 1))
        host.generation = -1
        joined(host, assignor, {"t"})
        took(host, assignor, 8, parts("t", 1))
        assert joined(host, assignor, {"t"}) == ({"t": [1]}, 8)


class TestWhoseItIs:
    def test_a_call_from_elsewhere_asks_the_consumer_that_is_known(self) -> None:
        """A wrapper may call from another thread, where no coordinator is on the stack."""
        host, assignor = holding(parts("t", 0, 1))
        joined(host, assignor, {"t"})
        host.generation = -1
        said = assignor.metadata({"t"})
        assert (said.owned_partitions, said.generation_id) == ([], -1)
        host.generation, host.cooperative, host.partitions = 4, False, frozenset()
        assert assignor.metadata({"t"}).owned_partitions == []

    def test_an_instance_whose_consumer_is_gone_claims_nothing_and_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        host, assignor = HandHost(), CooperativeStickyAssignor()
        joined(host, assignor, {"t"})
        took(host, assignor, 3, parts("t", 0, 1))
        assert joined(host, assignor, {"t"}) == ({"t": [0, 1]}, 3)
        del host
        gc.collect()
        said = assignor.metadata({"t"})
        assert (said.owned_partitions, said.generation_id) == ([], -1)
        assert "Claiming no partitions: the consumer that this CooperativeStickyAssignor" in caplog.text

    @pytest.mark.parametrize("kind", STICKY)
    def test_an_instance_that_serves_again_knows_nothing_of_before(self, kind: Any) -> None:
        first, second, assignor = HandHost(), HandHost(), kind()
        joined(first, assignor, {"t"})
        took(first, assignor, 3, parts("t", 0, 1))
        first.closed = True
        assert joined(second, assignor, {"t"}) == ({}, -1)

    def test_a_round_that_was_to_begin_is_called_off_when_another_consumer_comes(self) -> None:
        first, second, assignor = HandHost(), HandHost(), CooperativeStickyAssignor()
        joined(first, assignor, {"t"})
        with calls(first):
            assignor.on_assignment(ConsumerProtocolAssignment(1, [], b"unfinished"), 1)
        assert len(first.later) == 1
        first.closed = True
        joined(second, assignor, {"t"})
        assert first.later == second.later == []

    @pytest.mark.parametrize(
        "copied",
        [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))],  # noqa: S301 - our own
        ids=["copy", "deepcopy", "pickle"],
    )
    def test_a_copy_has_the_options_and_belongs_to_nobody(self, copied: Any) -> None:
        host, assignor = HandHost(), CooperativeStickyAssignor(rack="r", weight=3, max_moves=2)
        joined(host, assignor, {"t"})
        took(host, assignor, 3, parts("t", 0, 1))
        other = copied(assignor)
        assert (other.rack, other._weight, other._max_moves) == ("r", 3, 2)
        assert joined(HandHost(), other, {"t"}) == ({}, -1)
        assert joined(host, assignor, {"t"}) == ({"t": [0, 1]}, 3)

    def test_a_copy_of_a_random_one_draws_as_it_would(self) -> None:
        assignor = RandomAssignor(seed=5)
        group = Group.of({"t": range(40)}, [Member(member_id=name, topics=frozenset("t")) for name in "ab"])
        other = copy.deepcopy(assignor)
        assert other.plan(group).owner.tolist() == assignor.plan(group).owner.tolist()


def test_the_time_limit_counts_from_the_first_byte(caplog: pytest.LogCaptureFixture) -> None:
    """Decoding and sorting may take longer than the plan."""
    host, assignor = HandHost(), StickyAssignor(time_limit=60.0)
    members = [Member(member_id=name, topics=frozenset(topics)) for name, topics in (("a", "tu"), ("b", "t"))]
    group = Group.of({"t": range(3), "u": range(3)}, members)
    with calls(host):
        host.leading_since = time.monotonic()
        assignor.plan(group)
        assert "Using a quicker one" not in caplog.text
        host.leading_since -= 60.0
        assignor.plan(group)
    assert "was not ready after 60 s. Using a quicker one" in caplog.text


@pytest.mark.parametrize("between", ["another strategy", "an assignment"])
def test_ten_joins_in_a_row_without_an_assignment_are_warned_of_however_often_each_is_tried(
    between: str, caplog: pytest.LogCaptureFixture
) -> None:
    host, assignor = HandHost(), StickyAssignor()
    host.strategy = "sticky"
    for generation in range(1, 10):
        host.generation = generation
        for _ in range(3):
            joined(host, assignor, {"t"})
    host.generation = 10
    if between == "an assignment":
        took(host, assignor, 10, parts("t", 0))
    else:
        host.strategy = "range"
        joined(host, assignor, {"t"})
        host.strategy = "sticky"
    for host.generation in range(11, 20):
        joined(host, assignor, {"t"})
    assert caplog.text == ""
    host.generation = 20
    joined(host, assignor, {"t"})
    assert "joined its group 10 times and took no assignment" in caplog.text
    for host.generation in range(21, 50):
        joined(host, assignor, {"t"})
    assert caplog.text.count("Poll for longer, or work for less time between polls") == 1
