"""What brokers and topics are set to at run time, and which of them do not say.

kafka-python's own call leaves out the error of a resource: one that refuses to say looks as one with nothing
set.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError, NoError, UnknownTopicOrPartitionError, for_code
from kafka.protocol.admin import DescribeConfigsRequest

from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.requests import send

_BY_ALL_BROKERS: Final = 3
_AT_RUN_TIME: Final = (1, 2, _BY_ALL_BROKERS)  # by topic, by broker; other sources are files and defaults


class Setting(NamedTuple):
    """A setting."""

    value: str
    own: bool  # made for this resource, and not for all brokers


class Configs(NamedTuple):
    """What resources say."""

    settings: dict[str, dict[str, Setting]]  # resource -> name; nothing of a topic that does not exist
    refused: dict[str, str]  # resource -> why it does not say


def describe(
    admin: Admin,
    kind: ConfigResourceType,
    resources: Sequence[str],
    names: Sequence[str],
    *,
    node: int | None = None,
    default: bool = False,
) -> Configs:
    """The named settings of topics or brokers; of a broker by its own word, as `node`.

    With `default` also those that were not made at run time.
    """
    if not resources:
        return Configs({}, {})
    resource = DescribeConfigsRequest.DescribeConfigsResource

    def ask(client: KafkaAdminClient) -> Configs:
        wanted = [
            resource(resource_type=kind.value, resource_name=one, configuration_keys=[*names])
            for one in resources
        ]
        request = DescribeConfigsRequest(resources=wanted, include_synonyms=False)
        return _read(send(client, request, node), default=default)

    return admin.ask(ask, node=node)


def _read(response: Any, *, default: bool) -> Configs:
    found = Configs({}, {})
    for one in response.results:
        error = for_code(one.error_code)
        if error is NoError:
            found.settings[one.resource_name] = {
                config.name: Setting(config.value, config.config_source != _BY_ALL_BROKERS)
                for config in one.configs
                if default or config.config_source in _AT_RUN_TIME
            }
        elif error is UnknownTopicOrPartitionError:
            continue
        elif issubclass(error, KafkaError) and error.retriable:
            raise error(f"{one.resource_name}: {one.error_message or error.description}")
        else:
            found.refused[one.resource_name] = str(one.error_message or error.description)
    return found
