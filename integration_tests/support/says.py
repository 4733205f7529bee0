"""What the test kit says of each of the services with a bug; docs/bugs.md shows it, in the same order."""

import re
from collections.abc import Mapping
from typing import Final

_AT: Final = r"at [\d.]+ s"
_OFFSETS: Final = r"offsets? [\d., …]+"

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
    "works_in_a_pool": (
        rf"; m1 processed {_OFFSETS} {_AT}(?: and later)?, when the partition had been revoked [\d.]+ s"
        rf" before, {_AT}"
    ),
    "hands_over_what_it_has_in_a_queue": (
        rf"\S+-\d: (?:once|\d+ times): m2 came to offset \d+ {_AT}, and m1 to (offset \d+ {_AT}); m1"
        rf" processed \1, when the partition had been revoked [\d.]+ s before, {_AT}"
    ),
    "seeks_past_a_record": (
        # Each rebalance skips one, and a loaded machine may have more than one rebalance.
        r"\S+-\d: \d+ of \d+, offsets ([\d., …]+): no member polled offsets? \1; (m\d) went on at (\d+);"
        rf" \2 sought offset \3 in its on_partitions_assigned {_AT}"
    ),
    "begins_anew_with_each_partition": (
        rf"the last commit was \d+, by m1 {_AT}, when m2 got them {_AT}(?:; m1 [^;]+)?; m2 sought the"
        rf" beginning in its on_partitions_assigned {_AT}"
    ),
    "polls_in_two_threads": (
        rf": m1 came to offset \d+ {_AT}, and offset \d+ {_AT}; m1 polled its consumer in 2 threads or tasks"
        r" \((?:poller-0, poller-1|poller-1, poller-0)\): a consumer is for one"
    ),
    "logs_what_it_cannot_read": (
        r"\S+-0: 1 of \d+, offsets (\d+): m1 polled offset \1 and committed \d+ before it had processed it;"
        r"(?: \d+ is the end of [^;]+;)? m1 logged ValueError: invalid literal for int\(\) with base 10:"
        rf" b'not a number', {_AT}"
    ),
    "deserializes_each_record": (
        rf"\S+-0 offset \d+ ended m\d {_AT}, then m\d {_AT}: each one's poll raised at it, the first one's"
        r" Value\w*Error: .*invalid literal for int\(\) with base 10: b'not a number'"
    ),
    "commits_its_position": (
        rf"m1 polled {_OFFSETS} and committed (\d+) before it had processed (?:them|it); \1 is the end of its"
        rf" poll {_AT}, of whose \d+ records it had processed \d+"
    ),
    "commits_now_and_then": (
        rf"m1 had processed {_OFFSETS} and had not committed them \(the last commit was \d+, by m1 {_AT}\)"
        rf" when m2 got them {_AT}"
    ),
    "tries_again": rf"m1 processed {_OFFSETS} twice, again {_AT}, of one poll",
}
"""The service -> what is found in the message."""


def says(service: str, message: str) -> bool:
    """Whether a message names the bug of a service."""
    return re.search(SAYS[service], message) is not None
