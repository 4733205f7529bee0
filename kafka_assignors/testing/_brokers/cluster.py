"""A real Kafka cluster to test against, had in one of three ways behind one interface.

``given``
    One that is running already, named by its bootstrap servers.
``docker``
    Containers of the image apache/kafka, through testcontainers.
``embedded``
    Processes on this machine, from jars and a Java that pip brings: no Docker, no Java to install.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Literal

from kafka_assignors._common.escaping import get_logger
from kafka_assignors.testing._brokers import coordinator, embedded
from kafka_assignors.testing._brokers.access import OPEN, Access, Security
from kafka_assignors.testing._brokers.broker import Broker, find_death
from kafka_assignors.testing._brokers.credentials import Credentials, Level
from kafka_assignors.testing._brokers.errors import BrokerDiedError, ClusterUnavailableError
from kafka_assignors.testing._brokers.known_settings import check_known
from kafka_assignors.testing._brokers.layout import PROXIED, Layout
from kafka_assignors.testing._brokers.metadata import ClusterState, cluster_state, first_answer, version_by
from kafka_assignors.testing._brokers.network import Network
from kafka_assignors.testing._brokers.waiting import MEND_TIMEOUT, START_TIMEOUT, wait_until
from kafka_assignors.testing._choices import check_choice

log = get_logger(__name__)

How = Literal["given", "docker", "embedded"]

_VERSION = re.compile(r"Kafka version: (\S+)")  # in a broker's log


@dataclass(frozen=True)
class Cluster:
    """A running Kafka cluster.

    Attributes:
        bootstrap_servers: ``host:port`` of each node, or what was named for a given cluster.
        nodes: Number of brokers.
        how: The way it was had.
        brokers: The nodes by ascending id; empty for a given cluster.
        security: What `bootstrap_servers` require of clients.
        proxies: What `network` is, None without.
    """

    bootstrap_servers: list[str]
    nodes: int
    how: How
    brokers: tuple[Broker, ...] = ()
    security: Security = OPEN
    proxies: Network | None = None
    _ended: Event = field(default_factory=Event, repr=False, compare=False)

    def death(self) -> str | None:
        """Which broker has died, and the end of its log; None while all live. Stopped ones are not dead."""
        return find_death(self.brokers)

    def wrong(self) -> list[str]:
        """What was done to it and not undone, or has happened to it, in words; nothing if it is whole.

        Nothing, too, of a given cluster, whose brokers are not ours, and once its context has ended.
        """
        if self._ended.is_set():
            return []
        found = [wrong for broker in self.brokers if (wrong := broker.wrong()) is not None]
        faults = () if self.proxies is None else self.proxies.faults()
        return [*found, *(f"its network has a fault: {rule}" for rule in faults)]

    def mend(self, timeout: float = MEND_TIMEOUT) -> list[str]:
        """Have it whole again: heal its network, thaw its brokers, start those that are down or have died.

        One part that cannot be mended keeps no other from it.

        Args:
            timeout: In seconds.

        Returns:
            What was wrong, as `wrong` says it.

        Raises:
            ClusterUnavailableError: A part cannot be mended, or it took longer than the timeout; says what is
                wrong. Start another cluster then; pytest's fixtures do.
            BrokerDiedError: A broker ended again.
        """
        wrong = self.wrong()
        if not wrong:
            return []
        parts: dict[str, Callable[[], None]] = {f"node {one.node_id}": one.mend for one in self.brokers}
        if self.proxies is not None:
            parts["its network"] = self.proxies.heal
        failed: list[str] = []
        for name, mend in parts.items():
            try:
                mend()
            except Exception as error:  # noqa: BLE001 - an engine's error, the system's: others are mended
                failed.append(f"{name} ({type(error).__name__}: {error})")
        if failed:
            raise ClusterUnavailableError(f"cannot be mended: {'; '.join(failed)}")
        self.wait_complete(timeout)
        return wrong

    @property
    def version(self) -> str:
        """The release of Kafka that runs, "4.3.1"; empty where no broker says it.

        Of a given cluster it is "4.3", by the requests that its brokers know.
        """
        if self.brokers:
            found = _VERSION.search(self.brokers[0].log())
            return "" if found is None else found[1]
        for server in self.bootstrap_servers:
            with contextlib.suppress(OSError):
                return version_by(server)
        return ""

    @property
    def image(self) -> str:
        """The container image of its brokers; empty where there are no containers."""
        return self.brokers[0].image if self.brokers else ""

    @property
    def access(self) -> Access:
        """How clients reach it."""
        return Access(tuple(self.bootstrap_servers), self.security)

    @property
    def network(self) -> Network:
        """The way to the brokers through proxies, where faults can be made.

        Raises:
            ClusterUnavailableError: The cluster was started without.
        """
        if self.proxies is None:
            raise ClusterUnavailableError(
                "no proxies are in front of these brokers: start them with kafka_cluster(..., proxied=True),"
                " as a fixture with kafka_cluster_factory(proxied=True)"
            )
        return self.proxies

    def broker(self, node_id: int) -> Broker:
        """The node of an id: to be killed, stopped, frozen, and brought back.

        Raises:
            ClusterUnavailableError: The cluster is given.
            ValueError: It has no such node.
        """
        if self.how == "given":
            raise ClusterUnavailableError(
                f"the cluster at {','.join(self.bootstrap_servers)} is given, so it cannot be stopped or "
                "killed. Use one that is started here (how='embedded' or how='docker')"
            )
        for broker in self.brokers:
            if broker.node_id == node_id:
                return broker
        raise ValueError(f"node {node_id}: the cluster has {[broker.node_id for broker in self.brokers]}")

    def wait_complete(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until the cluster has got over what was done to its brokers.

        That is: every broker that runs answers and knows all that run and no others. Every partition has a
        leader, and every replica on a running broker is in sync.

        Raises:
            ClusterUnavailableError: It took longer than the timeout, in seconds; says what is wrong.
            BrokerDiedError: A broker ended meanwhile.
        """

        def wrong() -> list[str]:
            if (death := self.death()) is not None:
                raise BrokerDiedError(death)
            return incomplete({node: _asked(server) for node, server in self._running().items()})

        wait_until(wrong, timeout, "the cluster to be complete")

    def coordinator_of(self, group_id: str, *, timeout: float = 30.0) -> int:
        """The id of the node that coordinates a group, by FindCoordinator.

        Args:
            group_id: The group; need not exist.
            timeout: In seconds.

        Raises:
            ClusterUnavailableError: No broker knows.
        """
        return coordinator.coordinator_of([*self._running().values()], group_id, timeout)

    def move_coordinator(self, group_id: str, to: int | None = None, *, timeout: float = 30.0) -> int:
        """Make another node the coordinator of a group, in an orderly way.

        The partition of ``__consumer_offsets`` to which the group belongs gets another leader. Its replicas
        are reassigned so that the node is the preferred one, and the preferred one is elected. All groups of
        that partition move along; in a cluster started here there is only one partition, unless
        ``offsets.topic.num.partitions`` says otherwise. If the present coordinator is loading its groups, it
        finishes first.

        Args:
            group_id: The group; need not exist.
            to: The node; by default any other with a replica in sync.
            timeout: In seconds, of each step.

        Returns:
            The node, once every broker says that it is the coordinator.

        Raises:
            ClusterUnavailableError: There is no other node, the brokers refuse, or it takes too long.
        """
        return coordinator.move_coordinator([*self._running().values()], group_id, to, timeout)

    def _running(self) -> Mapping[int, str]:
        """Where running brokers answer the kit, by node id."""
        if self.how != "given":
            return {broker.node_id: broker.bootstrap for broker in self.brokers if broker.running}
        return _brokers_at(self.bootstrap_servers)


