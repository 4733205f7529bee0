"""The exact planner: the best balance, then racks, then the fewest moves, by flows."""
