"""Groups of KIP-848, put together from their records, and what their rebalances were."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._wire.offsets_topic import decode_group_metadata
from kafka_assignors.history._snapshots import SnapshotReader
from tests.support.group_histories import (
    START_US,
    activity_of,
    find_rebalances,
    member,
    read_snapshots,
    recorded,
    snapshot,
)
from tests.support.kip848_log import AWAY, TOPIC_IDS, Log
from tests.support.offsets_topic import WRITTEN
from tests.support.scale import examples

DAY = 86_400
NAMES = {uuid_text(topic_id): topic for topic, topic_id in TOPIC_IDS.items()}


def told(log: Log) -> list[tuple[float, int, bool, dict[str, str]]]:
    return [_in_short(one) for one in read_snapshots(log.records, NAMES)]


def _in_short(one: Snapshot) -> tuple[float, int, bool, dict[str, str]]:
    return (
        (one.time_us - START_US) / 1e6,
        one.generation,
        one.settled,
        {
            member.member_id: " ".join(
                f"{topic}{partition}" for topic, partition in sorted(member.assignment)
            )
            for member in one.members
        },
    )


def only(log: Log) -> Rebalance:
    (found,) = find_rebalances(read_snapshots(log.records, NAMES))
    return found


def first(log: Log, *, instance_id: str | None = None) -> None:
    """A member with all of it, by one request: records of one time."""
    log.enters("a", 1, "t0 t1 t2 t3", instance_id=instance_id)


def second(log: Log) -> None:
    """Another member, and the hand-over to it."""
    log.at(10).enters("b", 2, "")
    log.at(12).has("a", 1, "t0 t1", gives="t2 t3", state=1)
    log.at(13).has("a", 2, "t0 t1")
    log.at(16).has("b", 2, "t2 t3")


def begun(*, instance_id: str | None = None) -> Log:
    log = Log()
    first(log, instance_id=instance_id)
    return log


def handed_over() -> Log:
    log = begun()
    second(log)
    return log


def test_records_of_one_moment_are_one_snapshot() -> None:
    log = begun()
    assert told(log) == [(0, 1, True, {"a": "t0 t1 t2 t3"})]
    (one,) = read_snapshots(log.records, NAMES)
    assert (one.protocol_type, one.strategy) == ("kip848", "uniform")
    assert (one.members[0].client_id, one.members[0].host, one.members[0].topics) == (
        "a",
        "/h",
        frozenset("t"),
    )
    assert (one.members[0].rebalance_timeout_ms, one.members[0].session_timeout_ms) == (60_000, -1)


def test_a_hand_over_is_one_rebalance() -> None:
    log = handed_over()
    found = only(log)
    assert (found.first_generation, found.generation, found.seconds) == (2, 2, 6.0)
    assert [reason.kind for reason in found.reasons] == ["member joined"]
    assert (found.moved, found.least_moved, found.imbalance, found.joined) == (2, 2, 0, 1)
    assert found.unowned_seconds == 2 * 3.0  # let go of at 13 s, given away at 16 s


def test_what_a_member_leaves_is_without_an_owner_until_it_is_given_away() -> None:
    log = handed_over()
    log.at(100).gone("b")
    log.epoch(3)
    log.at(102.5).assigned(3)
    log.has("a", 3, "t0 t1 t2 t3")
    left = find_rebalances(read_snapshots(log.records, NAMES))[-1]
    assert (left.first_generation, left.generation, left.seconds, left.gone) == (3, 3, 2.5, 1)
    assert [reason.kind for reason in left.reasons] == ["member gone"]
    assert (left.moved, left.least_moved, left.unowned_seconds) == (2, 2, 5.0)


def test_a_static_member_that_is_away_has_nothing_and_its_return_is_no_rebalance() -> None:
    log = begun(instance_id="one")
    log.at(10).has("a", AWAY, "t0 t1 t2 t3")
    log.at(14).gone("a")
    log.joined("a2", instance_id="one")
    log.has("a2", 1, "t0 t1 t2 t3")
    assert [one[1:] for one in told(log)] == [
        (1, True, {"a": "t0 t1 t2 t3"}),
        (1, False, {"a": ""}),
        (1, True, {"a2": "t0 t1 t2 t3"}),
    ]
    assert find_rebalances(read_snapshots(log.records, NAMES)) == []
    activity = activity_of(read_snapshots(log.records, NAMES))
    assert (activity.rebalances, activity.unowned_seconds) == (0, 4 * 4.0)
    assert (activity.reasons.kinds, activity.returned) == ({}, 1)


def test_new_partitions_and_other_subscriptions_are_told() -> None:
    log = begun()
    log.at(10).reached(2)
    log.has("a", 2, "t0 t1 t2 t3 t4")
    log.at(20).enters("a", 3, "t0 t1 t2 t3 t4 u0", topics="tu")
    grown, changed = find_rebalances(read_snapshots(log.records, NAMES))
    assert [reason.text for reason in grown.reasons] == ["t has 1 more partition"]
    assert [reason.text for reason in changed.reasons] == ["a/h subscribed to u"]


def test_topics_go_by_what_names_them() -> None:
    log = begun()
    ((_, _, _, unnamed),) = [_in_short(one) for one in read_snapshots(log.records)]
    assert unnamed["a"].startswith("AAAAAAAAAAAAAAAAAAAAAQ0 ")
    (by_text,) = read_snapshots(log.records, {uuid_text(TOPIC_IDS["t"]): "orders"})
    assert {topic for topic, _ in by_text.members[0].assignment} == {"orders"}
    old = Log()
    old.named("t")
    first(old)
    assert [_in_short(one)[3] for one in read_snapshots(old.records)] == [{"a": "t0 t1 t2 t3"}]


def test_expressions_stand_for_topics() -> None:
    log = Log()
    log.joined("a", topics="", regex="[tu]")
    log.matches("[tu]", "tu")
    log.reached(1)
    log.has("a", 1, "t0 u0")
    (one,) = read_snapshots(log.records, NAMES)
    assert one.topics == {"t", "u"}


def test_a_member_without_a_new_record_is_the_same_object_in_the_next_snapshot() -> None:
    """Else each snapshot of a large group would cost as much as its members have partitions."""
    *_, before, after = read_snapshots(handed_over().records, NAMES)
    assert [one.member_id for one in after.members] == ["a", "b"]
    assert [one is other for one, other in zip(before.members, after.members, strict=True)] == [True, False]


def test_a_member_without_a_new_record_has_what_its_topics_are_called_by_then() -> None:
    log = begun()
    log.at(10).named("t")
    before, after = read_snapshots(log.records)
    assert {topic for topic, _ in before.owned} == {uuid_text(TOPIC_IDS["t"])}
    assert {topic for topic, _ in after.owned} == {"t"}


def test_a_member_without_a_new_record_has_what_its_expression_stands_for_by_then() -> None:
    log = Log()
    log.joined("a", topics="", regex="[tu]")
    log.matches("[tu]", "t")
    log.reached(1)
    log.has("a", 1, "t0")
    log.at(10).matches("[tu]", "tu")
    assert [one.topics for one in read_snapshots(log.records, NAMES)] == [{"t"}, {"t", "u"}]


def test_a_group_that_is_deleted_begins_anew() -> None:
    log = begun()
    log.at(5).gone("a")
    log.epoch(2)
    log.at(6).assigned(None)
    log.epoch(None)
    log.at(9)
    first(log)
    assert [one[1:] for one in told(log)] == [
        (1, True, {"a": "t0 t1 t2 t3"}),
        (1, True, {}),
        (2, True, {}),
        (1, True, {"a": "t0 t1 t2 t3"}),
    ]
    assert [(one.members, one.gone) for one in find_rebalances(read_snapshots(log.records, NAMES))] == [
        (0, 1),
        (1, 0),
    ]


def alone_again(log: Log, *, seen: bool) -> None:
    """The second member leaves, and one comes and goes each day; whether its tombstones were captured."""
    first(log)
    second(log)
    log.at(100)
    if seen:
        log.gone("b")
    log.reached(3)
    log.has("a", 3, "t0 t1 t2 t3")
    for day in range(1, 4):
        log.at(day * DAY).enters(f"c{day}", 2 * day + 2, "")
        log.at(day * DAY + 1).has("a", 2 * day + 2, "t0 t1")
        log.has(f"c{day}", 2 * day + 2, "t2 t3")
        log.at(day * DAY + 600).gone(f"c{day}")
        log.reached(2 * day + 3)
        log.has("a", 2 * day + 3, "t0 t1 t2 t3")


def test_a_member_whose_end_was_not_captured_is_gone_when_the_group_went_on_without_it() -> None:
    seen, missed = Log(), Log()
    alone_again(seen, seen=True)
    alone_again(missed, seen=False)
    assert told(missed) == told(seen)
    found = find_rebalances(read_snapshots(missed.records, NAMES))
    assert found == find_rebalances(read_snapshots(seen.records, NAMES))
    assert [(one.members, one.seconds, one.moved) for one in found] == [
        (2, 6.0, 2),
        (1, 0.0, 2),
        *[(2, 1.0, 2), (1, 0.0, 2)] * 3,
    ]


def slow(log: Log, seconds: float) -> None:
    """The first member says that it let go of partitions only so long after it was to."""
    first(log)
    log.at(10).enters("b", 2, "")
    log.at(10 + seconds).joined("b", topics="tu")
    log.at(11 + seconds).has("a", 2, "t0 t1")
    log.at(12 + seconds).has("b", 2, "t2 t3")


def test_a_member_is_waited_for_until_both_its_timeouts_are_over() -> None:
    """Its end counts from the last record before that: nothing has changed since."""
    log = Log()
    slow(log, 119)
    del log.records[-2:]  # its own, and what follows from that
    log.at(10 + 120).joined("b", topics="t")
    assert [one[0::3] for one in told(log)][-1] == (130, {"a": "t0 t1 t2 t3", "b": ""})
    log.at(10 + 120 + 0.001).has("b", 2, "t0 t1 t2 t3")
    assert [(one[0], one[2], one[3]) for one in told(log)][-2:] == [
        (130, False, {"b": ""}),
        (130.001, True, {"b": "t0 t1 t2 t3"}),
    ]


def test_a_member_that_uses_the_classic_protocol_is_waited_for_by_its_own_session_timeout() -> None:
    log = Log()
    log.enters("a", 1, "t0", session_timeout_ms=600_000)
    log.at(10).reached(2)
    log.at(10 + 660).matches("x", "t")
    assert told(log) == [(0, 1, True, {"a": "t0"}), (10, 2, False, {"a": "t0"})]
    log.at(10 + 661).matches("x", "t")
    assert told(log)[2:] == [(670, 2, True, {})]


def test_a_member_that_was_thought_gone_is_back_with_its_next_record() -> None:
    log = Log()
    slow(log, 200)
    assert [one[1:] for one in told(log)] == [
        (1, True, {"a": "t0 t1 t2 t3"}),
        (2, False, {"b": ""}),
        (2, False, {"b": ""}),
        (2, False, {"a": "t0 t1", "b": ""}),
        (2, True, {"a": "t0 t1", "b": "t2 t3"}),
    ]


def test_a_member_that_is_waited_for_again_and_again_is_waited_for_from_the_first_time() -> None:
    log = begun()
    for epoch in range(2, 16):
        log.at(10 * epoch).reached(epoch)
    assert told(log)[-3:] == [
        (130, 13, False, {"a": "t0 t1 t2 t3"}),
        (140, 14, True, {}),
        (150, 15, True, {}),
    ]


def at_epoch_50(log: Log) -> None:
    """A group with one member, whose tombstones, and the member's, are then compacted away unseen."""
    log.epoch(50)
    log.joined("a")
    log.assigned(50)
    log.has("a", 50, "t0 t1")


