"""Settings that a broker does not know: Kafka takes them in silence, and a misspelled one is not there."""

import re
from collections.abc import Iterable
from typing import Final

from kafka_assignors._common.words import or_meant
from kafka_assignors.testing._brokers.errors import UnknownSettingError

_VALUES: Final = re.compile(r"KafkaConfig values: *\n((?:\t.*\n)+)")
_NAME: Final = re.compile(r"^\t(\S+) = ", re.MULTILINE)
_OF_A_LISTENER: Final = "listener.name."
# Classes of a user's own read settings of their own, as super.users of an authorizer.
_PLUG_IN: Final = re.compile(r"\.(class|class\.name|classes|reporters)$")


def check_known(log: str, settings: Iterable[str]) -> None:
    """Refuse settings that a broker does not know, by what it logs of all that it knows when it starts.

    A broker that logs otherwise is not judged. Settings for one listener pass, and all if one of them names a
    class of a plug-in. Raises UnknownSettingError, which has the names that are nearest to the unknown one.
    """
    given = [*settings]
    known = {name for values in _VALUES.findall(log) for name in _NAME.findall(values)}
    if not known or any(_PLUG_IN.search(name) for name in given):
        return
    wrong = [name for name in given if name not in known and not name.startswith(_OF_A_LISTENER)]
    if wrong:
        raise UnknownSettingError(
            "; ".join(f"Kafka has no broker setting {name!r}{or_meant(name, known)}" for name in wrong)
        )
