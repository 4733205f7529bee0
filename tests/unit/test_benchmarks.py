import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from benchmarks import load, wire
from benchmarks.cases import NOBODY, Case, Event, Problem, Shape, make
from benchmarks.check import Verdict, WrongAnswerError, judge
from benchmarks.measure import Measurement, Times
from benchmarks.report import Report, fastest_peer, markdown, ratio, rows
from kafka_assignors._wire.user_data import decode_sticky


def small(event: Event = Event.JOIN, *, racks: bool = False) -> Problem:
    shape = Shape.TWO_TOPICS
    case = Case(label="T", shape=shape, event=event, topics=3, partitions=4, members=4, racks=racks)
    return make(case)


def assignment(partitions: dict[str, list[int]]) -> bytes:
    parts = [struct.pack(">hi", 3, len(partitions))]
    for topic, ids in partitions.items():
        parts.append(wire.string(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids))
    return b"".join(parts) + struct.pack(">i", -1)


def answer_of(problem: Problem, owner: list[int]) -> dict[str, bytes]:
    """The assignments in which each partition has the member in `owner`."""
    answer = {}
    for number, member in enumerate(problem.members):
        mine: dict[str, list[int]] = {}
        for partition, holder in enumerate(owner):
            if holder == number:
                mine.setdefault(f"t{partition // 4}", []).append(partition % 4)
        answer[member] = assignment(mine)
    return answer


# t0: c0 c2 c3; t1: c0 c1 c3; t2: c1 c2
GOOD = [0, 0, 2, 3, 0, 1, 3, 3, 1, 1, 2, 2]


def test_a_right_answer_is_judged() -> None:
    problem = replace(small(), owner=np.array([0, 0, 2, 2, 0, 1, 1, 1, 1, 1, 2, NOBODY]))
    assert judge(problem, answer_of(problem, GOOD), cooperative=False) == Verdict(
        least=3, most=3, kept=8, moved=3
    )


def test_a_partition_may_be_withheld_if_somebody_has_it() -> None:
    problem = replace(small(), owner=np.array([0, 0, 2, 2, 0, 1, 1, 1, 1, 1, 2, NOBODY]))
    withheld = [*GOOD[:3], NOBODY, *GOOD[4:]]
    verdict = judge(problem, answer_of(problem, withheld), cooperative=True)
    assert (verdict.least, verdict.withheld, verdict.moved) == (2, 1, 3)
    with pytest.raises(WrongAnswerError, match="nobody gets t0-3"):
        judge(problem, answer_of(problem, withheld), cooperative=False)
    with pytest.raises(WrongAnswerError, match="nobody gets t2-3"):
        judge(problem, answer_of(problem, [*GOOD[:11], NOBODY]), cooperative=True)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"c1": {"t1": [1], "t2": [0, 1, 2]}}, "t2-2 is given away more than once"),
        ({"c1": {"t1": [1, 1], "t2": [0, 1]}}, "t1-1 is given away more than once"),
        ({"c1": {"t0": [0]}}, "c1 gets partitions of t0, a foreign topic"),
        ({"c1": {"t9": [0]}}, "c1 gets partitions of t9, a foreign topic"),
        ({"c1": {"t1": [4]}}, "c1 gets partitions of t1 that do not exist"),
        ({"c1": {"t1": [1], "t2": [1]}}, "nobody gets t2-0"),
        ({"c9": {}}, "1 members are missing or unknown, say c9"),
    ],
)
def test_a_wrong_answer_is_refused(wrong: dict[str, dict[str, list[int]]], fault: str) -> None:
    problem = small()
    answer = answer_of(problem, GOOD) | {member: assignment(mine) for member, mine in wrong.items()}
    with pytest.raises(WrongAnswerError, match=fault):
        judge(problem, answer, cooperative=False)


