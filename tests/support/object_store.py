"""An S3-compatible object store on this machine, moto's, which fails as a test wants it to.

It runs in a process of its own: deltalake's file system holds the GIL while it waits for an answer, so a
server beside it in one process would never give one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tests.support.kinds import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_CONTROL: Final = "/_faults"  # no bucket's name begins so
_LONGEST: Final = 300.0
"""Seconds that a held request waits, and that a test waits for a fault."""

OPTIONS: Final = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
"""The credentials that the store knows; it knows any."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to some requests.

    Attributes:
        method: A pattern of whole methods.
        path: A pattern that is looked for in `/bucket/key`.
        times: How many are struck; None for all.
        status: The answer's; 0 if the request is answered as always.
        code: S3's name of the error.
        done: Whether the store does what it is asked for, and only its answer is lost.
        delay: Seconds to wait before.
        hold: Whether to wait, before, until the fault is no more.
    """

    method: str = ".*"
    path: str = ""
    times: int | None = None
    status: int = 0
    code: str = ""
    done: bool = False
    delay: float = 0.0
    hold: bool = False


def busy(**which: Any) -> Fault:
    """The store throttles: 503, which clients repeat."""
    return Fault(status=503, code="SlowDown", **which)


def denied(**which: Any) -> Fault:
    """These credentials may not do that."""
    return Fault(status=403, code="AccessDenied", **which)


def expired(**which: Any) -> Fault:
    """The session's credentials are too old."""
    return Fault(status=400, code="ExpiredToken", **which)


def full(**which: Any) -> Fault:
    """No room, as MinIO and Ceph say it."""
    return Fault(method="PUT|POST", status=507, code="XMinioStorageFull", **which)


class ObjectStore:
    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._port = port
        self._numbers = count(1)

    @property
    def options(self) -> dict[str, str]:
        """What a client needs, in the spelling of environment variables."""
        return {**OPTIONS, "AWS_ENDPOINT_URL": self.endpoint}

    def bucket(self) -> str:
        """Make a bucket, of a name that none had; it is gone when the store is stopped."""
        name = f"bucket-{next(self._numbers)}"
        self._ask("PUT", f"/{name}")
        return name

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[Struck]:
        """Have requests fail; what is held goes on afterwards."""
        number = int(self._ask("POST", _CONTROL, json.dumps(asdict(fault))))
        try:
            yield Struck(lambda least: int(self._ask("GET", f"{_CONTROL}/{number}/{least}")))
        finally:
            self._ask("DELETE", f"{_CONTROL}/{number}")

    def _ask(self, method: str, path: str, body: str = "") -> str:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_LONGEST + 10)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text}")
        return text


class Struck:
    def __init__(self, ask: Callable[[int], int]) -> None:
        self._ask = ask

    def count(self) -> int:
        return self._ask(0)

    def wait(self, least: int = 1) -> None:
        if self._ask(least) < least:
            raise TimeoutError(f"the fault did not strike {least} requests in {_LONGEST:.0f} s")


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """A store, empty; stopped afterwards."""
    with serving("tests.support.object_store") as port:
        yield ObjectStore(port)


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[int]:
    """A module that serves in a process of its own until its input ends, and prints its port first."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()  # it ends then, as it does if this process is killed


class _Faults:
    """The faults of now, in the server's process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._of: dict[int, Fault] = {}
        self._struck: dict[int, int] = {}

    def add(self, fault: Fault) -> int:
        with self._changed:
            number = next(self._numbers)
            self._of[number] = fault
            self._struck[number] = 0
            return number

    def remove(self, number: int) -> None:
        with self._changed:
            self._of.pop(number, None)
            self._changed.notify_all()

    def struck(self, number: int, least: int) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._struck[number] >= least, _LONGEST)
            return self._struck[number]

    def strike(self, method: str, path: str) -> Fault | None:
        """The fault that strikes a request; returns when it is to be answered."""
        with self._changed:
            number, fault = self._first(method, path)
            if fault is None:
                return None
            self._struck[number] += 1
            self._changed.notify_all()
            if fault.hold:
                self._changed.wait_for(lambda: number not in self._of, _LONGEST)
        time.sleep(fault.delay)
        return fault

    def _first(self, method: str, path: str) -> tuple[int, Fault | None]:
        for number, fault in self._of.items():
            is_meant = re.fullmatch(fault.method, method) and re.search(fault.path, path)
            if is_meant and (fault.times is None or self._struck[number] < fault.times):
                return number, fault
        return 0, None


class _Application:
    """The store's, with faults before it."""

    def __init__(self, store: Callable[..., Iterable[bytes]]) -> None:
        self._store = store
        self._faults = _Faults()
        self._one = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        # Read as a whole: else the connection cannot be used again after an answer that did not need it.
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if path.startswith(_CONTROL):
            answer = self._control(method, path.split("/")[2:], body)
            start_response("200 OK", [("Content-Length", str(len(answer)))])
            return [answer]
        fault = self._faults.strike(method, path)
        environ["wsgi.input"] = BytesIO(body)
        if fault is not None and fault.status:
            if fault.done:
                list(self._store(environ, lambda *_: None))
            answer = f"<?xml version='1.0'?><Error><Code>{fault.code}</Code></Error>".encode()
            if method == "HEAD":
                answer = b""
            start_response(f"{fault.status} {fault.code}", [("Content-Type", "application/xml")])
            return [answer]
        if "HTTP_IF_NONE_MATCH" in environ:
            with self._one:  # moto looks first and writes then; S3 does it at once
                return [*self._store(environ, start_response)]
        return self._store(environ, start_response)

    def _control(self, method: str, names: list[str], body: bytes) -> bytes:
        if method == "POST":
            return str(self._faults.add(Fault(**json.loads(body)))).encode()
        if method == "GET":
            return str(self._faults.struck(int(names[0]), int(names[1]))).encode()
        self._faults.remove(int(names[0]))
        return b""


def _serve() -> None:
    """Serve until nobody writes to stdin any more; print the port first."""
    # Here alone: who only asks a store does not wait for all that these import.
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server  # noqa: PLC0415

    class Quiet(MotoRequestHandler):
        protocol_version = "HTTP/1.1"  # else clients connect anew for each request

        def log(self, kind: str, message: str, *args: Any) -> None:
            """Say nothing of requests."""

    application = _Application(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
