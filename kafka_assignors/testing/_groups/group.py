"""Consumer groups to test with: members that really join, crash, freeze, leave and come back.

    with ConsumerGroup(["localhost:9092"], "orders", ["my_package.assignor:MyAssignor"]) as group:
        a, b = group.join("a"), group.join("b")
        group.wait_stable()
        b.crash()
        group.wait_stable()
        group.timeline.assert_never_owned_twice()

The members (`kafka_assignors.testing._groups.worker`) report all that happens to them. A group is *stable*
when its members, by their own word, and the brokers, asked by a second client, agree on it. Each wait is for
a condition. A wait that times out says who held it up and how.
"""

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack

from confluent_kafka.admin import AdminClient
from kafka import TopicPartition

from kafka_assignors._common.waiting import LOOK_SECONDS, Deadline
from kafka_assignors._timelines.events import NO_GENERATION
from kafka_assignors.testing._brokers.access import Access, Kafka
from kafka_assignors.testing._brokers.network import network_of
from kafka_assignors.testing._choices import check_choice
from kafka_assignors.testing._groups import stability
from kafka_assignors.testing._groups.config import POLL_MS, CommitMode
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._groups.reporting import ReportingGroup
from kafka_assignors.testing._groups.runners import Place
from kafka_assignors.testing._groups.specs import (
    SETTINGS,
    AssignorSpec,
    ClientSpec,
    MemberSpec,
    OwnParts,
    Sharing,
    Topics,
    on_top,
)
from kafka_assignors.testing._groups.stability import BrokersView, StableGroup
from kafka_assignors.testing._groups.waiting import Unhandled, names_of_ids
from kafka_assignors.testing._load import Load
from kafka_assignors.testing._topics import admin_client

_SETTLED_SECONDS = 0.2  # a stable group stays stable for so long


