"""The strategies by name, and where each is: nothing is imported before it is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, get_args


class Strategy(NamedTuple):
    """A strategy; what it has is "module:name", and None what it lacks.

    `kip848:...` is an assignor of KIP-848's coordinator; the field `kip848` is its name there
    (`group.remote.assignor`). A `planner` makes a `Plan`
    of a `Group`; `stock` is kafka-python's own assignor. Partitions of a `shared` one have several owners.
    """

    name: str
    assignor: str | None = None
    planner: str | None = None
    stock: str | None = None
    kip848: Literal["uniform", "range"] | None = None
    shared: bool = False


_OURS, _STOCK = "kafka_assignors.planners", "kafka.coordinator.assignors"

STRATEGIES: Final[Mapping[str, Strategy]] = {
    one.name: one
    for one in (
        Strategy(
            "range",
            "kafka_assignors:RangeAssignor",
            f"{_OURS}._range:plan_range",
            f"{_STOCK}.range:RangePartitionAssignor",
        ),
        Strategy(
            "roundrobin",
            "kafka_assignors:RoundRobinAssignor",
            f"{_OURS}._round_robin:plan_round_robin",
            f"{_STOCK}.roundrobin:RoundRobinPartitionAssignor",
        ),
        Strategy(
            "sticky",
            "kafka_assignors:StickyAssignor",
            f"{_OURS}:plan_exact",
            f"{_STOCK}.sticky.sticky_assignor:StickyPartitionAssignor",
        ),
        Strategy(
            "cooperative-sticky",
            "kafka_assignors:CooperativeStickyAssignor",
            f"{_OURS}:plan_exact",
            f"{_STOCK}.cooperative_sticky:CooperativeStickyAssignor",
        ),
        Strategy(
            "copartitioned",
            "kafka_assignors:CopartitionedAssignor",
            f"{_OURS}._copartitioned:plan_copartitioned",
        ),
        Strategy("random", "kafka_assignors:RandomAssignor"),
        Strategy("broadcast", "kafka_assignors:BroadcastAssignor", shared=True),
        Strategy("load-aware", "kafka_assignors:LoadAwareAssignor", f"{_OURS}._load:plan_load"),
        Strategy("exact", planner=f"{_OURS}:plan_exact"),
        Strategy("kip54", planner=f"{_OURS}._kip54:plan_kip54"),
        Strategy("kip848:uniform", planner=f"{_OURS}._kip848_uniform:plan_kip848_uniform", kip848="uniform"),
        Strategy("kip848:range", planner=f"{_OURS}._kip848_range:plan_kip848_range", kip848="range"),
    )
}

ASSIGNORS: Final = {one.name: one.assignor for one in STRATEGIES.values() if one.assignor is not None}
"""Where this library's assignor of each strategy is."""

PLANNED: Final = ("exact", "kip54", "range", "roundrobin", "copartitioned", "load-aware")
"""What a group can be planned by alone, the default first."""

RESTARTED: Final = ("range", "roundrobin", "sticky", "cooperative-sticky", "kip848:uniform", "kip848:range")
"""What a rolling restart is simulated with."""

COMPARED: Final = RESTARTED[:4]
"""Kafka's own strategies of the classic protocol."""

STICKY: Final = frozenset(COMPARED[2:])
"""Those of them that keep what members own."""

COOPERATIVE: Final = frozenset(("cooperative-sticky", "copartitioned", "load-aware"))
"""The strategies whose members hold what they own while they join (KIP-429), unless they are eager."""

KAFKA_PYTHON: Final = {f"kafka-python:{name}": one.stock for name, one in STRATEGIES.items() if one.stock}
"""Where kafka-python's own assignors are, by the names that a history is replayed with."""

REPLAYED: Final = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "copartitioned",
    "kip54",
    "kip848:uniform",
    "kip848:range",
    "load-aware",
    *KAFKA_PYTHON,
)
"""What a history is replayed with. `kip54` is the sticky assignor of Kafka's Java clients (KIP-54), eager."""

Client = Literal["java", "librdkafka", "kafka-python", "aiokafka"]
"""The clients whose rules are known; "java" stands for the assignors of this library as well."""

CLIENTS: Final[tuple[Client, ...]] = get_args(Client)


def load(path: str) -> Any:
    """What is at "module:name"."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
