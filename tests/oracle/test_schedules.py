"""Groups under drawn schedules: nothing has two owners, and in the end everything has one."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from benchmarks.lab.schedules import FIRST_SEED, RESULT
from kafka_assignors._assignors import Assignor
from kafka_assignors._timelines.events import Event
from kafka_assignors.coordinator._simulator import exchange
from tests.lab.schedules import (
    BrokenError,
    Schedule,
    Step,
    Told,
    _run,
    broken,
    draw,
    every,
    run,
    search,
    shorten,
)
from tests.lab.schedules.__main__ import main
from tests.lab.schedules._clients import CLIENTS, COOPERATIVE as COOPERATIVES, STANDBYS, STRATEGIES
from tests.support.planted_faults import (
    AIO,
    FAULTS,
    FLOWS,
    PLAIN,
    WAITS,
    claims_only_topics_that_are_subscribed,
    gives_away_what_is_held,
    goes_on_owning_when_it_is_fenced,
    takes_its_instance_id_back_on_aiokafka,
)
from tests.support.scale import scaled

ENOUGH = 2500
"""Schedules within which each planted fault shows."""

STORED = json.loads(RESULT.with_suffix(".json").read_text())

MIXED = ("ours", "waits", "unaided", "kafka-python", "java", "librdkafka")
EVERY_CLIENT = tuple(CLIENTS)
STANDBY_MIXES = [
    ("passive", "returning"),
    ("ours", "standby", "single"),
    ("ours", "standby", "java", "librdkafka", "kafka-python"),
    ("waits", "aio", *STANDBYS),
]


def scheduled(*steps: Step, strategy: str = "cooperative-sticky", **fields: Any) -> Schedule:
    return Schedule(strategy=strategy, steps=steps, **fields)


def live(*steps: Step, **fields: Any) -> Told:
    """What a schedule of these steps makes of a group."""
    return run(scheduled(*steps, **fields))


COOPERATIVE = "cooperative-sticky"
EAGER = sorted({*STRATEGIES} - COOPERATIVES)


@pytest.mark.parametrize("client", ["ours", "waits", "unaided", "aio"])
def test_no_schedule_of_three_members_breaks_their_group(client: str) -> None:
    schedules = [*every(1, client=client), *every(2, client=client)]
    assert len({schedule.script() for schedule in schedules}) == len(schedules) == 242
    assert search(schedules, processes=0).broken == []


@pytest.mark.parametrize(
    ("strategy", "clients", "count"),
    [
        *((COOPERATIVE, clients, 1000) for clients in (FLOWS, WAITS, PLAIN, MIXED, AIO, EVERY_CLIENT)),
        *((COOPERATIVE, clients, 500) for clients in STANDBY_MIXES),
        *(("sticky", clients, 200) for clients in STANDBY_MIXES[:2]),
        *(("copartitioned", clients, 500) for clients in (FLOWS, WAITS, AIO)),
        *((strategy, ("ours",), 200) for strategy in EAGER),
        *((strategy, ("aiokafka",), 250) for strategy in EAGER),
        *((strategy, EVERY_CLIENT, 200) for strategy in ("range", "sticky")),
        *(("load-aware", clients, 200) for clients in (FLOWS, WAITS, AIO, ("aiokafka",))),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_no_schedule_gives_a_partition_two_owners_or_none(
    strategy: str, clients: tuple[str, ...], count: int
) -> None:
    drawn = (draw(seed, 40, strategy=strategy, clients=clients) for seed in range(scaled(count)))
    tally = search(drawn, processes=0)
    assert tally.schedules == scaled(count)
    assert tally.broken == []


class JoinedRun(_run._ScheduleRun):
    """A schedule whose members join all topics: at no instant are partitions of one id with two members."""

    def _follow(self, event: Event) -> None:
        super()._follow(event)
        members: dict[int, set[str]] = {}
        for partition, member in self._owners.items():
            members.setdefault(partition.partition, set()).add(member)
        for number, names in members.items():
            if len(names) > 1:
                self._broken = (
                    self._broken or f"at {event.time:.3f} s, {sorted(names)} have parts of {number}"
                )


def joining(schedule: Schedule) -> Schedule:
    """A schedule whose topics stay as they are, with as many partitions, and all members subscribe to all."""
    topics = dict.fromkeys(("t", "u"), max(schedule.topics.values()))
    changes = {"subscribe", "grow", "delete", "create"}
    return replace(
        schedule,
        topics=topics,
        steps=tuple(
            replace(step, topics=tuple(topics)) if step.topics else step
            for step in schedule.steps
            if step.kind not in changes
        ),
    )


@pytest.mark.parametrize("client", ["ours", "waits", "aio"])
def test_what_is_joined_is_together_at_every_instant(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_run, "_ScheduleRun", JoinedRun)
    drawn = (
        joining(draw(seed, 40, strategy="copartitioned", clients=[client])) for seed in range(scaled(500))
    )
    assert search(drawn, processes=0).broken == []


def test_without_units_what_is_joined_would_be_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above looks for is found where a round does not look at what belongs together."""
    monkeypatch.setattr(_run, "_ScheduleRun", JoinedRun)
    drawn = (joining(draw(seed, 40)) for seed in range(20))
    assert "have parts of" in search(drawn, processes=0).broken[0][1]


