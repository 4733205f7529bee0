"""The pytest plug-in: a real Kafka cluster, topics and consumer groups as fixtures.

    def test_a_crash_pauses_partitions_for_seconds_only(consumer_group):
        group = consumer_group(members=3)
        group.members["m2"].crash()
        group.wait_stable()
        group.timeline.assert_paused_at_most(10_000)

`kafka_cluster`
    A cluster that starts when a test first asks for it, and is kept for the session.
`topic_factory`
    Makes topics on it, and deletes them when the test ends: ``topic_factory(6)`` returns the topic's name.
`consumer_group`
    Makes groups on it, and kills their members when the test ends. See `GroupFactory`.

Others, with other settings and under names of your own, come from `kafka_cluster_factory`,
`topic_factory_factory` and `consumer_group_factory`. docs/testing.md has what happens to clusters that tests
break, what reports of failed tests show, and the settings.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import uuid
import warnings
from collections import Counter
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar, cast

import pytest

from kafka_assignors.testing import _plugin_options as plugin_options, _plugin_report as plugin_report

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    # Not imported before a cluster starts: pytest loads this module in every run, of any project.
    from kafka_assignors.testing._brokers.cluster import Cluster, How
    from kafka_assignors.testing._groups.group import ConsumerGroup
    from kafka_assignors.testing._groups.specs import AssignorSpec, Topics

    _Fixture = pytest.FixtureDef[Any]
    _Finish = Callable[[], None]

_Made = TypeVar("_Made")

Scope = Literal["session", "package", "module", "class", "function"]

DEFAULT_PARTITIONS = 6
"""Of a topic that is made without saying how many."""

options = plugin_options.read

_DELETE_SECONDS = 5.0
_OF_THE_KIT: Final = (
    "kafka_assignors.testing.",
    "kafka_assignors._timelines.",
    "kafka_assignors._common.waiting",
)
"""The modules whose frames no traceback shows."""

_RUNNING: pytest.StashKey[dict[_Fixture, tuple[Cluster, _Finish]]] = pytest.StashKey()
"""The fixtures that are clusters now, of this plug-in's or a user's making: the cluster, and what ends it."""

_TAKEN: Final = "kafka_taken"
_MENDED: Final = "kafka_mended"
_SUMMARY: pytest.StashKey[dict[str, list[str]]] = pytest.StashKey()
"""What the summary says: the clusters that tests had, and which test left what broken, a line each."""


class TopicFactory(Protocol):
    """What the fixture `topic_factory` is."""

    def __call__(self, partitions: int = ..., **more: Any) -> str:
        """Make a topic; it is deleted when the fixture's scope ends.

        Args:
            partitions: How many it gets; 6 unless the fixture's factory was told otherwise.
            **more: Further arguments of `create_topic`: name, replication...

        Returns:
            Its name, a new one by default.
        """


class GroupFactory(Protocol):
    """What the fixture `consumer_group` is."""

    def __call__(
        self,
        topics: Topics | None = None,
        assignors: Sequence[AssignorSpec] | None = None,
        *,
        members: int = 0,
        partitions: int = ...,
        settings: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> ConsumerGroup:
        """Make a group; its members are killed when the fixture's scope ends.

        Args:
            topics: What its members subscribe to; by default a new topic of its own.
            assignors: Their assignors; by default the client's own choice.
            members: So many join, and the group is stable on return: m1, m2...
            partitions: How many the new topic gets; 6 unless the fixture's factory was told otherwise.
            settings: Settings of their consumers, on top of the fixture's and the configured ones.
            **more: Further arguments of `ConsumerGroup`. Its id begins with the test's name by default.

        Raises:
            GroupNotStableError: The members that were to join did not make up a stable group.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    plugin_options.declare(parser)


# With Python 3.11 and 3.12, importing kafka-python warns 218 times: it reads its schemas in an old way.
_OF_KAFKA_PYTHON: Final = ("read_text is deprecated", "open_text is deprecated")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let conftests import kafka-python with any filters: these are read before this."""
    for message in _OF_KAFKA_PYTHON:
        warnings.filterwarnings("ignore", message, DeprecationWarning)
    _leave_out_warnings(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that make no sense before any test runs, and warnings that nobody here can mend."""
    options(config)
    _leave_out_warnings(config)
    for message in _OF_KAFKA_PYTHON:
        config.addinivalue_line("filterwarnings", f"ignore:{message}:DeprecationWarning")


