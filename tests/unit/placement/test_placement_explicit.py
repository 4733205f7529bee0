import re

import pytest
from hypothesis import given, strategies as st

from kafka_assignors.placement._explicit import check_placement, parse_explicit
from kafka_assignors.placement._placement import Placement, PlacementError

IDS = st.integers(0, 2**31 - 1)
PLACEMENTS = st.integers(1, 5).flatmap(
    lambda size: st.lists(st.lists(IDS, min_size=size, max_size=size, unique=True), min_size=1, max_size=8)
)


@given(PLACEMENTS)
def test_what_is_written_is_read(replicas: list[list[int]]) -> None:
    text = ",".join(":".join(map(str, brokers)) for brokers in replicas)
    assert parse_explicit(text) == dict(enumerate(replicas))


NOT_AN_ID = (
    "where a broker id should be: give numbers of at most 2147483647, separated by colons, such as '0:1:2'"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0:1,1:x", f"partition 1: '1:x' has 'x' {NOT_AN_ID}"),
        ("0:1,,1:0", f"partition 1: '' has '' {NOT_AN_ID}"),
        ("1_0", f"partition 0: '1_0' has '1_0' {NOT_AN_ID}"),
        ("2147483648", f"partition 0: '2147483648' has '2147483648' {NOT_AN_ID}"),
        ("0:1,0:-1", "partition 1: '0:-1' has broker -1: ids are 0 or more"),
        ("0:1,2:0:2", "partition 1: '2:0:2' has broker 2 twice: name each broker of a partition once"),
        (
            "0:1,0:1:2",
            (
                "partition 1: '0:1:2' has a replication factor of 3, but partition 0 of 2: give all "
                "partitions as many replicas"
            ),
        ),
        (":", "partition 0: '' has no replica: name at least one broker"),
        (",", "the placement has no partitions: give at least one"),
    ],
)
def test_an_entry_that_cannot_be_is_named_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(PlacementError, match=f"^{re.escape(message)}$"):
        parse_explicit(text)


def test_a_placement_may_leave_gaps() -> None:
    check_placement({10: [1, 2], 21: [0, 1]}, brokers=[0, 1, 2])


@pytest.mark.parametrize(
    ("placement", "brokers", "message"),
    [
        ({-1: [1]}, None, "partition -1 cannot be: ids are 0 or more"),
        (
            {0: [1, 2], 1: [2, 3]},
            [2, 1],
            "partition 1: '2:3' has broker 3, which does not exist or is not up: take one of 1, 2",
        ),
        (
            {0: [99]},
            range(20),
            (
                "partition 0: '99' has broker 99, which does not exist or is not up: take one of 0, 1, 2, "
                "3, 4, 5, 6, 7, 8, 9 and 10 more"
            ),
        ),
    ],
)
def test_a_placement_that_kafka_would_not_take_is_refused(
    placement: Placement, brokers: list[int] | None, message: str
) -> None:
    with pytest.raises(PlacementError, match=f"^{re.escape(message)}$"):
        check_placement(placement, brokers)
