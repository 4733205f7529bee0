"""Measurements as a table and as a plot."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks import machine
from benchmarks.measure import Measurement, Times

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

NAME: Final = "leader"
"""The stem of the names of the files that a report consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that was measured in one run.

    Attributes:
        machine: What it was measured on.
        skipped: Peers that could not be run, and why.
        measurements: The results in the order in which they came.
        complete: Whether the run came to its end.
    """

    machine: Mapping[str, str]
    skipped: Mapping[str, str]
    measurements: Sequence[Measurement]
    complete: bool = True

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "machine": dict(self.machine),
            "skipped": dict(self.skipped),
            "complete": self.complete,
            "measurements": [measurement.to_json() for measurement in self.measurements],
        }

    @classmethod
    def read(cls, path: Path) -> "Report":
        """Read what `write` wrote."""
        data = json.loads(path.read_text())
        measurements = [Measurement.from_json(each) for each in data["measurements"]]
        return cls(**{**data, "measurements": measurements})

    def write(self, folder: Path) -> list[Path]:
        """Write the report as JSON, markdown, SVG and PNG, and say where."""
        folder.mkdir(parents=True, exist_ok=True)
        data, text = folder / f"{NAME}.json", folder / f"{NAME}.md"
        data.write_text(json.dumps(self.to_json(), indent=1) + "\n")
        text.write_text(markdown(self))
        pictures = [folder / f"{NAME}.svg", folder / f"{NAME}.png"]
        plot(self.measurements, pictures)
        return [data, text, *pictures]


_HEAD: Final = """# What a leader's work costs

From the bytes of all members' metadata to the bytes of all assignments: decode, assign, encode. Made by
`python -m benchmarks`; one process after another, each answer checked (every partition once, to a subscriber)
before its time counts. *library* is this library from bytes to bytes; *library-in-kafka-python* is what a
`KafkaConsumer` with its assignor does: kafka-python's coordinator (`_perform_assignment`) on the members of a
JoinGroupResponse, and the encoding of what comes out.
"""

_COMPARED: Final = """## Compared

Milliseconds of wall time: the median of the later half of the warm runs, or, with *, the cold run where there
was no time for another. Ratio: ours : the fastest peer; below 1 is faster than all of them.
"""

_IN_DETAIL: Final = """## In detail

Milliseconds, CPU time in brackets; cold is the first run of a process. CPU is that of the process, for Java
that of the calling thread (without compiler and collector). Memory is what the first run added at its peak,
to the heap for Java, to the resident set for the others. Loads, kept and moved partitions are those of the
answer; for cooperative-sticky of the first round, in which partitions that are to move are withheld. Local,
with racks, is the share of partitions that have a replica in the rack of their member, and in brackets their
leader. franz-go (`kgo.BalanceRacks`) and kafka-python know leaders' racks or none; Java and ours know all.
"""

Row = tuple[str, str]
"""A case's key and a strategy: what is compared."""


def rows(measurements: Iterable[Measurement]) -> dict[Row, dict[str, Measurement]]:
    """The measurements of each row by peer."""
    found: dict[Row, dict[str, Measurement]] = {}
    for measurement in measurements:
        row = measurement.key, measurement.strategy
        found.setdefault(row, {})[measurement.peer] = measurement
    return found


def fastest_peer(row: Mapping[str, Measurement], time: Callable[[Times], float]) -> Measurement | None:
    """The fastest of those that are not ours, if any of them has a result."""
    others = [each for each in row.values() if not each.ours and each.best is not None]
    return min(others, key=lambda each: _time(each, time), default=None)


def ratio(row: Mapping[str, Measurement], ours: str, time: Callable[[Times], float]) -> float | None:
    """The time of one of ours, in times of the fastest peer; below 1 is faster than all of them."""
    mine, other = row.get(ours), fastest_peer(row, time)
    if mine is None or mine.best is None or other is None:
        return None
    return _time(mine, time) / _time(other, time)


