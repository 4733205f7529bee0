"""Why no broker can be reached, said soon."""

from __future__ import annotations

import socket

import pytest

from kafka_assignors._cluster.admin import Admin, ClusterError


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{bound.getsockname()[1]}"


def test_each_server_is_named_with_what_is_wrong() -> None:
    first = nobody()
    with pytest.raises(ClusterError) as caught:
        Admin([first, "no-such-host.invalid:9092"])
    assert str(caught.value) == (
        f"no broker answers at {first}: nothing listens there (a wrong port, or no broker is up);"
        " no-such-host.invalid:9092: no host has the name no-such-host.invalid"
    )


def test_nothing_is_tried_without_a_server() -> None:
    with pytest.raises(ClusterError, match="no broker answers at no address"):
        Admin([])
