"""A capture, whose cluster is asked before anything is imported, made or started that takes seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._common.errors import KafkaAssignorsError

if TYPE_CHECKING:
    from kafka_assignors._cli.arguments import ClusterClient
    from kafka_assignors._cli.output import Answer


class FailedError(KafkaAssignorsError, RuntimeError):
    """What failed once the cluster had answered."""


ERRORS: Final = Errors(
    wrong=(ValueError,),  # a wrong archive or properties file
    failed=(ClusterError, KafkaError, FailedError),
)


def capture(*, client: ClusterClient, **wanted: Any) -> Answer:
    """Read what is new in a running cluster into an archive; see `capture` of `history`.

    Raises:
        ClusterError: No broker answers; there is no archive then that was not there before.
    """
    with open_admin(client):
        pass
    from kafka_assignors._cli import history  # noqa: PLC0415 - with Spark, it takes seconds to import

    try:
        return history.capture(client=client, **wanted)
    except history.ERRORS.wrong:
        raise
    except history.ERRORS.failed as error:
        raise FailedError(history.ERRORS.words(error)) from error