@contextlib.contextmanager
def kafka_cluster(
    nodes: int = 1,
    *,
    how: How | None = None,
    bootstrap: str | None = None,
    settings: Mapping[str, str | int] | None = None,
    security: Level = "plaintext",
    proxied: bool = False,
) -> Iterator[Cluster]:
    """Have a real Kafka cluster for the time of the context.

    A cluster that is started here has a rack per node (``rack-1``, ...), and creates no topics by itself. It
    starts rebalances without delay, and allows session timeouts from one second. Nothing is left of it
    afterwards.

    Args:
        nodes: Number of brokers, 1 or 3. A given cluster must have at least as many.
        how: Insist on one way. None takes a given cluster if one is named. Else it takes Docker, if an image
            is named, or an engine answers that has an image or can pull it. Else it takes the embedded one.
        bootstrap: Servers of a running cluster, ``host:port[,host:port...]``; default: ``$KAFKA_BOOTSTRAP``.
        settings: Broker settings besides or instead of the built-in ones, on every node. A given cluster is
            not ours to set.
        security: What clients must bring: nothing, TLS, a user with a password (SCRAM-SHA-512), or both;
            `Cluster.access` has it. The brokers among themselves, and the kit, use listeners without.
        proxied: Put a proxy in front of every broker; `Cluster.network` is the way through them.

    Yields:
        The cluster, once all of its brokers answer and know each other.

    Raises:
        ClusterUnavailableError: There is no Kafka in the way asked for.
        BrokerDiedError: A broker ended while it was starting, or before the context did.
        JarsUnavailableError: The embedded cluster's jars cannot be fetched.
        UnknownSettingError: A name among the settings is none that Kafka knows; a `ValueError`, too.
        ValueError: The arguments contradict each other, or one has no such value.
    """
    if nodes not in {1, 3}:
        raise ValueError(f"nodes={nodes}: a cluster has 1 or 3 (a quorum wants an odd number)")
    if bootstrap is not None and how not in {None, "given"}:
        raise ValueError(f"bootstrap={bootstrap!r} names a running cluster, but how={how!r} starts one")
    bootstrap = bootstrap or os.environ.get("KAFKA_BOOTSTRAP")
    way = how or choose_way(bootstrap, os.environ.get("KAFKA_IMAGE"))
    check_choice("how", way, How)
    log.info("a Kafka cluster of %d nodes: %s", nodes, way)
    if way == "given":
        yield _given_cluster(bootstrap, nodes, settings, security, proxied=proxied)
        return
    with contextlib.ExitStack() as stack:
        cluster = _started_cluster(stack, nodes, way, settings or {}, security, proxied=proxied)
        try:
            yield cluster
        except Exception as error:
            # What failed in the context most likely did so for want of the broker: report both.
            if (death := cluster.death()) is not None:
                error.add_note(death)
            raise
        finally:
            cluster._ended.set()  # noqa: SLF001 - its own maker's
        if (death := cluster.death()) is not None:
            raise BrokerDiedError(death)


