"""All that a member needs to know, sent to its process or thread."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.imports import imported

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.testing._groups.clients import ClientName

__tracebackhide__ = True

CommitMode = Literal["each poll", "auto", "never"]
"""When a member commits: after reporting each poll's records, by the client's timer, or on command only."""

POLL_MS: Final = 1000
"""How long one poll waits.

Not shorter: a leader whose poll ends while it waits for its own SyncGroup may never apply the assignment
(kafka-python 3.0). So a poll should last longer than a rebalance.
"""


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
    client: ClientName | str
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

    def task(self) -> clients.Task:
        """The consumer that this is about, its assignors imported and made."""
        return clients.Task(
            access=self.access,
            group_id=self.group_id,
            name=self.name,
            assignors=None if self.assignors is None else [_assignor(spec) for spec in self.assignors],
            instance_id=self.instance_id,
            auto_commit=self.commit == "auto",
            settings=self.settings,
            recalls_joins=self.recalls_joins,
        )


def _assignor(spec: Any) -> Any:
    """A strategy's name, or an assignor, made from what names it."""
    if not isinstance(spec, tuple | list):
        return spec
    target, arguments = spec
    return (imported(target) if isinstance(target, str) else target)(**arguments)
