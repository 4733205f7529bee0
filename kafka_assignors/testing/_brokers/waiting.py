"""How long brokers may take, and waiting for them."""

from collections.abc import Callable, Sequence

from kafka_assignors._common import waiting
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError

START_TIMEOUT = 300.0
"""In seconds. An idle machine needs 5, a laden one 20 for three nodes; a starved one has taken 100."""
MEND_TIMEOUT = 120.0
"""In seconds, until a cluster that was mended serves again; another is started in less."""
STOP_TIMEOUT = 15.0  # seconds; a stop takes 2 on a quiet machine


def wait_until(condition: Callable[[], Sequence[str]], timeout: float, what: str) -> None:
    """Wait until a condition finds nothing wrong; see `kafka_assignors._common.waiting.wait_until`.

    Raises ClusterUnavailableError with what was still wrong at the end.
    """
    waiting.wait_until(condition, timeout, what, error=ClusterUnavailableError)
