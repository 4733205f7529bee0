"""Records of Kafka's internal topic `__consumer_offsets`: what groups did, as their coordinator noted it.

`decode_record` reads any of them. A record of a classic group holds the subscriptions and assignments of its
members as bytes, which `decode_subscription` and `decode_assignment` read.
"""

from kafka_assignors._wire.offsets_topic import *  # noqa: F403 - the names are listed there, once
from kafka_assignors._wire.offsets_topic import __all__  # noqa: F401 - what the package offers
