"""Kafka's reassignment JSON."""

import json

import pytest
from hypothesis import given, strategies as st

from kafka_assignors.placement import PlacementError, format_reassignment
from kafka_assignors.placement._reassignment_file import parse_reassignment

TOPICS = st.dictionaries(
    st.text(min_size=1),
    st.dictionaries(
        st.integers(0, 99), st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True), min_size=1
    ),
    min_size=1,
)


@given(TOPICS)
def test_what_is_written_is_read_back(topics: dict[str, dict[int, list[int]]]) -> None:
    assert parse_reassignment(format_reassignment(topics)) == topics


def test_it_is_the_format_of_kafkas_own_tool() -> None:
    assert format_reassignment({"t": {1: [2, 3], 0: [1, 2]}, "a": {0: [1]}}) == (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]},'
        '{"topic":"t","partition":0,"replicas":[1,2]},{"topic":"t","partition":1,"replicas":[2,3]}]}'
    )


def test_replicas_in_any_log_directory_are_read() -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    assert parse_reassignment(json.dumps({"version": 1, "partitions": [entry]})) == {"t": {0: [1, 2]}}


def _logs(directories: str) -> str:
    entry = f'{{"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": {directories}}}'
    return f'{{"version": 1, "partitions": [{entry}]}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be JSON"),
        ("Current partition replica assignment\n{}", "keep only the line of JSON"),
        ("[]", 'a list under "partitions"'),
        ('{"partitions": []}', "names no partition"),
        (_logs('["any"]'), "give one for each replica"),
        (_logs('"any"'), "give one for each replica"),
        (_logs('["any", "/var/kafka"]'), "t-0 names log directory '/var/kafka'; replicas are not moved"),
        (_logs('["any", null]'), "names log directory None"),
        ('{"partitions": 3}', 'a list under "partitions"'),
        ('{"version": 2, "partitions": []}', "version 2: only 1"),
        ('{"partitions": [7]}', r"partitions\[0\]: 7 is no object"),
        ('{"partitions": [{"partition": 0, "replicas": [1]}]}', r"partitions\[0\]: topic is None"),
        ('{"partitions": [{"topic": "t", "partition": -1, "replicas": [1]}]}', "partition of t is -1"),
        ('{"partitions": [{"topic": "t", "partition": true, "replicas": [1]}]}', "partition of t is True"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', r"replicas of t-0 are \[\]"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}',
            r"are \['1'\], not broker ids",
        ),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "name a broker twice"),
        (
            (
                '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
                ' {"topic": "t", "partition": 0, "replicas": [2]}]}'
            ),
            r"partitions\[1\]: t-0 is there twice",
        ),
    ],
)
def test_what_is_no_reassignment_is_refused_by_entry(text: str, said: str) -> None:
    with pytest.raises(PlacementError, match=said):
        parse_reassignment(text)