def _leave_out_warnings(config: pytest.Config) -> None:
    """Have `-W error` of the command line, which wins over ini lines, leave out what nobody here can mend."""
    filters: list[str] = config.known_args_namespace.pythonwarnings or []
    for message in _OF_KAFKA_PYTHON:
        line = f"ignore:{message}:DeprecationWarning"
        if filters and line not in filters:
            filters.append(line)


def pytest_report_header(config: pytest.Config) -> str:
    """Say where the cluster comes from, and its release as far as that is known before it starts."""
    from kafka_assignors.testing._brokers.jars import KAFKA_VERSION  # noqa: PLC0415 - see above

    configured = options(config)
    if configured.bootstrap:
        return f"kafka: {configured.how or 'given'}, {configured.bootstrap}"
    way: str = configured.how or "the first way that there is (docker, embedded)"
    image = configured.image or (os.environ.get("KAFKA_IMAGE", "") if configured.how != "embedded" else "")
    parts = ["embedded" if configured.keep else way, image or f"Kafka {KAFKA_VERSION}"]
    if configured.keep:
        parts.append(f"kept until unused for {configured.keep:g} s")
    return f"kafka: {', '.join(parts)}, nodes: {configured.nodes}"


def kafka_cluster_factory(
    nodes: int | None = None,
    *,
    how: How | None = None,
    settings: Mapping[str, str | int] | None = None,
    image: str | None = None,
    scope: Scope = "session",
    **more: Any,
) -> Callable[[pytest.FixtureRequest], Iterator[Cluster]]:
    """Make a fixture that is a running Kafka cluster, to be assigned to a name in a conftest or test module.

    Args:
        nodes: Number of brokers, 1 or 3; default: what is configured.
        how: Insist on one way; default: what is configured.
        settings: Broker settings besides the configured and built-in ones; not for a given cluster.
        image: The container image; default: what is configured.
        scope: The fixture's scope. Starting costs seconds, so clusters are best kept for the session.
        **more: Further arguments of `kafka_cluster`: security, proxied...
    """

    @pytest.fixture(scope=scope)
    def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
        """A running Kafka: `bootstrap_servers`, `brokers` to kill and freeze, `network` to cut."""
        from kafka_assignors.testing._brokers.cluster import kafka_cluster as started  # noqa: PLC0415 - see above
        from kafka_assignors.testing._brokers.kept import kept_cluster  # noqa: PLC0415 - see above

        config = request.config
        configured = options(config)
        way = how or ("docker" if image else configured.how)
        bootstrap = configured.bootstrap if way in {None, "given"} else None
        merged = {**configured.broker_settings, **(settings or {})}
        with contextlib.ExitStack() as stack:
            # The first start may fetch for half a minute: let that be seen.
            with _uncaptured(config), pytest.MonkeyPatch.context() as environment:
                if named := image or configured.image:
                    environment.setenv("KAFKA_IMAGE", named)
                # One with a fixture's own security or proxies is nobody else's.
                keeps = configured.keep > 0 and way in {None, "embedded"} and not (bootstrap or more)
                if keeps:
                    context = kept_cluster(
                        nodes or configured.nodes, seconds=configured.keep, settings=merged or None
                    )
                else:
                    context = started(
                        nodes or configured.nodes,
                        how=way,
                        bootstrap=bootstrap,
                        settings=merged or None,
                        **{"security": configured.security, **more},
                    )
                kafka = stack.enter_context(context)
            _summary(config)[_TAKEN].append(_described(kafka, "kept" if keeps else kafka.how))
            yield kafka

    return cluster


def _on(
    cluster: str, function: Callable[[pytest.FixtureRequest, Cluster], Iterator[_Made]]
) -> Callable[..., Iterator[_Made]]:
    """Have a fixture's function take a cluster from the fixture of that name.

    By its signature, from which pytest knows that the fixture ends with the cluster, and before it.
    """

    @functools.wraps(function)
    def taking(**fixtures: Any) -> Iterator[_Made]:
        yield from function(fixtures["request"], fixtures[cluster])

    names = (Parameter(name, Parameter.KEYWORD_ONLY) for name in ("request", cluster))
    taking.__signature__ = Signature([*names])  # type: ignore[attr-defined]  # inspect reads it
    return taking


