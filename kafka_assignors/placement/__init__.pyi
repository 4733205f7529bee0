from kafka_assignors._cluster.admin import ClusterError as ClusterError
from kafka_assignors._cluster.handle import Cluster as Cluster
from kafka_assignors.placement._cluster.health import Health as Health
from kafka_assignors.placement._cluster.reassign import Pacing as Pacing, Progress as Progress
from kafka_assignors.placement._cluster.source import PlacementFile as PlacementFile
from kafka_assignors.placement._cluster.stall import Reason as Reason
from kafka_assignors.placement._cluster.throttle import Throttles as Throttles
from kafka_assignors.placement._expansion import Expansion as Expansion, expand as expand
from kafka_assignors.placement._explicit import (
    check_placement as check_placement,
    format_explicit as format_explicit,
    parse_explicit as parse_explicit,
)
from kafka_assignors.placement._generators import (
    alternate as alternate,
    place_rack_aware as place_rack_aware,
    place_rack_unaware as place_rack_unaware,
)
from kafka_assignors.placement._inference.infer import (
    Fit as Fit,
    Inference as Inference,
    InferenceStep as InferenceStep,
    Misfit as Misfit,
    infer as infer,
)
from kafka_assignors.placement._moving import (
    Cancelled as Cancelled,
    Reassigned as Reassigned,
    ReassignmentPlan as ReassignmentPlan,
    UnderWay as UnderWay,
    cancel as cancel,
    plan_reassignment as plan_reassignment,
    reassign as reassign,
    verify as verify,
)
from kafka_assignors.placement._picture import draw as draw
from kafka_assignors.placement._placement import (
    Placement as Placement,
    PlacementError as PlacementError,
    Racks as Racks,
)
from kafka_assignors.placement._planning.moves import (
    MovePlan as MovePlan,
    ReplicaMove as ReplicaMove,
    place_balanced as place_balanced,
    plan_moves as plan_moves,
)
from kafka_assignors.placement._quality import (
    BrokerLoad as BrokerLoad,
    Quality as Quality,
    RackLoad as RackLoad,
    measure as measure,
)
from kafka_assignors.placement._reassignment_file import (
    format_reassignment as format_reassignment,
    parse_reassignment as parse_reassignment,
    read_reassignment as read_reassignment,
    write_rollback as write_rollback,
)
from kafka_assignors.placement._striped import place_striped as place_striped
from kafka_assignors.placement._topics import (
    CreatedTopic as CreatedTopic,
    Description as Description,
    ExpandedTopic as ExpandedTopic,
    create as create,
    describe as describe,
    expand_topic as expand_topic,
    infer_topics as infer_topics,
)