class ConsumerGroup(ReportingGroup):
    """A consumer group whose members are started, observed and disturbed from here.

    A context manager: on leaving it all members are killed. Not for use from several threads.

    Args:
        kafka: The cluster: its servers, "host:port" each, or a `Cluster` that was started here.
        topics: What members subscribe to, unless others are given when they join.
        assignors: Their assignors in order of preference, unless others are given when they join; None for
            the client's own choice.
        group_id: The group's id; a new one by default.
        client: The client library of members, or a function of yours, unless another is given when they join.
            A function may stand in a pair with further arguments by name, which must have JSON.
        place: Whether members are processes, or threads, which start at once but neither crash nor freeze.
        settings: Settings of their consumers in kafka-python's spelling, on top of `SETTINGS`. Must have
            JSON. What the kit sets itself is refused, with what to give in its place. With
            `group_protocol="consumer"` the group is one of KIP-848, for clients that know it. Generations are
            epochs then, the broker assigns, and its settings say when members have timed out.
        commit: When they commit offsets: after each poll, by the client's timer, or on command.
        poll_ms: How long one poll waits, unless another time is given when they join; see `POLL_MS` in
            `kafka_assignors.testing._groups.config` before shortening it.
        work_ms: How long an application works between two polls, unless another time is given when they join.
        recalls_joins: Whether members look at joins that kafka-python forgets. If a subscription changed, or
            for a leader the topics' partitions, the member joins again. If that join outlasts the poll,
            kafka-python 3.0 never takes its assignment, is expelled and stays away. Your consumers do so,
            too; but a test of assignors may not care.
        timeout: How long waits last at most, in seconds, unless another time is given.
    """

    def __init__(
        self,
        kafka: Kafka,
        topics: Topics,
        assignors: Sequence[AssignorSpec] | None = None,
        *,
        group_id: str | None = None,
        client: ClientSpec = "kafka-python",
        place: Place = "process",
        settings: Mapping[str, Any] | None = None,
        commit: CommitMode = "each poll",
        poll_ms: int = POLL_MS,
        work_ms: int = 0,
        recalls_joins: bool = False,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(f"group-{uuid.uuid4().hex[:8]}" if group_id is None else group_id, timeout)
        self.access = Access.to(kafka)
        self.topics = topics
        self.settings = on_top(SETTINGS, settings or {})
        self._usual = MemberSpec(
            access=self.access,
            topics=topics,
            assignors=assignors,
            client=client,
            place=place,
            settings=settings or {},
            commit=commit,
            poll_ms=poll_ms,
            work_ms=work_ms,
            recalls_joins=recalls_joins,
        )
        self._admin: AdminClient | None = admin_client(self.access)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all members, frozen or not, and wait for their ends. The timeline stays."""
        for member in self.members.values():
            member.kill()
        for member in self.members.values():
            member.close()
        # Its threads would go on looking for brokers that are about to stop.
        self._admin = None

    # Members

    def join(
        self,
        name: str | None = None,
        *,
        instance_id: str | None = None,
        held: bool = False,
        **own: Unpack[OwnParts],
    ) -> Member:
        """Start a member. Does not wait for it: `wait_stable` does, until it is in the group.

        Args:
            name: Its name, unique in the group; "m1", "m2"... by default.
            instance_id: Makes it a static member (KIP-345).
            held: Start its process or thread, but let it wait for `Member.release` before it makes its
                consumer: so that many can join at one moment.
            **own: What it has instead of the group's: `client`, `assignors`, `topics`, `place`, `poll_ms`,
                `work_ms`. Its `settings` come on top of the group's. `access` is how it reaches the cluster,
                say through a proxy. An application with its own loop decides by itself how long it polls.

        Raises:
            ValueError: There is a member of that name, no such client or place, or a poll is to take no time.
                An assignor cannot be made in another process, or the client has none of that name. A setting
                is one that the kit sets itself.
            TypeError: A setting or an assignor's argument has no JSON, or the assignors are no list.
        """
        name = f"m{len(self.members) + 1}" if name is None else name
        if name in self.members:
            raise ValueError(f"the group has a member named {name!r} already")
        spec = self._usual.changed(**own)
        config = spec.config(self.group_id, name, instance_id=instance_id, held=held)
        config.to_json()  # fails before there is a process
        member = Member(
            config,
            spec.topics,
            spec.place,
            network=network_of(spec.access),
            record=self.record,
            wait_for=self.wait_for,
            rejoin=partial(self.join, instance_id=instance_id, **own),
        )
        with self._changed:
            self.members[name] = member
        member.start()
        return member

    # Waiting

    def wait_stable(
        self,
        *,
        partitions: Collection[TopicPartition] | None = None,
        ownership: Sharing = "exclusive",
        expect: Mapping[str, int] | None = None,
        members: Collection[Member] | None = None,
        timeout: float | None = None,
    ) -> StableGroup:
        """Wait until the group is at rest and its partitions are owned as they should be.

        That is: the members report one generation and none is joining. The coordinator says that the group is
        stable, has exactly these members, and that they have the partitions that they report. Every partition
        has its owner, and nothing of it changes for a moment.

        Args:
            partitions: The partitions that must be owned. By default these are all of the subscribed topics,
                as the brokers say at that moment. So new partitions count from when they were made. Topics
                that are subscribed to by their names must exist then.
            ownership: "exclusive" if each partition is to have one owner, "broadcast" if every subscriber of
                its topic is to own it.
            expect: How many partitions certain members are to have, by their names.
            members: The members that make up the group; by default `present()`.
            timeout: In seconds; the group's by default.

        Raises:
            GroupNotStableError: It did not happen, or a member ended by itself. The message says what each
                member and the coordinator said at last.
            ValueError: There is no such ownership.
        """
        check_choice("ownership", ownership, Sharing)
        deadline = Deadline(self.timeout if timeout is None else timeout)
        stable: tuple[float, StableGroup] | None = None
        doomed = False
        while True:
            with self._changed:
                awaited = self.present() if members is None else [*members]
                wrong = stability.among_members(awaited)
                generation = max((member.generation for member in awaited), default=NO_GENERATION)
                assignments = {member.name: member.assignment for member in awaited}
            if not wrong:
                view = self.describe()
                wrong = [
                    *stability.against_brokers(awaited, view, names_of_ids(self.members.values())),
                    *stability.against_brokers_topics(awaited, view, self._client, partitions, ownership),
                    *stability.against_expectation(awaited, expect or {}),
                ]
            now = time.monotonic()
            if wrong:
                stable = None
            else:
                found = StableGroup(generation=generation, protocol=view.protocol, assignments=assignments)
                if stable is None or stable[1] != found:
                    stable = now, found
                elif now - stable[0] >= _SETTLED_SECONDS and not doomed:
                    return found
            doomed = self._give_up_if("the group to be stable", partial(list, wrong), deadline)
            with self._changed:
                self._changed.wait(LOOK_SECONDS)

    def wait_processed(self, count: int, timeout: float | None = None) -> None:
        """Wait until members are done with so many records in all; what counts is as in `wait_consumed`.

        Raises:
            ValueError: No record is waited for, so that a test would judge nothing.
            GroupNotStableError: They were not in time; or see `wait_for`.
        """
        if count < 1:
            raise ValueError(f"count={count}: wait for one record at least, or nothing was processed")
        self.wait_for(
            lambda: sum(len(one.offsets) for done in self.timeline.handled.values() for one in done) >= count,
            timeout,
            f"{count} records to be processed",
        )

    def wait_consumed(self, load: Load | Mapping[TopicPartition, int], timeout: float | None = None) -> None:
        """Wait until members are done with every record of the load that the brokers acknowledged up to now.

        If there is none yet, wait for the first one, too. Of another producer, give how many records each
        partition has.

        What counts is as in `Timeline.assert_all_consumed`: what applications say they have processed, or
        what polls returned where none says so.

        Raises:
            ValueError: No record is waited for, so that a test would judge nothing.
            GroupNotStableError: They have not; the message counts what is missing. Or nothing was produced.
        """
        if isinstance(load, Mapping):
            produced = load
            if not any(produced.values()):
                raise ValueError(
                    f"no record is waited for in {dict(produced)}: give how many each partition has, as"
                    " {TopicPartition('orders', 0): 20}, or a Load"
                )
        else:
            self.wait_for(lambda: load.produced, timeout, f"a record of the load on {', '.join(load.topics)}")
            produced = load.produced
        unhandled = Unhandled(produced)
        self._wait(
            lambda: unhandled.none_left(self.timeline),
            timeout,
            lambda: f"all records to be {unhandled.word}",
            lambda: [
                *unhandled.described(self.timeline),
                *stability.log_ends(self._client, unhandled.missing),
            ],
            lambda: not self._held_up and unhandled.are_lost(self.timeline),
        )

    def describe(self) -> BrokersView:
        """Ask the coordinator about the group, by a client that is no member."""
        return stability.describe(self._client, self.group_id)

    @property
    def _client(self) -> AdminClient:
        if self._admin is None:
            raise RuntimeError(f"group {self.group_id} is closed")
        return self._admin
