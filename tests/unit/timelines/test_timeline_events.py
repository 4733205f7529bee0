"""Events as members report them, and as they are typed."""

import pytest
from kafka import TopicPartition

from kafka_assignors._timelines.events import Consumed, Event, Joining, StateReported, read_event
from tests.support.timelines import P0, P1, event, records

U2 = TopicPartition("u", 2)


def test_a_report_becomes_an_event_of_its_type() -> None:
    report = {"event": "metadata", "time": 1.5, "member_id": "a-1", "topics": ["t"], "owned": [["t", 0]]}
    assert read_event("a", report) == Joining(1.5, "a", member_id="a-1", topics=("t",), owned=frozenset([P0]))
    report = {"event": "records", "time": 2, "records": [["t", 1, 5, 7]]}
    assert read_event("a", report) == Consumed(2, "a", records=((P1, 5, 7),))


def test_kinds_and_fields_that_are_not_known_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a reported an event 'asigned': known are assign, assigned"):
        read_event("a", {"event": "asigned", "time": 1.0})
    with pytest.raises(ValueError, match=r"a reported 'lost' with other fields: .*'partition'"):
        read_event("a", {"event": "lost", "time": 1.0, "partition": 3})


LED = {"claims": {"a-1": {"owned": [["t", 0]]}}, "plan": {"a-1": {"partitions": []}}}


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (event(1, "a", "revoked", P1, P0, generation=4), "revoked generation 4 t:0,1"),
        (event(1, "a", "lost"), "lost none"),
        (records(1, "a", (P0, 3, 9)), "records t-0: 3..9"),
        (event(1, "a", "error", command="commit", type="X", text="y"), "error command commit type X text y"),
        (
            event(1, "a", "metadata", topics=["t", "u"], version=3, owned=[["t", 0]]),
            "metadata topics ['t', 'u'] owned t:0",
        ),
        (event(1, "a", "assign", **LED, seconds=1.0), "assign claims (a-1: t:0) plan (a-1: none)"),
        (event(1, "a", "assignment", U2, P0, user_data="00"), "assignment t:0 u:2 user_data 00"),
        (event(1, "a", "polled late", seconds=6.25), "polled late after 6.250 s"),
        (event(1, "a", "listener", callback="on_revoke", seconds=2), "listener on_revoke took 2.000 s"),
        (
            event(1, "a", "configured", session_timeout_ms=6000, max_poll_interval_ms=5000),
            "configured session_timeout_ms 6000 max_poll_interval_ms 5000",
        ),
        (StateReported(1, "a", coordinator="stable", silent=0.4), "state coordinator stable"),
        (
            StateReported(1, "a", coordinator="stable", silent=3),
            "state coordinator stable not polling for 3.0 s",
        ),
    ],
)
def test_events_as_text(event: Event, text: str) -> None:
    assert str(event) == f"a          {text}"
