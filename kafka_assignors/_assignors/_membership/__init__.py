"""A member in its group: what it claims, when it joins, what it may deliver, what its leader believes.

- `host`: what an assignor may know of its consumer.
- `phases`: the phases of a cooperative member in a rebalance, and which answers of the coordinator count.
- `certainty`: until when its partitions are its own for certain, and when to send heartbeats.
- `claims`: what a member claims when it joins.
- `hand_over`: what a leader believes of these claims, and when it begins another round.

No client library, thread or socket is in here: `kafka_assignors._assignors._flow` (kafka-python),
`kafka_assignors.aio` (aiokafka) and the simulated consumers act by it.
"""
