"""Azure's blob storage on this machine: Microsoft's emulator azurite, of npm, on node.

Azurite passes over `startFrom`, by which Azure lists from a name on, and lists all: delta-rs then takes the
log's newest version for a wrong one. A proxy before it leaves out what Azure would. It runs in a process of
its own, as deltalake's file system holds the GIL while it waits.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from email.utils import formatdate
from html import unescape
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import IO, TYPE_CHECKING, ClassVar, Final
from urllib.parse import parse_qs, urlsplit

from kafka_assignors.testing._brokers.jars import cache_folder
from tests.support.object_store import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = "3.35.0"
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every azurite has; its documentation names both."""

_API: Final = "2021-12-02"
_SECONDS: Final = 300.0


class AzureMissingError(RuntimeError):
    """The emulator cannot be had here; the message says why."""


class AzureStore:
    """An emulator that runs."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._numbers = count(1)

    @property
    def options(self) -> dict[str, str]:
        """What a client needs, in the spelling of environment variables."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"http://127.0.0.1:{self._port}/{ACCOUNT}",
        }

    def container(self) -> str:
        """Make a container, of a name that none had; what stands for it in a URI."""
        name = f"box-{next(self._numbers)}"
        date = formatdate(usegmt=True)
        signed = f"x-ms-date:{date}\nx-ms-version:{_API}\n/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        text = "PUT" + 12 * "\n" + signed
        key = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": date,
            "x-ms-version": _API,
            "Content-Length": "0",
            "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(key).decode()}",
        }
        connection = HTTPConnection("127.0.0.1", self._port, timeout=_SECONDS)
        try:
            connection.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 201:
            raise RuntimeError(f"azurite made no container: {answer.status} {text}")
        return f"{name}@{ACCOUNT}.dfs.core.windows.net"


@contextmanager
def running_azure_store() -> Iterator[AzureStore]:
    """An emulator, empty; stopped afterwards."""
    if shutil.which("node") is None:
        raise AzureMissingError("there is no node, which azurite runs on")
    with serving("tests.support.azure_store", str(_installed() / "dist/src/blob/main.js")) as port:
        yield AzureStore(port)


def _installed() -> Path:
    """Where azurite is; npm brings it into the cache once."""
    npm = shutil.which("npm")
    folder = cache_folder() / f"azurite-{VERSION}"
    package = folder / "node_modules" / "azurite"
    if (package / "package.json").exists():
        return package
    if npm is None:
        raise AzureMissingError("there is no npm, which would bring azurite")
    partial = folder.with_name(f"{folder.name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(partial), f"azurite@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise AzureMissingError(f"npm does not bring azurite: {done.stderr.strip().splitlines()[-1:]}")
    partial.rename(folder)
    return package


class _Proxy(BaseHTTPRequestHandler):
    """Hands requests on to azurite, and of lists what Azure would have."""

    protocol_version = "HTTP/1.1"  # else clients connect anew for each request
    port: ClassVar[int]

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        try:
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if first := parse_qs(urlsplit(self.path).query).get("startFrom"):
            content = _from(first[0], content.decode()).encode()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"content-length", "transfer-encoding", "connection", "keep-alive"}:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on  # noqa: N815 - as the standard library has it


def _from(first: str, listed: str) -> str:
    """A list without the blobs before a name."""

    def kept(blob: re.Match[str]) -> str:
        return blob[0] if unescape(blob[1]) >= first else ""

    return re.sub(r"<Blob>\s*<Name>(.*?)</Name>.*?</Blob>", kept, listed, flags=re.DOTALL)


def _serve(azurite: str) -> None:
    """Serve until nobody writes to stdin any more; print the port first."""
    command = ["node", azurite, "--blobPort", "0", "--inMemoryPersistence", "--silent"]
    # Else it speaks to a server of Microsoft's, and refuses clients that are newer than itself.
    command += ["--disableTelemetry", "--skipApiVersionCheck"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            _Proxy.port = _port(process.stdout)
            server = ThreadingHTTPServer(("127.0.0.1", 0), _Proxy)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            print(server.server_port, flush=True)  # noqa: T201
            sys.stdin.read()
        finally:
            process.kill()


def _port(said: IO[str]) -> int:
    for line in said:
        if found := re.search(r"listens on http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise AzureMissingError("azurite ended before it listened")


if __name__ == "__main__":
    _serve(sys.argv[1])
