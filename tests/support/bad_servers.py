"""Servers that are no brokers, and do not say so."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

_RESET: Final = struct.pack("ii", 1, 0)
_ALERT: Final = b"\x15\x03\x03\x00\x02\x02\x46"


def _mute(client: socket.socket, ended: threading.Event) -> None:
    """Accept, and never answer."""
    del client
    ended.wait()


def _slow(client: socket.socket, ended: threading.Event) -> None:
    """Answer byte by byte, without end."""
    client.sendall(struct.pack(">i", 10_000))
    while not ended.wait(0.05):
        client.sendall(b"\x00")


def _resetting(client: socket.socket, ended: threading.Event) -> None:
    """Reset each connection."""
    del ended
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _tls(client: socket.socket, ended: threading.Event) -> None:
    """Answer anything with an alert of TLS, and wait."""
    client.recv(1)
    client.sendall(_ALERT)
    ended.wait()


BAD: Final[dict[str, Callable[[socket.socket, threading.Event], None] | None]] = {
    "mute": _mute,
    "slow": _slow,
    "half-open": None,  # connections are never accepted, and the queue is full
    "resetting": _resetting,
    "tls": _tls,
}
"""What each kind does with a connection."""


@contextmanager
def bad_server(kind: str) -> Iterator[str]:
    """Run such a server; yields its "host:port"."""
    behave, ended = BAD[kind], threading.Event()

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            (behave or _mute)(client, ended)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        host, port = listener.getsockname()
        stack.callback(ended.set)
        if behave is not None:
            threading.Thread(target=accept, daemon=True).start()
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
        else:
            for _ in range(2):
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex((host, port))
        yield f"{host}:{port}"
