from kafka_assignors._cluster.handle import Cluster as Cluster
from kafka_assignors.placement._cluster.reassign import Pacing as Pacing
from kafka_assignors.placement._cluster.source import PlacementFile as PlacementFile
from kafka_assignors.placement._expansion import expand as expand
from kafka_assignors.placement._explicit import parse_explicit as parse_explicit
from kafka_assignors.placement._generators import (
    place_rack_aware as place_rack_aware,
    place_rack_unaware as place_rack_unaware,
)
from kafka_assignors.placement._inference.infer import infer as infer
from kafka_assignors.placement._moving import (
    Reassigned as Reassigned,
    cancel as cancel,
    plan_reassignment as plan_reassignment,
    reassign as reassign,
    verify as verify,
)
from kafka_assignors.placement._picture import draw as draw
from kafka_assignors.placement._placement import Placement as Placement, PlacementError as PlacementError
from kafka_assignors.placement._planning.moves import (
    MovePlan as MovePlan,
    place_balanced as place_balanced,
    plan_moves as plan_moves,
)
from kafka_assignors.placement._quality import measure as measure
from kafka_assignors.placement._reassignment_file import (
    format_reassignment as format_reassignment,
    read_reassignment as read_reassignment,
    write_rollback as write_rollback,
)
from kafka_assignors.placement._topics import (
    create as create,
    describe as describe,
    expand_topic as expand_topic,
    infer_topics as infer_topics,
)
