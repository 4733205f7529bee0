"""Which way a cluster is had, what is refused, and how waiting for brokers ends; no broker is started."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from kafka_assignors.testing._brokers import broker as broker_module, cluster, embedded
from kafka_assignors.testing._brokers.broker import Broker, wait_until_complete
from kafka_assignors.testing._brokers.cluster import Cluster, choose_way, incomplete, kafka_cluster
from kafka_assignors.testing._brokers.errors import BrokerDiedError, ClusterUnavailableError
from kafka_assignors.testing._brokers.layout import PLAIN, Layout
from kafka_assignors.testing._brokers.metadata import ClusterState, SeenPartition

NOBODY = "127.0.0.1:1"  # a port on which nothing listens


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("KAFKA_IMAGE", raising=False)


class FakeBroker(Broker):
    """A broker without a process, which does at once what it is told and notes it."""

    def __init__(
        self, node_id: int = 1, bootstrap: str = NOBODY, text: str = "[INFO] Kafka Server started"
    ) -> None:
        super().__init__(node_id, {PLAIN: bootstrap})
        self.text = text
        self.dead = False
        self.fails: set[str] = set()
        self.done: list[str] = []
        self.start(wait=False)

    def log(self) -> str:
        return self.text

    def _launch(self) -> None:
        self._do("launched")

    def _end(self, *, orderly: bool) -> None:
        self._do("stopped" if orderly else "killed")

    def _suspend(self) -> None:
        self._do("suspended")

    def _resume(self) -> None:
        self._do("resumed")

    def _do(self, what: str) -> None:
        if what in self.fails:
            raise OSError(f"not {what}")
        self.done.append(what)

    def _alive(self) -> bool:
        return not self.dead


@pytest.mark.parametrize(
    ("bootstrap", "image", "has_docker", "way"),
    [
        ("b:9092", "image", None, "given"),  # Docker is not asked
        (None, "image", False, "docker"),  # even if it will then fail
        (None, None, True, "docker"),
        ("", "", False, "embedded"),
    ],
)
def test_a_named_cluster_is_taken_then_a_named_image_then_what_there_is(
    bootstrap: str | None, image: str | None, has_docker: bool | None, way: str, *, monkeypatch: Any
) -> None:
    def ask() -> bool:
        assert has_docker is not None
        return has_docker

    monkeypatch.setattr(cluster, "docker_has_image", ask)
    assert choose_way(bootstrap, image) == way


def enter(
    nodes: int = 1,
    how: cluster.How | None = None,
    bootstrap: str | None = None,
    settings: Mapping[str, str | int] | None = None,
) -> Cluster:
    with kafka_cluster(nodes, how=how, bootstrap=bootstrap, settings=settings) as running:
        return running


@pytest.mark.parametrize(("argument", "servers"), [(None, ["a:1", "b:2"]), ("c:3", ["c:3"])])
def test_the_servers_named_are_taken_an_argument_before_the_environment(
    argument: str | None, servers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "first_answer", lambda asked: view([1, 2, 3]) if asked == servers else None)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "a:1, b:2")
    assert enter(bootstrap=argument) == Cluster(servers, nodes=3, how="given")


GIVEN: list[tuple[dict[str, Any], str]] = [
    ({"settings": {"a.b": 1}}, r"settings=\['a.b'\]"),
    ({"security": "tls"}, "security='tls'"),
    ({"proxied": True}, "proxied=True"),
    ({"security": "sasl", "proxied": True}, "security='sasl' and proxied=True"),
]
"""What a cluster that is running cannot be given."""


@pytest.mark.parametrize(
    ("wish", "error", "message"),
    [
        *(({"nodes": nodes}, ValueError, f"nodes={nodes}: a cluster has 1 or 3") for nodes in (0, 2, 4)),
        (
            {"bootstrap": "b:1", "how": "docker"},
            ValueError,
            "names a running cluster, but how='docker' starts one",
        ),
        ({"how": "embeded"}, ValueError, "how='embeded': must be one of given, docker, embedded"),
        ({"how": "given"}, ClusterUnavailableError, "no running cluster is named: set KAFKA_BOOTSTRAP"),
        (
            {"how": "embedded", "security": "ssl"},
            ValueError,
            "security='ssl': must be one of plaintext, tls, sasl, sasl_tls",
        ),
        ({"bootstrap": "a:1,localhost"}, ValueError, "'localhost' must be host:port"),
        ({"bootstrap": NOBODY}, ClusterUnavailableError, f"no broker answers at {NOBODY}"),
        *(
            (
                {"bootstrap": NOBODY, **wish},
                ClusterUnavailableError,
                f"at {NOBODY} is given, so {told} cannot be applied to it: .*embedded",
            )
            for wish, told in GIVEN
        ),
    ],
)
def test_what_cannot_be_is_refused(wish: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), kafka_cluster(**wish):
        pass


def test_without_trustme_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    with (
        pytest.raises(ClusterUnavailableError, match=r"pip install 'kafka-assignors\[testing\]', or take"),
        kafka_cluster(how="embedded", security="tls"),
    ):
        pass


@pytest.mark.usefixtures("broker")
def test_a_cluster_without_proxies_has_no_network_to_disturb() -> None:
    with (
        kafka_cluster(how="embedded") as running,
        pytest.raises(ClusterUnavailableError, match=r"start them with kafka_cluster\(..., proxied=True\)"),
    ):
        running.network.heal()


def test_a_given_cluster_must_have_the_nodes_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "first_answer", lambda _: view([1]))
    with pytest.raises(ClusterUnavailableError, match="has 1 of the 3 brokers asked for"):
        enter(3, bootstrap=NOBODY)


def test_waiting_ends_after_the_timeout_with_the_end_of_the_log() -> None:
    with pytest.raises(
        ClusterUnavailableError, match=r"0 s waiting for Kafka node 1 to be ready:\n.*\nstill starting"
    ):
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


def test_a_broker_killed_on_purpose_has_not_died() -> None:
    broker = FakeBroker()
    broker.dead = True
    assert broker.has_died()
    broker.kill()
    assert not broker.has_died()
    assert (broker.running, repr(broker)) == (False, "<FakeBroker 1: down>")


@pytest.mark.parametrize(
    ("acts", "done"),
    [
        (
            "freeze stop start freeze kill",
            "launched suspended resumed stopped launched suspended killed",
        ),
        ("kill stop kill", "launched killed"),
    ],
)
def test_a_broker_is_thawed_to_stop_in_order_killed_as_it_is_and_ended_once(acts: str, done: str) -> None:
    broker = FakeBroker()
    for act in acts.split():
        broker.start(wait=False) if act == "start" else getattr(broker, act)()
    assert broker.done == done.split()


def test_what_is_broken_on_purpose_is_mended_when_its_context_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = FakeBroker()
    monkeypatch.setattr(broker_module, "known_by", lambda _: {1})
    seen = []

    def fails() -> None:
        with broker.kill():
            seen.append(broker.wrong())
            raise ValueError("of the test")

    with pytest.raises(ValueError, match="of the test"):
        fails()
    assert seen == ["node 1 is down"]
    assert broker.wrong() is None
    with broker.freeze():
        assert broker.wrong() == "node 1 is frozen"
    assert broker.done == ["launched", "killed", "launched", "suspended", "resumed"]


def test_brokers_that_are_all_killed_start_again_without_a_wait_for_those_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = [FakeBroker(number) for number in (1, 2, 3)]
    waited: list[list[int]] = []
    monkeypatch.setattr(
        broker_module, "wait_until_complete", lambda some, _: waited.append([one.node_id for one in some])
    )
    for broker in brokers:
        broker.peers = brokers
    with brokers[0].kill(), brokers[1].kill(), brokers[2].kill():
        pass
    assert all(broker.running for broker in brokers)
    assert waited == [[2, 3], [1, 2, 3]]


def test_a_cluster_says_what_is_wrong_with_it_and_is_mended_as_far_as_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = [FakeBroker(number) for number in range(1, 7)]
    cluster = Cluster(["a:1"], 6, "embedded", tuple(brokers))
    assert cluster.mend() == []
    for broker in brokers[:2]:
        broker.kill()
    for broker in brokers[2:4]:
        broker.freeze()
    brokers[4].dead = True
    brokers[0].fails = {"launched"}
    brokers[3].fails = {"resumed"}
    waited: list[Cluster] = []
    monkeypatch.setattr(Cluster, "wait_complete", lambda whole, _: waited.append(whole))
    with pytest.raises(ClusterUnavailableError) as caught:
        cluster.mend()
    assert str(caught.value) == "cannot be mended: node 1 (OSError: not launched)"
    brokers[0].fails = set()
    assert [broker.done[1:] for broker in brokers] == [
        ["killed"],
        ["killed", "launched"],
        ["suspended", "resumed"],
        ["suspended", "killed", "launched"],
        ["killed", "launched"],
        [],
    ]
    assert (cluster.mend(), waited) == (["node 1 is down", "node 5 has died"], [cluster])


def test_nothing_is_wrong_with_a_cluster_whose_context_has_ended(broker: FakeBroker) -> None:
    with kafka_cluster(how="embedded") as cluster:
        broker.kill()
        assert cluster.wrong() == ["node 1 is down"]
    assert cluster.wrong() == cluster.mend() == []


def test_what_is_down_is_not_frozen_and_what_runs_neither_started_nor_thawed() -> None:
    broker = FakeBroker()
    for act in (broker.start, broker.thaw):
        with pytest.raises(RuntimeError, match=f"Kafka node 1 is running: cannot {act.__name__} it"):
            act()
    broker.kill()
    with pytest.raises(RuntimeError, match="Kafka node 1 is down: cannot freeze it"):
        broker.freeze()
    assert broker.done == ["launched", "killed"]


def test_a_broker_is_had_by_its_id_which_must_exist_and_be_ours() -> None:
    brokers = (FakeBroker(1), FakeBroker(2))
    cluster = Cluster([NOBODY], 2, "embedded", brokers)
    assert cluster.broker(2) is brokers[1]
    with pytest.raises(ValueError, match=r"node 3: the cluster has \[1, 2\]"):
        cluster.broker(3)
    given = r"the cluster at a:1,b:2 is given, so it cannot be stopped or killed\. .*embedded"
    with pytest.raises(ClusterUnavailableError, match=given):
        Cluster(["a:1", "b:2"], 2, "given").broker(1)


def view(nodes: Sequence[int], **partition: object) -> ClusterState:
    known: dict[str, object] = {
        "topic": "t",
        "number": 0,
        "leader": 1,
        "replicas": (1, 2, 3),
        "in_sync": frozenset({1, 2, 3}),
        **partition,
    }
    return ClusterState(
        brokers=dict.fromkeys(nodes, NOBODY),
        partitions=(SeenPartition(**known),),  # type: ignore[arg-type]  # checked by the dataclass's users
    )


@pytest.mark.parametrize(
    ("views", "wrong"),
    [
        ({1: view([1, 2]), 2: view([1, 2])}, []),
        ({1: view([1, 2]), 2: "refused"}, ["node 2 does not answer: refused"]),
        ({1: view([1])}, []),
        ({1: view([1, 3])}, ["node 1 knows the nodes [1, 3] instead of [1]"]),
        ({1: view([1], leader=3)}, ["node 1 says that t-0 has no leader that runs (3)"]),
        ({1: view([1], leader=-1)}, ["node 1 says that t-0 has no leader that runs (-1)"]),
        (
            {1: view([1, 2], in_sync=frozenset({1})), 2: view([1, 2])},
            ["node 1 says that t-0 is not in sync on [2]"],
        ),
        ({}, ["no broker runs"]),
    ],
)
def test_a_cluster_is_complete_when_all_that_run_agree_and_have_all_they_should(
    views: Mapping[int, ClusterState | str], wrong: list[str]
) -> None:
    assert incomplete(views) == wrong


def test_waiting_for_a_complete_cluster_ends_with_what_is_missing() -> None:
    with pytest.raises(
        ClusterUnavailableError,
        match=r"after 0 s waiting for the cluster to be complete:\n  - node 1 does not answer: .*refused",
    ):
        Cluster([NOBODY], 1, "embedded", (FakeBroker(),)).wait_complete(timeout=0)


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


def test_settings_go_before_the_built_in_ones_and_a_way_that_is_named_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "a:1")
    used: dict[str, str | int] = {}

    def started(layout: Layout) -> contextlib.AbstractContextManager[Sequence[FakeBroker]]:
        assert layout.nodes == 3
        used.update(layout.settings)
        return contextlib.nullcontext([FakeBroker(node) for node in (1, 2, 3)])

    monkeypatch.setattr(embedded, "started_brokers", started)
    running = enter(3, how="embedded", settings={"auto.create.topics.enable": "true", "new": 1})
    assert (running.how, running.nodes, running.bootstrap_servers) == ("embedded", 3, [NOBODY] * 3)
    assert used["auto.create.topics.enable"] == "true"
    assert used["new"] == 1
    assert used["offsets.topic.replication.factor"] == 3
