"""The end of a membership that the member has not asked for."""

from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import MemberToRemove

from kafka_assignors.testing._brokers.access import Access


def expel(access: Access, group_id: str, member_id: str) -> None:
    """Have the coordinator remove a member."""
    admin: Any = KafkaAdminClient(**access.kafka_python())
    with closing(admin):
        admin.remove_group_members(group_id, [MemberToRemove(member_id=member_id)])
