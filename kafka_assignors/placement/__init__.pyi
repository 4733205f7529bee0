from kafka_assignors._cluster.handle import Cluster as Cluster
from kafka_assignors.placement._cluster.reassign import Pacing as Pacing
from kafka_assignors.placement._expansion import expand as expand
from kafka_assignors.placement._generators import place_rack_aware as place_rack_aware
from kafka_assignors.placement._moving import (
    cancel as cancel,
    plan_reassignment as plan_reassignment,
    reassign as reassign,
    verify as verify,
)
from kafka_assignors.placement._picture import draw as draw
from kafka_assignors.placement._placement import PlacementError as PlacementError
from kafka_assignors.placement._reassignment_file import (
    Placements as Placements,
    write_rollback as write_rollback,
)
from kafka_assignors.placement._topics import create as create, describe as describe, infer as infer
