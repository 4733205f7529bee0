"""How a demo looks on a terminal."""

from collections.abc import Iterable, Sequence
from typing import Final, Self

from kafka import TopicPartition
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kafka_assignors._cli.results import DemoRun, DemoStep
from kafka_assignors._common.words import by_topic
from kafka_assignors.testing import ConsumerGroup, Load

COLOURS: Final = ("cyan", "yellow", "magenta", "green", "blue", "red")
"""A colour for each member, in the order of their coming."""


NOTICEABLE_SECONDS: Final = 0.2
"""A pause that is marked."""


def colour_of(member: str) -> str:
    """The colour of a member named m1, m2..."""
    digits = "".join(filter(str.isdigit, member))
    return COLOURS[(int(digits or 1) - 1) % len(COLOURS)]


class Screen:
    """What is going on now, below what has been shown: who owns what, and how many messages.

    A context manager. On a terminal it refreshes itself; elsewhere it shows nothing. Print to its console
    what shall stay.
    """

    def __init__(self, console: Console, group: ConsumerGroup, loads: Sequence[Load]) -> None:
        self.console = console
        self.title = ""
        self._group = group
        self._loads = loads
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=8,
            transient=True,
            auto_refresh=console.is_terminal,
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        produced = sum(sum(load.produced.values()) for load in self._loads)
        consumed = sum(
            last - first + 1 for runs in self._group.timeline.consumed().values() for first, last in runs
        )
        table = Table.grid(padding=(0, 1))
        # A record can be consumed before its producer has the acknowledgement.
        count = f"{consumed} of {max(produced, consumed)} messages consumed"
        table.add_row("[bold]…[/]", f"[bold]{self.title}[/]  {count}")
        for member in list(self._group.members.values()):
            if member.running:
                state = "joining" if member.joining else f"generation {member.generation}"
                table.add_row("", Text.assemble(_name(member.name), f" {state:14} ", _ids(member.assignment)))
        return table


def show_step(console: Console, step: DemoStep) -> None:
    generations = ", ".join(
        f"{one.generation} (led by {one.leader})" if one.leader else str(one.generation)
        for one in step.rebalances
    )
    console.print(
        f"\n[bold]{step.title}[/]: generation {generations or 'unchanged'}, {step.seconds:.1f} s",
        highlight=False,
    )
    topics = sorted({tp.topic for partitions in step.after.values() for tp in partitions})
    table = Table(box=None, padding=(0, 2), show_header=False)
    for member, partitions in sorted(step.after.items()):
        new = partitions - step.before.get(member, frozenset())
        columns = [_ids((tp for tp in partitions if tp.topic == topic), new) for topic in topics]
        table.add_row(_name(member), *columns, f"[dim]{len(partitions)} partitions[/]")
    console.print(table)
    if not step.before:
        return
    moved = step.moved
    which = ", ".join(f"{short(tp)} {source} → {target}" for tp, (source, target) in moved.items())
    console.print(
        f"  moved {len(moved)}, least possible {step.least_moves}{': ' if which else ''}{which}",
        highlight=False,
    )
    console.print("  not consumed for, in seconds:")
    table = Table(box=None, padding=(0, 1), show_header=False)
    for topic in topics:
        silences = [(tp, step.silence[tp]) for tp in sorted(step.silence) if tp.topic == topic]
        table.add_row(
            "  ",
            Text(short_topic(topic), style="dim"),
            *(Text(f"{tp.partition}:{seconds:.2f}", style=_alarm(seconds)) for tp, seconds in silences),
        )
    console.print(table)


def show_run(console: Console, run: DemoRun) -> None:
    verdict = "[bold green]ok[/]" if run.ok else "[bold red]FAILED[/]"
    owners = (
        "several owners by design" if run.shared else f"partitions with two owners at once: {run.owned_twice}"
    )
    console.print(
        f"\n{verdict} [bold]{run.assignor}[/]\n"
        f"  {run.produced} messages produced, {run.consumed} consumed, {run.lost} lost,"
        f" {run.duplicates} delivered again\n"
        f"  {owners}\n"
        f"  {run.moves} partitions moved, least possible {run.least_moves};"
        f" longest pause {run.longest_silence:.2f} s",
        highlight=False,
    )
    for one in run.overlaps if not run.shared else ():
        console.print(
            f"  [red]{short(one.partition)}[/] had {' and '.join(one.members)} for {one.seconds:.3f} s"
        )


def show_comparison(console: Console, runs: Iterable[DemoRun]) -> None:
    table = Table(title="The same story by each strategy", box=None, padding=(0, 1, 0, 0))
    table.add_column("strategy", no_wrap=True)
    for heading in ("sent", "lost", "again", "twice", "rounds", "moved", "least", "longest", "mean"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.caption = (
        "messages sent, lost, delivered again; partitions with two owners at once; rebalances; partitions "
        "moved, least possible; longest and mean pause of a partition in seconds"
    )
    for run in runs:
        pauses = [seconds for step in run.steps for seconds in step.silence.values()]
        table.add_row(
            run.assignor if run.ok else f"[red]{run.assignor}[/]",
            str(run.produced),
            str(run.lost),
            str(run.duplicates),
            "-" if run.shared else str(run.owned_twice),
            str(sum(len(step.rebalances) for step in run.steps)),
            str(run.moves),
            str(run.least_moves),
            f"{run.longest_silence:.2f}",
            f"{sum(pauses) / max(len(pauses), 1):.2f}",
        )
    console.print(table)


def _name(member: str) -> Text:
    return Text(member, style=f"bold {colour_of(member)}")


def _ids(partitions: Iterable[TopicPartition], new: Iterable[TopicPartition] = ()) -> Text:
    """Partitions as "orders 0 1 +2", those that are new to their owner marked."""
    fresh = set(new)
    text = Text()
    for topic, ids in by_topic(partitions).items():
        text.append(f"{short_topic(topic)} ", style="dim")
        for partition in ids:
            is_new = TopicPartition(topic, partition) in fresh
            text.append(f"+{partition} " if is_new else f"{partition} ", style="bold green" if is_new else "")
    text.rstrip()
    return text


def _alarm(seconds: float) -> str:
    return "red" if seconds >= 1 else "yellow" if seconds >= NOTICEABLE_SECONDS else ""


def short_topic(topic: str) -> str:
    """A topic's name without the mark that makes it the demo's own."""
    return topic.rpartition("-")[0] or topic


def short(partition: TopicPartition) -> str:
    """A partition without its topic's mark, as "orders-3"."""
    return f"{short_topic(partition.topic)}-{partition.partition}"
