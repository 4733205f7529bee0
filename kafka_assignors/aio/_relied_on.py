"""What is relied on of aiokafka's private parts, and the look whether this release has it.

aiokafka has no public way to what a cooperative consumer needs. So it is subclassed where it is private, and
nothing of it is changed for others. At run time a release is refused that was not tried, or that would not
call what is replaced here. Tests compare hashes of all functions that are relied on with those of the
releases that were tried.
"""

import re
from importlib import import_module
from typing import Final

TRIED: Final = ("0.13", "0.14")
"""The releases of aiokafka that the whole suite runs with."""

_INSTALL: Final = "pip install 'kafka-assignors[aiokafka]'"

REPLACED: Final[dict[str, tuple[str, ...]]] = {
    "group_coordinator.GroupCoordinator": (
        "_do_commit_offsets",
        "_do_heartbeat",
        "_do_rejoin_group",
        "_maybe_do_autocommit",
        "_maybe_do_last_autocommit",
        "_maybe_leave_group",
        "_on_join_complete",
        "_on_join_prepare",
        "_perform_assignment",
        "_push_error_to_user",
        "_send_req",
        "_start_heartbeat_task",
        "_stop_commit_offsets_refresh_task",
        "_stop_heartbeat_task",
        "close",
        "commit_offsets",
        "coordinator_dead",
        "maybe_leave_group",
        "request_rejoin",
        "reset_generation",
    ),
    "subscription_state.SubscriptionState": (
        "_assigned_state",
        "_change_subscription",
        "fetch_context",
        "paused_partitions",
        "unsubscribe",
    ),
    "subscription_state.Subscription": ("_assign",),
    "subscription_state.TopicPartitionState": ("paused", "resume_fut"),
}
"""The methods that subclasses here replace, by class of `aiokafka.consumer`: a renamed one is not called."""


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


def check_parts() -> None:
    """Make sure that what is replaced would be called; raises ImportError if it is not so."""
    consumer = import_module("aiokafka.consumer.consumer").AIOKafkaConsumer
    missing = (
        [] if "GroupCoordinator" in consumer.start.__code__.co_names else ["start with GroupCoordinator"]
    )
    for kind, names in REPLACED.items():
        module, _, name_of_kind = kind.rpartition(".")
        theirs = getattr(import_module(f"aiokafka.consumer.{module}"), name_of_kind, None)
        missing += [f"{kind}.{name}" for name in names if not hasattr(theirs, name)]
    if missing:
        raise ImportError(
            f"kafka_assignors.aio needs {', '.join(missing)}, which is not in {release()}: {_INSTALL}"
        )


check(release())
check_parts()
