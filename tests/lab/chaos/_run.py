"""Scripts of chaos done to a real group, and what has to hold all the time."""

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final, Literal

from kafka import TopicPartition

from kafka_assignors._assignors import Assignor, StickyAssignor
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._timelines.events import NO_GENERATION
from kafka_assignors._timelines.lines import MANY
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.testing import delete_topic
from kafka_assignors.testing._brokers.cluster import Cluster
from kafka_assignors.testing._groups.group import ConsumerGroup
from kafka_assignors.testing._groups.logs import summary
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._load import Load
from kafka_assignors.testing._topics import create_topic, grow_topic
from tests.lab.chaos._cases import Case
from tests.lab.chaos._model import NODES, ScriptStep
from tests.lab.chaos._promises import EXCLUSIVE, keep
from tests.lab.chaos._script import Script

SETTINGS: Final[Mapping[str, Any]] = {
    "session_timeout_ms": 3000,
    "max_poll_interval_ms": 6000,
}
"""Settings of consumers that make crashes and hangs come to light quickly."""

BROKER_SETTINGS: Final[Mapping[str, str | int]] = {"min.insync.replicas": 2}
"""Settings of brokers with which an acknowledged record survives each broker that breaks down."""

RATE: Final = 40.0
"""Records a second that `unleash` produces to each topic."""

Client = Literal["kafka-python", "aiokafka", "mixed"]
"""The libraries whose consumers take the assignors of this one; or members of theirs and of others."""

OURS: Final = ("kafka-python", "aiokafka")
MIXED: Final = (*OURS, "confluent-kafka", *OURS, "java")
"""Of what the members of a mixed group are, in turn."""

_PLANNING: Final = 20.0  # seconds that a plan may take

_SLOW_POLLS: Final = 10  # of a slow member, until a rebalance of two rounds is over for it

_MARGIN: Final = 3, 60.0  # times as long and so many seconds more, for a laden machine


class ChaosError(KafkaAssignorsError, AssertionError):
    """A group did not get over what a script did to it, or a promise was broken meanwhile.

    The message has the seed, the steps so far, what was wrong and the timeline.
    """

    def __init__(self, message: str, outcome: "Outcome") -> None:
        super().__init__(message)
        self.outcome = outcome


@dataclass(kw_only=True)
class Outcome:
    """What a script did to a group.

    `overlaps` is how often two applications had a partition at once, as one of them was out of the group.
    `failure` is empty if nothing went wrong.
    """

    seed: int
    assignor: str = ""
    events: Counter[str] = field(default_factory=Counter)
    rebalances: int = 0
    produced: int = 0
    consumed: int = 0
    duplicates: int = 0
    overlaps: int = 0
    seconds: float = 0.0
    failure: str = ""


def bound(settings: Mapping[str, Any], slowest_ms: int = 0) -> float:
    """How long a group may take until it is stable, in seconds.

    A member that is lost is missed after the session timeout. One that does not poll is missed after the
    longest interval of polls, for which a rebalance waits, too. The others learn of it by a heartbeat, and of
    topics by metadata. A slow member joins by a poll, and may have to poll again and again until nobody
    overtakes it. Three times all that and a minute more, as machines that run tests are laden.

    `slowest_ms` is the longest time from the begin of a poll to the next, where members work between.
    """
    names = "session_timeout_ms", "max_poll_interval_ms", "heartbeat_interval_ms", "metadata_max_age_ms"
    usual = 10_000, 300_000, 3_000, 300_000  # the consumer's own defaults
    parts = [float(settings.get(name, default)) for name, default in zip(names, usual, strict=True)]
    factor, more = _MARGIN
    return factor * (sum(parts) + _SLOW_POLLS * slowest_ms) / 1000 + more


