"""Scripts of chaos follow from their seeds, stay within their limits, and make sense."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from kafka import TopicPartition

from kafka_assignors._timelines.timeline import Timeline
from tests.lab.chaos import (
    EXCLUSIVE,
    PROMISES,
    Limits,
    Script,
    ScriptStep,
    bound,
    plan_events,
)
from tests.lab.chaos.__main__ import jobs, main
from tests.lab.chaos._model import Model
from tests.lab.chaos._promises import cause, keep, without_excuse
from tests.lab.chaos._script import WEIGHTS, count_kinds
from tests.support.timelines import P0, P1, event, history, lived, records, start, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors._timelines.events import Event

LIMITS = st.builds(
    lambda fewest, more, partitions, nodes, slow: Limits(
        fewest=fewest, most=fewest + more, partitions=tuple(partitions), nodes=nodes, slow=slow
    ),
    st.integers(1, 3),
    st.integers(1, 6),
    st.lists(st.integers(1, 24), min_size=1, max_size=3),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 0.4, 1.0]),
)
SCRIPTS = st.builds(plan_events, st.integers(0, 2**32), st.integers(3, 60), LIMITS)

# What a script is, by hand: nothing of the model is used here.


class Found:
    """A group and cluster that a script is done to, in the plainest way."""

    def __init__(self, script: Script) -> None:
        self.limits = script.limits
        self.members: dict[str, set[str]] = {}
        self.statics: set[str] = set()
        self.frozen: set[str] = set()
        self.paused: set[str] = set()
        self.down: set[str] = set()
        self.sizes = dict(zip(script.limits.topics, script.limits.partitions, strict=True))

    def do(self, step: ScriptStep) -> None:
        match step.kind:
            case "join":
                assert step.target not in self.members
                self.members[step.target] = {*step.topics}
                self.statics |= {step.target} if step.static else set()
            case "leave" | "crash":
                assert not (step.kind == "leave" and step.target in self.frozen)
                del self.members[step.target]
                self.frozen -= {step.target}
                self.paused -= {step.target}
            case "freeze":
                assert step.target in self.healthy
                self.frozen.add(step.target)
            case "thaw":
                self.frozen.remove(step.target)
            case "pause":
                assert step.target in self.healthy
                self.paused.add(step.target)
            case "resume":
                self.paused.remove(step.target)
            case "restart" | "crash and restart":
                assert step.target in self.healthy & self.statics
            case "subscribe":
                assert step.target in self.healthy
                assert self.members[step.target] != {*step.topics}
                self.members[step.target] = {*step.topics}
            case _:
                self.disturb(step)

    def disturb(self, step: ScriptStep) -> None:
        match step.kind:
            case "grow":
                assert not self.down
                assert self.sizes[step.target] < step.partitions
                self.sizes[step.target] = step.partitions
            case "kill broker" | "stop broker":
                assert not self.down
                self.down.add(step.target)
            case "start broker":
                self.down.remove(step.target)
            case "move coordinator":
                assert not self.down
        if step.kind != "grow":
            assert self.limits.nodes == 3

    @property
    def healthy(self) -> set[str]:
        return self.members.keys() - self.frozen - self.paused


def lives(script: Script) -> Iterator[tuple[ScriptStep, Found]]:
    """After each step what there is."""
    found = Found(script)
    for step in script.steps:
        found.do(step)
        yield step, found


@given(SCRIPTS)
def test_every_script_keeps_its_group_and_cluster_alive(script: Script) -> None:
    limits = script.limits
    for number, (step, found) in enumerate(lives(script), 1):
        assert found.healthy
        wanted = set[str]().union(*(found.members[name] for name in found.healthy))
        assert wanted == found.sizes.keys(), f"step {number} ({step}) leaves a topic to nobody"
        assert len(found.members) <= limits.most
        assert number < limits.fewest or len(found.members) >= limits.fewest
        assert len(found.down) <= 1
        assert max(found.sizes.values()) <= limits.most_partitions
    assert (found.frozen, found.paused, found.down) == (set(), set(), set())
    assert step.settle


@given(SCRIPTS)
def test_no_step_hides_what_the_group_may_not_have_seen(script: Script) -> None:
    anew: set[str] = set()
    unwatched = False
    for step, _ in lives(script):
        if step.kind in {"restart", "crash and restart"}:
            assert not anew & {step.target, "topics"}
            unwatched = True
        elif step.kind == "subscribe":
            assert step.target not in anew
            anew.add(step.target)
            unwatched = False
        elif step.kind == "grow":
            assert not unwatched
            anew.add("topics")
        elif step.kind in {"join", "leave", "crash"}:
            unwatched = False
        if step.settle:
            anew.clear()


def test_slow_members_lead_and_meet_faults_of_brokers() -> None:
    scripts = [plan_events(seed, 30) for seed in range(30)]
    assert any(script.steps[0].poll_ms for script in scripts)

    def meets_a_fault(script: Script) -> bool:
        slow: set[str] = set()
        for step, found in lives(script):
            if step.kind == "join" and step.poll_ms:
                slow.add(step.target)
            slow &= found.members.keys()
            if slow and step.kind in {"kill broker", "stop broker", "move coordinator"}:
                return True
        return False

    assert any(meets_a_fault(script) for script in scripts)


def test_the_share_of_slow_members_is_as_the_limits_say() -> None:
    def paces(slow: float) -> set[tuple[bool, bool]]:
        """Of the members of led groups that join after the first: whether they poll briefly, and work."""
        scripts = [plan_events(seed, 6, Limits(slow=slow)) for seed in range(50)]
        return {
            (step.poll_ms in {50, 75, 100}, 500 <= step.work_ms <= 3000)
            for script in scripts
            for step in script.steps[1:2]
            if script.steps[0].settle
        }

    assert paces(0) == {(False, False)}
    assert paces(0.4) == {(False, False), (True, True)}
    assert paces(1) == {(True, True)}


def test_joins_and_changed_subscriptions_come_in_bursts_within_seconds() -> None:
    scripts = [plan_events(seed, 50) for seed in range(40)]
    bursts = [burst for script in scripts for burst in split_into_bursts(script)]
    joins = [burst for burst in bursts if {step.kind for step in burst} == {"join"} and len(burst) > 2]
    assert {len(burst) for burst in joins} == {3, 4, 5, 6}
    assert {step.gap for burst in joins for step in burst[1:]} == {0, 0.5, 1, 1.5, 2}
    restless = [burst for burst in bursts if len(burst) > 6]
    assert {step.kind for burst in restless for step in burst} >= {"join", "leave", "subscribe"}
    assert {step.gap for burst in restless for step in burst[1:]} == {0.5, 1, 1.5}
    amid = [burst for burst in bursts if len(burst) > 1 and burst[-1].kind == "subscribe"]
    assert {0, 0.1, 0.3, 0.6} <= {step.gap for burst in amid for step in burst[1:]}
    together = [burst for burst in amid if burst[-2].kind == "subscribe" and burst[-1].gap == 0]
    assert len(together) >= 10
    assert {burst[0].kind for burst in amid} >= {"join", "leave", "crash"}


def split_into_bursts(script: Script) -> Iterator[list[ScriptStep]]:
    burst = []
    for step in script.steps:
        burst.append(step)
        if step.settle:
            yield burst
            burst = []


def test_a_script_has_as_many_steps_as_were_asked_for_and_all_kinds_come() -> None:
    scripts = [plan_events(seed, 50) for seed in range(40)]
    assert {len(script.steps) for script in scripts} == {50}
    kinds = count_kinds(scripts)
    assert kinds.keys() == WEIGHTS.keys()
    assert min(kinds.values()) >= 20
    bursts = [step.settle for script in scripts for step in script.steps]
    assert 0.3 < sum(bursts) / len(bursts) < 0.5


def test_a_cluster_of_one_is_left_alone() -> None:
    kinds = count_kinds([plan_events(seed, 50, Limits(nodes=1)) for seed in range(20)])
    assert not {kind for kind in kinds if "broker" in kind or "coordinator" in kind}


# Saving -------------------------------------------------------------------------------------------------


def test_a_step_that_makes_no_sense_is_not_drawn() -> None:
    model = Model(Limits())
    model.take(ScriptStep(kind="join", target="m1", topics=("t1", "t2")))
    for step, why in (
        (ScriptStep(kind="thaw", target="m1"), "m1 is not frozen"),
        (ScriptStep(kind="resume", target="m1"), "m1 is not paused"),
        (ScriptStep(kind="crash", target="m1"), "2 members have to stay"),
        (ScriptStep(kind="freeze", target="m1"), "nobody else is there for the topics of m1"),
        (ScriptStep(kind="restart", target="m1"), "m1 is no static member"),
        (
            ScriptStep(kind="subscribe", target="m1", topics=("t1",)),
            "nobody else is there for what m1 gives up",
        ),
        (ScriptStep(kind="grow", target="t1", partitions=16), "t1 has 16 partitions"),
        (ScriptStep(kind="start broker", target="1"), "node 1 is not down"),
    ):
        assert model.objection(step) == why


def test_too_few_events_for_the_members_to_begin_with_are_refused() -> None:
    with pytest.raises(ValueError, match="3 events: 4 members have to join"):
        plan_events(1, 3, Limits(fewest=4))


def test_a_member_changes_its_topics_once_before_the_group_settles() -> None:
    model = Model(Limits())
    for name in ("m1", "m2"):
        model.take(ScriptStep(kind="join", target=name, topics=("t1", "t2")))
    there = ScriptStep(kind="subscribe", target="m1", topics=("t1",), settle=False)
    back = replace(there, topics=("t1", "t2"))
    model.take(there)
    assert model.objection(back) == "m1 may not have joined with its new topics"
    model.take(ScriptStep(kind="move coordinator"))
    assert model.objection(back) is None


def test_a_growing_topic_waits_for_a_broker_that_is_down_and_for_somebody_who_watches() -> None:
    model = Model(Limits())
    for step in plan_events(1, 2).steps:
        model.take(replace(step, static=True))
    grow = ScriptStep(kind="grow", target="t1", partitions=17)
    assert model.objection(grow) is None
    model.take(ScriptStep(kind="kill broker", target="2"))
    assert "a broker is down" in str(model.objection(grow))
    model.take(ScriptStep(kind="start broker", target="2"))
    model.take(ScriptStep(kind="restart", target="m1"))
    assert "perhaps nobody watches" in str(model.objection(grow))
    model.take(ScriptStep(kind="join", target="m3", topics=("t1", "t2")))
    assert model.objection(grow) is None
    model.take(replace(grow, settle=False))
    assert "not have seen that a topic grew" in str(model.objection(ScriptStep(kind="restart", target="m1")))


# Promises -----------------------------------------------------------------------------------------------


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]


def test_a_partition_with_two_owners_breaks_every_promise_of_exclusive_ones() -> None:
    timeline = history({"a": "01", "b": "12"})
    with pytest.raises(AssertionError, match="given the same partitions"):
        keep(EXCLUSIVE, timeline, 1, partitions(3), -1)
    keep(PROMISES["broadcast"], timeline, 1, partitions(3), -1)


def test_an_application_that_was_not_told_is_excused_only_out_of_the_group() -> None:
    def timeline(members_of_the_second: dict[str, str]) -> Timeline:
        return lived(
            *start(0, "a", "t"),
            *start(0, "b", "t"),
            *told(1, 1, {"a": "01", "b": "2"}),
            *told(2, 2, members_of_the_second),
            end=3,
        )

    keep(EXCLUSIVE, timeline({"b": "012"}), 2, partitions(3), -1)  # a is frozen
    found = [*without_excuse(timeline({"b": "12", "a": "0"}))]
    assert [(one.partition, one.members) for one in found] == [(TopicPartition("t", 1), ("a", "b"))]
    with pytest.raises(AssertionError, match=r"t-1 was still a's by its application when b got it"):
        keep(EXCLUSIVE, timeline({"b": "12", "a": "0"}), 2, partitions(3), -1)


def identified(member_id: str, *events: Event) -> list[Event]:
    """Events with the id that the coordinator gave their member."""
    return [replace(one, member_id=member_id) for one in events]


def test_a_member_that_has_not_taken_its_assignment_is_in_the_group_by_its_leaders_list() -> None:
    def timeline(ids: set[str]) -> Timeline:
        return lived(
            *identified("id-a", *told(1, 1, {"a": "01"})),
            *identified("id-b", event(1.9, "b", "assign", generation=2, claims=dict.fromkeys(ids))),
            *identified("id-b", *told(2, 2, {"b": "1"})),
            event(2.5, "a", "revoked", P1),
            end=3,
        )

    found = [*without_excuse(timeline({"id-a", "id-b"}))]
    assert [(one.partition, one.members, one.seconds) for one in found] == [(P1, ("a", "b"), 0.5)]
    assert [*without_excuse(timeline({"id-b"}))] == []  # it was expelled


def test_a_member_that_has_not_taken_its_assignment_is_in_the_group_by_its_own_word() -> None:
    events = [
        *identified("id-a", *told(1, 1, {"a": "01"})),
        *identified("id-b", *told(2, 2, {"b": "1"})),
        event(2.5, "a", "revoked", P1),
    ]
    joins_again = event(2.2, "a", "metadata", generation=2)
    assert len([*without_excuse(Timeline([*events, *identified("id-a", joins_again)]))]) == 1
    assert [*without_excuse(Timeline(events))] == []
    # It was expelled, and came back before its application heard so.
    assert [*without_excuse(Timeline([*events, *identified("id-new", joins_again)]))] == []


@pytest.mark.parametrize(
    ("done", "why"),
    [
        ([(1.2, "frozen")], "was frozen"),
        ([(1.2, "frozen"), (1.9, "thawed")], "was frozen"),
        ([(1.2, "paused")], "did not poll"),
        ([(2.3, "frozen")], "neither"),
        ([], "neither"),
    ],
)
def test_two_owners_at_once_have_a_cause_and_the_records_that_the_former_one_got(
    done: list[tuple[float, str]], why: str
) -> None:
    def found(*ranges: tuple[TopicPartition, int, int]) -> str:
        timeline = lived(
            *told(1, 1, {"a": "01"}),
            *(event(time, "a", kind) for time, kind in done),
            *told(2, 2, {"b": "1"}),
            records(2.4, "a", *ranges),
            event(2.5, "a", "revoked", P1),
            end=3,
        )
        (overlap,) = timeline.overlaps("callback")
        return cause(timeline, overlap)

    assert found() == found((P0, 0, 3)) == why
    assert found((P1, 0, 3)) == f"{why}, and got records"


def test_a_silent_static_member_is_excused_where_the_strategy_gives_its_partitions_away() -> None:
    def timeline(*joining: Event, instance_id: str | None = "static", claimed: int = 0) -> Timeline:
        return lived(
            event(0, "a", "started", instance_id=instance_id),
            event(0.5, "a", "metadata", claimed_generation=claimed),
            *identified("id-a", *told(1, 1, {"a": "01"})),
            *joining,
            *identified("id-b", event(1.9, "b", "assign", generation=2, claims={"id-a": {}, "id-b": {}})),
            *identified("id-b", *told(2, 2, {"b": "1"})),
            end=3,
        )

    silent = timeline()
    assert [*without_excuse(silent, keeps_silent=False)] == []
    assert len([*without_excuse(silent)]) == 1
    assert [*without_excuse(timeline(claimed=-1))] == []  # another leader takes it for new
    keep(PROMISES["random"], silent, 2, partitions(2), -1)
    with pytest.raises(AssertionError, match=r"t-1 was still a's by its application when b got it"):
        keep(PROMISES["cooperative-sticky"], silent, 2, partitions(2), -1)
    for answers in (timeline(event(1.5, "a", "metadata")), timeline(instance_id=None)):
        assert len([*without_excuse(answers, keeps_silent=False)]) == 1


def test_a_member_that_came_back_under_another_id_answers_for_what_it_was_given_then() -> None:
    timeline = lived(
        *identified("id-a", *told(1, 1, {"a": "01"})),
        *identified("id-new", event(2, "a", "assignment", P0, P1, generation=2)),
        *identified("id-b", *told(3, 3, {"b": "1"})),
        *identified("id-new", event(3.2, "a", "metadata", generation=3)),
        event(3.5, "a", "revoked", P1),
    )
    assert [one.members for one in without_excuse(timeline)] == [("a", "b")]


def test_loads_are_held_against_what_each_strategy_promises() -> None:
    uneven = history({"a": "012", "b": "3"})
    for name in ("sticky", "cooperative-sticky", "roundrobin"):
        with pytest.raises(AssertionError, match="is not balanced"):
            keep(PROMISES[name], uneven, 1, partitions(4), -1)
    with pytest.raises(AssertionError, match="does not share t out evenly: a has 3, b has 1"):
        keep(PROMISES["range"], uneven, 1, partitions(4), -1)
    keep(PROMISES["random"], uneven, 1, partitions(4), -1)
    even = history({"a": "01", "b": "23"})
    for promise in PROMISES.values():
        if promise.sharing == "exclusive":
            keep(promise, even, 1, partitions(4), -1)


def test_moves_count_for_sticky_strategies_and_only_once() -> None:
    timeline = history({"a": "01", "b": "23"}, {"a": "02", "b": "13"})
    with pytest.raises(AssertionError, match="more partitions moved than had to"):
        keep(PROMISES["sticky"], timeline, 2, partitions(4), 1)
    keep(PROMISES["sticky"], timeline, 2, partitions(4), 2)
    keep(PROMISES["range"], timeline, 2, partitions(4), 1)


def test_a_static_member_that_restarted_in_a_generation_counts_once() -> None:
    timeline = lived(
        *start(0, "a", "t", instance_id="one"),
        *start(0, "b", "t"),
        *told(1, 1, {"a": "01", "b": "23"}),
        event(2, "a", "closed"),
        *start(3, "a.2", "t", instance_id="one"),
        *told(3.5, 1, {"a.2": "01"}),
    )
    for name in ("range", "roundrobin", "sticky"):
        keep(PROMISES[name], timeline, 1, partitions(4), -1)


def test_the_bound_follows_from_the_settings() -> None:
    quick = {"session_timeout_ms": 3000, "max_poll_interval_ms": 6000}
    heard = {"heartbeat_interval_ms": 300, "metadata_max_age_ms": 700}
    assert bound({**quick, **heard}) == 3 * 10 + 60
    assert bound({}) == 3 * 613 + 60
    assert bound({**quick, **heard}, slowest_ms=2100) == 3 * (10 + 21) + 60


# Command and page ---------------------------------------------------------------------------------------


def test_events_are_spread_over_scripts_with_a_seed_each() -> None:
    found = jobs(["range", "sticky"], 5, 120, Limits())
    assert [(job.assignor, job.script.seed, len(job.script.steps)) for job in found] == [
        ("range", 5, 50),
        ("sticky", 6, 50),
        ("range", 7, 50),
        ("sticky", 8, 50),
        ("range", 9, 20),
        ("sticky", 10, 20),
    ]
    command = "python -m tests.lab.chaos --seed 10 --events 20"
    assert found[-1].command == f"{command} --assignor sticky"
    (other,) = jobs(["sticky"], 10, 20, Limits(slow=0.25), "aiokafka")
    assert other.command == f"{command} --slow 0.25 --assignor sticky --client aiokafka"


def test_the_command_prints_the_script_that_its_seed_gives() -> None:
    asked = ["--seed", "7", "--events", "20", "--assignor", "range", "--script"]
    for more, scripts in (
        ((), [plan_events(7, 20)]),
        (("--slow", "0"), [plan_events(7, 20, Limits(slow=0))]),
        (("--assignor", "sticky"), [plan_events(7, 20), plan_events(8, 20)]),
    ):
        printed = CliRunner().invoke(main, [*asked, *more])
        assert printed.stdout == "".join(f"{script}\n" for script in scripts)
        assert (printed.exit_code, printed.stderr) == (0, "seed 7\n")
