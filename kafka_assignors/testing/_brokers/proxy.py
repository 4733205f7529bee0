"""Carries bytes between clients and brokers, late or not at all where a rule says so.

All of it runs in one asyncio loop; `kafka_assignors.testing._brokers.network` is the side that tests see.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from kafka_assignors.testing._brokers.ports import LOCALHOST

Direction = Literal["both", "to_broker", "to_client"]
Way = Literal["to_broker", "to_client"]

_CHUNK_BYTES = 65536
_CHUNKS = 64  # read ahead of what may pass, each way of a connection
_HEADER = struct.Struct(">ihhih")  # size, api key, api version, correlation id, length of the client id
_MOST_BYTES = 100_000_000  # of a request, as brokers have it (socket.request.max.bytes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """What happens to the connections of a client, a broker, or both.

    Client and broker are None for all.
    """

    kind: Literal["delay", "drop", "half_open"]
    client: str | None
    broker: int | None
    direction: Direction = "both"
    seconds: float = 0.0

    def hits(self, link: "Link", way: Way | None = None) -> bool:
        """Whether it is about a connection, and about this way if one is named."""
        return (
            self.client in {None, link.client}
            and self.broker in {None, link.broker}
            and (way is None or self.direction in {"both", way})
        )


class Stream(NamedTuple):
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def reset(self) -> None:
        """End it with a reset rather than in peace; nothing that waits to be sent is."""
        with contextlib.suppress(OSError):  # closed by the other end meanwhile
            connection = self.writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass(slots=True, eq=False)
class Link:
    """A client's connection through the proxy.

    Its client is None until the first request, and where it cannot be read.
    """

    broker: int
    task: asyncio.Task[None]
    client: str | None = None


def client_id_in(data: bytes) -> tuple[bool, str | None]:
    """Whether there are enough bytes of a connection to know its client id, and the id.

    It is in the header of the first request. The id is None if there is none, or these bytes are not Kafka's
    in plain text. In TLS, for example, the size is one that no request has.
    """
    if len(data) >= _HEADER.size:
        size, _, _, _, length = _HEADER.unpack_from(data)
        if not _HEADER.size <= size + 4 <= _MOST_BYTES or length < 0:
            return True, None
        if len(data) >= _HEADER.size + length:
            return True, data[_HEADER.size : _HEADER.size + length].decode(errors="replace")
    return False, None


class Proxy:
    """Listens for each broker, and leads connections to it as the rules allow."""

    def __init__(self) -> None:
        self._targets: Mapping[int, tuple[str, int]] = {}
        self._links: set[Link] = set()
        self.rules: tuple[Rule, ...] = ()  # what holds; may be asked from another thread
        self._changed = asyncio.Event()

    async def listen(self, nodes: Sequence[int]) -> tuple[list[asyncio.Server], list[str]]:
        """Start to accept connections for these nodes; the servers and their addresses, "host:port"."""
        servers = [await asyncio.start_server(partial(self._accept, node), LOCALHOST, 0) for node in nodes]
        return servers, [f"{LOCALHOST}:{server.sockets[0].getsockname()[1]}" for server in servers]

    async def change(self, *, begun: Sequence[Rule] = (), ended: Sequence[Rule] = ()) -> None:
        """Let rules hold from now on, or no longer. The connections that they drop are reset on return."""
        self.rules = (*(rule for rule in self.rules if rule not in ended), *begun)
        self._changed.set()
        self._changed = asyncio.Event()
        dropped = [link.task for link in self._links if self._drops(link)]
        for task in dropped:
            task.cancel()
        if dropped:
            await asyncio.wait(dropped)

    async def connections(self, client: str | None, broker: int | None) -> int:
        return sum(client in {None, link.client} and broker in {None, link.broker} for link in self._links)

    async def lead_to(self, targets: Mapping[int, tuple[str, int]]) -> None:
        """Say where the brokers are: (host, port) of each node. Connections to others are reset."""
        self._targets = targets

    def _drops(self, link: Link) -> bool:
        return any(rule.kind == "drop" and rule.hits(link) for rule in self.rules)

    async def _accept(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Stream(reader, writer)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker: this is a coroutine of a task
        link = Link(node, task)
        self._links.add(link)
        try:
            await self._lead(link, client)
        except (OSError, asyncio.CancelledError):
            # A drop, the end of the proxy, or an end of the connection that is gone: nothing is left to do.
            pass
        finally:
            self._links.discard(link)
            client.reset()

    async def _lead(self, link: Link, client: Stream) -> None:
        first = b""
        known = False
        # Before a word of the client's only rules for all clients can hit it.
        while not known and not self._drops(link):
            chunk = await client.reader.read(_CHUNK_BYTES)
            if not chunk:
                return
            first += chunk
            known, link.client = client_id_in(first)
        if self._drops(link) or link.broker not in self._targets:
            return
        broker = Stream(*await asyncio.open_connection(*self._targets[link.broker]))
        try:
            await asyncio.gather(
                self._carry(link, "to_broker", client.reader, broker, first),
                self._carry(link, "to_client", broker.reader, client),
            )
        finally:
            broker.reset()

    async def _carry(
        self, link: Link, way: Way, source: asyncio.StreamReader, target: Stream, first: bytes = b""
    ) -> None:
        """Hand on what comes from one end to the other, in order, and its end."""
        loop = asyncio.get_running_loop()
        # When it was read, and what: no bytes for the end, None for a reset.
        waiting: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue(_CHUNKS)

        async def read() -> None:
            chunk: bytes | None = first or await _read(source)
            while chunk:
                await waiting.put((loop.time(), chunk))
                chunk = await _read(source)
            await waiting.put((loop.time(), chunk))

        reading = asyncio.create_task(read())
        try:
            while True:
                read_at, chunk = await waiting.get()
                await self._until_it_may_pass(link, way, read_at)
                if chunk is None:
                    target.reset()
                    return
                if not chunk:
                    target.writer.write_eof()
                    return
                target.writer.write(chunk)
                await target.writer.drain()
        except OSError:
            # The target is gone. Its source hears of it the other way round, if that is open.
            return
        finally:
            reading.cancel()

    async def _until_it_may_pass(self, link: Link, way: Way, read_at: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            rules = [rule for rule in self.rules if rule.hits(link, way)]
            held = any(rule.kind == "half_open" for rule in rules)
            due = read_at + sum(rule.seconds for rule in rules if rule.kind == "delay")
            remaining = due - loop.time()
            if not held and remaining <= 0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if held else remaining):
                    await self._changed.wait()


async def _read(source: asyncio.StreamReader) -> bytes | None:
    """Some bytes, none at the end, None after a reset."""
    try:
        return await source.read(_CHUNK_BYTES)
    except OSError:
        return None
