"""What `group explain` predicts of range and round robin, held to the clients that lead such groups."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from integration_tests.support.commands import run_command
from kafka_assignors.testing import ConsumerGroup, create_topic

if TYPE_CHECKING:
    from kafka_assignors.testing import Cluster

LEADERS = {
    "confluent-kafka": "librdkafka",
    "kafka-python": "kafka-python",
    "aiokafka": "aiokafka",
    "java": "java",
}


def explained(cluster: Cluster, group_id: str, *arguments: str) -> Any:
    done = run_command(cluster, "group", "explain", group_id, "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("client", LEADERS)
def test_nothing_is_said_to_move_that_its_leader_would_not_move(
    kafka_cluster: Cluster, group_id: str, client: str, strategy: str
) -> None:
    topic = create_topic(kafka_cluster, 10)
    place: Any = "process" if client == "java" else "thread"
    with ConsumerGroup(
        kafka_cluster,
        topic,
        [strategy],
        client=client,
        group_id=group_id,
        place=place,
        timeout=240,
    ) as group:
        # Ids between those of dynamic members, and in the other order than the members' names.
        for name, instance_id in (("c", None), ("b", "d-z"), ("e", None), ("f", "a-y")):
            group.join(name, instance_id=instance_id)
        group.wait_stable()
        found = explained(kafka_cluster, group_id, "--leader-client", LEADERS[client])
        guessed = explained(kafka_cluster, group_id)
        text = run_command(kafka_cluster, "group", "explain", group_id).stdout
    assert found["predictions"][LEADERS[client]] == []
    assert found["would_move"] == []
    others = {name: moves for name, moves in found["predictions"].items() if name != LEADERS[client]}
    assert any(others.values()), "the members do not tell the clients apart"
    if client in {"confluent-kafka", "java"}:  # what the others send is the same
        assert guessed["leader_client"] == LEADERS[client]
        assert "\nin a rebalance now nothing would move, by " in text
    else:
        assert guessed["leader_client"] is None
        assert "by the client that leads, which is" in " ".join(text.split())
