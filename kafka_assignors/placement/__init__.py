"""Replicas on brokers: where Kafka puts a topic's replicas, how it chose, and how to move few of them.

Everything here is imported when it is first used: planning needs OR-tools, pictures matplotlib.
"""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
    from kafka_assignors.placement.expansion import Expansion, expand
    from kafka_assignors.placement.explicit import check_placement, format_explicit, parse_explicit
    from kafka_assignors.placement.generators import alternate, place_rack_aware, place_rack_unaware
    from kafka_assignors.placement.inference.infer import Fit, Inference, Misfit, Step, infer
    from kafka_assignors.placement.picture import draw
    from kafka_assignors.placement.placement import Placement, PlacementError, Racks
    from kafka_assignors.placement.planning.moves import Move, MovePlan, place_balanced, plan_moves
    from kafka_assignors.placement.quality import BrokerLoad, Quality, RackLoad, measure
    from kafka_assignors.placement.reassignment_file import format_reassignment, parse_reassignment
    from kafka_assignors.placement.striped import place_striped

_HOMES = {
    "BrokerLoad": "quality",
    "Expansion": "expansion",
    "Fit": "inference.infer",
    "Inference": "inference.infer",
    "Misfit": "inference.infer",
    "Move": "planning.moves",
    "MovePlan": "planning.moves",
    "Placement": "placement",
    "PlacementError": "placement",
    "Quality": "quality",
    "RackLoad": "quality",
    "Racks": "placement",
    "Step": "inference.infer",
    "alternate": "generators",
    "check_placement": "explicit",
    "draw": "picture",
    "expand": "expansion",
    "format_explicit": "explicit",
    "format_reassignment": "reassignment_file",
    "infer": "inference.infer",
    "measure": "quality",
    "parse_explicit": "explicit",
    "parse_reassignment": "reassignment_file",
    "place_balanced": "planning.moves",
    "place_rack_aware": "generators",
    "place_rack_unaware": "generators",
    "place_striped": "striped",
    "plan_moves": "planning.moves",
}

__all__ = [
    "BrokerLoad",
    "Expansion",
    "Fit",
    "Inference",
    "Misfit",
    "Move",
    "MovePlan",
    "Placement",
    "PlacementError",
    "Quality",
    "RackLoad",
    "Racks",
    "Step",
    "alternate",
    "check_placement",
    "draw",
    "expand",
    "format_explicit",
    "format_reassignment",
    "infer",
    "measure",
    "parse_explicit",
    "parse_reassignment",
    "place_balanced",
    "place_rack_aware",
    "place_rack_unaware",
    "place_striped",
    "plan_moves",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
