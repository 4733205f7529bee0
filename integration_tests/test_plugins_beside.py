"""pytest-xdist beside the plug-in, with real brokers, in a pytest of its own."""

import json
from pathlib import Path

import pytest

from kafka_assignors.testing._brokers import jars
from tests.support import plugin

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

OF_WORKERS = """
import json
import pathlib
import pytest


@pytest.mark.parametrize("number", range(4))
def test(number, worker_id, kafka_cluster, consumer_group):
    group = consumer_group(partitions=2, members=1)
    group.wait_stable(expect={"m1": 2})
    seen = [worker_id, *kafka_cluster.bootstrap_servers]
    pathlib.Path(f"{number}.json").write_text(json.dumps(seen))
"""


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jars that are there already, and kept clusters that are nobody else's."""
    whole = jars.cache_folder()
    own = tmp_path / "cache"
    own.mkdir()
    for one in whole.iterdir() if whole.exists() else ():
        if one.name != "kept":
            (own / one.name).symlink_to(one)
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(own))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)


def test_workers_share_a_cluster_that_is_kept(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OF_WORKERS)
    result = pytester.runpytest_subprocess(
        *("-n2", "--dist=load", "--kafka=embedded", "--kafka-keep=2"),
        *(*plugin.ALONE, *plugin.LOADED),
    )
    result.assert_outcomes(passed=4)
    seen = [json.loads((pytester.path / f"{number}.json").read_text(encoding="utf-8")) for number in range(4)]
    assert len({worker for worker, *_ in seen}) == 2
    assert len({server for _, server in seen}) == 1
