"""What members of a schedule are: which client, with which assignors."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

from kafka_assignors import _leader
from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor, CopartitionedAssignor
from kafka_assignors._common.strategies import STRATEGIES as TABLE, load
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from tests.lab.clients.flowing_member import kafka_python_member
from tests.lab.clients.measuring import MeasuringAssignor
from tests.lab.clients.other_clients import (
    JavaCooperativeSticky,
    JavaMember,
    LibrdkafkaCooperativeSticky,
    LibrdkafkaMember,
    UnaidedMember,
)

_KINDS: Final[Mapping[str, Callable[..., ClassicConsumer]]] = {
    "ours": kafka_python_member,
    "waits": kafka_python_member,
    "unaided": UnaidedMember,
    "kafka-python": UnaidedMember,
    "java": JavaMember,
    "librdkafka": LibrdkafkaMember,
}

CLIENTS: Final = (*_KINDS, "aio", "aiokafka")
"""What a member can be. The first four are kafka-python's consumer. It has our assignors, with records in
rebalances or without; or ours where they cannot complete its joins; or its own assignors. Then come Java's
consumer and librdkafka's. The last two are our `CooperativeConsumer`, and aiokafka's own consumer with our
assignors.
"""

STANDBYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "standby": {"priority": -1},
    "single": {"max_active": 1},
    "passive": {"return_after": 3},
    "returning": {"priority": 1, "return_after": 3},
}
"""Members as "ours", with a sticky assignor of these options."""

OURS: Final = ("ours", "waits", "unaided", "aio", "aiokafka", *STANDBYS)
"""Those whose leaders plan by our assignors."""

STRATEGIES: Final[Mapping[str, type[Assignor]]] = {
    **{name: assignor for name, assignor in _leader.STRATEGIES.items() if not assignor.shared},
    MeasuringAssignor.name: MeasuringAssignor,
}
"""Strategies under which a partition has one owner."""

COOPERATIVE: Final = frozenset(
    name for name, assignor in STRATEGIES.items() if issubclass(assignor, CooperativeStickyAssignor)
)
"""Those of them whose members keep partitions in a rebalance."""

_THEIRS: Final[Mapping[tuple[str, str], Callable[[], AbstractPartitionAssignor]]] = {
    ("waits", "cooperative-sticky"): partial(CooperativeStickyAssignor, records_in_rebalances=False),
    ("waits", "copartitioned"): partial(CopartitionedAssignor, records_in_rebalances=False),
    **{("kafka-python", name): load(one.stock) for name, one in TABLE.items() if one.stock},
    ("java", "cooperative-sticky"): JavaCooperativeSticky,
    ("librdkafka", "cooperative-sticky"): LibrdkafkaCooperativeSticky,
}
"""Assignors other than ours as they are; the rest plan as ours do."""


def make_client(
    client: str, strategy: str
) -> tuple[Callable[..., ClassicConsumer], Sequence[Callable[[], AbstractPartitionAssignor]]]:
    """The behaviour of a member, and what makes its assignors."""
    if client in STANDBYS:
        return _kind("ours"), [partial(STRATEGIES[strategy], **STANDBYS[client])]
    if client not in CLIENTS:
        raise ValueError(f"there is no client {client!r}; choose one of {', '.join(CLIENTS)}")
    if strategy not in STRATEGIES:
        raise ValueError(f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}")
    return _kind(client), [_THEIRS.get((client, strategy), STRATEGIES[strategy])]


def _kind(client: str) -> Callable[..., ClassicConsumer]:
    if client not in _KINDS:
        # aiokafka is an extra, and only these need it.
        from tests.lab.clients.aiokafka_members import (  # noqa: PLC0415
            AiokafkaMember,
            CooperativeAioMember,
        )

        return CooperativeAioMember if client == "aio" else AiokafkaMember
    return _KINDS[client]
