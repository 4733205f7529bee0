"""Which partition a group belongs to, and its strategy; who leads: tests/oracle/test_java_coordinator.py."""

import pytest

from kafka_assignors._wire.java.orders import hash_order, string_hash
from kafka_assignors.groups import elect_strategy, partition_for_group


@pytest.mark.parametrize(
    ("group_id", "partition"),
    # As Java has it: Utils.abs(groupId.hashCode()) % 50. One hash is the least integer, one has a surrogate.
    [
        ("g", 3),
        ("", 0),
        ("polygenelubricants", 0),
        ("orders-service", 17),
        ("my-group", 12),
        ("\N{GRINNING FACE}", 49),
    ],
)
def test_a_group_belongs_to_the_partition_that_kafka_says(group_id: str, partition: int) -> None:
    assert partition_for_group(group_id) == partition


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot have 0 partitions"):
        partition_for_group("g", 0)


def test_each_member_votes_for_the_first_of_its_list_that_all_know() -> None:
    election = elect_strategy(
        {
            "a": ["cooperative-sticky", "range"],
            "b": ["sticky", "range", "roundrobin"],
            "c": ["roundrobin", "range"],
        }
    )
    assert election.strategy == "range"
    assert election.votes == {"range": 3}
    assert election.ballots == {"a": "range", "b": "range", "c": "range"}
    assert str(election) == (
        "range: range 3 of 3 votes\n"
        "cooperative-sticky is no candidate: b, c do not know it\n"
        "roundrobin is no candidate: a does not know it\n"
        "sticky is no candidate: a, c do not know it"
    )


def test_of_candidates_with_as_many_votes_the_hash_map_chooses() -> None:
    election = elect_strategy({"a": ["range", "sticky"], "b": ["sticky", "range"]})
    assert election.strategy == hash_order(["range", "sticky"], string_hash)[0]
    assert {election.strategy, *election.tied} == {"range", "sticky"}
    assert f"as many have {election.tied[0]}" in str(election)


def test_a_candidate_that_nobody_votes_for_is_counted() -> None:
    assert elect_strategy({"a": ["range", "sticky"]}).votes == {"range": 1, "sticky": 0}


def test_an_empty_group_elects_nothing() -> None:
    with pytest.raises(ValueError, match="without members"):
        elect_strategy({})
