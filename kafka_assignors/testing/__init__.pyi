from kafka_assignors._timelines.ownership import Gap as Gap, Overlap as Overlap, Ownership as Ownership
from kafka_assignors._timelines.rebalances import (
    PartitionMove as PartitionMove,
    SeenRebalance as SeenRebalance,
)
from kafka_assignors._timelines.timeline import Timeline as Timeline
from kafka_assignors.testing._brokers.access import Access as Access, Security as Security
from kafka_assignors.testing._brokers.broker import Broker as Broker
from kafka_assignors.testing._brokers.cluster import (
    Cluster as Cluster,
    How as How,
    kafka_cluster as kafka_cluster,
)
from kafka_assignors.testing._brokers.errors import (
    BrokerDiedError as BrokerDiedError,
    ClusterUnavailableError as ClusterUnavailableError,
    UnknownSettingError as UnknownSettingError,
)
from kafka_assignors.testing._brokers.jars import (
    JarsUnavailableError as JarsUnavailableError,
    class_path as class_path,
    kafka_jars as kafka_jars,
)
from kafka_assignors.testing._brokers.network import Fault as Fault, Network as Network, Traffic as Traffic
from kafka_assignors.testing._groups.clients import ClientUnavailableError as ClientUnavailableError
from kafka_assignors.testing._groups.group import ConsumerGroup as ConsumerGroup, StableGroup as StableGroup
from kafka_assignors.testing._groups.member import Member as Member, MemberState as MemberState
from kafka_assignors.testing._groups.runners import NotInAThreadError as NotInAThreadError, Place as Place
from kafka_assignors.testing._groups.seat import Seat as Seat
from kafka_assignors.testing._groups.specs import (
    AssignorSpec as AssignorSpec,
    ClientSpec as ClientSpec,
    Sharing as Sharing,
    Topics as Topics,
)
from kafka_assignors.testing._groups.stability import BrokersView as BrokersView
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
