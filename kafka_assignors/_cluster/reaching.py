"""Which brokers of a cluster can be reached, and why others cannot, found out within seconds.

kafka-python tries one server for 30 s, and does not say why it could not connect. So before it does, each
server is asked what brokers answer to anybody: which requests they know (ApiVersions), and whether they want
a user (SaslHandshake). If they want one with a password, these are sent, as kafka-python sends them. Servers
that answer are asked for the addresses that brokers advertise, and these are tried in the same way.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Future

REACHED_SECONDS: Final = 3.0
"""What all of it may take: a command should answer within five, also beside a server that hangs."""

_AT_ONCE: Final = 64  # connections
_METADATA: Final = 3  # the request that brokers answer, and controllers do not
_ILLEGAL_SASL_STATE: Final = 34
_UNSUPPORTED_MECHANISM: Final = 33
_WITH_PASSWORD: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_LONGEST: Final = 100_000_000  # bytes that a broker accepts; longer answers are none of Kafka's
_NO_BROKER: Final = "what answers there is no Kafka broker (a wrong port)"
_PLAIN_HINT: Final = "use security.protocol=PLAINTEXT or SASL_PLAINTEXT, or the port that speaks TLS"
_TLS_HINT: Final = "use security.protocol=SSL or SASL_SSL (--command-config), or the port of plain text"


Address = tuple[str, int]
"""Host and port."""


class Found(NamedTuple):
    """What was found out about a server: what is `wrong`, for people, or "" if it can be used.

    `advertised` has, by node id, the address that each broker advertises, by this server's word. It is empty
    if it was not asked.
    """

    wrong: str = ""
    advertised: Mapping[int, Address] = MappingProxyType({})


class _Wrong(Exception):  # noqa: N818 - caught here
    """What is wrong with a server."""


def look(addresses: Iterable[Address], settings: Mapping[str, Any]) -> dict[Address, Found]:
    """Find out whether each address can be used, and each that the brokers there advertise."""
    end = time.monotonic() + REACHED_SECONDS
    found: dict[Address, Found] = {}
    asked: dict[Future[Found], Address] = {}
    more = {*addresses}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while more or asked:
            asked |= {pool.submit(_look, address, settings, end): address for address in more}
            for done in wait(asked, return_when=FIRST_COMPLETED).done:
                found[asked.pop(done)] = done.result()
            known = found.keys() | {*asked.values()}
            more = {address for one in found.values() for address in one.advertised.values()} - known
    return found


def _look(address: Address, settings: Mapping[str, Any], end: float) -> Found:
    protocol = str(settings.get("security_protocol", "PLAINTEXT")).upper()
    try:
        with _connect(address, end) as plain:
            if not protocol.endswith("SSL"):
                return _ask(plain, protocol, settings, address, end)
            with _encrypt(plain, address, settings, end) as encrypted:
                return _ask(encrypted, protocol, settings, address, end)
    except _Wrong as error:
        return Found(str(error))


def _connect(address: Address, end: float) -> socket.socket:
    try:
        return socket.create_connection(address, _left(end))
    except socket.gaierror:
        raise _Wrong(f"no host has the name {address[0]}") from None
    except ConnectionRefusedError:
        raise _Wrong("nothing listens there (a wrong port, or no broker is up)") from None
    except TimeoutError:
        raise _Wrong(f"no answer within {REACHED_SECONDS:.0f} s (a wrong address, or a firewall)") from None
    except OSError as error:
        raise _Wrong(error.strerror or str(error)) from error


def _encrypt(
    plain: socket.socket, address: Address, settings: Mapping[str, Any], end: float
) -> ssl.SSLSocket:
    try:
        context = _context(settings)
    except (OSError, ssl.SSLError) as error:
        raise _Wrong(f"the certificates to connect with cannot be used: {error}") from error
    plain.settimeout(_left(end))
    try:
        return context.wrap_socket(plain, server_hostname=address[0].rstrip("."))
    except ssl.SSLCertVerificationError as error:
        raise _Wrong(
            f"its certificate is not trusted: {error.verify_message}; name the authority that signed it"
            " (ssl.truststore.location, or ssl.ca.location), or the host that the certificate is for"
        ) from error
    except TimeoutError:
        raise _Wrong(f"no answer to TLS within {REACHED_SECONDS:.0f} s: {_PLAIN_HINT}") from None
    except OSError:  # as ssl.SSLError is
        if _answers_plainly(address, end):
            raise _Wrong(f"it does not speak TLS: {_PLAIN_HINT}") from None
        raise _Wrong(_NO_BROKER) from None


def _ask(
    connection: socket.socket,
    protocol: str,
    settings: Mapping[str, Any],
    address: Address,
    end: float,
) -> Found:
    try:
        known = exchange(connection, ApiVersionsRequest(), ApiVersionsResponse, 0, end)
        if _METADATA not in {one.api_key for one in known.api_keys}:
            return Found("it is a controller's port: name one of a broker")
        mechanism = settings.get("sasl_mechanism") or "PLAIN"
        request = SaslHandshakeRequest(mechanism=mechanism)
        shaken = exchange(connection, request, SaslHandshakeResponse, 1, end)
        wrong = _about_sasl(protocol, str(mechanism), shaken)
        if protocol.startswith("SASL") and not wrong:
            if mechanism not in _WITH_PASSWORD:
                return Found()
            wrong = _authenticate(connection, str(mechanism), settings, end)
        if wrong:
            return Found(wrong)
        asked = exchange(connection, MetadataRequest(topics=[]), MetadataResponse, 1, end)
        return Found(advertised={broker.node_id: (broker.host, broker.port) for broker in asked.brokers})
    except (OSError, ValueError, struct.error) as error:
        return Found(_why_no_answer(error, connection, address, end))


def _why_no_answer(error: Exception, connection: socket.socket, address: Address, end: float) -> str:
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        if "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason:
            return "it wants a certificate of the client: name one (ssl.keystore.location, as PEM)"
        return f"it closes the connection: {reason}"
    if not isinstance(connection, ssl.SSLSocket) and _speaks_tls(address, end):
        return f"it speaks TLS, and was spoken to in plain text: {_TLS_HINT}"
    if isinstance(error, TimeoutError):
        return f"it does not answer within {REACHED_SECONDS:.0f} s (a wrong port, or a broker that hangs)"
    return _NO_BROKER


def _authenticate(connection: socket.socket, mechanism: str, settings: Mapping[str, Any], end: float) -> str:
    user, password = settings.get("sasl_plain_username"), settings.get("sasl_plain_password")
    if not user or password is None:
        return "it wants a user and a password: name them (sasl.username and sasl.password)"
    dialogue = get_sasl_mechanism(mechanism)(
        sasl_mechanism=mechanism, sasl_plain_username=user, sasl_plain_password=password
    )
    while not dialogue.is_done():
        request = SaslAuthenticateRequest(dialogue.auth_bytes())
        answer = exchange(connection, request, SaslAuthenticateResponse, 0, end)
        if answer.error_code:
            return (
                f"it refuses the user {user!r} or the password: {answer.error_message} (sasl.username and"
                " sasl.password, or sasl.jaas.config)"
            )
        dialogue.receive(answer.auth_bytes)
    return ""


def _about_sasl(protocol: str, mechanism: str, shaken: Any) -> str:
    offered = ", ".join(shaken.mechanisms)
    wanted = shaken.error_code != _ILLEGAL_SASL_STATE
    tls = "SSL" if protocol.endswith("SSL") else "PLAINTEXT"
    if wanted and not protocol.startswith("SASL"):
        return (
            f"it wants a user and a password: use security.protocol=SASL_{tls} with sasl.mechanism (it takes"
            f" {offered or mechanism}), sasl.username and sasl.password (--command-config)"
        )
    if not wanted and protocol.startswith("SASL"):
        return f"it wants no user: use security.protocol={tls}, or the port that speaks SASL"
    if wanted and shaken.error_code == _UNSUPPORTED_MECHANISM:
        return f"it does not take sasl.mechanism {mechanism}: it takes {offered}"
    return ""


def exchange(connection: socket.socket, request: Any, response: Any, version: int, end: float) -> Any:
    """Send a request and read its response.

    Raises OSError if no response came, ValueError if what came is none.
    """
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


def _answers_plainly(address: Address, end: float) -> bool:
    """Whether a broker answers in plain text."""
    with suppress(OSError, ValueError, struct.error, _Wrong), _connect(address, end) as plain:
        exchange(plain, ApiVersionsRequest(), ApiVersionsResponse, 0, end)
        return True
    return False


def _speaks_tls(address: Address, end: float) -> bool:
    """Whether TLS is spoken there, whoever's certificate it is; nothing is sent over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(OSError, _Wrong), _connect(address, end) as plain:
        plain.settimeout(_left(end))
        context.wrap_socket(plain).close()
        return True
    return False


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """As kafka-python makes it."""
    given = settings.get("ssl_context")
    if isinstance(given, ssl.SSLContext):
        return given
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = settings.get("ssl_check_hostname", True)
    if settings.get("ssl_cafile"):
        context.load_verify_locations(settings["ssl_cafile"])
    else:
        context.load_default_certs()
    if settings.get("ssl_certfile"):
        context.load_cert_chain(
            settings["ssl_certfile"], settings.get("ssl_keyfile"), settings.get("ssl_password")
        )
    return context


def _left(end: float) -> float:
    return max(0.1, end - time.monotonic())
