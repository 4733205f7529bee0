"""All that is relied on of aiokafka's private parts, and the look whether this release has it.

aiokafka has no public way to what a cooperative consumer needs. So it is subclassed where it is private, and
nothing of it is changed for others. A test compares a hash of each function named here with those of the
releases that were tried. Another test finds private names that are used and not named here. At run time a
release is refused that was not tried, or lacks one.
"""

from __future__ import annotations

import re
from functools import cache
from operator import attrgetter
from typing import Any, Final

TRIED: Final = ("0.13", "0.14")
"""The releases of aiokafka that the whole suite runs with."""

_INSTALL: Final = "pip install 'kafka-assignors[aiokafka]'"

RELIED_ON: Final = {
    "aiokafka.client": (
        "AIOKafkaClient.ready",
        "AIOKafkaClient.send",
        "AIOKafkaClient._get_conn",
        "AIOKafkaClient._maybe_wait_metadata",
    ),
    "aiokafka.conn": ("AIOKafkaConnection.__init__", "AIOKafkaConnection.send"),
    "aiokafka.consumer.consumer": (
        "AIOKafkaConsumer.__init__",
        "AIOKafkaConsumer.start",
        "AIOKafkaConsumer.stop",
        "AIOKafkaConsumer.commit",
        "AIOKafkaConsumer.position",
        "AIOKafkaConsumer.getone",
        "AIOKafkaConsumer.getmany",
        "AIOKafkaConsumer.subscribe",
        "AIOKafkaConsumer.unsubscribe",
    ),
    "aiokafka.consumer.fetcher": (
        "Fetcher._create_fetch_waiter",
        "Fetcher._fetch_requests_routine",
        "Fetcher._get_actions_per_node",
        "Fetcher._notify",
        "Fetcher._proc_fetch_request",
        "Fetcher._update_fetch_positions",
        "Fetcher.next_record",
        "Fetcher.fetched_records",
        "FetchResult.check_assignment",
        "FetchResult.getall",
    ),
    "aiokafka.consumer.group_coordinator": (
        "GroupCoordinator.__init__",
        "GroupCoordinator.close",
        "GroupCoordinator._coordination_routine",
        "GroupCoordinator._GroupCoordinator__coordination_routine",
        "GroupCoordinator._send_req",
        "GroupCoordinator._push_error_to_user",
        "GroupCoordinator._on_join_prepare",
        "GroupCoordinator._do_rejoin_group",
        "GroupCoordinator._perform_assignment",
        "GroupCoordinator._on_join_complete",
        "GroupCoordinator._lookup_assignor",
        "GroupCoordinator._maybe_leave_group",
        "GroupCoordinator.reset_generation",
        "GroupCoordinator.request_rejoin",
        "GroupCoordinator.ensure_active_group",
        "GroupCoordinator.ensure_coordinator_known",
        "GroupCoordinator.coordinator_dead",
        "GroupCoordinator.need_rejoin",
        "GroupCoordinator._heartbeat_routine",
        "GroupCoordinator._do_heartbeat",
        "GroupCoordinator._start_heartbeat_task",
        "GroupCoordinator._stop_heartbeat_task",
        "GroupCoordinator._maybe_do_autocommit",
        "GroupCoordinator._maybe_do_last_autocommit",
        "GroupCoordinator.commit_offsets",
        "GroupCoordinator._do_commit_offsets",
        "GroupCoordinator.start_commit_offsets_refresh_task",
        "GroupCoordinator._stop_commit_offsets_refresh_task",
        "GroupCoordinator._commit_refresh_routine",
        "GroupCoordinator._maybe_refresh_commit_offsets",
        "BaseCoordinator._handle_metadata_update",
        "BaseCoordinator._get_metadata_snapshot",
        "CoordinatorGroupRebalance.perform_group_join",
        "CoordinatorGroupRebalance._on_join_leader",
        "CoordinatorGroupRebalance._on_join_follower",
        "CoordinatorGroupRebalance._send_sync_group_request",
    ),
    "aiokafka.consumer.subscription_state": (
        "SubscriptionState._change_subscription",
        "SubscriptionState._assigned_state",
        "SubscriptionState._notify_assignment_waiters",
        "SubscriptionState.abort_waiters",
        "SubscriptionState.assign_from_subscribed",
        "SubscriptionState.fetch_context",
        "SubscriptionState.paused_partitions",
        "SubscriptionState.unsubscribe",
        "SubscriptionState.wait_for_assignment",
        "Subscription.__init__",
        "Subscription._assign",
        "Subscription._unsubscribe",
        "Assignment.__init__",
        "Assignment.all_consumed_offsets",
        "Assignment.requesting_committed",
        "Assignment.state_value",
        "TopicPartitionState.__init__",
        "TopicPartitionState.seek",
        "TopicPartitionState.update_committed",
        "TopicPartitionState.pause",
        "TopicPartitionState.resume",
    ),
}
"""The functions by module."""

