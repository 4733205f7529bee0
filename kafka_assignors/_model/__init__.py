"""One rebalance as columns: members, topics, claims, the group, its plan."""
