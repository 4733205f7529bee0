"""Requests that kafka-python does not have; the JSON is Kafka's own, of 4.3.1, without descriptions."""

from types import new_class
from typing import Any

from kafka.protocol.api_message import ApiMessage


def _message(name: str) -> Any:
    return new_class(name, (ApiMessage,), {"load_json": __package__})


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")