def unleash(
    script: Script,
    assignor: type[Assignor] | Case,
    cluster: Cluster,
    *,
    client: Client = "kafka-python",
    within: float | None = None,
    repeat: str = "",
) -> Outcome:
    """Do a script to a new group on new topics under load, hold it to its promises, and clear up.

    The script is the same each time; what it meets is not, as real processes take their time. Members are in
    the racks of the cluster's nodes in turn. The cluster was
    started with `BROKER_SETTINGS`. Members of aiokafka are `CooperativeConsumer`s. In a mixed group, other
    clients' members have their own strategy of the assignor's name, and whoever leads plans: nothing is
    promised of balance and moves.

    Raises:
        ChaosError: The group did not settle, or a promise was broken.
    """
    case = assignor if isinstance(assignor, Case) else Case.of(assignor)
    topics = [create_topic(cluster, count, replication=NODES) for count in script.limits.partitions]
    with contextlib.ExitStack() as stack:
        stack.callback(_clear_up, cluster, topics)
        group = stack.enter_context(
            ConsumerGroup(
                cluster, topics, [case.assignor], client=OURS[0], settings={**SETTINGS}, recalls_joins=True
            )
        )
        loads = [Load(cluster, topic, rate=RATE) for topic in topics]
        for load in loads:
            stack.callback(_end, load)
            load.__enter__()
        run = _ScriptRun(script, group, cluster, loads, case=case, client=client, within=within)
        return run.run(repeat)


def _member(assignor: type[Assignor], options: Mapping[str, Any], rack: str, client: str) -> dict[str, Any]:
    options = {**options, "rack": rack}
    if issubclass(assignor, StickyAssignor):
        # By itself a third of the session: on a laden machine plans would not be the best ones.
        options["time_limit"] = _PLANNING
    assignors = [(assignor, options)] if client in OURS else [assignor.name]
    return {"settings": {"client_rack": rack}, "client": client, "assignors": assignors}


