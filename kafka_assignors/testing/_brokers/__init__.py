"""Real Kafka brokers, embedded or in containers and how to reach and to hurt them."""
