"""How long brokers may take, and waiting for them."""

from functools import partial

from kafka_assignors._common import waiting
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError

START_TIMEOUT = 300.0
"""In seconds. An idle machine needs 5, a laden one 20 for three nodes; a starved one has taken 100."""
MEND_TIMEOUT = 120.0
"""In seconds, until a cluster that was mended serves again; another is started in less."""
STOP_TIMEOUT = 15.0  # seconds; a stop takes 2 on a quiet machine


wait_until = partial(waiting.wait_until, error=ClusterUnavailableError)
"""Wait until a condition finds nothing wrong. Raises ClusterUnavailableError if something still is."""
