"""A cluster of three brokers that commands reach."""

import pytest

from tests.support.fake_cluster import Cluster, open_as


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A topic's one partition is on brokers 1 and 2."""
    cluster = Cluster({"orders": {0: [1, 2]}})
    open_as(cluster, monkeypatch)
    return cluster
