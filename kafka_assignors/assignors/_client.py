"""Makes sure, when it is imported, that kafka-python is one that assignors can work with."""

import re
from typing import Final

import kafka

OLDEST: Final = (3, 0, 12)
"""The oldest release of kafka-python that was tried; before 3.0 it has no assignor objects."""


def check(version: str) -> None:
    """Make sure that a release of kafka-python is new enough.

    Raises:
        ImportError: It is not.
    """
    if tuple(map(int, re.findall(r"\d+", version)[:3])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(
            f"kafka-assignors needs kafka-python {oldest} or newer, and {version} is installed: "
            f"pip install 'kafka-python>={oldest},<4'"
        )


check(kafka.__version__)
