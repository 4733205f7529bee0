"""Faults for confluent-kafka's clients: librdkafka's own mock brokers, inside this process.

The mock is up in milliseconds and does as it is asked: brokers go down, answer late, or answer a request with
an error. It is driven through the functions of rdkafka_mock.h.
"""

from __future__ import annotations

import ctypes
import time
from ctypes import c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Final, Self

from confluent_kafka import KafkaError, KafkaException, libversion

from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._brokers.librdkafka import describe_library, function, new_client
from kafka_assignors.testing._brokers.mock_protocol import (
    api_key,
    error_code,
    milliseconds,
    request_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.testing._brokers.mock_protocol import MockApi, MockRequest

__tracebackhide__ = True

_OLDEST: Final = 0x02100000  # 2.16.0, as librdkafka writes it
_NOBODY: Final = -1  # librdkafka's broker id for none
_SETTLE_SECONDS: Final = 0.0005
# The last versions in which an answer does not name the partition's leader (KIP-951, KIP-516).
_LEADERLESS_FETCH: Final = 11
_LEADERLESS_PRODUCE: Final = 9


class MockCluster:
    """Librdkafka's mock cluster: brokers 1, 2, ... on ports of 127.0.0.1, for confluent-kafka's clients.

    It is for what a client does when something fails: a broker goes down, a leader moves, an answer is late
    or is an error. It only approximates a group coordinator. For every claim on generations, assignments or
    lost messages take `kafka_cluster`, a real Kafka. The page docs/testing.md lists what it does otherwise.

    Close clients before their cluster: without it, a consumer cannot leave its group. Methods may be called
    from any thread, but not while another one closes. After `close` they raise RuntimeError. They raise
    ValueError for a broker other than 1 to `brokers`, an unknown API or error, and a negative time.

    Args:
        brokers: How many there are.
        racks: The rack of each broker, by ascending id; by default they have none.
        topics: Partitions of each topic to begin with, by its name, made as `create_topic` does.
        rebalance_delay: How long the first rebalance of a group waits for more members, in seconds
            (group.initial.rebalance.delay.ms).
        leaderless: Allow `set_leader` to leave a partition without a leader. A client that asks for one in a
            newer version than Fetch 11 or Produce 9 crashes the process. So the mock then offers no newer.

    Attributes:
        brokers: How many there are; their ids are 1 to this.
        bootstrap_servers: "host:port" of each.

    Raises:
        NotImplementedError: Librdkafka is older than 2.16, or lacks a function. Every method can raise it.
        OSError: Librdkafka can start no brokers.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        racks: Sequence[str] = (),
        topics: Mapping[str, int] | None = None,
        rebalance_delay: float = 0.0,
        leaderless: bool = False,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers={brokers}: a cluster has at least one")
        if racks and len(racks) != brokers:
            raise ValueError(f"racks={list(racks)}: name one for each of the {brokers} brokers, or none")
        if libversion()[1] < _OLDEST:
            raise NotImplementedError(
                f"the mock brokers of {describe_library()} can abort the process: install 2.16 or newer"
            )
        self.brokers = brokers
        self._leaderless = leaderless
        self._own_errors: set[tuple[int, str]] = set()
        self._client = new_client()
        self._cluster: int | None = function("rd_kafka_mock_cluster_new")(self._client, brokers)
        if self._cluster is None:
            function("rd_kafka_destroy")(self._client)
            raise OSError(f"librdkafka cannot start {brokers} mock brokers: are there too many open files?")
        try:
            servers: bytes = self._call("rd_kafka_mock_cluster_bootstraps")
            self.bootstrap_servers = servers.decode().split(",")
            self._call("rd_kafka_mock_start_request_tracking")
            self._call("rd_kafka_mock_group_initial_rebalance_delay_ms", milliseconds(rebalance_delay))
            self._call("rd_kafka_mock_set_controller_id", 1)  # with none, admin clients wait for one
            if leaderless:
                self.set_api_version("Fetch", 0, _LEADERLESS_FETCH)
                self.set_api_version("Produce", 0, _LEADERLESS_PRODUCE)
            for broker, rack in enumerate(racks, 1):
                self.set_rack(broker, rack)
            for name, partitions in (topics or {}).items():
                self.create_topic(name, partitions)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def access(self) -> Access:
        """How clients reach it: ``Consumer({**mock.access.librdkafka(), "group.id": "g"})``."""
        return Access(tuple(self.bootstrap_servers))

    def close(self) -> None:
        """Stop the brokers, with all threads and sockets. More often than once is fine."""
        if self._cluster is not None:
            self._call("rd_kafka_mock_cluster_destroy")
            self._cluster = None
            function("rd_kafka_destroy")(self._client)

    # Topics -------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, *, replication: int = 1) -> None:
        """Create a topic. Its leaders are the same in every run.

        With one replica, or one on every broker, partition 0 is led by broker 1, 1 by 2, and so on round.

        Args:
            name: The topic.
            partitions: How many it has.
            replication: How many brokers have a replica of each partition.

        Raises:
            confluent_kafka.KafkaException: There is such a topic (TOPIC_ALREADY_EXISTS).
        """
        if partitions < 1:
            raise ValueError(f"partitions={partitions}: a topic has at least one")
        if not 1 <= replication <= self.brokers:
            raise ValueError(f"replication={replication}: the cluster has {self.brokers} brokers")
        self._check("rd_kafka_mock_topic_create", name.encode(), partitions, replication)
        if replication > 1:
            # The mock draws leaders by lot among the replicas, which it places one after another.
            for partition in range(partitions):
                leader = (partition * replication + partition % replication) % self.brokers + 1
                self.set_leader(name, partition, leader)

    def set_leader(self, topic: str, partition: int, broker: int | None) -> None:
        """Let a broker lead a partition, with all of its records; or none (see `leaderless`).

        Raises:
            confluent_kafka.KafkaException: There is no such partition (UNKNOWN_TOPIC_OR_PART).
        """
        if broker is None and not self._leaderless:
            raise ValueError(
                f"{topic}-{partition} without a leader can crash the process: make a "
                "MockCluster(leaderless=True)"
            )
        leader = self._broker_or_none(broker)
        self._check("rd_kafka_mock_partition_set_leader", topic.encode(), partition, leader)

    def set_follower(self, topic: str, partition: int, broker: int | None) -> None:
        """Let consumers of a partition fetch from a follower (KIP-392), in any rack; or from none.

        Raises:
            confluent_kafka.KafkaException: There is no such partition (UNKNOWN_TOPIC_OR_PART).
        """
        self._check(
            "rd_kafka_mock_partition_set_follower", topic.encode(), partition, self._broker_or_none(broker)
        )

    # Brokers ------------------------------------------------------------------------------------------

    def set_rack(self, broker: int, rack: str) -> None:
        """Put a broker into a rack, which clients see when they next ask for metadata."""
        self._check("rd_kafka_mock_broker_set_rack", self._broker(broker), rack.encode())

    def set_down(self, broker: int) -> None:
        """Close a broker's connections and refuse new ones. What it leads, and its groups, stay with it."""
        self._check("rd_kafka_mock_broker_set_down", self._broker(broker))

    def set_up(self, broker: int) -> None:
        """Let a broker accept connections again, on the port that it had."""
        self._check("rd_kafka_mock_broker_set_up", self._broker(broker))

    def delay(self, broker: int, seconds: float) -> None:
        """Answer every request to a broker so much later, from now on; 0 ends it."""
        self._check("rd_kafka_mock_broker_set_rtt", self._broker(broker), milliseconds(seconds))

    def set_coordinator(self, group_id: str, broker: int | None) -> None:
        """Let a broker coordinate a group, or none. By default a hash of the group's id decides.

        The group's members and generation are the cluster's and not a broker's: they move along.
        """
        self._check(
            "rd_kafka_mock_coordinator_set", b"group", group_id.encode(), self._broker_or_none(broker)
        )

    def set_api_version(self, api: MockApi, minimum: int, maximum: int) -> None:
        """Offer these versions of an API to clients that connect from now on; -1 and -1 for none.

        To offer a version that the mock does not implement makes it misread requests.
        """
        self._check("rd_kafka_mock_set_apiversion", api_key(api), minimum, maximum)

    # Errors -------------------------------------------------------------------------------------------

    def inject(self, api: MockApi, *errors: int | str) -> None:
        """Answer the next requests of a kind, whichever brokers they go to, with these errors in turn.

        If the Fetch that first reaches a partition's end has an error, a consumer of librdkafka 2.16 takes
        that for the end. It does not report the error.

        Args:
            api: Which kind.
            errors: By number or name, as `KafkaError` has them: "REBALANCE_IN_PROGRESS". "NO_ERROR" lets a
                request pass, "_TRANSPORT" closes the connection that it came on.

        Raises:
            ValueError: A broker has had errors of its own for the API (`inject_on`). Librdkafka then heeds no
                others on that broker, for ever.
        """
        if own := sorted(broker for broker, name in self._own_errors if name == api):
            raise ValueError(
                f"inject({api!r}) would not reach brokers {own}, which have had their own: use inject_on"
            )
        codes = [error_code(error) for error in errors]
        self._call(
            "rd_kafka_mock_push_request_errors_array", api_key(api), len(codes), (c_int * len(codes))(*codes)
        )

    def inject_on(self, broker: int, api: MockApi, *errors: int | str | tuple[int | str, float]) -> None:
        """Answer the next requests of a kind to one broker with these errors in turn.

        From then on `inject` has no effect for this API on this broker.

        Args:
            broker: The broker.
            api: Which kind.
            errors: As for `inject`; or an error and how many seconds later to answer, for instance
                ``("NO_ERROR", 2.0)``. Closing a connection is not delayed.
        """
        pairs = [error if isinstance(error, tuple) else (error, 0.0) for error in errors]
        values = [value for error, delay in pairs for value in (error_code(error), milliseconds(delay))]
        self._check(
            "rd_kafka_mock_broker_push_request_error_rtts",
            self._broker(broker),
            api_key(api),
            len(pairs),
            *(c_int(value) for value in values),
        )
        self._own_errors.add((broker, api))

    def pending(self, broker: int, api: MockApi) -> int:
        """How many errors of `inject_on` have not been answered yet."""
        count = c_size_t()
        self._check(
            "rd_kafka_mock_broker_error_stack_cnt", self._broker(broker), api_key(api), ctypes.byref(count)
        )
        return count.value

    def clear_errors(self, api: MockApi) -> None:
        """Forget the errors of `inject` that have not been answered yet. Those of `inject_on` stay."""
        self._call("rd_kafka_mock_clear_request_errors", api_key(api))

    # Requests -----------------------------------------------------------------------------------------

    def requests(self, api: MockApi | None = None, *, broker: int | None = None) -> list[MockRequest]:
        """The requests so far, by time: since the start, or since `clear_requests`.

        Args:
            api: Only of this kind.
            broker: Only to this broker.
        """
        if api is not None:
            api_key(api)
        if broker is not None:
            self._broker(broker)
        return [
            request
            for request in self._requests()
            if api in {None, request.api} and broker in {None, request.broker}
        ]

    def clear_requests(self) -> None:
        """Forget the requests so far."""
        self._call("rd_kafka_mock_clear_requests")

    def _requests(self) -> list[MockRequest]:
        count = c_size_t()
        array: int | None = self._call("rd_kafka_mock_get_requests", ctypes.byref(count))
        if array is None:
            return []
        found = [request_of(request) for request in (c_void_p * count.value).from_address(array)]
        function("rd_kafka_mock_request_destroy_array")(array, count)
        return found

    # Calls --------------------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: Any) -> Any:
        if self._cluster is None:
            raise RuntimeError("the mock cluster is closed")
        return function(name)(self._cluster, *arguments)

    def _check(self, name: str, *arguments: Any) -> None:
        code = self._call(name, *arguments)
        # The mock's thread answers a command before it clears the wake-up that came with it. Another command
        # in between has its wake-up cleared too, and waits for up to a second: without this, one in ten did.
        time.sleep(_SETTLE_SECONDS)
        if code:
            error = KafkaError(code)
            shown = ", ".join(str(getattr(argument, "value", argument)) for argument in arguments)
            raise KafkaException(KafkaError(code, f"{name}({shown}): {error.str()}"))

    def _broker(self, broker: int) -> int:
        if not 1 <= broker <= self.brokers:
            raise ValueError(f"broker={broker}: the cluster has brokers 1 to {self.brokers}")
        return broker

    def _broker_or_none(self, broker: int | None) -> int:
        return _NOBODY if broker is None else self._broker(broker)
