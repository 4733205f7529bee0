"""Pure functions from a `Group` to a `Plan`: no client, no clock, no I/O."""

from kafka_assignors.planners.broadcast import plan_broadcast
from kafka_assignors.planners.cooperative import hand_over
from kafka_assignors.planners.exact import plan_exact
from kafka_assignors.planners.kip54 import plan_kip54
from kafka_assignors.planners.kip848_range import plan_kip848_range
from kafka_assignors.planners.kip848_uniform import plan_kip848_uniform
from kafka_assignors.planners.quick import plan_quickly
from kafka_assignors.planners.random import plan_random
from kafka_assignors.planners.range import plan_range
from kafka_assignors.planners.round_robin import plan_round_robin

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