def test_what_a_leader_of_another_client_gives_away_is_counted_and_breaks_nothing() -> None:
    """kafka-python's own class claims what its consumer lost, and believes such claims."""
    told = live(
        Step(kind="join", target="m1", topics=("t", "u"), client="kafka-python"),
        Step(after_ms=7, kind="freeze", target="m1"),
        Step(kind="join", target="m2", topics=("u",), client="kafka-python"),
        Step(kind="join", target="m3", topics=("t", "u")),
        Step(kind="lose answer", target="m3"),
        Step(kind="join", target="m4", topics=("t", "u"), client="kafka-python", latency_ms=5),
        Step(after_ms=9600, kind="thaw", target="m1"),
        topics={"t": 1, "u": 3},
        seed=109,
    )
    assert told.by_others > 0


@pytest.mark.parametrize("leader", ["kafka-python", "ours"])
def test_a_leader_of_another_client_that_raises_at_its_plans_is_counted_and_breaks_nothing(
    leader: str,
) -> None:
    """kafka-python's round robin raises `KeyError` at a member that does not subscribe to the next topic."""
    schedule = scheduled(
        Step(kind="join", target="m1", topics=("t",), client=leader),
        Step(after_ms=5000, kind="join", target="m2", topics=("u",), client=leader),
        strategy="roundrobin",
        topics={"t": 1, "u": 2},
        seed=1,
    )
    told = run(schedule)
    assert told.unplanned == (leader == "kafka-python")
    assert search([schedule], processes=0).unplanned == told.unplanned


FOUND = {
    # The poll takes it back at once, and a generation had begun without the member.
    "an old assignment that librdkafka kept for the next poll is no second owner": scheduled(
        Step(kind="join", target="m1", topics=("t", "u"), client="kafka-python", work_ms=1000),
        Step(
            after_ms=4300,
            kind="join",
            target="m3",
            topics=("t",),
            client="unaided",
            work_ms=1000,
            static=True,
        ),
        Step(kind="join", target="m4", topics=("t", "u"), client="librdkafka", static=True),
        Step(kind="lose answer", target="m4"),
        Step(kind="pause", target="m4"),
        Step(
            after_ms=38_600,
            kind="join",
            target="m8",
            topics=("t", "u"),
            client="unaided",
            latency_ms=40,
            static=True,
        ),
        Step(after_ms=4000, kind="cut", target="m8"),
        strategy="roundrobin",
        topics={"t": 2, "u": 2},
        seed=1018843,
        delay_ms=0,
    ),
    # Between two rebalances nobody looked at how old the last answer was.
    "a process that thaws delivers nothing before the coordinator confirms it": scheduled(
        Step(kind="join", target="m1", topics=("v",)),
        Step(after_ms=1000, kind="freeze", target="m1"),
        Step(after_ms=8000, kind="join", target="m2", topics=("v",)),
        Step(after_ms=1, kind="thaw", target="m1"),
        topics={"v": 1},
        seed=168,
    ),
    # The coordinator waited for it, and it thought that it was waiting for others.
    "a member whose join is lost delivers no longer than its rebalance timeout": scheduled(
        Step(kind="join", target="m4", topics=("u",)),
        Step(after_ms=6, kind="join", target="m5", topics=("u",)),
        Step(kind="lose answer", target="m4"),
        Step(after_ms=100, kind="move coordinator"),
        topics={"u": 1},
        seed=157,
    ),
    # The next coordinator counted that number again, and answered heartbeats of it.
    "a member whose generation was lost with its coordinator is not certain of its number": scheduled(
        Step(kind="join", target="m1", topics=("t", "u"), work_ms=900),
        Step(after_ms=1101, kind="join", target="m2", topics=("t", "u"), work_ms=900),
        Step(after_ms=1101, kind="move coordinator"),
        Step(after_ms=2, kind="lose answer", target="m1"),
        Step(after_ms=1101, kind="join", target="m3", topics=("t", "u"), work_ms=900),
        topics={"t": 2, "u": 1},
        seed=4,
        delay_ms=0,
    ),
    # Kafka-python is in its generation until LeaveGroup is answered.
    "a member that leaves as it polled too late delivers nothing meanwhile": scheduled(
        Step(kind="join", target="m2", topics=("v",), latency_ms=5),
        Step(after_ms=1, kind="pause", target="m2"),
        Step(after_ms=1000, kind="join", target="m4", topics=("v",)),
        Step(after_ms=12_000, kind="join", target="m7", topics=("v",)),
        topics={"v": 1},
        seed=253,
    ),
    # The coordinator keeps what it sent before that plan.
    "what another leader gave to a static member that hangs is not given away": scheduled(
        Step(kind="join", target="m1", topics=("t",), static=True),
        Step(kind="join", target="m2", topics=("t",)),
        Step(after_ms=3, kind="cut", target="m2"),
        Step(after_ms=8000, kind="pause", target="m1"),
        Step(kind="join", target="m3", topics=("t",)),
        Step(after_ms=10_100, kind="resume", target="m1"),
        topics={"t": 2},
        seed=1_000_278,
    ),
    # They were taken from the consumer, and its listener did not hear of it.
    "topics that go while a listener on asyncio works are revoked": scheduled(
        Step(kind="join", target="m3", topics=("t", "v"), client="aio", work_ms=500),
        Step(after_ms=1000, kind="join", target="m4", topics=("t", "v"), client="aio"),
        Step(after_ms=20, kind="subscribe", target="m3", topics=("v",)),
        topics={"t": 1, "v": 1},
        seed=313,
    ),
}
"""What search or chaos found, by what is to hold."""


