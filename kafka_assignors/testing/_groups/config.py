"""All that a member needs to know, sent to its process or thread."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self

from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._groups.imports import imported

CommitMode = Literal["each poll", "auto", "never"]
"""When a member commits: after reporting each poll's records, by the client's timer, or on command only."""

POLL_MS: Final = 1000
"""How long one poll waits.

Not shorter: a leader whose poll ends while it waits for its own SyncGroup may never apply the assignment
(kafka-python 3.0). So a poll should last longer than a rebalance.
"""


def is_by_epochs(settings: Mapping[str, Any]) -> bool:
    """Whether a consumer of these settings joins by KIP-848: members have epochs, and the broker assigns.

    Raises ValueError if it would join by another protocol than that and the classic one.
    """
    chosen = str(settings.get("group_protocol", settings.get("group.protocol", "classic"))).lower()
    if chosen not in {"classic", "consumer"}:
        share = (
            "share groups (KIP-932) are not supported" if chosen == "share" else "there is no such protocol"
        )
        raise ValueError(
            f"group_protocol={chosen}: {share}; use classic, which is the default, or consumer (KIP-848)"
        )
    return chosen == "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """All that a member needs to know; crosses the border of a process as one line of JSON.

    `ConsumerGroup` has what each part means. An assignor is a name, or what to import and its arguments; the
    client a library, or "package.module:function" (or "file.py:function") of the user's own, which gets
    `arguments` by name.
    """

    access: Access
    group_id: str
    name: str
    topics: Sequence[str]
    pattern: str | None
    client: str
    assignors: Sequence[str | tuple[str, Mapping[str, Any]]] | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    instance_id: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    commit: CommitMode = "each poll"
    poll_ms: int = POLL_MS
    work_ms: int = 0
    held: bool = False
    recalls_joins: bool = False

    def __post_init__(self) -> None:
        if self.poll_ms < 1 or self.work_ms < 0:
            raise ValueError(
                f"{self.name}: poll_ms={self.poll_ms} and work_ms={self.work_ms}: a poll takes 1 ms at least,"
                " work 0 ms"
            )

    def to_json(self) -> str:
        """One line without its end; raises TypeError for settings or arguments that have no JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str | bytes) -> Self:
        values = json.loads(line)
        return cls(**{**values, "access": Access.from_json(values["access"])})

    @property
    def by_epochs(self) -> bool:
        """Whether the group is to be one of KIP-848."""
        return is_by_epochs(self.settings)

    def common(self) -> dict[str, Any]:
        """The settings of a consumer that every library has, in kafka-python's spelling."""
        static = {} if self.instance_id is None else {"group_instance_id": self.instance_id}
        own = {"group_id": self.group_id, "client_id": self.name, "enable_auto_commit": self.commit == "auto"}
        return {**self.settings, **own, **static}

    def made_assignors(self) -> list[Any] | None:
        """The assignors for one consumer, made, or names as they are; None for the client's own choice."""
        return None if self.assignors is None else [_assignor(spec) for spec in self.assignors]


def _assignor(spec: Any) -> Any:
    """A strategy's name, or an assignor, made from what names it."""
    if not isinstance(spec, tuple | list):
        return spec
    target, arguments = spec
    return (imported(target) if isinstance(target, str) else target)(**arguments)
