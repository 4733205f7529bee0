"""How long members may be silent before a test's group goes on without them.

On a machine whose processors are also others', processes have stood still for a second at a time, and
members' heartbeats came seconds late. So all members have 45 s, by `kafka_consumer_settings` of
pyproject.toml, and those that a test kills, freezes or leaves without polls have these. A test waits for as
long; that takes no processor.
"""

from typing import Final

QUICK_MS: Final = 10_000

QUICK: Final = {"session_timeout_ms": QUICK_MS}
"""For members that crash or freeze."""

QUICK_POLLS: Final = {"max_poll_interval_ms": QUICK_MS, **QUICK}
"""For members that do not poll."""