@pytest.mark.parametrize("schedule", FOUND.values(), ids=[*FOUND])
def test_what_was_found_stays_mended(schedule: Schedule) -> None:
    assert sorted(run(schedule).owners) == [f"{t}-{p}" for t, n in schedule.topics.items() for p in range(n)]


def test_a_plan_of_ours_that_raises_is_never_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(Assignor, "assign", fail)
    monkeypatch.setattr(exchange, "lead", fail)
    with pytest.raises((BrokenError, KeyError)):
        run(draw(1, 40, strategy="roundrobin"))


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_each_planted_fault_is_found(plant: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """From where the stored search found it: from the first seed on, it takes a minute for some."""
    plant(monkeypatch)
    first = FIRST_SEED + STORED["planted"][plant.__name__]
    found = (seed for seed in range(first, first + ENOUGH) if broken(draw(seed, 40, clients=FAULTS[plant])))
    assert next(found, None) is not None


def test_a_schedule_that_breaks_a_group_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    gives_away_what_is_held(monkeypatch)
    drawn = (draw(seed, 40) for seed in range(100))
    shortest = [shorten(schedule) for schedule in islice(filter(broken, drawn), 3)]
    assert all("two owners" in broken(schedule) for schedule in shortest)
    assert all(shorten(schedule) == schedule for schedule in shortest)
    # One member that has everything, and another that comes; here and there it takes a detour.
    assert min(len(schedule.steps) for schedule in shortest) <= 3
    assert max(len(schedule.steps) for schedule in shortest) <= 6


def test_a_script_runs_the_same_schedule_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claims_only_topics_that_are_subscribed(monkeypatch)
    first = FIRST_SEED + STORED["planted"]["claims_only_topics_that_are_subscribed"]
    seeds = range(first, first + ENOUGH)
    schedule = next(schedule for seed in seeds if broken(schedule := draw(seed, 40, clients=PLAIN)))
    with pytest.raises(BrokenError) as error:
        exec(schedule.script(), {})  # noqa: S102 - that is what it is for
    assert str(error.value) == broken(schedule)
    monkeypatch.undo()
    exec(schedule.script(), {})  # noqa: S102
    assert capsys.readouterr().out.startswith("Told(generations=")


def test_the_same_seed_draws_the_same_schedule_and_the_same_life() -> None:
    first, again, other = (draw(seed, 40, clients=EVERY_CLIENT) for seed in (5, 5, 6))
    assert first == again != other
    assert run(first) == run(again)


def test_what_each_seed_draws_stays_as_it_was() -> None:
    """Stored results name schedules by their seeds."""
    drawn = "".join(
        draw(seed, 40, clients=clients).script()
        for seed in range(20)
        for clients in (
            ("ours",),
            ("ours", "unaided", "kafka-python", "java", "librdkafka", "aio", "aiokafka"),
        )
    )
    assert hashlib.sha256(drawn.encode()).hexdigest() == (
        "26a219223c2f3b68765794e01dbb4d3dbc6ce7c0fc832374dcfe489a2de05151"
    )
    assert "take over" not in drawn


@pytest.mark.parametrize("client", ["ours", "waits", "aio"])
def test_no_second_holder_of_an_instance_id_breaks_a_group(client: str) -> None:
    count = scaled(500)
    drawn = (draw(seed, 40, clients=[client], rare=["take over"]) for seed in range(count))
    tally = search(drawn, processes=0)
    assert tally.steps["take over"] > 0
    assert tally.broken == []


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1_001_495, id="one is fenced as it thaws"),
        pytest.param(1_001_549, id="the second restarts while the first runs"),
    ],
)
def test_a_group_whose_instance_ids_were_contended_comes_to_rest(seed: int) -> None:
    assert not broken(draw(seed, 40, rare=["take over"]))


