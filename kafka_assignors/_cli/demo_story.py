"""The demo: a group of real consumers on a real Kafka, through all that makes groups rebalance."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, cast

from rich.console import Console
from rich.text import Text

from kafka_assignors import KafkaAssignorsError
from kafka_assignors._cli.output import show_json
from kafka_assignors._cli.results import DemoRun, DemoStep
from kafka_assignors._cli.show import Screen, show_comparison, show_run, show_step
from kafka_assignors._common.strategies import ASSIGNORS, STRATEGIES
from kafka_assignors.testing import ConsumerGroup, Load, create_topic, delete_topic, grow_topic, kafka_cluster
from kafka_assignors.testing._groups.clients import load as load_client
from kafka_assignors.testing.events import Consumed

if TYPE_CHECKING:
    from kafka import TopicPartition

    from kafka_assignors._timelines.rebalances import Holdings
    from kafka_assignors.testing._groups.clients import ClientName

TOPICS: Final = {"orders": 6, "payments": 4}
"""Topics and their partitions to begin with."""

GROWN: Final = ("orders", 8)
"""The topic that gets more partitions, and how many it has then."""

RATE: Final = 120.0
"""Messages a second to each topic."""

SESSION_TIMEOUT_MS: Final = 3000
"""How long a killed member's partitions wait."""

GIVEN_SESSION_TIMEOUT_MS: Final = 6000
"""The same on a running Kafka, which by default allows no less."""


def run_demo(
    assignors: Sequence[str],
    *,
    client: str,
    bootstrap_servers: str | None,
    heartbeat_interval_ms: int,
    as_json: bool,
) -> int:
    """Run the demo once for each assignor, and show how it goes.

    Returns 0 if no message was lost and no partition had two owners at once, else 1.
    """
    console = Console(stderr=as_json)
    runs = []
    try:
        load_client(cast("ClientName", client))
        with ExitStack() as stack:
            began = time.monotonic()
            cluster = stack.enter_context(kafka_cluster(bootstrap=bootstrap_servers))
            console.print(
                f"Kafka ({cluster.how}) at {', '.join(cluster.bootstrap_servers)}"
                f" after {time.monotonic() - began:.1f} s"
            )
            least = GIVEN_SESSION_TIMEOUT_MS if cluster.how == "given" else SESSION_TIMEOUT_MS
            settings = {
                "heartbeat_interval_ms": heartbeat_interval_ms,
                "session_timeout_ms": max(least, 3 * heartbeat_interval_ms),
            }
            for name in assignors:
                run = _run(name, client, cluster.bootstrap_servers, settings, console)
                runs.append(run)
                show_run(console, run)
    except KafkaAssignorsError as error:
        console.print(Text.assemble((type(error).__name__, "red"), f": {error}"))
        return 1
    if len(runs) > 1:
        show_comparison(console, runs)
    if as_json:
        show_json(runs)
    return 0 if all(run.ok for run in runs) else 1


def _run(
    name: str, client: str, bootstrap_servers: list[str], settings: Mapping[str, int], console: Console
) -> DemoRun:
    console.rule(f"[bold]{name}")
    with ExitStack() as stack:
        topics = stack.enter_context(_topics(bootstrap_servers))
        loads = [stack.enter_context(Load(bootstrap_servers, topic, rate=RATE)) for topic in topics.values()]
        group = stack.enter_context(
            ConsumerGroup(
                bootstrap_servers,
                list(topics.values()),
                [ASSIGNORS[name]],
                client=client,
                group_id=f"demo-{name}-{uuid.uuid4().hex[:8]}",
                settings=settings,
            )
        )
        screen = stack.enter_context(Screen(console, group, loads))
        story = _Story(group, loads, screen, shared=STRATEGIES[name].shared)
        story.step("three members join", lambda: [group.join() for _ in range(3)])
        story.step("a fourth member joins", group.join)
        story.step("m2 is killed (SIGKILL)", group.members["m2"].crash)
        story.step("m3 leaves", group.members["m3"].leave)
        story.step(
            f"{GROWN[0]} gets {GROWN[1] - TOPICS[GROWN[0]]} more partitions",
            lambda: grow_topic(bootstrap_servers, topics[GROWN[0]], GROWN[1]),
        )
        screen.title = "the last messages are consumed"
        produced = {tp: count for load in loads for tp, count in load.stop().items()}
        for load in loads:
            group.wait_consumed(load)
        timeline = group.timeline
        missing = sum(len(offsets) for offsets in timeline.missing(produced).values())
        total = sum(produced.values())
        return DemoRun(
            assignor=name,
            steps=tuple(story.steps),
            produced=total,
            consumed=total - missing,
            duplicates=sum(timeline.duplicates().values()),
            overlaps=timeline.overlaps(),
            double_assigned=sum(map(len, timeline.double_assigned().values())),
        )


@contextmanager
def _topics(bootstrap_servers: list[str]) -> Iterator[dict[str, str]]:
    """The demo's topics under names of their own, for the time of the context."""
    mark = uuid.uuid4().hex[:4]
    made: dict[str, str] = {}
    try:
        for topic, partitions in TOPICS.items():
            made[topic] = create_topic(bootstrap_servers, partitions, name=f"{topic}-{mark}")
        yield made
    finally:
        for topic in made.values():
            delete_topic(bootstrap_servers, topic)


class _Story:
    """The steps as they are told."""

    def __init__(self, group: ConsumerGroup, loads: list[Load], screen: Screen, *, shared: bool) -> None:
        self.steps: list[DemoStep] = []
        self._group = group
        self._loads = loads
        self._screen = screen
        self._shared = shared
        self._holdings: Holdings = {}
        self._generation = 0

    def step(self, title: str, act: Callable[[], object]) -> None:
        """Do something, wait until the group is stable and consumes again, and show what it took."""
        self._screen.title = title
        before, group = self._holdings, self._group
        began = time.monotonic()
        act()
        stable = group.wait_stable(ownership="broadcast" if self._shared else "exclusive")
        settled = time.monotonic()
        group.wait_for(lambda: self._all_consumed_since(settled), what="every partition to be consumed again")
        timeline = group.timeline
        self._holdings = stable.assignments
        there_before = {tp for partitions in before.values() for tp in partitions}
        silence = timeline.longest_silence(since=began, until=timeline.end)
        step = DemoStep(
            title=title,
            seconds=settled - began,
            rebalances=tuple(one for one in timeline.rebalances if one.generation > self._generation),
            before=before,
            after=stable.assignments,
            silence={tp: seconds for tp, seconds in silence.items() if tp in there_before},
            shared=self._shared,
        )
        self._generation = stable.generation
        self.steps.append(step)
        show_step(self._screen.console, step)

    def _all_consumed_since(self, moment: float) -> bool:
        seen = {
            tp
            for event in self._group.timeline.of(Consumed)
            if event.time >= moment
            for tp, _, _ in event.records
        }
        owned: set[TopicPartition] = set()
        for member in self._group.present():
            owned |= member.assignment
        return owned <= seen
