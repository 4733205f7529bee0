"""Partition assignors for kafka-python consumer groups."""
