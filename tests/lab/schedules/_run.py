"""Do a schedule to a simulated group, and hold the group to what has to be true at every instant."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from kafka.structs import TopicPartition

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._timelines.events import (
    Assigned,
    AssignmentReceived,
    Event,
    Exited,
    Failed,
    Led,
    Lost,
    Paused,
    Rejected,
    Revoked,
    Thawed,
    name_of,
)
from kafka_assignors._wire.codec import read_subscriptions
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation, next_name
from tests.lab.clients.flowing_member import FlowingMember
from tests.lab.clients.network import NetworkedConsumer
from tests.lab.clients.other_clients import UnaidedMember
from tests.lab.clients.real_member import close
from tests.lab.schedules._clients import COOPERATIVE, OURS, STANDBYS, make_client
from tests.lab.schedules._schedule import Schedule, Step

SESSION_MS: Final = 6000
HEARTBEAT_MS: Final = 1000
MAX_POLL_MS: Final = 10_000
METADATA_MAX_AGE_MS: Final = 500

SETTLING_MS: Final = 120_000
"""How long a group may take after the last step, until it is at rest and each partition has its owner."""

ROUNDS: Final = 25
"""How many generations it may take for that."""

REFUSALS: Final = 3
"""How often a member may be given what it does not subscribe to, in one generation."""

_LOOK_MS: Final = 500


class BrokenError(KafkaAssignorsError, AssertionError):
    """A schedule broke what has to hold; says what, when, and shows the events."""


@dataclass(slots=True, kw_only=True)
class Told:
    """What a schedule made of a group: how many generations, and of them `rounds` after the last step.

    `by_others` is how often a leader of another client gave a partition a second owner, `unplanned` whether
    the group never comes to rest because another client's assignor raises.
    """

    generations: int = 0
    settled_ms: int = 0
    rounds: int = 0
    by_others: int = 0
    unplanned: bool = False
    owners: dict[str, str] = field(default_factory=dict)


def run(schedule: Schedule) -> Told:
    """Do a schedule, and hold the group to its invariants.

    At every instant: no partition has two owners by the calls of listeners (assigned, and not yet revoked or
    lost). Excused are members that the coordinator has removed since they got it. So are static ones that a
    generation began without, if the strategy is eager or they said no generation. So are those of
    kafka-python without our help that fell out of the group unheard. But a consumer whose records flow in a
    rebalance is excused only while it delivers nothing, also as it thaws. If its coordinator knows it, it
    does not fall out of the group. No member whose joins our assignors complete refuses one generation's
    assignment more than `REFUSALS` times.

    When the last step is over and all members run again: each subscribed partition gets its one owner. The
    group becomes stable within `SETTLING_MS` and `ROUNDS` generations. From then on members of kafka-python
    without our help poll for 100 ms and do not work between two polls. With shorter polls they may forget
    each join. Excused are static members of other clients that came back with fewer topics, and the
    partitions that these are given and refuse for ever. Excused as well is a group whose leader has another
    client's assignor that raises at its plans.

    What a leader of another client does is counted; it breaks nothing.
    """
    under_way = _ScheduleRun(schedule)
    try:
        return under_way.all()
    finally:
        under_way.close()


class _ScheduleRun:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._group = Simulation(
            schedule.topics,
            [],
            seed=schedule.seed,
            broker=BrokerSettings(
                initial_rebalance_delay_ms=schedule.delay_ms, min_session_timeout_ms=SESSION_MS
            ),
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
            watch=self._watch,
        )
        self._group.group.removed = self._remove
        self._group.group.passed_over = self._pass_over
        self._topics = dict(schedule.topics)
        self._smallest = dict(schedule.topics)  # how many partitions each topic had all the time
        self._owners: dict[TopicPartition, str] = {}
        self._forfeited: set[tuple[TopicPartition, str]] = set()
        self._names: dict[str, str] = {}  # whose a member id is
        self._removed: set[str] = set()
        self._refusals: Counter[tuple[str, int]] = Counter()  # by member and generation
        self._refused: dict[str, Rejected] = {}  # the last of too many refusals, by members of other clients
        self._planner = ""  # who made the last plan
        self._raised_at = -math.inf  # when another client's assignor raised last; one of ours ends the run
        self._left_behind: set[str] = set()  # members whose last assignment a later generation gave away
        self._moved = False
        self._paused: set[str] = set()  # since their last assignment
        self._told = Told()
        self._contended: set[str] = set()  # members that had an instance id at the same time
        self._broken = ""

    def all(self) -> Told:
        for step in self._schedule.steps:
            if step.after_ms:
                self._group.run(step.after_ms / 1000)
            self._take(step)
            self._hold()
        return self._settle()

    def close(self) -> None:
        close(self._group)

    # Steps

    def _take(self, step: Step) -> None:
        group, member = self._group, self._current(step.target)
        if step.kind == "join":
            self._join(step)
        elif step.kind in {"grow", "create"}:
            self._smallest[step.target] = min(self._smallest[step.target], self._topics.get(step.target, 0))
            self._topics[step.target] = step.partitions
            group.grow(step.target, step.partitions)
        elif step.kind == "delete":
            self._topics.pop(step.target, None)
            group.delete(step.target)
        elif step.kind == "move coordinator":
            self._moved = True  # and may know members again that it had removed
            group.move_coordinator(away=0.2)
        elif member is not None:
            self._take_to(member, step)

    def _take_to(self, member: NetworkedConsumer, step: Step) -> None:
        match step.kind:
            case "subscribe":
                member.subscribe(step.topics)
            case "lose answer":
                member.lose_answers(1)
            case "restart" | "take over":
                self._replace(member, step)
            case "leave" | "freeze" | "thaw" if member.frozen != (step.kind == "thaw"):
                pass  # one that stands still does nothing of that, and one that runs cannot thaw
            case _:
                does: str = {"pause": "pause_polling", "resume": "resume_polling"}.get(step.kind, step.kind)
                getattr(member, does)()

    def _join(self, step: Step) -> None:
        client, assignors = make_client(step.client, self._schedule.strategy)
        self._group.join(
            step.target,
            topics=step.topics,
            assignors=assignors,
            client=client,
            instance_id=f"instance-{step.target}" if step.static else None,
            settings=MemberSettings(
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=HEARTBEAT_MS,
                max_poll_interval_ms=MAX_POLL_MS,
                poll_ms=step.poll_ms,
                work_ms=step.work_ms,
                latency_ms=step.latency_ms,
            ),
        )

    def _replace(self, member: ClassicConsumer, step: Step) -> None:
        """Start another in a member's place, after its end or beside it."""
        client, assignors = make_client(self._client_of(member.name), self._schedule.strategy)
        take_over = step.kind == "take over"
        if not take_over:
            member.leave()
        new = self._group.join(
            next_name(member.name),
            topics=step.topics or member.topics,
            assignors=assignors,
            client=client,
            instance_id=member.instance_id,
            settings=member.settings,
        )
        # One of both is fenced: the first one may have joined last. It may yet run when the second restarts.
        if take_over or member.name in self._contended:
            self._contended |= {member.name, new.name}

    def _current(self, name: str) -> NetworkedConsumer | None:
        """The member that runs under this name, restarted or not."""
        for member in reversed(self._group.members.values()):
            if member.name.partition(".")[0] == name:
                return cast("NetworkedConsumer", member) if member.running else None
        return None

    # What has to hold

    def _watch(self, event: Event) -> None:
        if event.member_id:
            self._names[event.member_id] = event.member
        if isinstance(event, Led):
            self._planner = event.member
        elif isinstance(event, Failed) and event.member == self._planner and not self._is_ours(event.member):
            self._raised_at = event.time
        self._look_at_flow(event)
        self._follow(event)

    def _look_at_flow(self, event: Event) -> None:
        """Hold consumers to more whose records flow in a rebalance."""
        match event:
            case Paused():
                self._paused.add(event.member)
            case AssignmentReceived():
                self._paused.discard(event.member)
            case Thawed():
                self._look_at_thawed(event)
            case Lost():
                self._look_at_lost(event)

    def _follow(self, event: Event) -> None:
        """Note who has what by an event."""
        match event:
            case Assigned():
                self._give(event)
            case Rejected():
                self._count_refusal(event)
            case Revoked() | Lost():
                for partition in event.partitions:
                    self._let_go(partition, event.member)
            case Exited():
                for partition in [one for one, owner in self._owners.items() if owner == event.member]:
                    self._let_go(partition, event.member)
            case AssignmentReceived() if not self._is_gone(event.member):
                self._left_behind.discard(event.member)
                # Of the rest its application has yet to hear.
                self._forfeited -= {(partition, event.member) for partition in event.partitions}

    def _give(self, event: Assigned) -> None:
        if self._is_gone(event.member) or event.member in self._left_behind:
            return  # since the answer was sent; what librdkafka kept for the next poll, that poll takes back
        for partition in event.partitions:
            before = self._owners.get(partition)
            if before is None or before == event.member or self._is_excused(partition, before):
                pass
            elif not self._is_ours(self._planner):
                self._told.by_others += 1
            else:
                self._broken = self._broken or (
                    f"{name_of(partition)} has two owners at {event.time:.3f} s: {event.member} was given it"
                    f" in generation {event.generation}, and {before} has not revoked it"
                )
            self._owners[partition] = event.member

    def _look_at_thawed(self, event: Thawed) -> None:
        """A process that stood still may deliver before it hears of anything."""
        for partition in self._group.members[event.member].held if self._delivers(event.member) else ():
            if self._owners.get(partition, event.member) != event.member:
                self._broken = self._broken or (
                    f"{event.member} delivers {name_of(partition)} as it thaws at {event.time:.3f} s,"
                    f" which is {self._owners[partition]}'s"
                )

    def _look_at_lost(self, event: Lost) -> None:
        """A dynamic member that its coordinator knows has no reason to fall out, if it does not leave."""
        member = self._group.members[event.member]
        if (
            isinstance(member, FlowingMember)
            and member.instance_id is None
            and member.member_id in self._group.group.member_ids
            and event.member not in self._paused
            and not self._moved
        ):
            self._broken = (
                self._broken or f"{event.member} falls out of its group by itself at {event.time:.3f} s"
            )

    def _count_refusal(self, event: Rejected) -> None:
        self._refusals[event.member, event.generation] += 1
        if self._refusals[event.member, event.generation] <= REFUSALS:
            return
        if self._client_of(event.member) not in {"ours", "waits", *STANDBYS}:
            self._refused[event.member] = event
        else:
            self._broken = self._broken or (
                f"{event.member} refuses its assignment of generation {event.generation} again and again, at"
                f" {event.time:.3f} s for the {REFUSALS + 1}th time"
            )

    def _is_excused(self, partition: TopicPartition, name: str) -> bool:
        """Whether a member has a partition by its application's word only."""
        member = self._group.members[name]
        if self._delivers(name):
            return False
        unheard = isinstance(member, UnaidedMember) and partition in member.unheard
        return unheard or (partition, name) in self._forfeited

    def _delivers(self, name: str) -> bool:
        """Whether a member that stops by itself delivers, unless another took its instance id (KIP-345)."""
        member = self._group.members[name]
        return isinstance(member, FlowingMember) and member.delivers and name not in self._contended

    def _is_gone(self, name: str) -> bool:
        """Whether the coordinator does not know a member any more."""
        member_id = self._group.members[name].member_id
        return not member_id or member_id in self._removed

    def _let_go(self, partition: TopicPartition, member: str) -> None:
        if self._owners.get(partition) == member:
            del self._owners[partition]
        self._forfeited.discard((partition, member))

    def _remove(self, member_id: str) -> None:
        """The coordinator removes a member: what that has is no longer its own."""
        self._removed.add(member_id)
        self._forfeit(member_id)

    def _pass_over(self, member_id: str, sent: Mapping[str, bytes]) -> None:
        """A generation begins without a static member: leaders of eager strategies give away what that has.

        So do those of cooperative ones, if it was new when it joined: it is as one that has just come.
        """
        subscriptions = read_subscriptions([*sent.values()])
        if COOPERATIVE.isdisjoint(sent) or subscriptions.generations.max() < 0:
            self._forfeit(member_id)

    def _forfeit(self, member_id: str) -> None:
        name = self._names.get(member_id)
        if name is not None:
            self._left_behind.add(name)
            self._forfeited |= {(partition, name) for partition in self._group.members[name].held}

    def _hold(self) -> None:
        if self._broken:
            raise BrokenError(self._broken + "\n" + self.events())

    def events(self) -> str:
        return "\n".join(f"{event.time:9.3f}  {event}" for event in self._group.timeline.events)

    def _all_stable(self, but_for: Collection[str]) -> bool:
        members = self._group.members.values()
        return all(one.stable or not one.running or one.name in but_for for one in members)

    def _settle(self) -> Told:
        group = self._group
        for member in group.members.values():
            if member.running:
                self._heal(cast("NetworkedConsumer", member))
        began, generation = group.now, group.group.generation
        missing = "it does not come to rest"
        while group.now - began < SETTLING_MS / 1000:
            group.run(_LOOK_MS / 1000)
            self._hold()
            if group.is_stable and self._all_stable(but_for=self._refusing()):
                missing = self._missing()
                if not missing:
                    break
        told = self._told
        told.unplanned = bool(missing) and group.now - self._raised_at < SESSION_MS / 1000
        rounds = group.group.generation - generation
        too_many = rounds > ROUNDS and self._raised_at < began
        if too_many or (missing and not told.unplanned):
            raise BrokenError(
                f"{rounds} generations and {group.now - began:.1f} s after the last step:"
                f" {missing or 'that is too many generations'}\n{self.events()}"
            )
        told.generations, told.rounds = group.group.generation, rounds
        told.settled_ms = round((group.now - began) * 1000)
        told.owners = {name_of(partition): owner for partition, owner in sorted(self._owners.items())}
        return told

    def _is_ours(self, name: str) -> bool:
        """Whether a member has our assignor; so does nobody."""
        return self._client_of(name) in {"", *OURS}

    def _client_of(self, name: str) -> str:
        """What a member is; empty if it never joined."""
        first = name.partition(".")[0]
        joins = (step for step in self._schedule.steps if step.kind == "join" and step.target == first)
        return next((step.client for step in joins), "")

    def _refusing(self) -> list[str]:
        """Static members of other clients that refuse their assignment of the present generation for ever.

        One that comes back with fewer topics is given its old assignment without a rebalance (KIP-345). Its
        client asks again, and is given the same; of a leader's assignor nobody asks anything.
        """
        generation = self._group.group.generation
        return [
            name
            for name, event in self._refused.items()
            if event.generation == generation and self._group.members[name].instance_id is not None
        ]

    def _is_unnoticed(self, topic: str, running: Sequence[ClassicConsumer]) -> bool:
        """Whether only static members that changed their subscription want a topic.

        One that restarts with another subscription makes no rebalance (KIP-345).
        """
        changed = {
            step.target
            for step in self._schedule.steps
            if step.kind in {"subscribe", "restart", "take over"} and step.topics
        }
        return all(
            member.instance_id is not None and member.name.partition(".")[0] in changed
            for member in running
            if topic in member.topics
        )

    def _heal(self, member: NetworkedConsumer) -> None:
        member.lose_answers(0)
        if member.frozen:
            member.thaw()
        if member.paused:
            member.resume_polling()
        if member.cut_off:
            member.reconnect()
        # kafka-python by itself may never settle if it polls for moments only, and may forget a join. With
        # our help it may still miss that it is fenced.
        if isinstance(member, UnaidedMember) or member.name in self._contended:
            member.settings = replace(member.settings, poll_ms=100, work_ms=0)
        if isinstance(member, UnaidedMember):
            member.request_rejoin()

    def _missing(self) -> str:
        """What is not as it should be in a group at rest; empty if all is.

        A leader of another client may keep partitions from everybody: it begins no round if nobody lets go.
        """
        if not self._is_ours(self._planner):
            return ""
        refusing = self._refusing()
        refused = {one for name in refusing for one in self._refused[name].partitions}
        running = [
            member for name, member in self._group.members.items() if member.running and name not in refusing
        ]
        wanted = {topic for member in running for topic in member.topics}
        owners: dict[tuple[str, int], list[str]] = {
            (topic, number): []
            for topic, count in self._topics.items()
            if topic in wanted
            for number in range(count)
            if (topic, number) not in refused
        }
        for member in running:
            for partition in member.held:
                if partition in owners:
                    owners[partition].append(member.name)
        if any(step.static for step in self._schedule.steps):
            # After a static leader's restart nobody looks at topics until the next rebalance (JoinGroup v7).
            owners = {
                (topic, number): those
                for (topic, number), those in owners.items()
                if those or (number < self._smallest[topic] and not self._is_unnoticed(topic, running))
            }
        wrong = [
            f"{topic}-{number} has the owners {those}"
            for (topic, number), those in owners.items()
            if len(those) != 1
        ]
        wrong = wrong or [
            f"{topic}-{number} is the standby {owner}'s"
            for (topic, number), (owner, *_) in owners.items()
            if self._is_standby(owner, [member.name for member in running if topic in member.topics])
        ]
        return "; ".join(wrong)

    def _is_standby(self, name: str, subscribers: Sequence[str]) -> bool:
        """Whether a member has a lower priority than another subscriber."""
        return self._priority(name) < max(map(self._priority, subscribers), default=0)

    def _priority(self, name: str) -> int:
        return int(STANDBYS.get(self._client_of(name), {}).get("priority", 0))
