"""A group's story in memory: snapshots, what changed between two, rebalances, what was best."""
