"""What can be wrong with a cluster that tests need."""

from kafka_assignors._common.errors import KafkaAssignorsError


class ClusterUnavailableError(KafkaAssignorsError, RuntimeError):
    """There is no Kafka to be had in the way that was asked for, or it is not as was waited for."""


class BrokerDiedError(KafkaAssignorsError, RuntimeError):
    """A broker ended that nobody had stopped. The message shows the end of its log."""


class PortTakenError(BrokerDiedError):
    """Another process has bound a port between its choice and the broker's start."""


class UnknownSettingError(KafkaAssignorsError, ValueError):
    """A broker was given a setting that Kafka does not know."""
