"""Answers to JoinGroup and SyncGroup that a coordinator holds until the round is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors.coordinator._simulator.messages import Joined, Synced

if TYPE_CHECKING:
    from kafka_assignors.coordinator._simulator.messages import Error, JoinReply, SyncReply


class HeldAnswers:
    """Who waits for which answer.

    Each is what to call with the answer, by the member's id.
    """

    def __init__(self) -> None:
        self.joins: dict[str, JoinReply] = {}
        self.syncs: dict[str, SyncReply] = {}

    def __contains__(self, member_id: object) -> bool:
        return member_id in self.joins or member_id in self.syncs

    def answer_join(self, member_id: str, answer: Joined) -> None:
        """Answer a member's JoinGroup, if it waits for that."""
        reply = self.joins.pop(member_id, None)
        if reply is not None:
            reply(answer)

    def answer_sync(self, member_id: str, answer: Synced) -> None:
        """Answer a member's SyncGroup, if it waits for that."""
        reply = self.syncs.pop(member_id, None)
        if reply is not None:
            reply(answer)

    def drop_sync(self, member_id: str) -> None:
        """Never answer a member's SyncGroup."""
        self.syncs.pop(member_id, None)

    def refuse_all(self, error: Error) -> None:
        for join in self.joins.values():
            join(Joined(error=error))
        for sync in self.syncs.values():
            sync(Synced(error=error))
