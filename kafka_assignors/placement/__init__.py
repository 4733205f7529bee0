"""Replicas on brokers: where Kafka puts a topic's replicas, how it chose, and how to move few of them."""
