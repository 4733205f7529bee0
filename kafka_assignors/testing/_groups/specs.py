"""How members of a group under test are described: what they are made of, and what they subscribe to."""

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypedDict, Unpack, cast

from kafka import KafkaConsumer

from kafka_assignors._common.strategies import COMPARED
from kafka_assignors._common.words import or_meant
from kafka_assignors.testing._brokers.access import Access, Kafka
from kafka_assignors.testing._choices import check_choice
from kafka_assignors.testing._groups.clients import (
    MODULES,
    OF_THE_BROKER,
    STRATEGIES_OF_LIBRDKAFKA,
    ClientName,
    check_client,
    check_epochs,
    check_settings,
)
from kafka_assignors.testing._groups.config import CommitMode, WorkerConfig, is_by_epochs
from kafka_assignors.testing._groups.imports import path_of
from kafka_assignors.testing._groups.runners import Place

AssignorSpec = str | type[Any] | tuple[str | type[Any], Mapping[str, Any]]
"""A member's assignor: a strategy's name, for the client's own ("range"). For kafka-python it can be one to
make: a class or its path "package.module:Class", alone or in a pair with its arguments by name.
"""

_Function = Callable[..., Any] | str

ClientSpec = ClientName | _Function | tuple[_Function, Mapping[str, Any]]
"""What a member is made of: a client library, or a function that takes a `Seat` (see there), or its path.

A function may stand in a pair with further arguments by name, or in a `functools.partial` that has them.
"""

SETTINGS: Mapping[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 300,
    "metadata_max_age_ms": 1000,
    "session_timeout_ms": 6000,
}
"""The consumers' settings by default: quick to notice what happens."""

_OF_CLASSIC_GROUPS = frozenset({"heartbeat_interval_ms", "session_timeout_ms"})
"""Settings that are the broker's in groups of KIP-848, and that clients refuse there."""

Topics = str | Collection[str] | re.Pattern[str]
"""What to subscribe to: a topic, topics, or a pattern that topics match from the start of their names."""

Sharing = Literal["exclusive", "broadcast"]
"""Whether each partition is to have one owner, or to be owned by every subscriber of its topic."""


class OwnParts(TypedDict, total=False):
    """What a member may have instead of its group's; None is the group's, too."""

    client: ClientSpec | None
    assignors: Sequence[AssignorSpec] | None
    topics: Topics | None
    settings: Mapping[str, Any] | None
    place: Place | None
    access: Kafka | None
    poll_ms: int | None
    work_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """What a member is made of, before it has a name; see `ConsumerGroup` for each part."""

    access: Access
    topics: Topics
    assignors: Sequence[AssignorSpec] | None
    client: ClientSpec
    place: Place
    settings: Mapping[str, Any]
    commit: CommitMode
    poll_ms: int
    work_ms: int
    recalls_joins: bool

    def __post_init__(self) -> None:
        """Refuse what would pass for another choice, other assignors or another pattern, in silence."""
        check_choice("place", self.place, Place)
        check_choice("commit", self.commit, CommitMode)
        if isinstance(self.assignors, str | type):
            raise TypeError(f"assignors={self.assignors!r}: give a list, also of one")
        if isinstance(self.topics, re.Pattern) and self.topics.flags != re.UNICODE:
            raise ValueError(f"{self.topics!r}: members get its text without flags; write [Oo]rders, say")

    def changed(self, **own: Unpack[OwnParts]) -> Self:
        """The same with a member's own parts, and its settings on top (see `on_top`)."""
        given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
        if "access" in given:
            given["access"] = Access.to(given["access"])
        return replace(self, **{**given, "settings": on_top(self.settings, given.get("settings", {}))})

    def config(self, group_id: str, name: str, *, instance_id: str | None, held: bool) -> WorkerConfig:
        """What the member's process or thread needs to know.

        Raises ValueError if an assignor cannot be made in another process, there is no such client, it does
        not know KIP-848, or a poll is to take no time. It does so, too, if the client (or the broker, by
        KIP-848) has no such assignor, or kafka-python no such setting.
        """
        library, arguments = _client(self.client)
        by_epochs = is_by_epochs(self.settings)
        if by_epochs and library in MODULES:
            check_epochs(cast("ClientName", library))
        names = KafkaConsumer.DEFAULT_CONFIG
        for one in self.settings if library == "kafka-python" else ():
            if one not in names:  # it would be refused there, too, but in another process
                raise ValueError(f"kafka-python has no setting {one!r}{or_meant(one, names)}")
        known = _of_the_broker if by_epochs else _assignor
        pattern = self.topics.pattern if isinstance(self.topics, re.Pattern) else None
        return WorkerConfig(
            access=self.access,
            group_id=group_id,
            name=name,
            topics=() if isinstance(self.topics, re.Pattern) else names_of(self.topics),
            pattern=pattern,
            client=library,
            arguments=arguments,
            assignors=None if self.assignors is None else [known(one, library) for one in self.assignors],
            instance_id=instance_id,
            settings=on_top(SETTINGS, self.settings),
            commit=self.commit,
            poll_ms=self.poll_ms,
            work_ms=self.work_ms,
            held=held,
            recalls_joins=self.recalls_joins,
        )


