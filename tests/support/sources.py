"""Hashes of the functions of other libraries that this one relies on, from their sources.

    python -m tests.support.sources aiokafka 0.14 /path/of/site-packages

records those of a release, after somebody has read what has changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_assignors._assignors._relied_on import FLOW, JOINS, MEMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_UNIT: Final = Path(__file__).parents[1] / "unit"


@dataclass(frozen=True, slots=True)
class Sources:
    """The functions of one library; of each release is recorded what is not as in the one before."""

    recorded: Path
    functions: Mapping[str, Sequence[str]]

    def hashes(self, packages: Path) -> dict[str, str]:
        """The functions' hashes: of their syntax, without docstrings, comments and layout."""
        found = {}
        for module, names in self.functions.items():
            tree = ast.parse((packages / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
            kinds = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
            for name in names:
                kind, _, method = name.partition(".")
                function = _method(kinds[kind], method.removeprefix(f"_{kind}"))
                found[name] = hashlib.sha256(_text(function).encode()).hexdigest()[:16]
        return found

    def record(self) -> dict[str, dict[str, str]]:
        """All hashes of each release that is recorded."""
        known: dict[str, dict[str, str]] = {}
        before: dict[str, str] = {}
        for release, changed in json.loads(self.recorded.read_text(encoding="utf-8")).items():
            known[release] = before = before | changed
        return known

    def add(self, release: str, hashes: Mapping[str, str]) -> None:
        """Record the newest release."""
        known = json.loads(self.recorded.read_text(encoding="utf-8"))
        before = [*self.record().values()][-1]
        known[release] = dict(sorted(hashes.items() - before.items()))
        self.recorded.write_text(f"{json.dumps(known, indent=2)}\n", encoding="utf-8")


def private_names(folder: Path, *, methods_only: bool = False) -> set[str]:
    """All private names of a package, of functions and attributes; `sys._getframe` is nobody's."""
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif (
                not methods_only and isinstance(node, ast.Attribute) and ast.unparse(node) != "sys._getframe"
            ):
                found.add(node.attr)
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def _text(part: object) -> str:
    """A part of a syntax tree, the same by all versions of Python: what is empty is left out.

    `ast.dump` has fields that only some versions know, and not all leave out the same.
    """
    if isinstance(part, ast.AST):
        fields = (
            f"{name}={_text(value)}" for name, value in ast.iter_fields(part) if value not in ([], None)
        )
        return f"{type(part).__name__}({', '.join(fields)})"
    if isinstance(part, list):
        return f"[{', '.join(map(_text, part))}]"
    return repr(part)


def _method(kind: ast.ClassDef, name: str) -> ast.AST:
    for node in kind.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            return node
    raise LookupError(f"{kind.name} has no {name}")


_OF_CONSUMER_COORDINATOR: Final = frozenset(
    {
        *("_commit_offsets_sync_async", "_handle_offset_commit_response", "_invoke_rebalance_listener_async"),
        *("_invoke_completed_offset_commit_callbacks", "_maybe_auto_commit_offsets_async"),
        *("_maybe_auto_commit_offsets_sync", "_on_close_prepare_async", "_on_join_complete_async"),
        *("_on_join_prepare_async", "_perform_assignment", "_send_offset_commit_request"),
        *("maybe_auto_commit_offsets_now", "need_rejoin", "poll", "refresh_committed_offsets_if_needed"),
        "time_to_next_poll",
    }
)

AIOKAFKA: Final = Sources(
    _UNIT / "aio" / "relied_on.json",
    {
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
    },
)
KAFKA_PYTHON: Final = Sources(
    _UNIT / "assignors" / "relied_on.json",
    {
        "kafka.coordinator.base": [
            "BaseCoordinator._heartbeat_loop",
            "BaseCoordinator._process_join_group_response",
            "BaseCoordinator._process_sync_group_response",
            "BaseCoordinator.close",
            "BaseCoordinator.join_group_async",
            "BaseCoordinator.maybe_leave_group_async",
            *(
                f"BaseCoordinator.{name}"
                for name in sorted({*FLOW.methods, *JOINS.methods, *MEMBERS.methods})
                if name not in _OF_CONSUMER_COORDINATOR
            ),
        ],
        "kafka.coordinator.consumer": [
            f"ConsumerCoordinator.{name}" for name in sorted(_OF_CONSUMER_COORDINATOR)
        ],
        "kafka.coordinator.heartbeat": [
            "Heartbeat.poll_timeout_expired",
            "Heartbeat.reset_timeouts",
            "Heartbeat.session_timeout_expired",
            "Heartbeat.time_to_next_heartbeat",
        ],
        "kafka.consumer.group": [
            "KafkaConsumer._poll_once",
            "KafkaConsumer.close",
            "KafkaConsumer.unsubscribe",
        ],
        "kafka.consumer.subscription_state": [
            "SubscriptionState.assign_from_subscribed",
            "SubscriptionState.mark_pending_revocation",
            "TopicPartitionState.is_fetchable",
        ],
    },
)

if __name__ == "__main__":
    library = {"aiokafka": AIOKAFKA, "kafka-python": KAFKA_PYTHON}[sys.argv[1]]
    library.add(sys.argv[2], library.hashes(Path(sys.argv[3])))
