from kafka_assignors.planners._cooperative import hand_over as hand_over
from kafka_assignors.planners._exact.exact import plan_exact as plan_exact
from kafka_assignors.planners._kip54 import plan_kip54 as plan_kip54
from kafka_assignors.planners._range import plan_range as plan_range
from kafka_assignors.planners._round_robin import plan_round_robin as plan_round_robin
