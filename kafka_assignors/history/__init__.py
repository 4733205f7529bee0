"""The history of consumer groups, from `__consumer_offsets`, on Spark: captured, read, replayed, shown."""
