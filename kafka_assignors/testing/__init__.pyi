from kafka_assignors._timelines.timeline import Timeline as Timeline
from kafka_assignors.testing._brokers.cluster import Cluster as Cluster, kafka_cluster as kafka_cluster
from kafka_assignors.testing._groups.group import ConsumerGroup as ConsumerGroup
from kafka_assignors.testing._groups.member import Member as Member
from kafka_assignors.testing._groups.seat import Seat as Seat
from kafka_assignors.testing._groups.waiting import GroupNotStableError as GroupNotStableError
from kafka_assignors.testing._load import Load as Load
from kafka_assignors.testing._plugin import (
    GroupFactory as GroupFactory,
    TopicFactory as TopicFactory,
    consumer_group_factory as consumer_group_factory,
    kafka_cluster_factory as kafka_cluster_factory,
    topic_factory_factory as topic_factory_factory,
)
from kafka_assignors.testing._topics import (
    create_topic as create_topic,
    delete_topic as delete_topic,
    grow_topic as grow_topic,
)