def _started_cluster(
    stack: contextlib.ExitStack,
    nodes: int,
    way: How,
    settings: Mapping[str, str | int],
    security: Level,
    *,
    proxied: bool,
) -> Cluster:
    """A cluster that ends with the stack."""
    credentials = Credentials(security, stack)
    wanted = credentials.security
    network = stack.enter_context(Network(range(1, nodes + 1), wanted)) if proxied else None
    layout = Layout(
        nodes=nodes,
        settings={**common_settings(nodes), **settings},
        credentials=credentials,
        proxies=() if network is None else network.access.servers,
    )
    started: Any = (embedded if way == "embedded" else _containers()).started_brokers(layout)
    brokers: Sequence[Broker] = stack.enter_context(started)
    check_known(brokers[0].log(), settings)
    servers = [broker.addresses[layout.clients] for broker in brokers]
    credentials.create_user(brokers[0].bootstrap, servers)
    if network is not None:
        network.lead_to({broker.node_id: broker.addresses[PROXIED] for broker in brokers})
    return Cluster(servers, nodes, way, tuple(brokers), wanted, network)


def incomplete(views: Mapping[int, ClusterState | str]) -> list[str]:
    """What is missing in a cluster, by the words of its running nodes."""
    running = views.keys()
    wrong = []
    for node, view in views.items():
        if isinstance(view, str):
            wrong.append(f"node {node} does not answer: {view}")
            continue
        if view.brokers.keys() != running:
            wrong.append(f"node {node} knows the nodes {sorted(view.brokers)} instead of {sorted(running)}")
        for partition in view.partitions:
            name = f"{partition.topic}-{partition.number}"
            if partition.leader not in running:
                wrong.append(f"node {node} says that {name} has no leader that runs ({partition.leader})")
            if behind := running & {*partition.replicas} - partition.in_sync:
                wrong.append(f"node {node} says that {name} is not in sync on {sorted(behind)}")
    return wrong or ([] if views else ["no broker runs"])