def test_a_consumer_that_is_in_the_group_made_anew_with_its_old_member_id_is_there() -> None:
    log = Log()
    at_epoch_50(log)
    log.at(30 * DAY).joined("a")
    log.reached(1)
    log.at(30 * DAY + 1).has("a", 1, "t0 t1")
    log.at(31 * DAY).joined("c")
    log.reached(2)
    log.has("a", 2, "t0")
    log.has("c", 2, "t1")
    assert told(log)[-2:] == [
        (30 * DAY + 1, 1, True, {"a": "t0 t1"}),
        (31 * DAY, 2, True, {"a": "t0", "c": "t1"}),
    ]


def test_a_group_that_was_made_anew_keeps_members_whose_records_compaction_left_before_its_epoch() -> None:
    log = Log()
    at_epoch_50(log)
    log.at(30 * DAY)  # of its first epochs, only what is the newest of a key is left
    log.joined("b")
    log.has("b", 1, "t0 t1")
    log.at(31 * DAY).reached(2)
    log.has("b", 2, "t0 t1")
    assert told(log)[-1] == (31 * DAY, 2, True, {"b": "t0 t1"})


def test_a_member_of_the_group_before_is_told_by_its_epoch_alone() -> None:
    """As where reading begins after the group was made anew, with the newest record of each key."""
    log = Log()
    log.joined("a")
    log.has("a", 50, "t0 t1")
    log.at(30 * DAY).enters("b", 1, "t0 t1")
    assert told(log) == [(30 * DAY, 1, True, {"b": "t0 t1"})]


