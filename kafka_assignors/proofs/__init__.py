"""Whether a plan is the best there is: proofs that share nothing with the planners."""

from kafka_assignors.proofs._certificate import Certificate, Finding, certify

__all__ = ["Certificate", "Finding", "certify"]
