"""Real Kafka brokers, embedded or in containers, how to reach and to hurt them; librdkafka's mock."""
