"""Which brokers of a cluster can be reached, and why others cannot, found out within seconds.

kafka-python tries one server for 30 s, and does not say why it could not connect. So before it does, each
server is asked what brokers answer to anybody: which requests they know (ApiVersions), and whether they want
a user (SaslHandshake). If they want one with a password, these are sent, as kafka-python sends them. Servers
that answer are asked for the addresses that brokers advertise, and these are tried in the same way.
"""

import socket
import ssl
import struct
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from kafka_assignors._cluster.requests import ssl_context

REACHED_SECONDS: Final = 3.0
"""What all of it may take: a command should answer within five, also beside a server that hangs."""

_SOON: Final = f"within {REACHED_SECONDS:.0f} s"
_ENOUGH: Final = 1.0  # seconds: with less, a broker that is far would be taken for one that hangs
_AT_ONCE: Final = 64  # connections
_METADATA: Final = 3  # the request that brokers answer, and controllers do not
_ILLEGAL_SASL_STATE: Final = 34
_UNSUPPORTED_MECHANISM: Final = 33
_WITH_PASSWORD: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_LONGEST: Final = 100_000_000  # bytes that a broker accepts; longer answers are none of Kafka's
_NO_BROKER: Final = "what answers there is no Kafka broker (a wrong port)"
_PLAIN_HINT: Final = "use security.protocol=PLAINTEXT or SASL_PLAINTEXT, or the port that speaks TLS"
_TLS_HINT: Final = "use security.protocol=SSL or SASL_SSL (--command-config), or the port of plain text"
_NO_RESPONSE: Final = (OSError, ValueError, TypeError, LookupError, struct.error)
"""What may be raised by a response that does not come, or is none of Kafka's: as null in place of a list."""


Address = tuple[str, int]
"""Host and port."""


class Found(NamedTuple):
    """What was found out about a server: what is `wrong`, for people, or "" if it can be used.

    `advertised` has the address of each broker by its node id, by this server's word, if it was asked.
    """

    wrong: str = ""
    advertised: Mapping[int, Address] = MappingProxyType({})


class _Wrong(Exception):  # noqa: N818 - caught here
    """What is wrong with a server."""


def look(addresses: Iterable[Address], settings: Mapping[str, Any]) -> dict[Address, Found]:
    """Find out whether addresses, and those that brokers advertise there, can be used, if time allows."""
    end = time.monotonic() + REACHED_SECONDS
    found: dict[Address, Found] = {}
    asked: dict[Future[Found], Address] = {}
    more = {*addresses}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while more or asked:
            asked |= {pool.submit(_Server(address, settings, end).look): address for address in more}
            for done in wait(asked, return_when=FIRST_COMPLETED).done:
                found[asked.pop(done)] = done.result()
            known = found.keys() | {*asked.values()}
            more = {address for one in found.values() for address in one.advertised.values()} - known
    return found


