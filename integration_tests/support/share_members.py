"""Members of a share group, Kafka's own Java consumers, until the standard input ends.

Usage: python -m integration_tests.support.share_members SERVERS GROUP TOPIC NAME...
"""

import sys
import threading
from typing import Any

import jpype

from kafka_assignors.testing._groups.clients.java import start_java

_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def main(servers: str, group_id: str, topic: str, *names: str) -> None:
    start_java()
    consumer_class = jpype.JClass("org.apache.kafka.clients.consumer.KafkaShareConsumer")
    consumers: list[Any] = []
    for name in names:
        settings = {
            "bootstrap.servers": servers,
            "group.id": group_id,
            "client.id": name,
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
        }
        consumer = consumer_class(jpype.java.util.HashMap(settings))
        consumer.subscribe(jpype.java.util.List.of(topic))
        consumers.append(consumer)
    ended = threading.Event()

    def end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=end, daemon=True).start()
    wait = jpype.java.time.Duration.ofMillis(100)
    while not ended.is_set():
        for consumer in consumers:
            consumer.poll(wait)
    for consumer in consumers:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
