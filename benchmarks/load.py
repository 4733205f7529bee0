"""What plans by load come to in a day of a group, beside plans that count, or that go by lag alone.

    python -m benchmarks.load

Virtual time; the planners are the real ones. All that is random is drawn from seeds. The page has the rules.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks import machine
from kafka_assignors import Group, Member
from kafka_assignors._assignors._uneven import Uneven
from kafka_assignors._common.progress import progress_bar
from kafka_assignors._model.arrays import NOBODY
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._load import HORIZON, Load, least_time, plan_load
from kafka_assignors.planners._range import plan_range
from kafka_assignors.planners._round_robin import plan_round_robin
from tests.support.load_oracle import Solved, random_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors._model.arrays import BoolArray, FloatArray, IntArray

RESULT: Final = Path(__file__).parent / "results" / "load.md"
MEMBERS: Final = 6
PARTITIONS: Final = 60
USED: Final = 0.6
STEP: Final = 30.0
DAY: Final = 86_400.0
BACKLOG: Final = 1800.0
UNEVEN_FOR: Final = 120.0
AT_LEAST: Final = 1.5
COOL_DOWN: Final = 600.0
STAYS: Final = 3600.0
AWAY: Final = (8 * 3600.0, 8 * 3600.0 + 300.0)
DRAINED: Final = 30.0
CALM: Final = 4 * 3600.0
FLAP: Final = 7200.0
NOISE: Final = 0.1
SMOOTHED: Final = 300.0

AWARE, LAG = "load-aware", "by lag (KAFKA-5337)"
STRATEGIES: Final = ("range", "roundrobin", "sticky", LAG, AWARE)
ALL: Final = "all at once"

_PAGE: Final = """\
# Plans by load

`python -m benchmarks.load --seeds {seeds}`: a day of groups in virtual time, {members} members and
{partitions} partitions. Traffic falls with a partition's rank (Zipf: 1 / rank), and is {used:.0%} of what the
members can do together. At the beginning half an hour of it waits. For five minutes one member is away. What
differs:

- *Zipf traffic*: nothing else; *a costly partition*: one takes ten times as long a record as others;
- *a slow member*: one is at a third of the speed; *unequal speeds*: from 0.5 to 2;
- *bursts*: about once an hour a partition has ten times its traffic, for ten minutes;
- *all at once*: all of that, and {busy:.0%} used.

