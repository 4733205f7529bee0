"""The pytest plug-in: its entry point is a distribution of its own, without which it is loaded by name."""

from importlib.metadata import entry_points
from typing import Final

MODULE: Final = "kafka_assignors.testing._plugin"

INSTALLED: Final = any(one.value == MODULE for one in entry_points(group="pytest11"))
"""Whether each run of pytest has it; pytest refuses to load it once more by another name."""

NAMED: Final = () if INSTALLED else (MODULE,)
"""For `pytest_plugins`."""

LOADED: Final = () if INSTALLED else ("-p", MODULE)
"""For the command line of a run that is to have it."""

ALONE: Final = ("-p", "no:hypothesispytest", "-p", "no:asyncio")
"""For the command line of a run that has no use for these plug-ins: each would import Hypothesis anew for its
summary, and pytest-asyncio warns where its settings are not made."""