def test_a_group_that_was_made_anew_is_told_only_when_its_assignment_is_known() -> None:
    log = handed_over()
    log.at(30 * DAY).epoch(1)
    log.joined("c")
    log.at(30 * DAY + 1).assigned(1)
    log.has("c", 1, "t0")
    assert told(log)[-2:] == [
        (16, 2, True, {"a": "t0 t1", "b": "t2 t3"}),
        (30 * DAY + 1, 1, True, {"c": "t0"}),
    ]


def test_a_group_that_goes_over_to_kip848_and_back_is_never_empty() -> None:
    classic = recorded(snapshot(5, 0, member("a", "t0"), strategy="range"))
    value = decode_group_metadata(classic.value or b"")
    log = Log()
    log.classic(value)
    log.at(5).classic(None)
    log.enters("a-0", 5, "t0")
    log.at(9).gone("a-0")
    log.assigned(None)
    log.epoch(None)
    log.classic(replace(value, generation=6))
    snapshots = list(read_snapshots(log.records, NAMES))
    assert [(one.protocol_type, one.generation) for one in snapshots] == [
        ("consumer", 5),
        ("kip848", 5),
        ("consumer", 6),
    ]
    assert all(one.owners == {("t", 0): "a-0"} for one in snapshots)
    reasons = [[reason.kind for reason in one.reasons] for one in find_rebalances(snapshots)]
    assert reasons == [["strategy changed"], ["strategy changed"]]