def topic_factory_factory(
    *,
    cluster: str = "kafka_cluster",
    partitions: int = DEFAULT_PARTITIONS,
    scope: Scope = "function",
    **defaults: Any,
) -> Callable[[pytest.FixtureRequest], Iterator[TopicFactory]]:
    """Make a fixture that makes topics, as `topic_factory` does.

    Args:
        cluster: The name of the fixture with the cluster that they are made on.
        partitions: How many a topic gets by default.
        scope: The fixture's scope: its topics are deleted when that ends.
        **defaults: Other defaults for arguments of `create_topic`: replication...
    """

    @pytest.fixture(scope=scope)
    @partial(_on, cluster)
    def topic_factory(request: pytest.FixtureRequest, kafka: Cluster) -> Iterator[TopicFactory]:
        """Makes topics, which are deleted in the end: `topic_factory(6)` returns the topic's name."""
        with _topics(request, kafka) as create:

            def make(partitions: int = partitions, **more: Any) -> str:
                return create(partitions, **{**defaults, **more})

            yield make

    return topic_factory


def consumer_group_factory(
    *,
    cluster: str = "kafka_cluster",
    assignors: Sequence[AssignorSpec] | None = None,
    partitions: int = DEFAULT_PARTITIONS,
    settings: Mapping[str, Any] | None = None,
    scope: Scope = "function",
    **defaults: Any,
) -> Callable[[pytest.FixtureRequest], Iterator[GroupFactory]]:
    """Make a fixture that makes consumer groups, as `consumer_group` does.

    Args:
        cluster: The name of the fixture with the cluster that they are on.
        assignors: The members' assignors by default; None for the client's own choice.
        partitions: How many a topic gets that is made for a group.
        settings: Settings of the consumers, on top of the configured ones.
        scope: The fixture's scope: its groups end when that ends.
        **defaults: Other defaults for arguments of `ConsumerGroup`: client, commit, timeout...
    """

    @pytest.fixture(scope=scope)
    @partial(_on, cluster)
    def consumer_group(request: pytest.FixtureRequest, kafka: Cluster) -> Iterator[GroupFactory]:
        """Makes groups of consumers, whose members are killed in the end: `consumer_group(members=3)`."""
        from kafka_assignors.testing._groups.group import ConsumerGroup  # noqa: PLC0415 - see above
        from kafka_assignors.testing._groups.specs import on_top  # noqa: PLC0415

        configured = options(request.config)
        of_fixture = settings or {}
        groups = plugin_report.groups_of(request.node)
        # Members end before the topics that they read are deleted.
        with _topics(request, kafka) as create, contextlib.ExitStack() as stack:

            def make(
                topics: Topics | None = None,
                assignors: Sequence[AssignorSpec] | None = assignors,
                *,
                members: int = 0,
                partitions: int = partitions,
                settings: Mapping[str, Any] | None = None,
                **more: Any,
            ) -> ConsumerGroup:
                own = {"client": configured.client, "place": configured.place, "timeout": configured.timeout}
                group = ConsumerGroup(
                    kafka,
                    create(partitions) if topics is None else topics,
                    assignors,
                    settings=on_top(configured.consumer_settings, {**of_fixture, **(settings or {})}),
                    **{"group_id": _group_id(request.node.name), **own, **defaults, **more},
                )
                groups.append(stack.enter_context(group))
                for _ in range(members):
                    group.join()
                if members:
                    group.wait_stable()
                return group

            yield make

    return consumer_group


