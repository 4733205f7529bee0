"""Whether a plan is the best there is: proofs that share nothing with the planners."""

from kafka_assignors.proofs._findings import Certificate
from kafka_assignors.proofs._units import certify

__all__ = ["Certificate", "certify"]
