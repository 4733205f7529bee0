"""A member of a group, seen from outside, without any that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.member import Member

if TYPE_CHECKING:
    from collections.abc import Callable


def named(name: str, rejoin: Callable[..., Any]) -> Member:
    """A member that has not started."""
    config = WorkerConfig(
        access=Access(("127.0.0.1:1",)),
        group_id="g",
        name=name,
        topics=("t",),
        pattern=None,
        client="kafka-python",
        assignors=None,
    )
    return Member(
        config, "t", "thread", network=None, record=lambda _: None, wait_for=lambda *_: None, rejoin=rejoin
    )


@pytest.mark.parametrize(
    ("name", "next_one"),
    [("a", "a.2"), ("a.2", "a.3"), ("svc.eu", "svc.eu.2"), ("svc.eu.9", "svc.eu.10"), (".7", ".7.2")],
)
def test_a_restarted_member_has_the_name_with_a_count(name: str, next_one: str) -> None:
    def rejoin(name: str, **_: Any) -> Member:
        return named(name, cast("Any", None))

    assert named(name, rejoin).restart().name == next_one