kafka_cluster = kafka_cluster_factory()
topic_factory = topic_factory_factory()
consumer_group = consumer_group_factory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test's report what happened in its groups, and which broker has died.

    The latter is the likely cause of all else, and nothing that a client can know. Tracebacks end at the
    test's own line.
    """
    for name, module in [*sys.modules.items()] if call.excinfo else ():
        if name.startswith(_OF_THE_KIT):
            vars(module)["__tracebackhide__"] = True
    result = yield
    if result.failed:
        for cluster, _ in item.config.stash.get(_RUNNING, {}).values():
            if (death := cluster.death()) is not None:
                result.sections.append(("Kafka", death))
        plugin_report.add_groups(item, result, options(item.config).timelines)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Remember which fixtures are clusters, the user's as well."""
    value = yield
    module = sys.modules.get("kafka_assignors.testing._brokers.cluster")
    if module is not None and isinstance(value, module.Cluster):
        running = request.config.stash.setdefault(_RUNNING, {})
        # One that hands on another's does not end it.
        if all(value is not cluster for cluster, _ in running.values()):
            running[fixturedef] = value, partial(fixturedef.finish, cast("Any", request))
    return value


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    request.config.stash.get(_RUNNING, {}).pop(fixturedef, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """After a test, mend what it broke of the clusters that others use after it, and remember to say so."""
    try:
        return (yield)
    finally:
        running = item.config.stash.get(_RUNNING, {})
        said = [line for cluster, finish in [*running.values()] if (line := _mended(cluster, finish, item))]
        _summary(item.config)[_MENDED].extend(said)


def _mended(cluster: Cluster, finish: _Finish, item: pytest.Item) -> str:
    """Mend a cluster, or end it, so that the next test has another; in words, or nothing if it was whole."""
    wrong: list[str] = []
    try:
        wrong = cluster.wrong()
        cluster.mend()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next test is to have a whole cluster
        # Its end may fail as well: of a broker that has died, and of what could not be mended.
        with contextlib.suppress(Exception):
            finish()
        why, _, _ = str(error).partition("\n")
        return f"started again after {item.nodeid}: {', '.join([*wrong, why])}"
    return f"mended after {item.nodeid}: {', '.join(wrong)}" if wrong else ""


def _described(cluster: Cluster, way: str) -> str:
    """Which Kafka a cluster is: "docker, apache/kafka:4.3.1, Kafka 4.3.1, 3 nodes"."""
    version = f"Kafka {cluster.version}" if cluster.version else ""
    nodes = f"{cluster.nodes} node{'s' if cluster.nodes > 1 else ''}"
    where = f"at {','.join(cluster.bootstrap_servers)}" if way in {"kept", "given"} else ""
    return ", ".join(part for part in (way, cluster.image, version, nodes, where) if part)


def _summary(config: pytest.Config) -> dict[str, list[str]]:
    return config.stash.setdefault(_SUMMARY, {_TAKEN: [], _MENDED: []})


def pytest_sessionfinish(session: pytest.Session) -> None:
    """As a worker of pytest-xdist, hand the summary to the process that writes it."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output.update(_summary(session.config))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker of pytest-xdist hands on."""
    for name, lines in _summary(node.config).items():
        lines.extend(getattr(node, "workeroutput", {}).get(name, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which Kafka tests had, and which of them left it broken."""
    clusters = Counter(_summary(config)[_TAKEN])
    taken = [f"{count} x {what}" if count > 1 else what for what, count in clusters.items()]
    lines = [*(["; ".join(taken)] if taken else []), *_summary(config)[_MENDED]]
    if not lines:
        return
    terminalreporter.write_sep("-", "Kafka")
    for line in lines:
        terminalreporter.write_line(line)


@contextlib.contextmanager
def _topics(request: pytest.FixtureRequest, kafka: Cluster) -> Iterator[Callable[..., str]]:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - see above

    from kafka_assignors.testing._topics import create_topic, delete_topic  # noqa: PLC0415 - see above

    timeout = options(request.config).timeout
    made: list[str] = []

    def make(partitions: int, **more: Any) -> str:
        made.append(create_topic(kafka, partitions, **{"timeout": timeout, **more}))
        return made[-1]

    yield make
    for name in made:
        # The test may have deleted it, or have ended the cluster.
        with contextlib.suppress(KafkaException, TimeoutError):
            delete_topic(kafka, name, timeout=_DELETE_SECONDS)


def _group_id(test: str) -> str:
    """An id that tells in brokers' logs which test it is of; a new one each time."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", test).strip("-")
    return f"{words[:60] or 'group'}-{uuid.uuid4().hex[:8]}"


def _uncaptured(config: pytest.Config) -> contextlib.AbstractContextManager[None]:
    """Output goes to the terminal meanwhile."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        return contextlib.nullcontext()
    return cast("contextlib.AbstractContextManager[None]", capture.global_and_fixture_disabled())
