"""Warnings of what other members say, which the coordinator may pass on many times."""

from collections.abc import Mapping

from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)


class MemberWarnings:
    """Warns of a member once for as long as the same is wrong with it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: Mapping[str, str] = {}  # what was wrong last, by member id

    def warn(self, faults: Mapping[str, str]) -> None:
        """Warn of what is wrong now, by member id, and was not before."""
        for member, fault in faults.items():
            if self._known.get(member) != fault:
                log.warning(self._text, member, fault)
        self._known = faults
