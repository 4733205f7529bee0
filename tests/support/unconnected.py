"""kafka-python's clients without a broker."""

from typing import Any

from kafka.net.compat import KafkaNetClient


class Unconnected(KafkaNetClient):
    """What a client of kafka-python sends by, but for its first request: its setting `kafka_client`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._manager.bootstrap = lambda *_: None
