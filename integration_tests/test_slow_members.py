"""Members that poll briefly and work for long, in a cooperative group that others join one after the other.

kafka-python throws away a join that completes between two of their polls
(`BaseCoordinator.join_group_async`), so they hold what they had before through several generations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.slow_members import Scenario, live

if TYPE_CHECKING:
    from kafka_assignors.testing import Cluster


@pytest.mark.parametrize(
    "scenario", [Scenario(), Scenario(poll_ms=50, work_ms=3000)], ids=["1 s of work", "3 s of work"]
)
def test_no_partition_has_two_owners_while_others_join_beside_slow_members(
    scenario: Scenario, kafka_cluster: Cluster
) -> None:
    run, timeline = live(kafka_cluster, scenario, seed=1)
    assert run.failure == ""
    assert run.twice == 0, timeline.chart()
    assert [*timeline.double_assigned()] == []
    timeline.assert_balanced()