def _client(spec: ClientSpec) -> tuple[str, Mapping[str, Any]]:
    """A library or the path of a function, and what the function gets beside its seat."""
    if isinstance(spec, functools.partial):
        if spec.args:
            raise ValueError(f"{spec!r}: a member's function gets its seat first; give arguments by name")
        spec = (spec.func, spec.keywords)
    target, arguments = spec if isinstance(spec, tuple) else (spec, {})
    path = target if isinstance(target, str) else path_of(target)
    check_client(path)
    return path, arguments


def on_top(usual: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings on top of those for all groups or for all members, which are fewer for members of KIP-848.

    Raises ValueError if one is the kit's own to make, or there is no such protocol of groups.
    """
    check_settings(settings)
    left_out = _OF_CLASSIC_GROUPS if is_by_epochs({**usual, **settings}) else ()
    return {**{name: value for name, value in usual.items() if name not in left_out}, **settings}


def names_of(topics: str | Collection[str]) -> list[str]:
    """Topics, however they are given, in a list."""
    return [topics] if isinstance(topics, str) else [*topics]


def subscribes(topics: Topics, topic: str) -> bool:
    """Whether a topic is among those that are subscribed to."""
    if isinstance(topics, re.Pattern):
        # The clients leave internal topics out of what a pattern matches.
        return not topic.startswith("__") and topics.match(topic) is not None
    return topic in names_of(topics)


def _assignor(spec: AssignorSpec, client: str) -> str | tuple[str, dict[str, Any]]:
    """What a member of a client needs to know of an assignor: its name, or what to import and call.

    aiokafka takes assignors of this library, too (`kafka_assignors.aio`).
    """
    target, options = spec if isinstance(spec, tuple) else (spec, {})
    of_aiokafka = client == "aiokafka" and (isinstance(target, str) or _is_ours(target))
    is_made = of_aiokafka or client == "kafka-python" or client not in MODULES
    if is_made and (not isinstance(target, str) or ":" in target):
        return target if isinstance(target, str) else path_of(target), dict(options)
    if not isinstance(target, str):
        target = str(getattr(target, "name", getattr(target, "__name__", target)))
    own = STRATEGIES_OF_LIBRDKAFKA if client == "confluent-kafka" else COMPARED
    # Java takes any class of its own by its full name.
    if target not in own and not (client == "java" and "." in target):
        raise ValueError(f"{client} has no assignor {target!r}: it has {', '.join(sorted(own))}")
    return target


def _is_ours(kind: type[Any]) -> bool:
    from kafka_assignors._assignors import Assignor  # noqa: PLC0415 - not for members of other clients

    return isinstance(kind, type) and issubclass(kind, Assignor)


def _of_the_broker(spec: AssignorSpec, _: str) -> str:
    """The name of an assignor that brokers run."""
    name = str(getattr(spec, "name", spec))
    if name not in OF_THE_BROKER and "." not in name:
        raise ValueError(
            f"group_protocol=consumer: the broker assigns, and has no assignor {name!r}; it has"
            f" {' and '.join(OF_THE_BROKER)}"
        )
    return name
