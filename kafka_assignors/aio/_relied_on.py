"""All that is relied on of aiokafka's private parts, and the look whether this release has it.

aiokafka has no public way to what a cooperative consumer needs. So it is subclassed where it is private, and
nothing of it is changed for others. A test compares a hash of each function named here with those of the
releases that were tried; at run time a release is refused that was not tried or lacks one.
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
        "Fetcher._fetch_requests_routine",
        "Fetcher._get_actions_per_node",
        "Fetcher._notify",
        "Fetcher._proc_fetch_request",
        "Fetcher._update_fetch_positions",
        "Fetcher.next_record",
        "Fetcher.fetched_records",
        "FetchResult.check_assignment",
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
        "SubscriptionState.assign_from_subscribed",
        "SubscriptionState.fetch_context",
        "SubscriptionState.paused_partitions",
        "SubscriptionState.unsubscribe",
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

_NAMED_IN_START: Final = "GroupCoordinator"


def release() -> str:
    """The aiokafka that is installed.

    Raises:
        ImportError: There is none.
    """
    try:
        import aiokafka  # noqa: PLC0415 - it may be missing
    except ImportError as error:
        raise ImportError(f"kafka_assignors.aio needs aiokafka ({error}): {_INSTALL}") from error
    return f"aiokafka {aiokafka.__version__}"


def check(installed: str) -> None:
    """Make sure that a release of aiokafka is one that was tried.

    Args:
        installed: As `release` gives it.

    Raises:
        ImportError: It is not.
    """
    if ".".join(re.findall(r"\d+", installed)[:2]) not in TRIED:
        raise ImportError(
            f"kafka_assignors.aio goes with {' and '.join(TRIED)}, and {installed} is installed: {_INSTALL}"
        )


@cache
def functions() -> dict[str, Any]:
    """All functions that are relied on, by name.

    Raises:
        ImportError: One is missing, or the consumer does not start with the coordinator that it names.
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
    if _NAMED_IN_START not in found["AIOKafkaConsumer.start"].__code__.co_names:
        raise ImportError(
            f"kafka_assignors.aio needs a start with {_NAMED_IN_START}, not that of {release()}: {_INSTALL}"
        )
    return found


check(release())
functions()
