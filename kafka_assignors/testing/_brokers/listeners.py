"""The names of a broker's listeners."""

from typing import Final

__tracebackhide__ = True

PLAIN: Final = "PLAIN"
"""The listener without security, for the kit's own work; clients' too where nothing is required of them."""

CLIENTS: Final = "CLIENTS"
"""The listener for clients of which something is required."""

PROXIED: Final = "PROXIED"
"""The listener behind the proxy, which requires the same."""
