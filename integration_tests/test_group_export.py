"""`kafka-assignors group export`: what Prometheus reads of groups, once and served."""

import os
import re
import signal
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from integration_tests.support.commands import begin_command, next_error_line, run_command
from integration_tests.support.records import commit, produce
from kafka_assignors.testing import Cluster, ConsumerGroup, create_topic

PATIENCE = 60.0  # seconds

Samples = dict[str, float]


def samples(text: str, group_id: str) -> Samples:
    """Each sample of the group and of the whole, by its name and the values of its other labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            assert one.labels.pop("group", group_id) == group_id
            found[" ".join([one.name, *(value for _, value in sorted(one.labels.items()))])] = one.value
    assert found.pop("kafka_groups_read_seconds") > 0
    return found


def make(cluster: Cluster, group_id: str) -> str:
    """A group that has read four records of ten; its topic."""
    topic = create_topic(cluster, 1)
    produce(cluster, topic, {0: 10})
    commit(cluster, group_id, topic, 4)
    return topic


def test_metrics_are_printed_or_written_once(kafka_cluster: Cluster, group_id: str, tmp_path: Path) -> None:
    topic = make(kafka_cluster, group_id)
    printed = run_command(kafka_cluster, "group", "export", group_id)
    path = tmp_path / "groups.prom"
    written = run_command(kafka_cluster, "group", "export", group_id, "--output", str(path))
    assert (printed.returncode, written.returncode, written.stdout) == (0, 0, "")
    wanted = {
        "kafka_groups_up": 1.0,
        "kafka_group_state Empty classic": 1.0,
        "kafka_group_described": 1.0,
        "kafka_group_members": 0.0,
        "kafka_group_lag_known": 1.0,
        **dict.fromkeys([f"kafka_group_problems {one}" for one in ("error", "warning", "note")], 0.0),
        "kafka_group_uncommitted_partitions": 0.0,
        f"kafka_group_lag_records 0 {topic}": 6.0,
        f"kafka_group_lost_records 0 {topic}": 0.0,
    }
    assert samples(printed.stdout, group_id) == wanted
    assert samples(path.read_text(encoding="utf-8"), group_id) == wanted
    assert [one.name for one in tmp_path.iterdir()] == ["groups.prom"]


def test_metrics_are_served_anew_at_each_request(kafka_cluster: Cluster, group_id: str) -> None:
    topic = make(kafka_cluster, group_id)
    with begin_command(kafka_cluster, "group", "export", group_id, "--listen", "0") as process:
        try:
            said = next_error_line(process)
            match = re.fullmatch(r"serving (http://127\.0\.0\.1:\d+/metrics); Ctrl-C ends it\n", said)
            assert match is not None, said

            def read() -> Samples:
                with urllib.request.urlopen(match[1], timeout=PATIENCE) as response:  # noqa: S310 - our own
                    return samples(response.read().decode(), group_id)

            assert read()["kafka_group_members"] == 0.0
            with ConsumerGroup(
                kafka_cluster,
                topic,
                client="confluent-kafka",
                group_id=group_id,
                settings={"group_protocol": "consumer"},
            ) as group:
                group.join()
                group.wait_stable()
                found = read()
            assert found["kafka_group_state Stable consumer"] == 1.0
            assert found["kafka_group_members"] == 1.0
            assert found["kafka_group_epoch"] >= 1.0
            assert found["kafka_group_unowned_partitions"] == 0.0
        finally:
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
