"""A group by its members' reports, and waits for what they bring about."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from kafka_assignors._common.waiting import LOOK_SECONDS, Deadline
from kafka_assignors._timelines.events import Event, StateReported
from kafka_assignors._timelines.losses import may_end_others
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._groups.stability import BrokersView
from kafka_assignors.testing._groups.waiting import GroupNotStableError, describe_group, how_ended

_ANSWER_SECONDS = 1.0
"""For members that say where they stand, when the wait is over already."""

_LONGEST_REST = 1.0
"""Seconds between two looks at a condition, however long a look takes."""


class ReportingGroup(ABC):
    """A group whose members report events, from threads of their own."""

    def __init__(self, group_id: str, timeout: float) -> None:
        self.group_id = group_id
        self.timeout = timeout
        self.members: dict[str, Member] = {}
        self._events: list[Event] = []
        self._timeline = Timeline(())
        self._changed = threading.Condition(threading.RLock())

    @abstractmethod
    def describe(self) -> BrokersView:
        """Ask the coordinator about the group, by a client that is no member."""

    def present(self) -> list[Member]:
        """The members that should make up the group: running, subscribed, neither held, frozen nor paused."""
        return [
            member
            for member in self.members.values()
            if member.running and member.topics and not (member.held or member.frozen or member.paused)
        ]

    @property
    def _held_up(self) -> bool:
        return any(member.frozen or member.paused for member in self.members.values())

    def record(self, event: Event) -> None:
        """Add an event; members' readers call it."""
        with self._changed:
            self._events.append(event)
            self.members[event.member].take(event)
            self._changed.notify_all()

    @property
    def timeline(self) -> Timeline:
        """All that happened up to now. Events are put in order only if there are new ones."""
        with self._changed:
            if len(self._timeline.events) != len(self._events):
                self._timeline = Timeline(self._events)
            return self._timeline.ending(time.monotonic())

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None, what: str = "") -> None:
        """Wait until the predicate holds. It is asked again after every event, and often without.

        Args:
            predicate: Asked while new events are held back, so it sees one moment of the group. Events get
                four times as long as it takes, a second at most, before it is asked again.
            timeout: In seconds; the group's by default.
            what: What is waited for, for the message.

        Raises:
            GroupNotStableError: It did not come to hold, or a member ended by itself. If the member had
                polled a record and not processed it, the error waits until another has processed the record,
                or none is left. So a record that ends them all is named with all of them.
        """
        self._wait(predicate, timeout, lambda: what or "a condition")

    def _wait(
        self,
        done: Callable[[], object],
        timeout: float | None,
        what: Callable[[], str],
        wrong: Callable[[], Sequence[str]] = list,
        in_vain: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until `done`; `what` is waited for, and `wrong` if it does not come, or cannot: `in_vain`."""
        deadline = Deadline(self.timeout if timeout is None else timeout)
        doomed = False
        with self._changed:
            began = time.monotonic()
            while doomed or not done():
                doomed = self._give_up_if(what(), wrong, deadline, at_once=in_vain())
                # A look at a long timeline takes long, and members that cannot report meanwhile stand still.
                self._let_report(min(4 * (time.monotonic() - began), _LONGEST_REST))
                began = time.monotonic()

    def _let_report(self, seconds: float) -> None:
        """Let members report for so long; if none does, until one does, or it is time to look again."""
        heard = len(self._events)
        self._changed.wait_for(lambda: False, seconds)
        if len(self._events) == heard:
            self._changed.wait(max(LOOK_SECONDS - seconds, 0))

    def _give_up_if(
        self, what: str, wrong: Callable[[], Sequence[str]], deadline: Deadline, *, at_once: bool = False
    ) -> bool:
        """Give up if the time is over, a member has ended by itself, or the caller knows that it is in vain.

        If it is not known yet whether what ended a member ends others, too, this returns True and gives up
        later.
        """
        members = [*self.members.values()]
        ended = [member.name for member in members if member.ended_by_itself]
        may_end_more = ended and self.present() and may_end_others(self.timeline, ended)
        if not (deadline.passed or at_once) and (not ended or may_end_more):
            return bool(ended)
        with self._changed:
            heard = len(self._events)
            awaited = {member.name for member in members if member.ask_state()}
            self._changed.wait_for(lambda: awaited <= self._answered(heard), _ANSWER_SECONDS)
        timeline = self.timeline
        headline = f"gave up waiting for {what}" if ended or at_once else deadline.text(what, ())
        raise GroupNotStableError(
            describe_group(
                f"group {self.group_id}: {headline}",
                [*how_ended(timeline, ended), *wrong()],
                members=members,
                view=self.describe(),
                timeline=timeline,
                since=deadline.began,
            )
        )

    def _answered(self, heard: int) -> set[str]:
        """Who said where it stands, after so many events."""
        return {event.member for event in self._events[heard:] if isinstance(event, StateReported)}
