"""Which way a cluster is had, what is refused, and how waiting for brokers ends; no broker is started."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from kafka_assignors.testing import cluster, embedded
from kafka_assignors.testing.broker import BrokerDiedError, ClusterUnavailableError, wait_until_complete
from kafka_assignors.testing.cluster import Cluster, choose_way, kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NOBODY = "127.0.0.1:1"  # a port on which nothing listens


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("KAFKA_IMAGE", raising=False)


@dataclass
class FakeBroker:
    node_id: int = 1
    bootstrap: str = NOBODY
    text: str = "[INFO] Kafka Server started"
    dead: bool = False

    def has_died(self) -> bool:
        return self.dead

    def log(self) -> str:
        return self.text


# The way ----------------------------------------------------------------------------------------------


def test_a_named_cluster_is_taken_before_all_others() -> None:
    assert choose_way("b:9092", "image", lambda: True) == "given"


def test_a_named_image_means_docker_even_if_docker_will_then_fail() -> None:
    assert choose_way(None, "image", lambda: False) == "docker"


def test_docker_is_taken_if_it_has_an_image_and_nothing_is_named() -> None:
    assert choose_way(None, None, lambda: True) == "docker"


def test_without_docker_the_embedded_cluster_is_taken() -> None:
    assert choose_way("", "", lambda: False) == "embedded"


def test_docker_is_not_asked_if_a_cluster_is_named() -> None:
    def ask() -> bool:
        raise AssertionError

    assert choose_way("b:9092", None, ask) == "given"


def enter(
    nodes: int = 1,
    how: cluster.How | None = None,
    bootstrap: str | None = None,
    settings: Mapping[str, str | int] | None = None,
) -> Cluster:
    with kafka_cluster(nodes, how=how, bootstrap=bootstrap, settings=settings) as running:
        return running


def test_the_servers_named_in_the_environment_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def count(bootstrap: str) -> int:
        asked.append(bootstrap)
        return 3

    monkeypatch.setattr(cluster, "count_brokers", count)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "a:1, b:2")
    assert enter() == Cluster(["a:1", "b:2"], nodes=3, how="given")
    assert asked == ["a:1, b:2"]


def test_an_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "count_brokers", lambda _: 1)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "a:1")
    assert enter(bootstrap="b:2").bootstrap_servers == ["b:2"]


def test_insisting_on_one_way_goes_before_a_cluster_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "a:1")
    monkeypatch.setattr(embedded, "started_brokers", lambda *_, **__: contextlib.nullcontext([FakeBroker()]))
    assert enter(how="embedded").how == "embedded"


# What is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [0, 2, 4])
def test_only_one_or_three_nodes_are_had(nodes: int) -> None:
    with pytest.raises(ValueError, match=f"nodes={nodes}: a cluster has 1 or 3"):
        enter(nodes)


def test_naming_a_cluster_and_insisting_on_another_is_refused() -> None:
    with pytest.raises(ValueError, match="names a running cluster, but how='docker' starts one"):
        enter(bootstrap="b:1", how="docker")


def test_insisting_on_a_given_cluster_without_naming_one_is_an_error() -> None:
    with pytest.raises(ClusterUnavailableError, match="no running cluster is named: set KAFKA_BOOTSTRAP"):
        enter(how="given")


def test_a_given_cluster_takes_no_settings() -> None:
    with pytest.raises(ClusterUnavailableError, match=r"\['a.b'\] cannot be set on it"):
        enter(bootstrap=NOBODY, settings={"a.b": 1})


def test_a_given_cluster_must_answer() -> None:
    with pytest.raises(ClusterUnavailableError, match=f"no broker answers at {NOBODY}"):
        enter(bootstrap=NOBODY)


def test_a_given_cluster_must_have_the_nodes_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "count_brokers", lambda _: 1)
    with pytest.raises(ClusterUnavailableError, match="has 1 of the 3 brokers asked for"):
        enter(3, bootstrap=NOBODY)


# Waiting, and death -----------------------------------------------------------------------------------


def test_waiting_ends_when_all_have_started_and_see_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"a": iter([0, 1, 2]), "b": iter([2])}
    monkeypatch.setattr(
        f"{wait_until_complete.__module__}.count_brokers", lambda bootstrap: next(answers[bootstrap])
    )
    wait_until_complete([FakeBroker(1, "a"), FakeBroker(2, "b")])
    assert [next(answer, None) for answer in answers.values()] == [None, None]


def test_waiting_ends_with_the_end_of_the_log_of_a_broker_that_dies() -> None:
    lines = "\n".join(map(str, range(100)))
    brokers = [FakeBroker(1, text="still starting"), FakeBroker(2, text=lines, dead=True)]
    with pytest.raises(BrokerDiedError, match="Kafka node 2 has died") as caught:
        wait_until_complete(brokers)
    assert str(caught.value).splitlines()[1:] == [str(number) for number in range(70, 100)]


def test_waiting_ends_after_the_timeout_with_the_end_of_the_log() -> None:
    with pytest.raises(ClusterUnavailableError, match=r"node 1 was not ready after 0 s.*\nstill starting"):
        wait_until_complete([FakeBroker(text="still starting")], timeout=0)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    """The only broker of the cluster that is started next."""
    fake = FakeBroker(text="out of memory")

    @contextlib.contextmanager
    def started(*_: object, **__: object) -> Iterator[Sequence[FakeBroker]]:
        yield [fake]

    monkeypatch.setattr(embedded, "started_brokers", started)
    return fake


def let_die(broker: FakeBroker, error: Exception | None = None) -> None:
    with kafka_cluster(how="embedded") as running:
        assert running.death() is None
        broker.dead = True
        if error is not None:
            raise error


def test_a_death_in_the_context_is_an_error_at_its_end(broker: FakeBroker) -> None:
    with pytest.raises(BrokerDiedError, match=r"Kafka node 1 has died\..*\nout of memory"):
        let_die(broker)


def test_an_error_in_the_context_stays_and_tells_of_the_death(broker: FakeBroker) -> None:
    with pytest.raises(TimeoutError) as caught:
        let_die(broker, TimeoutError())
    assert caught.value.__notes__ == ["Kafka node 1 has died. The end of its log:\nout of memory"]


@pytest.mark.usefixtures("broker")
def test_an_error_in_the_context_of_living_brokers_is_left_alone() -> None:
    with pytest.raises(TimeoutError) as caught, kafka_cluster(how="embedded"):
        raise TimeoutError
    assert not hasattr(caught.value, "__notes__")


def test_settings_go_before_the_built_in_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    used: dict[str, str | int] = {}

    def started(
        nodes: int, settings: Mapping[str, str | int], *, progress: bool
    ) -> contextlib.AbstractContextManager[Sequence[FakeBroker]]:
        assert (nodes, progress) == (3, True)
        used.update(settings)
        return contextlib.nullcontext([replace(FakeBroker(), node_id=node) for node in (1, 2, 3)])

    monkeypatch.setattr(embedded, "started_brokers", started)
    running = enter(3, how="embedded", settings={"auto.create.topics.enable": "true", "new": 1})
    assert (running.nodes, running.bootstrap_servers) == (3, [NOBODY] * 3)
    assert used["auto.create.topics.enable"] == "true"
    assert used["new"] == 1
    assert used["offsets.topic.replication.factor"] == 3
