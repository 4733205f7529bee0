"""The mock brokers of librdkafka by name: APIs, errors, requests."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, get_args

from confluent_kafka import KafkaError

from kafka_assignors.testing._brokers.librdkafka import function

if TYPE_CHECKING:
    from collections.abc import Mapping

__tracebackhide__ = True

MockApi = Literal[
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "ApiVersions",
    "InitProducerId",
    "OffsetForLeaderEpoch",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
]
"""A kind of request that the mock answers, by the protocol's name."""

_NUMBERS: Final = (*range(4), *range(8, 15), 18, *range(22, 27), 28)  # in the order of `MockApi`
_KEYS: Final[Mapping[str, int]] = MappingProxyType(dict(zip(get_args(MockApi), _NUMBERS, strict=True)))
_NAMES: Final = MappingProxyType({key: name for name, key in _KEYS.items()})

_ERRORS: Final[Mapping[str, int]] = MappingProxyType(
    {name: code for name, code in vars(KafkaError).items() if isinstance(code, int)}
)
_CLOSE: Final = "_TRANSPORT"  # the one of the client's own errors that means something to the mock


@dataclass(frozen=True, slots=True)
class MockRequest:
    """A request that reached the mock.

    Attributes:
        broker: The broker that it was sent to.
        api: Which kind: a `MockApi`; "ApiKey 71" if it is none.
        time: When it was received, in seconds of librdkafka's clock; on Linux that of `time.monotonic`.
    """

    broker: int
    api: str
    time: float


def request_of(request: int | None) -> MockRequest:
    """A request as librdkafka hands it over, by its address."""
    key = function("rd_kafka_mock_request_api_key")(request)
    return MockRequest(
        function("rd_kafka_mock_request_id")(request),
        _NAMES.get(key, f"ApiKey {key}"),
        function("rd_kafka_mock_request_timestamp")(request) / 1e6,
    )


def api_key(api: MockApi) -> int:
    """The protocol's number of an API."""
    try:
        return _KEYS[api]
    except KeyError:
        raise ValueError(f"{api!r} is no API of the mock's: {', '.join(_KEYS)}") from None


def error_code(error: int | str) -> int:
    """The number of an error that the mock can answer with."""
    codes = {code for name, code in _ERRORS.items() if not name.startswith("_") or name == _CLOSE}
    code = _ERRORS.get(error) if isinstance(error, str) else error
    if code not in codes:
        raise ValueError(
            f"{error!r} is no broker's error: take one of KafkaError's, such as 'NOT_COORDINATOR', "
            f"or {_CLOSE!r} to close the connection"
        )
    return code


def milliseconds(seconds: float) -> int:
    """A time that is not negative, as librdkafka takes it."""
    if seconds < 0:
        raise ValueError(f"{seconds} s: a delay is not negative")
    return round(seconds * 1000)
