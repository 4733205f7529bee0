"""Functions of the librdkafka that confluent-kafka's clients use, called through ctypes.

Only those that the Python client does not reach: the mock brokers (rdkafka_mock.h) and what these need.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int16, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka
from confluent_kafka import cimpl, libversion

if TYPE_CHECKING:
    from collections.abc import Mapping

__tracebackhide__ = True

_PRODUCER: Final = 0  # RD_KAFKA_PRODUCER
_REASON_BYTES: Final = 512

_SIGNATURES: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {  # the result, then the arguments
        "rd_kafka_conf_new": (c_void_p,),
        "rd_kafka_conf_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
        "rd_kafka_conf_destroy": (None, c_void_p),
        "rd_kafka_new": (c_void_p, c_int, c_void_p, c_char_p, c_size_t),
        "rd_kafka_destroy": (None, c_void_p),
        "rd_kafka_mock_cluster_new": (c_void_p, c_void_p, c_int),
        "rd_kafka_mock_cluster_destroy": (None, c_void_p),
        "rd_kafka_mock_cluster_bootstraps": (c_char_p, c_void_p),
        "rd_kafka_mock_set_controller_id": (None, c_void_p, c_int32),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, c_void_p, c_int32),
        "rd_kafka_mock_topic_create": (c_int, c_void_p, c_char_p, c_int, c_int),
        "rd_kafka_mock_partition_set_leader": (c_int, c_void_p, c_char_p, c_int32, c_int32),
        "rd_kafka_mock_partition_set_follower": (c_int, c_void_p, c_char_p, c_int32, c_int32),
        "rd_kafka_mock_coordinator_set": (c_int, c_void_p, c_char_p, c_char_p, c_int32),
        "rd_kafka_mock_broker_set_rack": (c_int, c_void_p, c_int32, c_char_p),
        "rd_kafka_mock_broker_set_down": (c_int, c_void_p, c_int32),
        "rd_kafka_mock_broker_set_up": (c_int, c_void_p, c_int32),
        "rd_kafka_mock_broker_set_rtt": (c_int, c_void_p, c_int32, c_int),
        "rd_kafka_mock_set_apiversion": (c_int, c_void_p, c_int16, c_int16, c_int16),
        "rd_kafka_mock_push_request_errors_array": (None, c_void_p, c_int16, c_size_t, c_void_p),
        "rd_kafka_mock_clear_request_errors": (None, c_void_p, c_int16),
        # Variadic: after the count come that many pairs of an error and milliseconds.
        "rd_kafka_mock_broker_push_request_error_rtts": (c_int, c_void_p, c_int32, c_int16, c_size_t),
        "rd_kafka_mock_broker_error_stack_cnt": (c_int, c_void_p, c_int32, c_int16, c_void_p),
        "rd_kafka_mock_start_request_tracking": (None, c_void_p),
        "rd_kafka_mock_get_requests": (c_void_p, c_void_p, c_void_p),
        "rd_kafka_mock_clear_requests": (None, c_void_p),
        "rd_kafka_mock_request_id": (c_int32, c_void_p),
        "rd_kafka_mock_request_api_key": (c_int16, c_void_p),
        "rd_kafka_mock_request_timestamp": (c_int64, c_void_p),
        "rd_kafka_mock_request_destroy_array": (None, c_void_p, c_size_t),
    }
)


def describe_library() -> str:
    """Which librdkafka the clients use, for the messages of errors."""
    return f"librdkafka {libversion()[0]} of confluent-kafka {confluent_kafka.__version__}"


@cache
def function(name: str) -> Any:
    """A function by its name in C; ctypes releases the GIL while it runs.

    It is looked up in the client's extension module. That finds it in the libraries which the module is
    linked with: in the one that the clients use, wherever it was installed. (On Windows it would not.)

    Raises:
        NotImplementedError: This librdkafka does not offer it.
    """
    try:
        found = ctypes.CDLL(cimpl.__file__)[name]
    except AttributeError:
        raise NotImplementedError(
            f"{describe_library()} does not offer {name}: install a wheel of confluent-kafka, such as "
            "2.16.1, on Linux or macOS"
        ) from None
    found.restype, *found.argtypes = _SIGNATURES[name]
    return found


def new_client() -> int:
    """A client to hold mock brokers. It connects to nothing; rd_kafka_destroy ends it.

    Raises:
        OSError: There are no threads to be had, say.
    """
    reason = ctypes.create_string_buffer(_REASON_BYTES)
    settings = function("rd_kafka_conf_new")()
    function("rd_kafka_conf_set")(settings, b"log_level", b"0", reason, _REASON_BYTES)
    client: int | None = function("rd_kafka_new")(_PRODUCER, settings, reason, _REASON_BYTES)
    if client is None:
        function("rd_kafka_conf_destroy")(settings)
        raise OSError(f"librdkafka cannot make a client: {reason.value.decode()}")
    return client
