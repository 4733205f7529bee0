"""One peer on one case in a process of its own, stopped at a cap of time and of memory."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from benchmarks import wire
from benchmarks.cases import Case, Problem
from benchmarks.check import Verdict, WrongAnswerError, judge
from benchmarks.peers import Order, Peer

ROOT: Final = Path(__file__).parents[1]
_OUT_OF_MEMORY: Final = ("MemoryError", "OutOfMemoryError", "out of memory", "cannot allocate memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of a leader's work; the stages are None for a leader that cannot tell them apart."""

    wall: float
    cpu: float
    decode: float | None = None
    assign: float | None = None
    encode: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What came out for one peer on one case.

    Attributes:
        case: The name of the case.
        key: Its label and event.
        strategy: The strategy.
        peer: The peer's name.
        ours: Whether the peer is this library.
        partitions: N, the partitions of the group.
        subscriptions: How many (member, topic) pairs the group has.
        failure: Why there is no result, if so; all of what follows is then empty.
        capped: The seconds after which it was stopped, if that was why.
        cold: The first run of the process.
        warm: The medians over the later half of the repetitions.
        repetitions: The number of all repetitions.
        memory: MiB by which the first run enlarged the process, or Java's heap, at its peak.
        verdict: The answer that was timed.
        versions: Versions of what was measured.
    """

    case: str
    key: str
    strategy: str
    peer: str
    ours: bool
    partitions: int
    subscriptions: int
    failure: str | None = None
    capped: float | None = None
    cold: Times | None = None
    warm: Times | None = None
    repetitions: int = 0
    memory: float | None = None
    verdict: Verdict | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Times | None:
        """The warm times; the cold ones where there was no time for a repetition."""
        return self.warm or self.cold

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """From plain data."""
        parts = dict(data)
        for name, kind in (("cold", Times), ("warm", Times), ("verdict", Verdict)):
            if parts[name] is not None:
                parts[name] = kind(**parts[name])
        return cls(**parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long, and how much.

    Attributes:
        cap: Seconds that the runs may take; None for each peer's own.
        set_up: Seconds for what a process does besides: it reads a group of a million partitions, say.
        budget: Seconds of repetitions that are enough.
        repetitions: How many there are of cases that take longer.
        memory: MiB that a process may have.
    """

    cap: float | None = None
    set_up: float = 60.0
    budget: float = 2.0
    repetitions: int = 5
    memory: int = 12 * 1024


def describe(peer: Peer, case: Case, problem: Problem, strategy: str) -> dict[str, Any]:
    """What every measurement says, whatever came out."""
    return {
        "case": case.name,
        "key": case.key,
        "strategy": strategy,
        "peer": peer.name,
        "ours": peer.ours,
        "partitions": problem.size,
        "subscriptions": sum(map(len, problem.subscriptions)),
    }


def measure(
    peer: Peer, case: Case, problem: Problem, strategy: str, *, group: Path, limits: Effort
) -> Measurement:
    """Run a peer in a process, and look at its answer before its times count.

    Args:
        peer: The peer, prepared.
        case: The case.
        problem: Its group.
        strategy: One of the peer's strategies.
        group: The file with the group in the peer's dialect.
        limits: How long, and how much.
    """
    about = describe(peer, case, problem, strategy)
    if (reason := peer.too_large(problem, strategy)) is not None:
        return Measurement(**about, failure=reason)
    cap = limits.cap or peer.cap
    with tempfile.TemporaryDirectory(prefix="answer-") as folder:
        order = Order(
            group=group,
            answer=Path(folder) / "answer",
            strategy=strategy,
            until=cap,
            budget=limits.budget,
            repetitions=limits.repetitions,
            memory=limits.memory,
        )
        try:
            told = _run(peer, order, cap + limits.set_up)
            verdict = judge(
                problem, wire.read_answer(order.answer), cooperative=strategy == "cooperative-sticky"
            )
        except subprocess.TimeoutExpired:
            return Measurement(**about, failure=f"> {cap:.0f} s", capped=cap)
        except _FailedError as error:
            return Measurement(**about, failure=str(error))
        except WrongAnswerError as error:
            return Measurement(**about, failure=f"wrong: {error}")
    cold, *warm = [_times(run) for run in told["runs"]]
    if cold.wall > cap:
        return Measurement(**about, failure=f"> {cap:.0f} s", capped=cap)
    return Measurement(
        **about,
        cold=cold,
        warm=_median(warm[len(warm) // 2 :]) if warm else None,
        repetitions=len(warm),
        memory=told["memory"],
        verdict=verdict,
        versions=told["versions"],
    )


class _FailedError(Exception):
    """A peer's process ended without a result."""


def _run(peer: Peer, order: Order, limit: float) -> dict[str, Any]:
    with subprocess.Popen(
        peer.command(order), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            if peer.limit_address_space:
                _limit(process.pid, order.memory)
            out, error = process.communicate(timeout=limit)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        if process.returncode < 0 or any(word in error for word in _OUT_OF_MEMORY):
            raise _FailedError(f"more than {order.memory / 1024:.0f} GiB of memory")
        last = error.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise _FailedError(f"error: {last[0][:200]}")
    told: dict[str, Any] = json.loads(out)
    return told


def _limit(process: int, mebibytes: int) -> None:
    """Set the limit of a process's address space, where the system can do that from outside."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 - not on every system

        limit = mebibytes * 1024 * 1024
        resource.prlimit(process, resource.RLIMIT_AS, (limit, limit))


def _times(run: Sequence[float | None]) -> Times:
    decode, assign, encode, cpu = run
    wall = sum(stage for stage in (decode, assign, encode) if stage is not None)
    assert cpu is not None  # noqa: S101 - drivers always tell it
    if decode is None or encode is None:
        return Times(wall=wall, cpu=cpu)
    return Times(wall=wall, cpu=cpu, decode=decode, assign=assign, encode=encode)


def _median(runs: Sequence[Times]) -> Times:
    def of(name: str) -> float | None:
        values = [getattr(run, name) for run in runs]
        return None if None in values else median(values)

    return Times(
        wall=median(run.wall for run in runs),
        cpu=median(run.cpu for run in runs),
        decode=of("decode"),
        assign=of("assign"),
        encode=of("encode"),
    )
