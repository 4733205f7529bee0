from kafka_assignors.planners._cooperative import hand_over as hand_over
from kafka_assignors.planners._exact.exact import plan_exact as plan_exact