def choose_way(bootstrap: str | None, image: str | None) -> How:
    """The way to take where none is insisted on.

    Who names a container image wants that Kafka and no other, so this never falls back to the embedded one.
    """
    if bootstrap:
        return "given"
    if image or docker_has_image():
        return "docker"
    return "embedded"


def common_settings(nodes: int) -> dict[str, str | int]:
    """Broker settings for tests, whichever way a cluster is started: quick, small and strict."""
    replicas = min(nodes, 3)
    return {
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # By KIP-848 these are the broker's. librdkafka 2.16 gives up a heartbeat that takes longer than the
        # interval, and then never hears of the assignment in its answer: with 300 ms, one group of five that
        # formed on a laden machine did not become stable.
        "group.consumer.min.heartbeat.interval.ms": 1000,
        "group.consumer.heartbeat.interval.ms": 1000,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.session.timeout.ms": 6000,
        # The default of 50 partitions costs seconds when the first group forms.
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": 1,
        # A killed broker's partitions get new leaders when it has not been heard of for so long. One alone
        # has nobody to give them to: fenced for a moment's silence on a laden machine, it ended its clients.
        # Started again after a kill, it is refused for as long, and gives up after a time of its own.
        "broker.session.timeout.ms": 6000 if nodes > 1 else 20_000,
        "initial.broker.registration.timeout.ms": round(START_TIMEOUT * 1000),
        "broker.heartbeat.interval.ms": 500,
        "controller.quorum.election.timeout.ms": 500,
        "controller.quorum.fetch.timeout.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 2097152,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "num.replica.fetchers": 1,
    }


def _given_cluster(
    bootstrap: str | None,
    nodes: int,
    settings: Mapping[str, str | int] | None,
    security: Level,
    *,
    proxied: bool,
) -> Cluster:
    if not bootstrap:
        raise ClusterUnavailableError(
            "no running cluster is named: set KAFKA_BOOTSTRAP=host:port, or start one (how='embedded')"
        )
    wishes = {
        f"settings={sorted(settings or {})}": settings,
        f"security={security!r}": security != "plaintext",
        "proxied=True": proxied,
    }
    if wished := [wish for wish, is_wished in wishes.items() if is_wished]:
        raise ClusterUnavailableError(
            f"the cluster at {bootstrap} is given, so {' and '.join(wished)} cannot be applied to it: "
            "use one that is started here (how='embedded' or how='docker')"
        )
    servers = [server.strip() for server in bootstrap.split(",")]
    if wrong := [server for server in servers if not server.rpartition(":")[2].isdecimal()]:
        raise ValueError(f"bootstrap={bootstrap!r}: {wrong[0]!r} must be host:port")
    there = len(_brokers_at(servers))
    if there < nodes:
        raise ClusterUnavailableError(
            f"the cluster at {bootstrap} has {there} of the {nodes} brokers asked for"
        )
    return Cluster(servers, there, "given")


def _brokers_at(servers: Sequence[str]) -> Mapping[int, str]:
    """The addresses of a cluster's nodes; raises ClusterUnavailableError if no server answers."""
    if (state := first_answer(servers)) is None:
        raise ClusterUnavailableError(f"no broker answers at {','.join(servers)}")
    return state.brokers


def _asked(server: str) -> ClusterState | str:
    try:
        return cluster_state(server)
    except OSError as error:
        return str(error)


def docker_has_image() -> bool:
    """Whether an engine answers that has an image or can pull it; pulls it, which may take a while."""
    try:
        _containers().have_image()
    except ClusterUnavailableError as error:
        log.info("no Docker: %s", error)
        return False
    return True


def _containers() -> Any:
    try:
        # Testcontainers is optional, and slow to import: only who comes here needs it.
        from kafka_assignors.testing._brokers import containers  # noqa: PLC0415
    except ImportError as error:
        raise ClusterUnavailableError(
            f"testcontainers is not installed ({error}): pip install 'kafka-assignors[testing]', or use "
            "how='embedded', which does without"
        ) from error
    return containers
