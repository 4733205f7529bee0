"""What functions of groups refuse that no command passes to them."""

import pytest

from kafka_assignors._model.group import Group
from kafka_assignors.groups import plan, what_if
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