@pytest.mark.parametrize("dialect", wire.Dialect)
@pytest.mark.parametrize("racks", [False, True])
def test_members_say_what_they_own(tmp_path: Path, dialect: wire.Dialect, *, racks: bool) -> None:
    problem = small(racks=racks)
    wire.write_group(problem, dialect, tmp_path / "group")
    group = wire.Group.read(tmp_path / "group")
    assert [(topic.name, topic.partitions) for topic in group.topics] == [("t0", 4), ("t1", 4), ("t2", 4)]
    assert (group.topics[0].racks is None) is not racks
    assert sorted(member for member, _, _ in group.members) == list(problem.members)
    said: dict[int, set[int]] = {}
    for member, _, raw in group.members:
        number = problem.members.index(member)
        subscription = ConsumerProtocolSubscription.decode(raw)
        assert subscription.topics == [problem.topics[topic] for topic in problem.subscriptions[number]]
        assert subscription.rack_id == (
            f"rack{number}" if racks and number < 3 else "rack0" if racks else None
        )
        if dialect in (wire.Dialect.JAVA, wire.Dialect.KAFKA_PYTHON):
            owned = decode_sticky(subscription.user_data).claims if subscription.user_data else {}
        else:
            owned = {entry.topic: entry.partitions for entry in subscription.owned_partitions}
        said[number] = {4 * int(topic[1:]) + id_ for topic, ids in owned.items() for id_ in ids}
    silent = dialect is wire.Dialect.SILENT
    for number, partitions in said.items():
        assert partitions == (set() if silent else set(np.flatnonzero(problem.owner == number).tolist()))


def made_up(peer: str, wall: float | None, cpu: float = 1.0, *, ours: bool = False) -> Measurement:
    times = None if wall is None else Times(wall=wall, cpu=cpu)
    verdict = Verdict(least=1, most=2, kept=3, moved=4)
    return Measurement(
        case="a case",
        key="T-join",
        strategy="sticky",
        peer=peer,
        ours=ours,
        partitions=12,
        subscriptions=8,
        failure=None if times else "> 130 s",
        cold=times,
        warm=times and replace(times, wall=times.wall / 2),
        verdict=verdict if times else None,
    )


def test_the_ratio_is_to_the_fastest_of_the_others_that_have_a_result() -> None:
    measurements = [
        made_up("library", 0.3, cpu=8.0, ours=True),
        made_up("library-in-kafka-python", 0.01, ours=True),
        made_up("java", 0.4, cpu=2.0),
        made_up("franz-go", 0.2, cpu=4.0),
        made_up("aiokafka", None),
    ]
    (row,) = rows(measurements).values()
    fastest = fastest_peer(row, lambda times: times.wall)
    assert fastest is not None
    assert fastest.peer == "franz-go"
    assert ratio(row, "library", lambda times: times.wall) == pytest.approx(1.5)
    assert ratio(row, "library", lambda times: times.cpu) == pytest.approx(4.0)
    assert ratio(row, "unheard of", lambda times: times.wall) is None
    (cold,) = rows([measurements[0], replace(made_up("java", 0.6), warm=None)]).values()
    assert ratio(cold, "library", lambda times: times.wall) == pytest.approx(0.25)
    (alone,) = rows([measurements[0], measurements[-1]]).values()
    assert ratio(alone, "library", lambda times: times.wall) is None
    page = markdown(Report(machine={"CPU": "a fast one"}, skipped={}, measurements=measurements))
    assert "| a case | sticky | 150 | 5 | 200 | 100 | > 130 s | 1.50 | 4.00 | 0.05 | 0.50 |" in page


def test_a_day_with_plans_by_load_is_the_same_each_time_and_nothing_flaps() -> None:
    scenario = load.SCENARIOS["a slow member"]
    one, again = (load.Simulated(load.Traffic(scenario, 3), load.AWARE, 3).run() for _ in range(2))
    assert (one.lags == again.lags).all()
    assert one.moves == again.moves > 0
    assert one.flaps == 0
    assert one.bound <= one.drained <= 1.5 * one.bound


def test_the_rule_of_kafka_5337_gives_the_most_lag_to_whom_has_the_least() -> None:
    assert load.by_lag(np.array([1.0, 5.0, 4.0, 3.0]), 2).tolist() == [0, 0, 1, 1]
