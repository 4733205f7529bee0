"""What many tests here begin with; clusters, topics and groups come from the plug-in."""

import pytest

from kafka_assignors.testing._plugin import TopicFactory


@pytest.fixture
def topic(topic_factory: TopicFactory) -> str:
    """A topic of six partitions."""
    return topic_factory(6)
