"""All that is relied on of kafka-python's private parts, and the look whether this release has it.

kafka-python calls an assignor with topics and members, and hands it nothing else. So some methods of one
consumer's coordinator are replaced. Each such change is a `Part`. If a release differs in what the part
needs, the consumer is left as it is, and one warning says what that costs. A test compares the functions with
the recorded ones, and finds private names that are used and not listed here.
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import kafka

from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)

OLDEST: Final = (3, 0, 12)
"""The oldest release of kafka-python that was tried; before 3.0 it has no assignor objects."""


def check(version: str) -> None:
    """Make sure that a release of kafka-python is new enough; raises ImportError if it is not."""
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"kafka-assignors needs kafka-python {oldest} or newer, and {version} is installed: "
            f"pip install 'kafka-python>={oldest},<4'"
        )


check(kafka.__version__)

from kafka.future import Future  # noqa: E402 - an older release has none, and would not be named


@dataclass(frozen=True, slots=True)
class Part:
    """What one change to a consumer needs of its coordinator.

    `cost` is what a consumer that is left unchanged does, for the warning. Methods have their parameters
    without `self`; attributes are dotted names from the coordinator on.
    """

    cost: str
    methods: Mapping[str, tuple[str, ...]]
    attributes: tuple[str, ...] = ()

    def is_in(self, coordinator: Any) -> bool:
        """Whether this release has all of it; else a warning is logged, once."""
        missing = tuple(self._missing(coordinator))
        if missing:
            warn(self.cost, missing)
        return not missing

    def _missing(self, coordinator: Any) -> list[str]:
        kind = type(coordinator)
        return [
            *(name for name, parameters in self.methods.items() if _parameters(kind, name) != parameters),
            *(name for name in self.attributes if not _has(coordinator, name)),
        ]


def _parameters(kind: type, name: str) -> tuple[str, ...] | None:
    """The parameters of a method; None if there is none, or it does not block as its name says."""
    method = getattr(kind, name, None)
    if not callable(method) or (name in _AWAITED) is not inspect.iscoroutinefunction(method):
        return None
    return tuple(inspect.signature(method).parameters)[1:]


def _has(thing: Any, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


@cache
def warn(cost: str, differs: tuple[str, ...]) -> None:
    """Log once that this release differs, and what that costs."""
    log.warning(
        "kafka-python %s differs from the releases that kafka-assignors was tried with (%s). %s",
        kafka.__version__,
        ", ".join(differs),
        cost,
    )


_AWAITED: Final = frozenset(
    {
        *("_commit_offsets_sync_async", "_do_heartbeat", "_do_join_and_sync_async"),
        *("_invoke_rebalance_listener_async", "_on_close_prepare_async", "_on_join_complete_async"),
        *("_on_join_prepare_async", "_send_heartbeat_request", "_send_offset_commit_request"),
        "_send_offset_fetch_request",
        *("ensure_coordinator_ready_async", "maybe_leave_group_async"),
    }
)
"""The methods that are coroutine functions."""

_JOIN: Final = MappingProxyType(
    {"_do_join_and_sync_async": (), "_send_heartbeat_request": (), "need_rejoin": (), "request_rejoin": ()}
)

JOINS: Final = Part(
    cost="A join that ends between two polls is thrown away: poll for longer than a rebalance takes; and an"
    " eager consumer that missed a generation may read again what others have committed",
    methods={**_JOIN, "_send_offset_fetch_request": ("partitions",)},
    attributes=("_generation", "_rebalance_protocol", "_subscription", "config", "rejoining", "state"),
)
"""For `kafka_assignors._assignors._joins`."""

MEMBERS: Final = Part(
    cost="A member with a subscription that cannot be decoded stops its group, and large groups plan slowly",
    methods={"_perform_assignment": ("leader_id", "protocol_name", "members")},
    attributes=("_lookup_assignor",),
)
"""For `KafkaPythonHost.show_members_first`."""

FLOW: Final = Part(
    cost="Cooperative consumers read nothing during a rebalance",
    methods={
        **_JOIN,
        "_commit_offsets_sync_async": ("offsets", "timeout_ms"),
        "_disable_heartbeat": (),
        "_do_heartbeat": (),
        "_enable_heartbeat": (),
        "_failed_request": ("node_id", "request", "error"),
        "_handle_heartbeat_response": ("response", "send_time"),
        "_handle_offset_commit_response": ("offsets", "send_time", "response"),
        "_invoke_completed_offset_commit_callbacks": (),
        "_invoke_rebalance_listener_async": ("method_name", "arg"),
        "_maybe_auto_commit_offsets_async": (),
        "_maybe_start_heartbeat_loop": (),
        "_on_close_prepare_async": (),
        "_on_join_complete_async": ("generation", "member_id", "protocol", "member_assignment_bytes"),
        "_on_join_prepare_async": ("generation", "member_id", "timeout_ms"),
        "_process_join_group_response": ("response", "send_time"),
        "_process_sync_group_response": ("response", "send_time"),
        "_send_offset_commit_request": ("offsets",),
        "coordinator_dead": ("error",),
        "coordinator_unknown": (),
        "ensure_coordinator_ready_async": ("timeout_ms",),
        "generation_if_stable": (),
        "maybe_auto_commit_offsets_now": (),
        "maybe_leave_group_async": ("reason", "timeout_ms"),
        "poll": ("timeout_ms",),
        "poll_heartbeat": (),
        "refresh_committed_offsets_if_needed": ("timeout_ms",),
        "reset_generation": ("member_id",),
        "stable": (),
        "time_to_next_poll": (),
    },
    attributes=(
        "_cluster.request_update",
        "_generation.is_lost",
        "_heartbeat_closed",
        "_heartbeat_enabled",
        "_heartbeat_wakeup.notify",
        "_is_leader",
        "_join_task",
        "_lock",
        "_manager._conns",
        "_manager.call_soon",
        "_manager.cluster.add_coordinator",
        "_manager.cluster.broker_metadata",
        "_manager.send",
        "_net.run",
        "_net.sleep",
        "_offset_fetch_futures",
        "_subscription.assignment",
        "_subscription.mark_pending_revocation",
        "_subscription.reset_group_subscription",
        "config",
        "coordinator_id",
        "group_instance_id",
        "heartbeat.heartbeat_failed",
        "heartbeat.last_receive",
        "heartbeat.last_reset",
        "heartbeat.last_send",
        "heartbeat.poll_timeout_expired",
        "rejoin_needed",
        "state",
    ),
)
"""For `kafka_assignors._assignors._flow`."""

TOPICS: Final = Part(
    cost="A leader may join again after each plan, if its group subscribes to topics that it does not",
    methods={"_build_metadata_snapshot": ("subscription", "cluster")},
    attributes=("_assignment_snapshot", "_metadata_snapshot"),
)
"""For `KafkaPythonHost.plans_with`."""

POLLS: Final = Part(
    cost="Nothing is measured of this consumer: to load-aware, its partitions cost what others' do",
    methods={"_poll_once": ("timer", "max_records", "update_offsets")},
    attributes=("_fetcher._completed_fetches", "_subscription.assignment"),
)
"""For `kafka_assignors._assignors._measuring`; of the consumer, not of its coordinator."""

READ: Final = ("_assignors", "_partitions")
"""What `KafkaPythonHost` and `_topics` read beside these parts."""


# What 3.1 calls otherwise than 3.0.


async def wait(coordinator: Any, future: Any, timeout_ms: float) -> None:
    """Wait until a future is done, or for so long; what became of it, the future says."""
    wait_for = getattr(coordinator._net, "await_for", None)  # noqa: SLF001
    try:
        if wait_for is None:
            await coordinator._manager.wait_for(future, timeout_ms)  # noqa: SLF001
        else:
            await wait_for(future, timeout_ms=timeout_ms)
    except Exception as error:  # noqa: BLE001 - the future's, if it is not that the time is over
        log.debug("Waited for %s: %r", future, error)


def new_future(coordinator: Any) -> Any:
    """A future that coroutines of the consumer's I/O thread can await."""
    create = getattr(coordinator._net, "create_future", Future)  # noqa: SLF001
    return create()