@pytest.mark.parametrize("cut", range(1, 15))
def test_snapshots_do_not_depend_on_where_a_log_is_read_in_two(cut: int) -> None:
    log = handed_over()
    reader = SnapshotReader(NAMES)
    found = [one for record in log.records[:cut] for one in reader.add(record)]
    # What was taken already is read again after a restart.
    found += [one for record in log.records[max(0, cut - 3) :] for one in reader.add(record)]
    found += reader.flush()
    assert found == list(read_snapshots(log.records, NAMES))


ACTS = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "away", "epoch", "step"]), st.integers(0, 3)), max_size=40
)


@examples(150)
@given(ACTS)
def test_members_add_up_whatever_the_order_of_records(acts: list[tuple[str, int]]) -> None:
    log = begun()
    epoch = 1
    for number, (act, who) in enumerate(acts):
        log.at(number + 1)
        name = f"m{who}"
        if act == "join":
            log.joined(name, instance_id=f"i{who}" if who % 2 else None)
        elif act == "leave":
            log.gone(name)
        elif act == "away":
            log.has(name, AWAY, f"t{who}")
        elif act == "epoch":
            epoch += 1
            log.reached(epoch)
        else:
            log.has(name, epoch, f"t{who}")
            log.has("a", epoch, "t0 t1 t2 t3")
    snapshots = list(read_snapshots(log.records, NAMES))
    count = len(snapshots[0].members)
    for one in find_rebalances(snapshots):
        count += one.joined - one.gone
        assert one.reasons
        assert one.seconds >= 0
        assert one.unowned_seconds >= 0
        assert count == one.members
    assert [one.time_us for one in snapshots] == sorted(one.time_us for one in snapshots)


@pytest.mark.parametrize("text", WRITTEN, ids=lambda text: text[0][:4])
def test_a_record_of_any_type_alone_tells_nothing_of_a_kip848_group(text: tuple[str, str, object]) -> None:
    key, value = bytes.fromhex(text[0]), bytes.fromhex(text[1]) if text[1] else None
    found = list(read_snapshots([ArchivedRecord(key, value, 0, 0, START_US, None)]))
    assert all(one.protocol_type == "consumer" for one in found)
