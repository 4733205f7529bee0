"""What chart and picture of a timeline share: members in order, and what was done to them."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from kafka_assignors._timelines.events import Closed, Crashed, Event, Exited, Subscribed

_Look = TypeVar("_Look")


class Sign(NamedTuple):
    """How a kind of mark is written: a letter in text, what one member does and what several do."""

    letter: str
    word: str
    plural: str


SIGNS: Final[Mapping[str, Sign]] = {
    "started": Sign("+", "joins", "join"),
    "closed": Sign("-", "leaves", "leave"),
    "crashed": Sign("x", "crashes", "crash"),
    "exited": Sign("x", "ends", "end"),
    "frozen": Sign("f", "freezes", "freeze"),
    "thawed": Sign("t", "thaws", "thaw"),
    "paused": Sign("p", "stops polling", "stop polling"),
    "resumed": Sign("r", "polls again", "poll again"),
    "commit_failed": Sign("c", "cannot commit", "cannot commit"),
    "subscribed": Sign("s", "subscribes again", "subscribe again"),
    "unsubscribed": Sign("u", "unsubscribes", "unsubscribe"),
}
"""The kinds of events that are marked."""


def find_marks(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events that are marked: each end of a member once, and no subscription that starts it."""
    events = tuple(events)
    ended = {event.member for event in events if isinstance(event, Closed | Crashed)}
    subscribed: set[str] = set()
    found = []
    for event in events:
        if isinstance(event, Subscribed) and event.member not in subscribed:
            subscribed.add(event.member)
        elif event.kind in SIGNS and not (isinstance(event, Exited) and event.member in ended):
            found.append(event)
    return tuple(found)


def colour_groups(members: Iterable[str], identity: Mapping[str, str]) -> dict[str, list[str]]:
    """Members that are one to the group, under the first one's name, in the order of joining."""
    found: dict[str, list[str]] = {}
    for member in members:
        found.setdefault(identity[member], []).append(member)
    return found


def looks_of(groups: Mapping[str, Iterable[str]], looks: Iterable[_Look]) -> dict[str, _Look]:
    """How each member is shown; members that are one to the group are shown alike."""
    return {member: look for look, names in zip(looks, groups.values(), strict=False) for member in names}
