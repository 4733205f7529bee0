"""Reaching a running cluster: a client that outlives brokers, and properties files of Kafka's own tools."""
