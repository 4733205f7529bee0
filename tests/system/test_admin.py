"""Why no broker can be reached, said soon."""

import errno
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors.groups import Cluster
from kafka_assignors.history import Archive, Engine, capture
from tests.support.scale import longer


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{bound.getsockname()[1]}"


def test_each_server_is_named_with_what_is_wrong_which_is_said_once() -> None:
    first, second = nobody(), nobody()
    with pytest.raises(ClusterError) as caught:
        Admin([first, "no-such-host.invalid:9092", second])
    assert str(caught.value) == (
        f"no broker answers at {first}, {second}: nothing listens there (a wrong port, or no broker is up);"
        " no-such-host.invalid:9092: no host has the name no-such-host.invalid"
    )


def test_a_capture_of_nobody_says_so(tmp_path: Path) -> None:
    first, second = nobody(), nobody()
    archive = Archive.create(tmp_path)
    with pytest.raises(ClusterError, match=f"^no broker answers at {first}, {second}: nothing listens there"):
        capture(Cluster(f"{first},{second}"), archive, engine=Engine.local())


def test_nothing_is_tried_without_a_server() -> None:
    with pytest.raises(ClusterError, match="no broker answers at no address"):
        Admin([])


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("h:x", "^'h:x' is no address of a broker: name it as HOST:PORT$"),
        ("[::1", r"^'\[::1' is no address of a broker"),
        (
            "kafka..invalid:1",
            r"no broker answers at kafka\.\.invalid:1: no host has the name kafka\.\.invalid$",
        ),
        (f"{'k' * 64}.invalid:1", "no host has the name k"),
    ],
)
def test_an_address_that_cannot_be_is_an_error_in_words(server: str, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        Admin([server])


class Mail(BaseRequestHandler):
    """Speaks first, as mail servers do."""

    def handle(self) -> None:
        self.request.sendall(b"220 mail.example.com ESMTP\r\n")
        self.request.recv(1000)


def answering(*answers: bytes) -> type[BaseRequestHandler]:
    """Answers requests so, one after the other, as a broker would answer the first ones of a client."""

    class Answering(BaseRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):
                for answer in answers:
                    self.request.recv(1000)
                    self.request.sendall(struct.pack(">ii", 4 + len(answer), 1) + answer)
                self.request.recv(1000)

    return Answering


METADATA_ONLY = struct.pack(">hihhh", 0, 1, 3, 0, 4)
SCRAM = struct.pack(">hih13s", 0, 1, 13, b"SCRAM-SHA-256")
USER = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "u", "sasl_plain_password": "p"}
NO_BROKERS: dict[str, tuple[type[BaseRequestHandler], dict[str, Any]]] = {
    **{f"mail, {one}": (Mail, {"security_protocol": one}) for one in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT")},
    "null in place of a list": (answering(struct.pack(">hi", 0, -1)), {}),
    "no nonce": (
        answering(METADATA_ONLY, SCRAM, struct.pack(">hhi3s", 0, -1, 3, b"x=1")),
        {"security_protocol": "SASL_PLAINTEXT", **USER},
    ),
}
"""What answers, and the settings of the client."""


@pytest.mark.parametrize(("answers", "settings"), NO_BROKERS.values(), ids=[*NO_BROKERS])
def test_what_is_no_broker_is_said_to_be_none(
    answers: type[BaseRequestHandler], settings: dict[str, Any]
) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), answers) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        server = f"127.0.0.1:{running.server_address[1]}"
        with pytest.raises(ClusterError) as caught:
            Admin([server], settings)
        running.shutdown()
    assert str(caught.value) == (
        f"no broker answers at {server}: what answers there is no Kafka broker (a wrong port)"
    )


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_connection_that_is_reset_before_it_is_used_is_to_no_broker(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reset(*_: object) -> socket.socket:
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    monkeypatch.setattr(socket, "create_connection", reset)
    with pytest.raises(ClusterError) as caught:
        Admin(["127.0.0.1:9092"], {"security_protocol": protocol})
    assert str(caught.value) == (
        "no broker answers at 127.0.0.1:9092: what answers there is no Kafka broker (a wrong port)"
    )


CAPTURE = """
import sys
from kafka_assignors._cli.main import main
status = main(["history", "capture", {archive!r}, "--bootstrap-server", {server!r}])
print(*sorted({{"pyarrow", "pyspark"}} & {{*sys.modules}}))
sys.exit(status)
"""


def test_a_capture_of_a_cluster_that_does_not_answer_ends_before_it_makes_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        code = CAPTURE.format(archive=str(archive), server=server)
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
    assert done.returncode == 1
    assert done.stderr == (
        f"kafka-assignors history capture: no broker answers at {server}: it does not answer within 3 s"
        " (a wrong port, or a broker that hangs)\n"
    )
    assert done.stdout == "\n"  # neither Spark nor what archives are made with was imported
    assert not archive.exists()
    assert seconds < longer(5) + start_of_python()


def start_of_python() -> float:
    """How long the import of the command takes on this machine."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import kafka_assignors._cluster.handle"], check=True)
    return time.monotonic() - began
