"""A consumer group without Kafka: the classic protocol in virtual time, real assignors and real bytes."""
