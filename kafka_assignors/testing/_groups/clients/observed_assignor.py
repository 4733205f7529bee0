"""kafka-python's assignors, made to report what they are asked and what they answer."""

import sys
import time
from collections.abc import Sequence
from typing import Any

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors.testing._groups.clients import Report, pairs, type_and_text


def observe_assignor(assignor: Any, report: Report) -> None:
    """Make an assignor report what it is asked and what it answers.

    The assignor stays the same object and an instance of its class, with the class's name. What it calls,
    and on which thread, is unchanged; its callers are one frame further up the stack.
    """
    base: Any = type(assignor)
    # Of an assignor of ours it has been imported; others need not wait for that.
    ours: Any = sys.modules.get("kafka_assignors._assignors._sent")
    takes_all_members = ours is not None and ours.takes(assignor)

    class Observed(base):
        __slots__ = ()

        def metadata(self, topics: set[str]) -> Any:
            claims = super().metadata(topics)
            report("metadata", **_sent_claims(claims))
            return claims

        def assign(self, cluster: Any, members: Sequence[Any]) -> Any:
            # Before the call: what the members said, not what became of it.
            each = members[0].members if takes_all_members and _stand_in(members) else members
            claims = {member.member_id: _member_claims(member) for member in each}
            begin = time.monotonic()
            try:
                plan = super().assign(cluster, members)
            except Exception as error:
                report("assign", claims=claims, error=type_and_text(error), seconds=time.monotonic() - begin)
                raise
            report("assign", claims=claims, plan=_described_plan(plan), seconds=time.monotonic() - begin)
            return plan

        def on_assignment(self, assignment: Any, generation: int) -> None:
            super().on_assignment(assignment, generation)
            report("assignment", **_assignment(assignment))

    if takes_all_members:
        ours.takes_all_members(Observed.assign)
    Observed.__name__, Observed.__qualname__, Observed.__module__ = (
        base.__name__,
        base.__qualname__,
        base.__module__,
    )
    # Not by setattr: the assignor may be a frozen dataclass.
    object.__setattr__(assignor, "__class__", Observed)


def _stand_in(members: Sequence[Any]) -> bool:
    """Whether one object stands for all members, whose metadata is still bytes."""
    return len(members) == 1 and hasattr(members[0], "members")


def _sent_claims(claims: Any) -> dict[str, Any]:
    """What travels to the broker: fields above the subscription's version are left on the way."""
    try:
        sent = claims if isinstance(claims, bytes | bytearray) else claims.encode()
        return _claims(ConsumerProtocolSubscription.decode(bytes(sent)))
    except Exception as error:  # noqa: BLE001 - to observe a broken assignor must not change what it does
        return {"undecodable": type_and_text(error)}


def _member_claims(member: Any) -> dict[str, Any]:
    said = member.metadata
    decoded = ConsumerProtocolSubscription.decode(said) if isinstance(said, bytes) else said
    return {"instance_id": member.group_instance_id, **_claims(decoded)}


def _claims(subscription: Any) -> dict[str, Any]:
    owned = getattr(subscription, "owned_partitions", None) or ()
    return {
        "topics": sorted(subscription.topics),
        "version": subscription.version,
        "owned": sorted((entry.topic, number) for entry in owned for number in entry.partitions),
        "claimed_generation": getattr(subscription, "generation_id", -1),
        "user_data": bytes(subscription.user_data or b"").hex(),
        "rack": getattr(subscription, "rack_id", None),
    }


def _described_plan(plan: Any) -> dict[str, Any]:
    try:
        return {member_id: _assignment(assignment) for member_id, assignment in plan.items()}
    except Exception as error:  # noqa: BLE001 - as above
        return {"undecodable": type_and_text(error)}


def _assignment(assignment: Any) -> dict[str, Any]:
    if not isinstance(assignment, ConsumerProtocolAssignment):
        sent = assignment if isinstance(assignment, bytes | bytearray) else assignment.encode()
        assignment = ConsumerProtocolAssignment.decode(bytes(sent))
    return {
        "partitions": pairs(assignment.partitions()),
        "user_data": bytes(assignment.user_data or b"").hex(),
    }
