"""`kafka-assignors history watch`: a running group's rebalances, as they happen."""

import json
import signal
import threading
from typing import Any

from integration_tests.support.commands import begin_command, next_error_line
from integration_tests.support.waiting import wait_for
from kafka_assignors._assignors import CooperativeStickyAssignor
from kafka_assignors.testing import Cluster, ConsumerGroup
from kafka_assignors.testing._plugin import TopicFactory


def test_rebalances_are_told_as_they_happen(kafka_cluster: Cluster, topic_factory: TopicFactory) -> None:
    topic = topic_factory(6)
    settings = {"session_timeout_ms": 45_000}  # nobody is to be missed on a laden machine
    told: list[dict[str, Any]] = []
    with ConsumerGroup(
        kafka_cluster, topic, [CooperativeStickyAssignor], settings=settings, timeout=240
    ) as group:
        group.join("a")
        group.join("b", instance_id="inst-b")
        group.wait_stable()
        with begin_command(kafka_cluster, "history", "watch", group.group_id, "--json") as watcher:
            assert watcher.stdout is not None
            assert next_error_line(watcher) == f"watching {group.group_id}; Ctrl-C ends it\n"
            out = watcher.stdout
            reader = threading.Thread(target=lambda: told.extend(map(json.loads, out)))
            reader.start()

            def wait(*kinds: str) -> dict[str, Any]:
                """The rebalance for such a reason; members may begin more rounds, for none that is known."""

                def found() -> list[dict[str, Any]]:
                    return [one for one in told if {*kinds} & {each["kind"] for each in one["reasons"]}]

                wait_for(" or ".join(kinds), found, 60)
                return found()[0]

            try:
                group.join("c")
                stable = group.wait_stable()
                joined = wait("member joined")
                group.members["b"].restart()
                group.wait_stable()
                returned = wait("static member came back")
                group.members["c"].leave()
                group.wait_stable()
                left = wait("member left", "member gone")
            finally:
                watcher.send_signal(signal.SIGINT)
                assert watcher.wait(30) == 0
                reader.join()
    assert [reason["kind"] for reason in joined["reasons"]] == ["member joined"]
    # The two generations of the hand-over are one rebalance.
    assert joined["first_generation"] < joined["generation"] <= stable.generation
    assert joined["members"] == 3
    assert (joined["moved"], joined["least_moved"], joined["imbalance"]) == (2, 2, 0)
    assert (returned["quiet"], [reason["kind"] for reason in returned["reasons"]]) == (
        True,
        ["static member came back"],
    )
    assert {reason["kind"] for reason in left["reasons"]} <= {"member left", "member gone"}
    assert (left["members"], left["gone"]) == (2, 1)
    for rebalance in (joined, returned, left):
        assert [one["partition"] for one in rebalance["lag"]["partitions"]] == [0, 1, 2, 3, 4, 5]
    assert {one["owner"] is None for one in left["lag"]["partitions"]} == {False}
    assert left["unowned"] == []


def test_that_a_group_does_not_exist_is_said_at_once(
    kafka_cluster: Cluster, topic_factory: TopicFactory, group_id: str
) -> None:
    topic = topic_factory(2)
    with begin_command(kafka_cluster, "history", "watch", group_id) as watcher:
        assert watcher.stdout is not None
        try:
            assert next_error_line(watcher) == (
                f"watching {group_id}, which does not exist yet; Ctrl-C ends it\n"
            )
            group = ConsumerGroup(
                kafka_cluster, topic, [CooperativeStickyAssignor], group_id=group_id, timeout=240
            )
            with group:
                group.join("a")
                group.wait_stable()
                lines = [watcher.stdout.readline() for _ in range(2)]
                while "lag: " not in lines[-1] or "by member" in lines[-1]:
                    lines.append(watcher.stdout.readline())
        finally:
            watcher.send_signal(signal.SIGINT)
            assert watcher.wait(30) == 0
    assert "  lag by member: a 0\n" in lines
    assert lines[-1] == "  lag: 0 records in 2 partitions\n"