class _Server:
    """A server that is asked until `end`, in seconds of `time.monotonic`."""

    def __init__(self, address: Address, settings: Mapping[str, Any], end: float) -> None:
        self.address, self.settings, self.end = address, settings, end
        protocol = settings.get("security_protocol")
        self.encrypted = protocol in {"SSL", "SASL_SSL"}
        self.sasl = protocol in {"SASL_PLAINTEXT", "SASL_SSL"}
        self.mechanism = str(settings.get("sasl_mechanism") or "PLAIN")

    def look(self) -> Found:
        if self.end - time.monotonic() < _ENOUGH:
            return Found()  # of many, or of some that are far: nothing is known to be wrong with it
        try:
            with self.connect() as plain, self.encrypt(plain) if self.encrypted else plain as connection:
                return Found(advertised=self.ask(connection))
        except _Wrong as error:
            return Found(str(error))

    def connect(self) -> socket.socket:
        try:
            return socket.create_connection(self.address, _left(self.end))
        except (socket.gaierror, UnicodeError):  # of labels that are empty or too long
            raise _Wrong(f"no host has the name {self.address[0]}") from None
        except ConnectionRefusedError:
            raise _Wrong("nothing listens there (a wrong port, or no broker is up)") from None
        except TimeoutError:
            raise _Wrong(f"no answer {_SOON} (a wrong address, or a firewall)") from None
        except ConnectionResetError:  # if it resets a connection that it has just accepted
            raise _Wrong(_NO_BROKER) from None
        except OSError as error:
            raise _Wrong(error.strerror or str(error)) from error

    def encrypt(self, plain: socket.socket) -> ssl.SSLSocket:
        try:
            context = ssl_context(self.settings)
        except OSError as error:  # as ssl.SSLError is
            raise _Wrong(f"the certificates to connect with cannot be used: {error}") from error
        plain.settimeout(_left(self.end))
        try:
            return context.wrap_socket(plain, server_hostname=self.address[0].rstrip("."))
        except ssl.SSLCertVerificationError as error:
            raise _Wrong(
                f"its certificate is not trusted: {error.verify_message}; name the authority that signed it"
                " (ssl.truststore.location, or ssl.ca.location), or the host that the certificate is for"
            ) from error
        except TimeoutError:
            raise _Wrong(f"no answer to TLS {_SOON}: {_PLAIN_HINT}") from None
        except OSError:
            wrong = f"it does not speak TLS: {_PLAIN_HINT}" if self.speaks_otherwise() else _NO_BROKER
            raise _Wrong(wrong) from None

    def ask(self, connection: socket.socket) -> dict[int, Address]:
        """The addresses that brokers advertise; none if the client needs no password (GSSAPI)."""
        try:
            known = exchange(connection, ApiVersionsRequest(), ApiVersionsResponse, 0, self.end)
            if _METADATA not in {one.api_key for one in known.api_keys}:
                raise _Wrong("it is a controller's port: name one of a broker")
            request = SaslHandshakeRequest(mechanism=self.mechanism)
            self.check_sasl(exchange(connection, request, SaslHandshakeResponse, 1, self.end))
            if self.sasl and self.mechanism not in _WITH_PASSWORD:
                return {}
            if self.sasl:
                self.authenticate(connection)
            asked = exchange(connection, MetadataRequest(topics=[]), MetadataResponse, 1, self.end)
            return {broker.node_id: (broker.host, broker.port) for broker in asked.brokers}
        except _NO_RESPONSE as error:
            raise _Wrong(self.why_no_answer(error)) from error

    def check_sasl(self, shaken: Any) -> None:
        offered = ", ".join(shaken.mechanisms)
        wanted = shaken.error_code != _ILLEGAL_SASL_STATE
        tls = "SSL" if self.encrypted else "PLAINTEXT"
        if wanted and not self.sasl:
            raise _Wrong(
                f"it wants a user and a password: use security.protocol=SASL_{tls} with sasl.mechanism (it"
                f" takes {offered or self.mechanism}), sasl.username and sasl.password (--command-config)"
            )
        if not wanted and self.sasl:
            raise _Wrong(f"it wants no user: use security.protocol={tls}, or the port that speaks SASL")
        if shaken.error_code == _UNSUPPORTED_MECHANISM:
            raise _Wrong(f"it does not take sasl.mechanism {self.mechanism}: it takes {offered}")

    def authenticate(self, connection: socket.socket) -> None:
        user, password = (self.settings.get(f"sasl_plain_{name}") for name in ("username", "password"))
        if not user or password is None:
            raise _Wrong("it wants a user and a password: name them (sasl.username and sasl.password)")
        dialogue = get_sasl_mechanism(self.mechanism)(
            sasl_mechanism=self.mechanism, sasl_plain_username=user, sasl_plain_password=password
        )
        while not dialogue.is_done():
            request = SaslAuthenticateRequest(dialogue.auth_bytes())
            answer = exchange(connection, request, SaslAuthenticateResponse, 0, self.end)
            if answer.error_code:
                raise _Wrong(
                    f"it refuses the user {user!r} or the password: {answer.error_message} (sasl.username and"
                    " sasl.password, or sasl.jaas.config)"
                )
            dialogue.receive(answer.auth_bytes)

    def why_no_answer(self, error: Exception) -> str:
        if isinstance(error, ssl.SSLError):
            reason = error.reason or str(error)
            if "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason:
                return "it wants a certificate of the client: name one (ssl.keystore.location, as PEM)"
            return f"it closes the connection: {reason}"
        if not self.encrypted and self.speaks_otherwise():
            return f"it speaks TLS, and was spoken to in plain text: {_TLS_HINT}"
        if isinstance(error, TimeoutError):
            return f"it does not answer {_SOON} (a wrong port, or a broker that hangs)"
        return _NO_BROKER

    def speaks_otherwise(self) -> bool:
        """Whether it speaks plain text where TLS was tried, or TLS, whoever's certificate it is."""
        with suppress(*_NO_RESPONSE, _Wrong), self.connect() as plain:
            if self.encrypted:
                exchange(plain, ApiVersionsRequest(), ApiVersionsResponse, 0, self.end)
                return True
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            plain.settimeout(_left(self.end))
            context.wrap_socket(plain).close()
            return True
        return False


def exchange(connection: socket.socket, request: Any, response: Any, version: int, end: float) -> Any:
    """Send a request and read its response; raises one of `_NO_RESPONSE` if there is none."""
    request.API_VERSION = version
    request.with_header(1, "kafka-assignors")
    connection.settimeout(_left(end))
    connection.sendall(bytes(request.encode(version=version, header=True, framed=True)))
    (size,) = struct.unpack(">i", _read(connection, 4, end))
    if not 0 < size <= _LONGEST:
        raise ValueError(f"a response of {size} bytes")
    return response.decode(_read(connection, size, end), version=version, header=True)


def _read(connection: socket.socket, size: int, end: float) -> bytes:
    found = b""
    while len(found) < size:
        if time.monotonic() > end:  # what comes byte by byte is no answer either
            raise TimeoutError
        connection.settimeout(_left(end))
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionError("the connection was closed")
        found += part
    return found


def _left(end: float) -> float:
    return max(0.1, end - time.monotonic())
