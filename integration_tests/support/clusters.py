"""Clusters that tests fill, break or lock, so that a given one will not do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_assignors.testing import Cluster, kafka_cluster
from kafka_assignors.testing._plugin import options

AUTHORIZED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # who comes to the kit's own listener
}
"""Settings of brokers whose users need rights."""


def write_properties(cluster: Cluster, path: Path, password: str | None) -> Path:
    """Properties for a client that has this password."""
    security = cluster.security
    path.write_text(
        f"security.protocol={security.protocol}\nsasl.mechanism={security.mechanism}\n"
        f"sasl.username={security.username}\nsasl.password={password}\n",
        encoding="utf-8",
    )
    return path


@contextmanager
def own_cluster(config: pytest.Config, nodes: int = 1, **more: Any) -> Iterator[Cluster]:
    """Start a cluster in the configured way, or skip where pytest was given a running one."""
    configured = options(config)
    if configured.bootstrap is not None:
        pytest.skip(f"the cluster at {configured.bootstrap} is given: not ours to fill, break or lock")
    with kafka_cluster(nodes, how=configured.how, **more) as cluster:
        yield cluster
