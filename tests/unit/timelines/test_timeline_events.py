"""Events as members report them, and as they are typed."""

import pytest
from kafka import TopicPartition

from kafka_assignors._timelines.events import (
    AssignmentReceived,
    Configured,
    Consumed,
    Event,
    Failed,
    Joining,
    Led,
    ListenerReturned,
    Lost,
    PolledLate,
    Revoked,
    StateReported,
    read_event,
)
from kafka_assignors._timelines.timeline import Timeline
from tests.support.timelines import P0, P1, history


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


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            Revoked(1, "a", generation=4, partitions=frozenset([P1, P0])),
            "a          revoked generation 4 t:0,1",
        ),
        (Lost(1, "a"), "a          lost none"),
        (Consumed(1, "a", records=((P0, 3, 9),)), "a          records t-0: 3..9"),
        (
            Failed(1, "a", command="commit", type="X", text="y"),
            "a          error command commit type X text y",
        ),
        (
            Joining(1, "a", topics=("t", "u"), version=3, owned=frozenset([P0])),
            "a          metadata topics ['t', 'u'] owned t:0",
        ),
        (
            Led(1, "a", claims={"a-1": {"owned": [["t", 0]]}}, plan={"a-1": {"partitions": []}}, seconds=1.0),
            "a          assign claims (a-1: t:0) plan (a-1: none)",
        ),
        (
            AssignmentReceived(1, "a", partitions=frozenset([TopicPartition("u", 2)]), user_data="00"),
            "a          assignment u:2 user_data 00",
        ),
        (PolledLate(1, "a", seconds=6.25), "a          polled late after 6.250 s"),
        (
            ListenerReturned(1, "a", callback="on_revoke", seconds=2),
            "a          listener on_revoke took 2.000 s",
        ),
        (
            Configured(1, "a", session_timeout_ms=6000, max_poll_interval_ms=5000),
            "a          configured session_timeout_ms 6000 max_poll_interval_ms 5000",
        ),
        (StateReported(1, "a", coordinator="stable", silent=0.4), "a          state coordinator stable"),
        (
            StateReported(1, "a", coordinator="stable", silent=3),
            "a          state coordinator stable not polling for 3.0 s",
        ),
    ],
)
def test_events_as_text(event: Event, text: str) -> None:
    assert str(event) == text


def test_a_record_until_another_end_finds_nothing_out_again() -> None:
    timeline = history({"a": "01"}, {"a": "0", "b": "1"})
    rebalances, owned = timeline.rebalances, timeline.ownership()
    later = timeline.ending(timeline.end + 5)
    assert isinstance(later, Timeline)
    assert (later.end, timeline.end) == (8, 3)
    assert later.rebalances is rebalances
    assert later.ownership() is owned
