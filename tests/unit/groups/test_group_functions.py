"""What functions of groups refuse that no command passes to them, and how long planned work takes."""

import json
from pathlib import Path

import pytest

from kafka_assignors._model.group import Group
from kafka_assignors.groups import plan, read_group, what_if
from kafka_assignors.groups._plan import NoPlannerError
from kafka_assignors.groups._what_if import WhatIfError


def test_a_group_without_members_is_not_planned() -> None:
    with pytest.raises(NoPlannerError, match=r"^the group has no members: there is nobody to plan for$"):
        plan(Group.of({"orders": range(3)}, []))


@pytest.mark.parametrize("members", [0, -1])
def test_a_group_without_members_is_not_restarted(members: int) -> None:
    with pytest.raises(WhatIfError, match=f"^the group is {members}: give its id on a cluster"):
        what_if({"orders": 3}, members)


def test_a_session_of_no_time_is_not_taken_for_the_default() -> None:
    with pytest.raises(WhatIfError, match=r"3000 is not below session\.timeout\.ms 0: "):
        what_if({"orders": 3}, 2, session_timeout_ms=0)


@pytest.mark.parametrize(
    ("weights", "seconds"), [((1, 1), 20), ((2, 2), 10), ((1, 3), 10), ((1,), 20), ((4,), 5)]
)
def test_a_record_takes_its_cost_by_a_member_of_weight_1(
    weights: tuple[int, ...], seconds: int, tmp_path: Path
) -> None:
    topic = {"partitions": 2 * len(weights), "rate": 0, "lag": 10_000, "cost": 1000}
    members = {f"m{number}": {"weight": weight} for number, weight in enumerate(weights)}
    file = tmp_path / "group.json"
    file.write_text(json.dumps({"topics": {"orders": topic}, "members": members}), encoding="utf-8")
    took = f"the slowest member is done in {seconds} s; no plan takes less than {seconds} s"
    assert plan(read_group(file), "load-aware").notes == (took,)
