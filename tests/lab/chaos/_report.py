"""What chaos did to groups, and what they made of it, as a page."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from kafka_assignors.testing._groups.specs import SETTINGS as GROUP_SETTINGS
from tests.lab.chaos._model import Limits
from tests.lab.chaos._run import MIXED, SETTINGS, Outcome, bound
from tests.lab.chaos._script import SLOWEST_MS

_HEAD = """\
# Chaos

**{events} events in {scripts} scripts, {failures} failures.** Seeds {first} to {last}.

`{command}`

[What is done to groups, and what has to hold](../../CONTRIBUTING.md#the-laboratory). Three brokers, two
topics with three replicas, {fewest} to {most} members, records produced all the time. Members are consumers
of {client}. The group was to be stable within {bound:.0f} s, with slow members {slow_bound:.0f} s. Eager
strategies are excused for a static member that hangs: the coordinator keeps it, and does not wait for it. Of
balance and moves nothing is promised in a group of several clients, where any of them may lead.

Session timeout {session} s (of slow members as much longer as they work), longest interval of polls {poll} s:
what crashes and hangs take.

"""


def page(
    outcomes: Sequence[Outcome], command: str, machine: Mapping[str, str], *, client: str = "kafka-python"
) -> str:
    failed = [outcome for outcome in outcomes if outcome.failure]
    settings = {**GROUP_SETTINGS, **SETTINGS}
    events = sum((outcome.events for outcome in outcomes), Counter[str]())
    head = _HEAD.format(
        events=events.total(),
        scripts=len(outcomes),
        failures=len(failed),
        first=min(outcome.seed for outcome in outcomes),
        last=max(outcome.seed for outcome in outcomes),
        command=command,
        client=", ".join(dict.fromkeys(MIXED)) if client == "mixed" else client,
        bound=bound(settings),
        slow_bound=bound(settings, SLOWEST_MS),
        fewest=Limits().fewest,
        most=Limits().most,
        session=settings["session_timeout_ms"] / 1000,
        poll=settings["max_poll_interval_ms"] / 1000,
    )
    said = ", ".join(f"{kind} {count}" for kind, count in sorted(events.items()))
    lines = [*_by_assignor(outcomes), "", f"Events: {said}", ""]
    lines += [f"- {name}: {value}" for name, value in machine.items()]
    for outcome in failed:
        lines += ["", f"## Seed {outcome.seed}, {outcome.assignor}", "", "```", outcome.failure, "```"]
    return head + "\n".join(lines) + "\n"


def _by_assignor(outcomes: Sequence[Outcome]) -> list[str]:
    by_name: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_name[outcome.assignor].append(outcome)
    lines = [
        "| assignor | events | rebalances | produced | consumed | again | two at once | minutes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, mine in by_name.items():
        cells = [
            name,
            sum(one.events.total() for one in mine),
            sum(one.rebalances for one in mine),
            sum(one.produced for one in mine),
            sum(one.consumed for one in mine),
            sum(one.duplicates for one in mine),
            "all" if name == "broadcast" else sum(one.overlaps for one in mine),
            f"{sum(one.seconds for one in mine) / 60:.0f}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "*again*: deliveries on top of each record's first. *two at once*: how often a member still had a",
        "partition by its application's word, and had been expelled.",
    ]
    return lines
