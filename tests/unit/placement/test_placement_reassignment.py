"""Kafka's reassignment JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kafka_assignors.placement import PlacementError, Placements
from kafka_assignors.placement._reassignment_file import parse_reassignment

TOPICS = st.dictionaries(
    st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,40}", fullmatch=True),
    st.dictionaries(
        st.integers(0, 99), st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True), min_size=1
    ),
    min_size=1,
)


@given(TOPICS)
def test_what_is_written_is_read_back(topics: dict[str, dict[int, list[int]]]) -> None:
    assert parse_reassignment(Placements(topics).text) == topics


def test_it_is_the_format_of_kafkas_own_tool() -> None:
    assert Placements({"t": {1: [2, 3], 0: [1, 2]}, "a": {0: [1]}}).text == (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]},'
        '{"topic":"t","partition":0,"replicas":[1,2]},{"topic":"t","partition":1,"replicas":[2,3]}]}'
    )


def test_replicas_in_any_log_directory_are_read() -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}
    assert parse_reassignment(json.dumps({"version": 1, "partitions": [entry]})) == {"t": {0: [1, 2]}}


def listed(*partitions: Any) -> str:
    """A file of partitions: changes to t-0 on broker 1; a change to None leaves a field out."""
    usual = {"topic": "t", "partition": 0, "replicas": [1]}
    entries = [
        {key: value for key, value in (usual | one).items() if value is not None} for one in partitions
    ]
    return json.dumps({"partitions": entries})


def in_folders(directories: Any) -> str:
    return listed({"replicas": [1, 2], "log_dirs": directories})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "^the reassignment: not JSON: line 1, column 1"),
        ("[" * 100_000, "^the reassignment: nested too deeply$"),
        (f'{{"version": {"9" * 5000}}}', "not JSON: Exceeds the limit"),
        ("Current partition replica assignment\n{}", "keep only the line of JSON"),
        ("[]", "must be an object with version and partitions, not an empty list"),
        ('{"partitions": []}', "no partition is named"),
        (in_folders(["any"]), r"partitions\[0\].log_dirs: give one for each of 2 replicas"),
        (in_folders("any"), 'log_dirs: must be a list, not "any"'),
        (in_folders(["any", "/var/kafka"]), r'log_dirs\[1\]: "/var/kafka": replicas are not moved'),
        (in_folders(["any", None]), r"log_dirs\[1\]: null"),
        ('{"partitions": 3}', "partitions: must be a list of partitions, not 3"),
        ('{"version": 2, "partitions": []}', "version: 2: only 1 is known"),
        ('{"partitions": [7]}', r"partitions\[0\]: must be an object with topic, .*, not 7"),
        (listed({"topic": None}), r"partitions\[0\]: topic is missing"),
        (
            listed({"partition": -1}),
            "partition: must be a partition id from 0 to 2147483647, not -1",
        ),
        (listed({"partition": True}), "partition: must be .*, not true"),
        (listed({"replicas": []}), "replicas: must be a list of at least one broker id, not an empty list"),
        (listed({"replicas": ["1"]}), r'replicas\[0\]: must be a broker id from .*, not "1"'),
        (listed({"replicas": [1, 1]}), r"replicas\[1\]: 1 is in the list more than once"),
        *(
            (listed({"topic": name}), "topic: Kafka has no")
            for name in ("../../etc/x", "..", "a b", "é", "a" * 250)
        ),
        (listed({"replicas": [2**40]}), "must be a broker id"),
        (listed({}, {"replicas": [2]}), r"partitions\[1\]: t-0 is there twice"),
    ],
)
def test_what_is_no_reassignment_is_refused_by_entry(text: str, said: str) -> None:
    with pytest.raises(PlacementError, match=said):
        parse_reassignment(text)
