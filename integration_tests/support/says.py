"""What the test kit says of each of the services with a bug; docs/bugs.md shows it, in the same order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOST: Final = (
    r"\S+-\d: \d+ of \d+, offsets [\d., ]+: m1 polled offsets? [\d., ]+ and committed \d+ before it had"
    r" processed them; it crashed at [\d.]+ s"
)

SAYS: Final[Mapping[str, str]] = {
    "commits_first": _LOST,
    "commits_by_timer": _LOST,
    "hands_over_uncommitted": (
        r"m1 had processed offsets 0\.\.\d+ and had committed nothing when m2 got them at [\d.]+ s"
    ),
    "commits_where_it_cannot": (
        r"; its commit at [\d.]+ s, as of generation \d+, failed: RuntimeError: Cannot block on net\.run\(\)"
        r" from the IO thread"
    ),
    "keeps_its_cache": (
        r"\S+-\d: m1 held its cache when the partition was revoked at [\d.]+ s, and never released it"
    ),
    "loads_what_is_not_there": (
        r"m1, at [\d.]+ s: its on_partitions_assigned raised KeyError: TopicPartition\("
    ),
    "works_too_long": r"m1 did not poll for [\d.]+ s, until [\d.]+ s, more than max_poll_interval_ms=2000",
    "listens_too_long": r"m1 spent 5\.\d s in its on_partitions_revoked, until [\d.]+ s",
    "begins_at_the_end": (
        r"\S+-\d: \d+ of \d+, offsets 0\.\.\d+: no member polled offsets 0\.\.\d+; m1 went on at \d+; nothing"
        r" of it was committed, and auto_offset_reset=latest"
    ),
    "has_its_instance_id_from_a_file": (
        r"m2 has the instance id 'billing-1' from [\d.]+ s on, which m1 had; the coordinator fences the one"
        r" that came first"
    ),
    "trusts_each_record": (
        r"\S+-0 offset \d+ ended m\d at [\d.]+ s, then m\d at [\d.]+ s, then m\d at [\d.]+ s: each had polled"
        r" it, and had not processed it"
    ),
    "makes_a_consumer_for_each_batch": (
        r"stormy subscribed \d+ times, from [\d.]+ s to [\d.]+ s; generations \d+ to \d+ followed"
    ),
}
"""The service -> what is found in the message."""


def says(service: str, message: str) -> bool:
    """Whether a message names the bug of a service."""
    return re.search(SAYS[service], message) is not None