Members work on their partitions in proportion to what waits. A partition that moves is not read for
{step:g} s.
`range`, `roundrobin` and `sticky` (this library's, exact) plan when a member goes or comes. For the other two
the group also rebalances if a member asks, as by `rebalance_when(consumer, uneven_for={uneven_for:g},
at_least={at_least:g}, cool_down={cool_down:g})`.

- *{lag}*: partitions by lag, the most first, each to the member with the least sum.
- *{aware}*: `plan_load`, with what members measured: means of five minutes, each wrong by
  {noise:.0%} (one standard deviation). It knows nothing at first. What it moved stays for an hour.

*drained* is when no member has more than {drained:g} s to do; *bound* is a time in which no plan drains it
all. *lag* is the longest time that a member would need for what waits, after the first four hours. *flaps*
are partitions that went back within two hours to the member they came from, while nobody went or came. Means
of {seeds} seeds; of *drained* and *lag* the worst, too, in brackets.

![lag through a day, all at once](load.svg)
"""

_GAP: Final = """
## How far from the best

Without tolerance, beside CP-SAT, on the {count} of {tried} random groups that have at most 14 partitions
(tests/oracle/test_load.py). The gap is how much longer the slowest member takes than in the best plan.

| | mean | median | 90 % | 99 % | most |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """What a day has; see the page."""

    used: float = USED
    costly: bool = False
    bursts: bool = False
    speeds: tuple[float, ...] = (1.0,) * MEMBERS


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "Zipf traffic": Scenario(),
    "a costly partition": Scenario(costly=True),
    "a slow member": Scenario(speeds=(1 / 3, 1, 1, 1, 1, 1)),
    "unequal speeds": Scenario(speeds=(0.5, 0.5, 1, 1, 1, 2)),
    "bursts": Scenario(bursts=True),
    ALL: Scenario(used=0.7, costly=True, bursts=True, speeds=(1 / 3, 0.5, 1, 1, 1, 2)),
}


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What a day came to: seconds, and `lags` (steps,) of the member that takes longest."""

    drained: float
    bound: float
    lag: float
    moves: int
    flaps: int
    lags: FloatArray


class Traffic:
    """The work that arrives, the same for each strategy."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.speed = rng.permutation(np.array(scenario.speeds))
        work = rng.permutation(1 / np.arange(1, PARTITIONS + 1))
        if scenario.costly:
            work[rng.integers(PARTITIONS)] *= 10
        # A partition can be no more than one member of mean speed does in two thirds of its time.
        work *= scenario.used * self.speed.sum() / work.sum()
        self.base = np.minimum(work, 2 / 3)
        self.rates = np.tile(self.base, (round(DAY / STEP), 1))
        hours = int(DAY // 3600) if scenario.bursts else 0
        for start in rng.uniform(1800, DAY - 600, hours):
            first = int(start // STEP)
            self.rates[first : first + round(600 / STEP), rng.integers(PARTITIONS // 3, PARTITIONS)] *= 10


class Simulated:
    """A day of a group with one strategy."""

    def __init__(self, traffic: Traffic, strategy: str, seed: int) -> None:
        self.traffic, self.strategy = traffic, strategy
        self.rng = np.random.default_rng([seed, 1])
        self.waiting = BACKLOG * traffic.base
        self.measured = np.full(PARTITIONS, traffic.base.mean())
        self.here = np.ones(MEMBERS, dtype=np.bool_)
        self.owner = np.full(PARTITIONS, NOBODY)
        self.moved_at = np.full(PARTITIONS, -np.inf)
        self.came_from = np.full(PARTITIONS, NOBODY)
        self.moves = self.flaps = 0
        self.wrong = self.rng.normal(0.0, NOISE, PARTITIONS + MEMBERS)
        self.uneven = [
            Uneven(uneven_for=UNEVEN_FOR, at_least=AT_LEAST, cool_down=COOL_DOWN) for _ in range(MEMBERS)
        ]

    def run(self) -> Outcome:
        """Live through it."""
        rates, speed = self.traffic.rates, self.traffic.speed
        lags = np.empty(len(rates))
        drained = np.inf
        bound = least_time(self.group(), self.load(0.0))
        for number, arriving in enumerate(rates):
            now = number * STEP
            paused = np.zeros(PARTITIONS, dtype=np.bool_)
            here = np.full(MEMBERS, fill_value=True)
            here[0] = not AWAY[0] <= now < AWAY[1]
            changed = number == 0 or bool((here != self.here).any())
            self.here = here
            if changed or (self.strategy in {AWARE, LAG} and self.asks(now)):
                paused = self.rebalance(now, changed=changed)
            self.waiting += arriving * STEP
            done = self.work_done(paused)
            self.waiting -= done
            # Means of what arrived in the last minutes.
            new = STEP / SMOOTHED
            self.measured += (arriving - self.measured) * new
            drawn = self.rng.normal(0.0, NOISE, self.wrong.size)
            self.wrong += drawn * (2 * new - new**2) ** 0.5 - self.wrong * new
            of_members = np.bincount(self.owner, weights=self.waiting, minlength=MEMBERS) / speed
            lags[number] = of_members.max()
            if lags[number] <= DRAINED and drained == np.inf:
                drained = now + STEP
        calm = lags[round(CALM / STEP) :]
        return Outcome(
            drained=drained,
            bound=bound,
            lag=float(calm.max()),
            moves=self.moves,
            flaps=self.flaps,
            lags=lags,
        )

    def work_done(self, paused: BoolArray) -> FloatArray:
        """(N,) the work that is done in a step."""
        ready = np.where(paused, 0.0, self.waiting)
        wanted = np.bincount(self.owner, weights=ready, minlength=MEMBERS)
        can = np.minimum(self.traffic.speed * STEP / np.maximum(wanted, 1e-12), 1.0)
        done: FloatArray = ready * can[self.owner]
        return done

    def group(self) -> Group:
        """Those who are there, with what they have."""
        members = [
            Member(
                member_id=f"m{number}",
                topics=frozenset("t"),
                claims={"t": np.flatnonzero(self.owner == number).tolist()},
                generation=1,
            )
            for number in np.flatnonzero(self.here).tolist()
        ]
        return Group.of({"t": range(PARTITIONS)}, members)

    def load(self, now: float) -> Load:
        """What members measured; at first, what is."""
        wrong = np.exp(self.wrong) if now else np.ones(self.wrong.size)
        cost = wrong[:PARTITIONS]
        return Load(
            arriving=(self.measured if now else self.traffic.base) * cost,
            waiting=self.waiting * cost,
            speed=(self.traffic.speed * wrong[PARTITIONS:])[self.here],
            stays=self.moved_at > now - STAYS,
        )

    def asks(self, now: float) -> bool:
        """Whether a member has had too much for long enough."""
        waiting, arriving = self.works(now)
        needs = (waiting + UNEVEN_FOR * arriving).tolist()
        here = np.flatnonzero(self.here).tolist()
        reasons = [self.uneven[member].look(now, mine) for member, mine in zip(here, needs, strict=True)]
        return any(reasons)

    def works(self, now: float) -> list[FloatArray]:
        """What waits for the members that are there, and arrives a second, in their own seconds."""
        load = self.load(now)
        columns = load.waiting, load.arriving
        return [np.bincount(self.owner, each, MEMBERS)[self.here] / load.speed for each in columns]

    def rebalance(self, now: float, *, changed: bool) -> BoolArray:
        """Plan, and give away; returns what moved, which nobody reads in this step."""
        group = self.group()
        if self.strategy == "range":
            plan = plan_range(group)
        elif self.strategy == "roundrobin":
            plan = plan_round_robin(group)
        elif self.strategy == "sticky" or (self.strategy == AWARE and not now):
            plan = plan_exact(group)
        elif self.strategy == AWARE:
            plan = plan_load(group, self.load(now), least_gain=0.0 if changed else 0.1 * HORIZON)
        else:
            owner = by_lag(self.waiting, len(group.members))
            return self.give(np.flatnonzero(self.here)[owner], now, changed=changed)
        return self.give(np.flatnonzero(self.here)[plan.owner], now, changed=changed)

    def give(self, owner: IntArray, now: float, *, changed: bool) -> BoolArray:
        """Take the new owners; returns what moved."""
        moved: BoolArray = owner != self.owner
        before = self.owner
        if now:
            self.moves += int(moved.sum())
            back = moved & (owner == self.came_from) & (self.moved_at > now - FLAP)
            self.flaps += 0 if changed else int(back.sum())
            self.came_from = np.where(moved, NOBODY if changed else self.owner, self.came_from)
            if not changed:  # only what moves for load has to stay
                self.moved_at[moved] = now
        self.owner = owner
        waits, arrives = (float(each.mean()) for each in self.works(now))
        for member, one in enumerate(self.uneven):
            changed_its = bool(((owner == member) != (before == member)).any())
            one.rebalanced(now, (waits, arrives), changed=changed_its)
        return moved


def by_lag(lag: FloatArray, members: int) -> IntArray:
    """(N,) whom KAFKA-5337's rule gives each partition: the most lag first, to whom has the least so far."""
    sums, owner = np.zeros(members), np.empty(lag.size, dtype=np.int64)
    for partition in np.argsort(-lag, kind="stable").tolist():
        owner[partition] = sums.argmin()
        sums[owner[partition]] += lag[partition]
    return owner


def measure(seeds: int) -> dict[str, dict[str, list[Outcome]]]:
    """All scenarios with all strategies."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    with progress_bar() as bar:
        task = bar.add_task("days", total=len(SCENARIOS) * len(STRATEGIES) * seeds)
        for name, scenario in SCENARIOS.items():
            found[name] = defaultdict(list)
            for seed in range(seeds):
                traffic = Traffic(scenario, seed)
                for strategy in STRATEGIES:
                    found[name][strategy].append(Simulated(traffic, strategy, seed).run())
                    bar.advance(task)
    return found


def gaps(tried: int) -> list[float]:
    """How far plans are from the best, on so many random groups."""
    found = []
    for _, group, load in random_problems(range(tried)):
        plan = plan_load(group, load, tolerance=0)
        solved = Solved(group, load)
        found.append(solved.time(plan.owner) / solved.best(plan.owner) - 1)
    return found


def _told(values: Sequence[float]) -> str:
    """The mean, and the worst; what takes longer than the day is said so."""
    if max(values) == np.inf:
        return f"not in a day ({sum(value == np.inf for value in values)} of {len(values)})"
    return f"{np.mean(values):,.0f} ({max(values):,.0f})"


def report(found: Mapping[str, Mapping[str, Sequence[Outcome]]], about: Mapping[str, str]) -> str:
    """The days as a page."""
    seeds = len(found[ALL][AWARE])
    lines = [
        _PAGE.format(
            seeds=seeds,
            members=MEMBERS,
            partitions=PARTITIONS,
            used=USED,
            busy=SCENARIOS[ALL].used,
            step=STEP,
            drained=DRAINED,
            uneven_for=UNEVEN_FOR,
            at_least=AT_LEAST,
            cool_down=COOL_DOWN,
            lag=LAG,
            aware=AWARE,
            noise=NOISE,
        )
    ]
    for name, strategies in found.items():
        bound = np.mean([one.bound for one in strategies[AWARE]])
        lines += [
            f"## {name[0].upper()}{name[1:]}",
            "",
            f"Bound: {bound:,.0f} s.",
            "",
            "| strategy | drained, s | lag, s | moves a day | flaps a day |",
            "|---|---|---|---|---|",
        ]
        for strategy, days in strategies.items():
            moves, flaps = (np.mean([getattr(one, each) for one in days]) for each in ("moves", "flaps"))
            drained, lag = ([getattr(one, each) for one in days] for each in ("drained", "lag"))
            lines.append(f"| {strategy} | {_told(drained)} | {_told(lag)} | {moves:,.0f} | {flaps:,.1f} |")
        lines.append("")
    lines += [*machine.lines(about), ""]
    return "\n".join(lines)


def gap_lines(found: Sequence[float], tried: int) -> str:
    """The distribution of the gap."""
    quantiles = np.quantile(found, [0.5, 0.9, 0.99, 1])
    cells = " | ".join(f"{gap:.2%}" for gap in [np.mean(found), *quantiles])
    return _GAP.format(count=len(found), tried=tried) + f"| gap | {cells} |\n"


def plot(strategies: Mapping[str, Sequence[Outcome]], path: Path) -> None:
    """The lag of the first seed."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for strategy, days in strategies.items():
        lags = days[0].lags
        per_minute = lags.reshape(-1, 2).max(axis=1)
        width = 2.0 if strategy == AWARE else 1.0
        axes.plot(np.arange(per_minute.size) / 60, per_minute + 1, label=strategy, linewidth=width)
    axes.set(yscale="log", xlabel="hours", ylabel="seconds of work that wait (+ 1), slowest member")
    axes.set_xlim(0, 24)
    figure.legend(loc="outside upper center", ncols=len(strategies), frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    with mpl.rc_context({"svg.hashsalt": "load"}):
        figure.savefig(path, metadata={"Date": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page and its picture; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="days of each scenario (default: %(default)s)")
    parser.add_argument("--groups", type=int, default=1000, help="random groups beside CP-SAT")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (default: %(default)s)")
    options = parser.parse_args(arguments)
    about = machine.describe()
    found = measure(options.seeds)
    page = report(found, about) + gap_lines(gaps(options.groups), options.groups)
    options.output.write_text(page, encoding="utf-8")
    plot(found[ALL], options.output.with_suffix(".svg"))
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
