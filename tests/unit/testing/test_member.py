"""A member of a group, seen from outside, without any that runs."""

from typing import Any

import pytest

from tests.support.members import member


@pytest.mark.parametrize(
    ("name", "next_one"),
    [("a", "a.2"), ("a.2", "a.3"), ("svc.eu", "svc.eu.2"), ("svc.eu.9", "svc.eu.10"), (".7", ".7.2")],
)
def test_a_restarted_member_has_the_name_with_a_count(name: str, next_one: str) -> None:
    def rejoin(name: str, **_: Any) -> Any:
        return name

    restarted: Any = member(rejoin=rejoin, name=name).restart()
    assert restarted == next_one
