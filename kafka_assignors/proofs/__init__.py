"""Whether a plan is the best there is: proofs that share nothing with the planners."""

from kafka_assignors.proofs._certificate import certify

__all__ = ["certify"]
