"""Chaos: a group that is joined, left, crashed, frozen, hung, restarted and resubscribed at random.

    with kafka_cluster(3, settings=BROKER_SETTINGS) as kafka:
        unleash(plan_events(seed=7, count=50), CooperativeStickyAssignor, kafka)

Topics grow meanwhile, brokers break down and coordinators move. A `Script` is plain data that follows from
its seed. Whenever the group has settled it has to have kept its assignor's `Promise`, and have consumed every
record. `python -m tests.lab.chaos` does the same from the command line.
"""

from tests.lab.chaos._model import Limits, ScriptStep
from tests.lab.chaos._promises import EXCLUSIVE, PROMISES, Promise
from tests.lab.chaos._run import (
    BROKER_SETTINGS,
    SETTINGS,
    ChaosError,
    Outcome,
    bound,
    unleash,
)
from tests.lab.chaos._script import Script, plan_events

__all__ = [
    "BROKER_SETTINGS",
    "EXCLUSIVE",
    "PROMISES",
    "SETTINGS",
    "ChaosError",
    "Limits",
    "Outcome",
    "Promise",
    "Script",
    "ScriptStep",
    "bound",
    "plan_events",
    "unleash",
]
