"""Pure functions from a `Group` to a `Plan`: no client, no clock, no I/O."""

from kafka_assignors.planners._broadcast import plan_broadcast
from kafka_assignors.planners._cooperative import hand_over
from kafka_assignors.planners._exact.exact import plan_exact
from kafka_assignors.planners._kip54 import plan_kip54
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import plan_kip848_uniform
from kafka_assignors.planners._quick import plan_quickly
from kafka_assignors.planners._random import plan_random
from kafka_assignors.planners._range import plan_range
from kafka_assignors.planners._round_robin import plan_round_robin

__all__ = [
    "hand_over",
    "plan_broadcast",
    "plan_exact",
    "plan_kip54",
    "plan_kip848_range",
    "plan_kip848_uniform",
    "plan_quickly",
    "plan_random",
    "plan_range",
    "plan_round_robin",
]
