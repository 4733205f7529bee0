"""How long members may be silent before a test's group goes on without them.

On a machine whose processors are also others', processes have stood still for a second at a time, and
members' heartbeats came seconds late. So all members have the session of conftest.py, and those that a test
kills, freezes or leaves without polls have these: longer ones on a slow machine. A test waits for as long;
that takes no processor.
"""

from typing import Final

from tests.support.scale import longer

QUICK_MS: Final = round(longer(10_000))

QUICK: Final = {"session_timeout_ms": QUICK_MS}
"""For members that crash or freeze."""

QUICK_POLLS: Final = {"max_poll_interval_ms": QUICK_MS, **QUICK}
"""For members that do not poll."""
