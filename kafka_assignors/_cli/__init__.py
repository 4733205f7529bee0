"""The command `kafka-assignors`."""