@pytest.mark.parametrize(
    ("client", "plant"),
    [("aio", takes_its_instance_id_back_on_aiokafka), ("ours", goes_on_owning_when_it_is_fenced)],
)
def test_a_consumer_whose_instance_id_another_takes_ends(
    client: str, plant: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = scheduled(
        Step(kind="join", target="m1", topics=("t",), client=client, static=True),
        Step(after_ms=4000, kind="take over", target="m1"),
        topics={"t": 2},
    )
    assert {*run(schedule).owners.values()} == {"m1.2"}
    plant(monkeypatch)
    # They take it from each other every few milliseconds, and each is simulated.
    monkeypatch.setattr(_run, "SETTLING_MS", 5000)
    assert broken(schedule)


def test_a_slow_static_leader_that_restarts_between_two_rounds_loses_nothing() -> None:
    """Found by search: its successor gets the assignment back, and has to know that a round is to follow."""
    told = live(
        Step(kind="join", target="m1", topics=("t",), static=True),
        Step(after_ms=120, kind="join", target="m2", topics=("t",)),
        Step(after_ms=1000, kind="restart", target="m1"),
        topics={"t": 2},
        seed=372,
    )
    assert sorted(told.owners) == ["t-0", "t-1"]
    assert {*told.owners.values()} == {"m1.2", "m2"}


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_static_member_that_restarts_with_fewer_topics_gets_its_partitions_of_them(strategy: str) -> None:
    """Found by chaos: it refuses its old assignment, and would be given it again and again (KIP-345)."""
    told = live(
        Step(kind="join", target="m1", topics=("t", "u"), static=True),
        Step(kind="join", target="m2", topics=("t", "u"), static=True),
        Step(after_ms=4000, kind="restart", target="m1", topics=("t",)),
        Step(after_ms=12_000, kind="restart", target="m2", topics=("t",)),
        strategy=strategy,
        topics={"t": 2, "u": 2},
    )
    assert sorted(told.owners) == ["t-0", "t-1"]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_static_member_on_asyncio_that_restarts_with_other_topics_leaves_the_old_ones(
    strategy: str,
) -> None:
    """Found by search: it left out what it had had, and nobody else was given it (KIP-345)."""
    told = live(
        Step(kind="join", target="m7", topics=("t", "v"), client="aio"),
        Step(kind="join", target="m8", topics=("t",), client="aio", static=True),
        Step(after_ms=4000, kind="restart", target="m8", topics=("v",)),
        strategy=strategy,
        topics={"t": 1, "v": 1},
        seed=237,
    )
    assert told.owners.keys() == {"t-0", "v-0"}
    assert told.owners["t-0"] == "m7"


@pytest.mark.parametrize("client", ["java", "kafka-python"])
def test_a_static_member_of_another_client_may_refuse_its_old_topics_for_ever(client: str) -> None:
    # No rebalance comes of its restart (KIP-345), so that no leader can give it anything else.
    told = live(
        Step(kind="join", target="m1", topics=("t", "u")),
        Step(kind="join", target="m2", topics=("t", "u"), client=client, static=True, after_ms=2000),
        Step(kind="restart", target="m2", topics=("u",), after_ms=2000),
        strategy="range",
        topics={"t": 2, "u": 1},
    )
    assert told.owners == {"t-1": "m1"}  # the other is given t-0 and u-0, and takes neither


@pytest.mark.parametrize(
    ("client", "strategy", "fault"),
    [("nobody's", "range", 'no client "nobody\'s"'), ("ours", "none", "no strategy 'none'")],
)
def test_what_does_not_exist_is_refused(client: str, strategy: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        live(Step(kind="join", target="m", topics=("t",), client=client), strategy=strategy, topics={"t": 1})


def test_the_command_says_what_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "5", "--processes", "0"]) == 0
    assert capsys.readouterr().out.startswith("5 schedules of up to 40 steps, ")


def test_the_command_prints_the_shortest_schedule_that_breaks_a_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gives_away_what_is_held(monkeypatch)
    assert main(["--seed", "25", "--count", "10", "--processes", "0"]) == 1
    shown = capsys.readouterr().out
    assert "broken" in shown.splitlines()[0]
    assert "schedule = Schedule(" in shown
    assert "has two owners at" in shown