def _time(measurement: Measurement, time: Callable[[Times], float]) -> float:
    if measurement.best is None:
        raise ValueError(f"{measurement.peer} has no result for {measurement.key}")
    return time(measurement.best)


def _wall(times: Times) -> float:
    return times.wall


def _cpu(times: Times) -> float:
    return times.cpu


def markdown(report: Report) -> str:
    """The report as a page."""
    parts = [
        _HEAD,
        _machine(report),
        f"![Time against size, one line a peer]({NAME}.svg)\n",
        _COMPARED,
        _comparison(report.measurements),
        _IN_DETAIL,
        _details(report.measurements),
    ]
    return "\n".join(parts)


def _machine(report: Report) -> str:
    lines = machine.lines(report.machine)
    versions = {
        f"{package} {number}"
        for measurement in report.measurements
        for package, number in measurement.versions.items()
    }
    lines.append(f"- measured: {', '.join(sorted(versions))}")
    lines += [f"- {peer} was left out: {reason}" for peer, reason in report.skipped.items()]
    if not report.complete:
        lines.append("- the run was interrupted: not all cases are here")
    return "\n".join(lines) + "\n"


def _comparison(measurements: Sequence[Measurement]) -> str:
    peers = _peers(measurements)
    ours = [peer for peer in peers if any(each.ours and each.peer == peer for each in measurements)]
    lines = []
    for (_, strategy), row in rows(measurements).items():
        name = next(iter(row.values())).case
        cells = [_summary(row.get(peer)) for peer in peers]
        for mine in ours:
            cells += [_ratio(ratio(row, mine, _wall)), _ratio(ratio(row, mine, _cpu))]
        lines.append([name, strategy, *cells])
    ratios = [f"{mine} : fastest, {kind}" for mine in ours for kind in ("wall", "CPU")]
    return _table(["case", "strategy", *peers, *ratios], lines)


def _peers(measurements: Sequence[Measurement]) -> list[str]:
    """The peers, ours first, else as they first come."""
    return sorted(
        dict.fromkeys(each.peer for each in measurements),
        key=lambda peer: not any(each.ours for each in measurements if each.peer == peer),
    )


def _summary(measurement: Measurement | None) -> str:
    if measurement is None:
        return ""
    if measurement.best is None:
        return measurement.failure or ""
    return _ms(measurement.best.wall) + ("" if measurement.warm else " *")


def _details(measurements: Sequence[Measurement]) -> str:
    lines = []
    for each in measurements:
        line = [each.key, each.strategy, each.peer]
        if each.cold is None or each.verdict is None:
            lines.append([*line, each.failure or ""])
            continue
        warm = each.warm
        stages = warm or each.cold
        told = " + ".join(_ms(stage) for stage in (stages.decode, stages.assign, stages.encode))
        verdict = each.verdict
        lines.append(
            [
                *line,
                f"{_ms(each.cold.wall)} ({_ms(each.cold.cpu)})",
                f"{_ms(warm.wall)} ({_ms(warm.cpu)})" if warm else "",
                str(each.repetitions),
                "" if stages.decode is None else told,
                "" if each.memory is None else f"{each.memory:.0f}",
                f"{verdict.least}..{verdict.most}",
                str(verdict.kept),
                f"{verdict.moved}" + (f" ({verdict.withheld} withheld)" if verdict.withheld else ""),
                "" if verdict.local is None else f"{verdict.local:.0%} ({verdict.led:.0%})",
            ]
        )
    heads = ["case", "strategy", "peer", "cold (CPU)", "warm (CPU)", "warm runs", "decode + assign + encode"]
    return _table([*heads, "memory, MiB", "loads", "kept", "moved", "local"], lines)


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    whole = [[*line, *[""] * (len(heads) - len(line))] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in (list(heads), ["---"] * len(heads), *whole)) + "\n"


