"""Whether a plan is the best there is: proofs that share nothing with the planners."""

from kafka_assignors.proofs._certificate import certify
from kafka_assignors.proofs._findings import Certificate

__all__ = ["Certificate", "certify"]
