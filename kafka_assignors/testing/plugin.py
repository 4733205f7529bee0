"""The pytest plug-in: a real Kafka cluster as a fixture.

Each setting is a command-line option and an ini value; the option wins:

====================== =================== =====================================================
option                 ini                 meaning
====================== =================== =====================================================
``--kafka``            ``kafka``           insist on one way: given, docker or embedded
``--kafka-bootstrap``  ``kafka_bootstrap`` use this running cluster (default: $KAFKA_BOOTSTRAP)
``--kafka-nodes``      ``kafka_nodes``     number of brokers to start, 1 (default) or 3
====================== =================== =====================================================

The fixture `kafka_cluster` starts a cluster when a test first asks for it, and keeps it for the session. More
of them, with other settings, come from `kafka_cluster_factory`. Under pytest-xdist each worker has its own.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    # Not imported before a cluster starts: pytest loads this module in every run, of any project.
    from kafka_assignors.testing.cluster import Cluster, How

WAYS = ("given", "docker", "embedded")
NODES = ("1", "3")
Scope = Literal["session", "package", "module", "class", "function"]

_RUNNING: pytest.StashKey[list[Cluster]] = pytest.StashKey()


class Options(NamedTuple):
    """What is configured.

    Attributes:
        how: The way insisted on, or None.
        bootstrap: The running cluster named, or None.
        nodes: Number of brokers.
    """

    how: How | None
    bootstrap: str | None
    nodes: int


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and ini values."""
    group = parser.getgroup("kafka", "a real Kafka cluster (kafka-assignors)")
    for name, metavar, text in (
        ("kafka", "|".join(WAYS), "insist on one way of having Kafka (default: the first that there is)"),
        ("kafka_bootstrap", "HOST:PORT[,...]", "use this running cluster (default: $KAFKA_BOOTSTRAP)"),
        ("kafka_nodes", "|".join(NODES), "number of Kafka brokers (default: 1)"),
    ):
        group.addoption(f"--{name.replace('_', '-')}", dest=name, metavar=metavar, help=text)
        parser.addini(name, text, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that make no sense before any test runs."""
    options(config)


def pytest_report_header(config: pytest.Config) -> str:
    """Say where the cluster comes from."""
    how, bootstrap, nodes = options(config)
    way = how or ("given" if bootstrap else "the first way that there is (docker, embedded)")
    return f"kafka: {way}, {bootstrap}" if bootstrap else f"kafka: {way}, nodes: {nodes}"


def options(config: pytest.Config) -> Options:
    """What command line, ini file and environment say.

    Raises:
        pytest.UsageError: A value is none of those allowed, or two contradict each other.
    """
    how = _option(config, "kafka", WAYS)
    nodes = _option(config, "kafka_nodes", NODES) or "1"
    bootstrap = _option(config, "kafka_bootstrap")
    if bootstrap and how not in {"", "given"}:
        raise pytest.UsageError(
            f"kafka_bootstrap={bootstrap} names a running cluster, but kafka={how} is to start one"
        )
    if how in {"", "given"}:
        bootstrap = bootstrap or os.environ.get("KAFKA_BOOTSTRAP", "")
    if how == "given" and not bootstrap:
        raise pytest.UsageError(
            "kafka=given needs a running cluster: --kafka-bootstrap=host:port or $KAFKA_BOOTSTRAP"
        )
    return Options(cast("How", how) if how else None, bootstrap or None, int(nodes))


def kafka_cluster_factory(
    nodes: int | None = None,
    *,
    how: How | None = None,
    settings: Mapping[str, str | int] | None = None,
    scope: Scope = "session",
) -> Callable[[pytest.FixtureRequest], Iterator[Cluster]]:
    """Make a fixture that is a running Kafka cluster, to be assigned to a name in a conftest or test module.

    Args:
        nodes: Number of brokers, 1 or 3; default: what is configured.
        how: Insist on one way; default: what is configured.
        settings: Broker settings besides the built-in ones; not for a given cluster.
        scope: The fixture's scope. Starting costs seconds, so clusters are best kept for the session.
    """

    @pytest.fixture(scope=scope)
    def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
        from kafka_assignors.testing.cluster import kafka_cluster as started  # noqa: PLC0415 - see above

        config = request.config
        configured = options(config)
        way = how or configured.how
        bootstrap = configured.bootstrap if way in {None, "given"} else None
        running = config.stash.setdefault(_RUNNING, [])
        with contextlib.ExitStack() as stack:
            with _uncaptured(config):  # the first start may fetch for half a minute: let that be seen
                context = started(nodes or configured.nodes, how=way, bootstrap=bootstrap, settings=settings)
                kafka = stack.enter_context(context)
            running.append(kafka)
            stack.callback(running.remove, kafka)
            yield kafka

    return cluster


kafka_cluster = kafka_cluster_factory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test's report that a broker has died: the likely cause, which no client can tell."""
    report = yield
    if report.failed:
        for cluster in item.config.stash.get(_RUNNING, []):
            if (death := cluster.death()) is not None:
                report.sections.append(("Kafka", death))
    return report


def _option(config: pytest.Config, name: str, allowed: Sequence[str] = ()) -> str:
    """The option, else the ini value, else an empty string."""
    value = str(config.getoption(name) or config.getini(name)).strip()
    if value and allowed and value not in allowed:
        raise pytest.UsageError(f"{name}={value}: must be one of {', '.join(allowed)}")
    return value


def _uncaptured(config: pytest.Config) -> contextlib.AbstractContextManager[None]:
    """Output goes to the terminal meanwhile."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        return contextlib.nullcontext()
    return cast("contextlib.AbstractContextManager[None]", capture.global_and_fixture_disabled())