class _ScriptRun:
    def __init__(
        self,
        script: Script,
        group: ConsumerGroup,
        cluster: Cluster,
        loads: Sequence[Load],
        *,
        case: Case,
        client: Client,
        within: float | None,
    ) -> None:
        self.outcome = Outcome(seed=script.seed)
        self._script = script
        self._group = group
        self._cluster = cluster
        self._loads = loads
        self._case = case
        self._clients = cycle(MIXED if client == "mixed" else [client])
        self._promise = EXCLUSIVE if client == "mixed" else case.promise
        self._topics = dict(zip(script.limits.topics, (load.topics[0] for load in loads), strict=True))
        self._sizes = dict(zip(self._topics.values(), script.limits.partitions, strict=True))
        self._members = dict[str, Member]()  # by their names in the script, under which they restart
        slowest = max(step.poll_ms + step.work_ms for step in script.steps)
        self._bound = bound(group.settings, slowest) if within is None else within
        self._checked = NO_GENERATION
        self._in_burst = False

    def run(self, repeat: str) -> Outcome:
        began = time.monotonic()
        steps = self._script.steps
        number = 0
        try:
            for number, step in enumerate(steps, 1):
                self._prepare(steps[number - 1 :])
                self._take(step)
            self._finish()
        except Exception as error:
            self.outcome.failure = f"step {number} ({steps[number - 1]}): {error}"
            told = _told(self._script, number, error, self._group, repeat)
            raise ChaosError("\n".join([*told, *self._post_mortem()]), self.outcome) from error
        finally:
            self._count(time.monotonic() - began)
        return self.outcome

    def _prepare(self, steps: Sequence[ScriptStep]) -> None:
        """Have all who are to join in a burst that begins started, so that they join when they should."""
        if self._in_burst:
            return
        for step in steps:
            if step.kind == "join":
                self._start(step)
            if step.settle:
                break
        held = [member for member in self._members.values() if member.held]
        self._group.wait_for(
            lambda: all(member.last_event is not None for member in held),
            timeout=self._bound,
            what="processes to start",
        )

    def _start(self, step: ScriptStep) -> None:
        rack = f"rack-{len(self._group.members) % NODES + 1}"
        client = next(self._clients)
        options = self._case.options(step.target, [*self._topics.values()])
        how = _member(self._case.assignor, options, rack, client)
        if step.poll_ms:
            how |= {"poll_ms": step.poll_ms, "work_ms": step.work_ms}
            if client in OURS:
                # It sends no heartbeat from its join until it has looked at the answer (kafka-python 3.0).
                session = self._group.settings["session_timeout_ms"] + step.poll_ms + step.work_ms
                how["settings"]["session_timeout_ms"] = session
        self._members[step.target] = self._group.join(
            step.target,
            topics=[self._topics[topic] for topic in step.topics],
            instance_id=f"instance-{step.target}" if step.static else None,
            held=True,
            **how,
        )

    def _take(self, step: ScriptStep) -> None:
        """Do a step, and wait if it says so."""
        time.sleep(step.gap)
        self._do(step)
        self.outcome.events[step.kind] += 1
        self._in_burst = not step.settle
        if step.settle:
            self._settle()

    def _finish(self) -> None:
        """Make sure that in the end every record was consumed."""
        for load in self._loads:
            load.stop()
            self._group.wait_consumed(load, self._bound)
        self._group.timeline.assert_all_consumed(self._produced())

    def _count(self, seconds: float) -> None:
        timeline, produced = self._group.timeline, self._produced()
        self.outcome.seconds = seconds
        self.outcome.rebalances = len(timeline.rebalances)
        self.outcome.produced = sum(produced.values())
        self.outcome.consumed = self.outcome.produced - sum(map(len, timeline.missing(produced).values()))
        self.outcome.duplicates = sum(timeline.duplicates().values())
        self.outcome.overlaps = len(timeline.overlaps("callback"))

    def _post_mortem(self) -> list[str]:
        lines = []
        for member in self._group.members.values():
            if log := summary(member.log()):
                lines += [f"log of {member.name}:", log]
        return lines

    def _produced(self) -> dict[TopicPartition, int]:
        return {partition: count for load in self._loads for partition, count in load.produced.items()}

    def _do(self, step: ScriptStep) -> None:
        topics = [self._topics[topic] for topic in step.topics]
        match step.kind:
            case "join":
                self._members[step.target].release()
            case "leave":
                self._members.pop(step.target).leave(wait=False)
            case "crash":
                self._members.pop(step.target).crash()
            case "freeze":
                member = self._members[step.target]
                # One that is frozen before it has found its brokers gives up on them when it goes on.
                self._group.wait_for(lambda: member.begun, what=f"{member.name} to subscribe")
                member.freeze()
            case "thaw":
                self._members[step.target].thaw()
            case "pause":
                self._members[step.target].pause_polling()
            case "resume":
                self._members[step.target].resume_polling()
            case "restart" | "crash and restart":
                crash = step.kind != "restart"
                self._members[step.target] = self._members[step.target].restart(crash=crash)
            case "subscribe":
                self._members[step.target].subscribe(topics, wait=False)
            case _:
                self._disturb(step)

    def _disturb(self, step: ScriptStep) -> None:
        """Do a step to the brokers, or by them."""
        match step.kind:
            case "grow":
                topic = self._topics[step.target]
                self._cluster.wait_complete()  # new partitions get replicas on brokers that are in
                grow_topic(self._cluster, topic, step.partitions)
                self._sizes[topic] = step.partitions
            case "kill broker":
                self._cluster.broker(int(step.target)).kill()
            case "stop broker":
                self._cluster.broker(int(step.target)).stop()
            case "start broker":
                self._cluster.broker(int(step.target)).start()
                # Before another one may go: two of three replicas have to be there.
                self._cluster.wait_complete()
            case "move coordinator":
                self._cluster.wait_complete()
                self._cluster.move_coordinator(self._group.group_id)

    def _settle(self) -> None:
        self._cluster.wait_complete()
        partitions = self._partitions()
        stable = self._group.wait_stable(
            partitions=partitions, ownership=self._promise.sharing, timeout=self._bound
        )
        self.outcome.assignor = stable.protocol
        keep(self._promise, self._group.timeline, stable.generation, partitions, self._checked)
        self._checked = stable.generation
        for load in self._loads:
            self._group.wait_consumed(load, self._bound)

    def _partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic, number) for topic, count in self._sizes.items() for number in range(count)
        ]


def _told(script: Script, number: int, error: Exception, group: ConsumerGroup, repeat: str) -> list[str]:
    return [
        f"chaos of seed {script.seed}: {error}",
        f"at step {number} of {len(script.steps)}: {script.steps[number - 1]}",
        *([f"to repeat: {repeat}"] if repeat else []),
        "the script is the same each time; what it meets in time is not",
        "steps until then:",
        str(script.first(number)),
        "timeline:",
        *quiet_lines(group.timeline),
    ]


def quiet_lines(timeline: Timeline) -> list[str]:
    """A timeline as text without what records say."""
    return [timeline.line(event) for event in timeline.events if not isinstance(event, MANY)]


def _end(load: Load) -> None:
    """Have a load ended; what is wrong with it, `run` has told."""
    with contextlib.suppress(RuntimeError):
        load.stop()


def _clear_up(cluster: Cluster, topics: Sequence[str]) -> None:
    for broker in cluster.brokers:
        if not broker.running:
            broker.kill()
            broker.start()
    cluster.wait_complete()
    for topic in topics:
        delete_topic(cluster, topic)