KEPT: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "aiokafka.client": {"AIOKafkaClient": ("_conns",)},
    "aiokafka.cluster": {"ClusterMetadata": ("_partitions",)},
    "aiokafka.conn": {"AIOKafkaConnection": ("_request_timeout",)},
    "aiokafka.consumer.consumer": {
        "AIOKafkaConsumer": ("_closed", "_coordinator", "_fetcher", "_group_id", "_subscription"),
    },
    "aiokafka.consumer.fetcher": {"Fetcher": ("_records", "_wait_consume_future")},
    "aiokafka.consumer.group_coordinator": {
        "BaseCoordinator": ("_client", "_metadata_snapshot", "_subscription"),
        "GroupCoordinator": (
            "_assignors",
            "_auto_commit_interval_ms",
            "_closing",
            "_commit_refresh_task",
            "_enable_auto_commit",
            "_group_instance_id",
            "_group_subscription",
            "_heartbeat_interval_ms",
            "_heartbeat_task",
            "_max_poll_interval",
            "_next_autocommit_deadline",
            "_rebalance_timeout_ms",
            "_rejoin_needed_fut",
            "_retry_backoff_ms",
            "_session_timeout_ms",
            "coordinator_id",
            "generation",
            "group_id",
            "member_id",
        ),
        "CoordinatorGroupRebalance": ("_coordinator",),
    },
    "aiokafka.consumer.subscription_state": {
        "SubscriptionState": (
            "_assignment_waiters",
            "_fetch_count",
            "_last_fetch_ended",
            "_loop",
            "_subscription",
        ),
        "Subscription": ("_assignment", "_reassignment_in_progress", "unsubscribe_future"),
        "Assignment": ("_topic_partitions", "_tp_state"),
        "TopicPartitionState": ("_assignment", "_paused", "_resume_fut"),
    },
    "aiokafka.protocol.group": {"JoinGroupRequest": ("_group_protocols",)},
}
"""What objects keep, by module and class: attributes that are set when one is made."""

_NAMED_IN_START: Final = "GroupCoordinator"


def release() -> str:
    """The aiokafka that is installed; raises ImportError if there is none."""
    try:
        import aiokafka  # noqa: PLC0415 - it may be missing
    except ImportError as error:
        raise ImportError(f"kafka_assignors.aio needs aiokafka ({error}): {_INSTALL}") from error
    return f"aiokafka {aiokafka.__version__}"


def check(installed: str) -> None:
    """Make sure that a release of aiokafka is one that was tried; raises ImportError if it is not."""
    if ".".join(re.findall(r"\d+", installed)[:2]) not in TRIED:
        raise ImportError(
            f"kafka_assignors.aio goes with {' and '.join(TRIED)}, and {installed} is installed: {_INSTALL}"
        )


def _kept_by(kind: Any) -> set[str]:
    """The names that a class and its bases have themselves, and those in their `__init__`."""
    found: set[str] = set()
    for one in getattr(kind, "__mro__", ()):
        made = vars(one).get("__init__")
        found.update(vars(one), made.__code__.co_names if hasattr(made, "__code__") else ())
    return found


@cache
def functions() -> dict[str, Any]:
    """All functions that are relied on, by name.

    Raises ImportError if one is missing, or what an object keeps is. So it does if the consumer does not
    start with the coordinator that it names.
    """
    found: dict[str, Any] = {}
    for module, names in RELIED_ON.items():
        loaded = __import__(module, fromlist=["*"])
        for name in names:
            try:
                found[name] = attrgetter(name)(loaded)
            except AttributeError:
                raise ImportError(
                    f"kafka_assignors.aio needs {module}.{name}, which is not in {release()}: {_INSTALL}"
                ) from None
    for module, classes in KEPT.items():
        loaded = __import__(module, fromlist=["*"])
        for kind, attributes in classes.items():
            if missing := sorted({*attributes}.difference(_kept_by(getattr(loaded, kind, None)))):
                raise ImportError(
                    f"kafka_assignors.aio needs {module}.{kind} with {', '.join(missing)}, not that of"
                    f" {release()}: {_INSTALL}"
                )
    if _NAMED_IN_START not in found["AIOKafkaConsumer.start"].__code__.co_names:
        raise ImportError(
            f"kafka_assignors.aio needs a start with {_NAMED_IN_START}, not that of {release()}: {_INSTALL}"
        )
    return found


check(release())
functions()
