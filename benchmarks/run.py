"""All cases with all peers, one process after another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine, wire
from benchmarks.cases import Case, Problem, Shape, make
from benchmarks.measure import Effort, Measurement, describe, measure
from benchmarks.peers import Peer, PeerUnavailableError
from benchmarks.report import Report


def run(
    cases: Sequence[Case], peers: Sequence[Peer], limits: Effort, scratch: Path, console: Console
) -> Report:
    """Measure every peer on every case.

    Args:
        cases: The cases, best by size.
        peers: The peers.
        limits: How long, and how much.
        scratch: A folder for programs and groups.
        console: Where to show how it goes.
    """
    about = machine.describe()
    ready, skipped = _prepare(peers, scratch, console)
    measurements: list[Measurement] = []
    complete = False
    total = sum(len(_pairs(case, ready)) for case in cases)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        try:
            for result in _results(
                cases, ready, limits, scratch, lambda what: progress.update(task, description=what)
            ):
                measurements.append(result)
                progress.console.print(_line(result), highlight=False, soft_wrap=True)
                progress.advance(task)
            complete = True
        except KeyboardInterrupt:
            progress.console.print("interrupted; the report has what there is")
    return Report(machine=about, skipped=skipped, measurements=measurements, complete=complete)


def _prepare(peers: Sequence[Peer], scratch: Path, console: Console) -> tuple[list[Peer], dict[str, str]]:
    """The peers that can be run, and why the others cannot."""
    ready, skipped = [], {}
    for number, peer in enumerate(peers):
        folder = scratch / f"peer-{number}"
        folder.mkdir()
        try:
            peer.prepare(folder)
        except PeerUnavailableError as error:
            skipped[peer.name] = str(error)
            console.print(f"leaving out {peer.name}: {error}", soft_wrap=True)
        else:
            ready.append(peer)
    return ready, skipped


def _pairs(case: Case, peers: Sequence[Peer]) -> list[tuple[str, Peer]]:
    """The strategies of a case, each with the peers that have it."""
    return [(strategy, peer) for strategy in case.strategies for peer in peers if strategy in peer.strategies]


def _results(
    cases: Sequence[Case],
    peers: Sequence[Peer],
    limits: Effort,
    scratch: Path,
    tell: Callable[[str], None],
) -> Iterator[Measurement]:
    """Measure one after another; a peer that was stopped in a case is spared others of its shape as large."""
    stopped: dict[tuple[str, str, Shape], tuple[int, str]] = {}
    for case in cases:
        tell(f"{case.key}: making it")
        problem = make(case)
        with _group_files(case, problem, scratch) as group_file:
            for strategy, peer in _pairs(case, peers):
                tell(f"{case.key} {strategy}: {peer.name}")
                family = peer.name, strategy, case.shape
                pairs, smaller = stopped.get(family, (problem.pairs + 1, ""))
                if problem.pairs >= pairs:
                    about = describe(peer, case, problem, strategy)
                    yield Measurement(**about, failure=f"not tried: {smaller} took too long")
                    continue
                group = group_file(wire.dialect_of(strategy, peer.name))
                result = measure(peer, case, problem, strategy, group=group, limits=limits)
                if result.capped is not None:
                    stopped[family] = problem.pairs, case.key
                yield result


@contextmanager
def _group_files(case: Case, problem: Problem, scratch: Path) -> Iterator[Callable[[wire.Dialect], Path]]:
    """Gives the file of a group in a dialect, written when first asked for, removed in the end."""
    written: dict[wire.Dialect, Path] = {}

    def group_file(dialect: wire.Dialect) -> Path:
        if dialect not in written:
            written[dialect] = scratch / f"{case.key}.{dialect}"
            wire.write_group(problem, dialect, written[dialect])
        return written[dialect]

    try:
        yield group_file
    finally:
        for path in written.values():
            path.unlink()


def _line(result: Measurement) -> str:
    what = f"{result.key:14} {result.strategy:18} {result.peer:24}"
    if result.best is None or result.cold is None or result.verdict is None:
        return f"{what} {result.failure}"
    verdict = result.verdict
    return (
        f"{what} {result.best.wall * 1e3:10.3f} ms (cold {result.cold.wall * 1e3:.3f}), "
        f"loads {verdict.least}..{verdict.most}, kept {verdict.kept}, moved {verdict.moved}"
    )