def _ms(seconds: float | None) -> str:
    """Milliseconds with three digits, more if that many stand before the point."""
    if seconds is None:
        return ""
    number = seconds * 1e3
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"  # noqa: PLR2004 - three digits


def _ratio(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}" if number < 10 else f"{number:.0f}"  # noqa: PLR2004


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    title: str
    unit: str
    keys: tuple[str, ...]
    size: Callable[[Measurement], int]


def _of_partitions(measurement: Measurement) -> int:
    return measurement.partitions


def _of_subscriptions(measurement: Measurement) -> int:
    return measurement.subscriptions


_PANELS: Final = (
    _Panel(
        title="Equal subscriptions, first assignment",
        unit="partitions",
        keys=(*(f"P{n}-fresh" for n in range(1, 6)), "K1-fresh"),
        size=_of_partitions,
    ),
    _Panel(
        title="Equal subscriptions, a member came back",
        unit="partitions",
        keys=(*(f"P{n}-reassign" for n in range(1, 6)), "K2-reassign"),
        size=_of_partitions,
    ),
    _Panel(
        title="Two topics each, a member is new",
        unit="partitions",
        keys=("P6-join", "P7-join", "J6-join", "J8-join"),
        size=_of_partitions,
    ),
    _Panel(
        title="Own topics each, a member is new",
        unit="subscriptions (member, topic)",
        keys=("D1-join", "D3-join", "D5-join", "X1-join"),
        size=_of_subscriptions,
    ),
)

# The same in every plot; after Okabe and Ito, for eyes that see few colours. Ours are drawn thicker.
_STYLES: Final = {
    "library": ("#D55E00", "o"),
    "library-in-kafka-python": ("#E69F00", "s"),
    "kafka-python": ("#0072B2", "v"),
    "aiokafka": ("#56B4E9", "^"),
    "java": ("#000000", "D"),
    "franz-go": ("#009E73", "P"),
}


def plot(measurements: Sequence[Measurement], files: Iterable[Path]) -> None:
    """Draw the sticky strategy's time against size, one line a peer; the ending of a file says its kind."""
    import matplotlib as mpl  # noqa: PLC0415 - needed for the plot alone
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(12, 9), layout="constrained")
    for axes, panel in zip(figure.subplots(2, 2).flat, _PANELS, strict=True):
        _draw(axes, panel, [each for each in measurements if each.strategy == "sticky"])
    known: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
    if known:
        place: Final = "outside lower center"
        figure.legend(list(known.values()), list(known), loc=place, ncols=len(known), frameon=False)
    figure.suptitle(
        "A leader's work with the sticky strategy, bytes in to bytes out, warm (hollow: given up)"
    )
    with mpl.rc_context({"svg.hashsalt": NAME}):  # the same file from the same numbers
        for file in files:
            figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)


def _draw(axes: "Axes", panel: _Panel, measurements: Sequence[Measurement]) -> None:
    chosen = [each for each in measurements if each.key in panel.keys]
    for peer in _peers(chosen):
        mine = sorted((each for each in chosen if each.peer == peer), key=panel.size)
        color, marker = _STYLES.get(peer, ("gray", "."))
        done = [(panel.size(each), each.best.wall * 1e3) for each in mine if each.best is not None]
        width = 2.5 if any(each.ours for each in mine) else 1.2
        axes.plot(
            [size for size, _ in done],
            [time for _, time in done],
            color=color,
            marker=marker,
            linewidth=width,
            label=peer,
        )
        given_up = [(panel.size(each), each.capped * 1e3) for each in mine if each.capped is not None]
        axes.plot(
            [size for size, _ in given_up],
            [time for _, time in given_up],
            color=color,
            marker=marker,
            markerfacecolor="none",
            linestyle="none",
        )
    axes.set(title=panel.title, xlabel=panel.unit, ylabel="milliseconds", xscale="log", yscale="log")
    axes.grid(visible=True, which="major", alpha=0.3)
