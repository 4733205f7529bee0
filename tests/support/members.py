"""Members of a group of the kit that have not started."""

from typing import Any

from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._groups.specs import Topics


def config(**own: Any) -> WorkerConfig:
    """What the process of a member m1 is started with."""
    usual = {"access": Access(("127.0.0.1:1",)), "group_id": "g", "name": "m1", "client": "kafka-python"}
    return WorkerConfig(**{**usual, "topics": ("t",), "pattern": None, "assignors": None, **own})


def member(topics: Topics = "t", rejoin: Any = None, **own: Any) -> Member:
    """A member that is seen from outside."""
    return Member(
        config(**own),
        topics,
        "thread",
        network=None,
        record=lambda _: None,
        wait_for=lambda *_: None,
        rejoin=rejoin,
    )
