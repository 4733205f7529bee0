"""A bad night on three brokers, told in order.

Whoever is on call asks commands, and each answer is compared with what was done to the cluster. With
`--screens FOLDER` the answers are kept as pictures, as they are on terminals of 80 and of 200 columns.
"""

import json
import os
import re
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer

from integration_tests.support.clusters import own_cluster, write_properties
from integration_tests.support.commands import (
    begin_command,
    command_line,
    read_command,
    run_command,
)
from integration_tests.support.records import commit, produce
from integration_tests.support.screens import Screen, picture, run_on_terminal
from integration_tests.support.waiting import wait_for
from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.groups import describe_classic, describe_consumer
from kafka_assignors.placement import Placements
from kafka_assignors.placement._cluster.throttle import read_throttles
from kafka_assignors.placement._cluster.topics import create_topic, read_brokers
from kafka_assignors.testing import Cluster, ConsumerGroup
from kafka_assignors.testing._groups.stability import StableGroup

pytestmark = pytest.mark.slow

PAGE: Final = Path(__file__).parents[1] / "docs" / "how-to" / "a-bad-night.md"
PATIENCE: Final = 90.0  # seconds
SOON: Final = 5.0
"""Seconds within which who is on call is to know that a cluster cannot be asked."""

NARROW, WIDE = 80, 200
BATCH: Final = 900_000
BATCHES: Final = 40
"""However low the throttle, a broker lets a batch pass about every 11 s, its quota's window."""
BILLING: Final = {"session_timeout_ms": 120_000, "max_poll_interval_ms": 150_000}
EPOCHS: Final = {"group.consumer.session.timeout.ms": 20_000}
"""As long as a loaded machine needs; nobody else is to be lost."""

PATIENT: Final = {"session_timeout_ms": 45_000}
FAR_BEHIND: Final = 1000
"""Records that `reports` has not read."""


LEFT_OUT: Final = re.compile(r"\Aleft out: .*\n(?:  .*\n)*")


class Night:
    """A cluster that wants a user and a password, and who is on call."""

    def __init__(self, cluster: Cluster, folder: Path, screens: Path | None) -> None:
        self.cluster = cluster
        self.folder = folder
        self.lead = cluster.coordinator_of("billing", timeout=PATIENCE)
        self.other, self.dead = sorted({1, 2, 3} - {self.lead})
        self.begun = time.time() * 1000
        self.asked: set[str] = set()
        self._screens = screens
        self.config = write_properties(cluster, folder / "ops.properties", cluster.security.password)

    def ask(self, *arguments: str, status: int = 0, screen: str = "", once: bool = False, **how: Any) -> str:
        """What a command says on a terminal of 80 columns; the only time if it must be run once.

        That the dead broker is left out comes before it.
        """
        found = self._on_terminal(NARROW, arguments, **how)
        assert found.status == status, found.text
        self.asked.add(self._prompt(arguments))
        if screen:
            self.keep(screen, *arguments, narrow=found, once=once, **how)
        return LEFT_OUT.sub("", found.text)

    def keep(
        self,
        screen: str,
        *arguments: str,
        narrow: Screen | None = None,
        once: bool = False,
        **how: Any,
    ) -> None:
        """Keep what a command shows as pictures, if that is wished; on 80 columns it may have been seen."""
        if self._screens is None:
            return
        for columns, seen in ((NARROW, narrow), *([] if once else [(WIDE, None)])):
            shown = seen or self._on_terminal(columns, arguments, **how)
            path = self._screens / f"{screen}-{columns}.svg"
            path.write_text(picture(f"kafka-assignors {self._prompt(arguments)}", shown), encoding="utf-8")

    def _prompt(self, arguments: Sequence[str]) -> str:
        """What is typed for it, in the night's folder."""
        return shlex.join(arguments).replace(f"{self.folder}/", "")

    def _on_terminal(
        self,
        columns: int,
        arguments: Sequence[str],
        *,
        config: Path | None = None,
        servers: Sequence[str] = (),
        live: bool = True,
    ) -> Screen:
        more = ("--command-config", str(config or self.config)) if live else ()
        command = command_line(self.cluster if live else None, *arguments, *more, servers=servers)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        return run_on_terminal(command, columns=columns, environment=environment, timeout=PATIENCE)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command elsewhere than on a terminal."""
        return run_command(self.cluster, *arguments, "--command-config", str(self.config))

    def read(self, *arguments: str, status: int = 0) -> Any:
        """What it answers with --json."""
        done = self.run(*arguments, "--json")
        assert done.returncode == status, done.stdout + done.stderr
        return json.loads(done.stdout)


def placed(night: Night) -> dict[str, dict[int, list[int]]]:
    """Where the topics' replicas are, the preferred leaders first."""
    lead, other, dead = night.lead, night.other, night.dead
    return {
        "orders": {0: [lead, other], 1: [other, dead], 2: [dead, lead], 3: [lead, dead]},
        "invoices": {0: [lead, other]},
        "letters": {0: [lead, other], 1: [other, lead]},
        "pages": {number: [lead, other] for number in range(4)},
        "payments": {0: [other, dead], 1: [lead, other]},
    }


@pytest.fixture
def night(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Night]:
    """Three brokers, with topics that the test knows every replica of."""
    wanted = pytestconfig.getoption("--screens")
    screens = None if wanted is None else Path(wanted)
    if screens is not None:
        screens.mkdir(parents=True, exist_ok=True)
    with own_cluster(pytestconfig, 3, security="sasl", settings=EPOCHS) as cluster:
        night = Night(cluster, tmp_path, screens)
        with Admin([cluster.broker(night.lead).bootstrap]) as admin:
            for topic, placement in placed(night).items():
                strict = {"min.insync.replicas": "2"} if topic == "payments" else {}
                create_topic(admin, topic, placement, strict)
        yield night


@pytest.fixture
def admin(night: Night) -> Iterator[Admin]:
    settings = night.cluster.access.kafka_python()
    servers = settings.pop("bootstrap_servers")
    with Admin(servers, settings) as admin:
        yield admin


def test_each_question_of_a_bad_night_is_answered_with_what_happened(night: Night, admin: Admin) -> None:
    cluster = night.cluster
    with ExitStack() as stack:

        def group(topic: str, group_id: str, members: int, **how: Any) -> ConsumerGroup:
            made = ConsumerGroup(cluster, topic, group_id=group_id, timeout=240, **how)
            stack.enter_context(made)
            for number in range(1, members + 1):
                made.join(f"{group_id}-{number}")
            made.wait_stable()
            return made

        produce(cluster, "invoices", {0: BATCHES}, os.urandom(BATCH))
        produce(cluster, "orders", {0: FAR_BEHIND})
        commit(cluster, "reports", "orders", FAR_BEHIND)
        billing = group("orders", "billing", 3, assignors=[RangeAssignor], settings=BILLING)
        mail = group("letters", "mail", 1, client="confluent-kafka", assignors=["range"], settings=PATIENT)
        by_epochs = {"group_protocol": "consumer"}
        search = group("pages", "search", 2, client="confluent-kafka", settings=by_epochs)

        a_quiet_evening(night)
        moving = a_reassignment_begins(night)
        killed = cluster.broker(night.dead).kill()
        with killed:
            wait_for("a fenced broker", lambda: night.dead in read_brokers(admin).down, PATIENCE)
            a_broker_is_missing(night)
            the_reassignment_stalls(night, moving)
            a_member_is_stuck(night, admin, billing)
            a_member_comes_and_goes(night, admin, mail)
            a_group_of_kip_848_loses_a_member(night, admin, search)
            lag_grows(night)
            the_cluster_cannot_be_asked(night)
        # Not for all replicas to be in sync: at the throttle that is left this one takes minutes.
        wait_for("the broker", lambda: not read_brokers(admin).down, PATIENCE)
        the_broker_is_back(night, admin)
        the_night_is_looked_back_on(night, billing)
        the_page_asks_no_other(night)


def a_quiet_evening(night: Night) -> None:
    text = night.ask("group", "list", "--check", screen="list-quiet")
    assert text.splitlines()[0] == "4 groups, 0 with errors, 0 with warnings; lag: 0 records"
    found = {one["group"]: one for one in night.read("group", "list")}
    assert {name: (one["type"], one["state"], one["members"]) for name, one in found.items()} == {
        "billing": ("classic", "Stable", 3),
        "mail": ("classic", "Stable", 1),
        "reports": ("classic", "Empty", 0),
        "search": ("consumer", "Stable", 2),
    }
    described = night.ask("placement", "describe", "--check", screen="describe-quiet")
    assert "under-replicated                 0" in described
    health = night.read("placement", "describe")["health"]
    assert health["brokers"] == {"1": "up", "2": "up", "3": "up"}
    assert set(health["counts"].values()) == {0}


def a_reassignment_begins(night: Night) -> subprocess.Popen[str]:
    """The one replica of `invoices` is to go to the broker that will die."""
    wanted = night.folder / "plan.json"
    wanted.write_text(Placements({"invoices": {0: [night.lead, night.dead]}}).text, encoding="utf-8")
    moving = begin_command(
        night.cluster,
        *("placement", "reassign", "--file", str(wanted), "--throttle", "1KiB", "--execute"),
        *("--stalled-after", "5", "--command-config", str(night.config)),
    )
    assert moving.stderr is not None
    assert moving.stderr.readline() == "0 of 1 partitions done, 1 under way\n"
    text = night.ask("placement", "verify", "invoices", status=1, screen="move-under-way")
    assert text.startswith("1 partition under way, 1 new replica not in sync, ")
    assert f"broker {night.dead} is " in text
    assert "throttled to 1.0 KiB/s" in text
    return moving


def a_broker_is_missing(night: Night) -> None:
    text = night.ask("placement", "describe", "--check", status=1, screen="describe-fenced")
    why = "it has died, has been stopped, or is still starting"
    assert f"broker {night.dead} is not up: {why}\n" in text
    health = night.read("placement", "describe")["health"]
    assert health["brokers"] == {str(one): "fenced" if one == night.dead else "up" for one in (1, 2, 3)}
    without = [
        [topic, partition]
        for topic, placement in sorted(placed(night).items())
        for partition, replicas in placement.items()
        if night.dead in replicas
    ]
    kinds = ("offline", "under_min_isr", "led_by_others", "reassigned")
    assert {kind: sorted(health[kind]) for kind in kinds} == {
        "offline": [],
        "under_min_isr": [["payments", 0]],
        "led_by_others": [["orders", 2]],
        "reassigned": [["invoices", 0]],
    }
    assert [one for one in sorted(health["under_replicated"]) if one[0] != "__consumer_offsets"] == without


def the_reassignment_stalls(night: Night, moving: subprocess.Popen[str]) -> None:
    why = f"broker {night.dead} is fenced: invoices-0 cannot continue"
    way_out = "start it, or break off with `placement cancel`"
    assert moving.stderr is not None
    # The connection of who began it breaks: when it has said why the move waits, or has long not said it.
    breaks = threading.Timer(PATIENCE, moving.kill)
    breaks.start()
    said = [moving.stderr.readline()]
    while said[-1] and why not in said[-1]:
        said.append(moving.stderr.readline())
    said.append(moving.stderr.readline())
    breaks.cancel()
    assert said[-2:] == [f"  {why}\n", f"    {way_out}\n"], said
    moving.kill()
    moving.communicate(timeout=PATIENCE)
    found = night.read("placement", "verify", "invoices", status=1)
    assert found["under_way"] == [["invoices", 0]]
    assert found["waits_for"] == [{"why": why, "way_out": way_out}]
    assert f"  {why}\n    {way_out}\n" in night.ask(
        "placement", "verify", "invoices", status=1, screen="move-stalled"
    )


def a_member_is_stuck(night: Night, admin: Admin, billing: ConsumerGroup) -> None:
    before = billing.wait_stable()
    stuck = billing.members["billing-2"]
    stuck.freeze()
    billing.join("billing-4")

    def rebalancing() -> bool:
        found: Any = describe_classic(admin, ["billing"])["billing"]
        return bool(found.state == "PreparingRebalance")

    wait_for("a rebalance", rebalancing, PATIENCE)
    text = night.ask(
        *("group", "explain", "billing", "--check", "--observe", "1"), status=1, screen="explain-stuck"
    )
    stuck.thaw()
    after = billing.wait_stable()
    assert text.startswith(f"billing: PreparingRebalance, generation {before.generation}\n")
    assert "\n  have joined: billing-4\n" in text
    assert re.search(r"\n  waited for until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", text)
    settled = night.read("group", "explain", "billing")
    assert (settled["state"], settled["generation"]) == ("Stable", after.generation)
    expect_assigned(settled, after)


def expect_assigned(found: Mapping[str, Any], stable: StableGroup) -> None:
    assert {one["client_id"]: one["assignment"] for one in found["members"]} == {
        name: sorted([one.topic, one.partition] for one in owned)
        for name, owned in stable.assignments.items()
    }


def a_member_comes_and_goes(night: Night, admin: Admin, mail: ConsumerGroup) -> None:
    """Three times: a process that crashes at its first message, say, and is started again."""
    settings = {
        **night.cluster.access.librdkafka(),
        "group.id": "mail",
        "client.id": "mail-2",
        "partition.assignment.strategy": "range",
    }

    def members() -> int:
        found: Any = describe_classic(admin, ["mail"])["mail"]
        return len(found.value.members) if found.state == "Stable" else 0

    for _ in range(3):
        consumer: Any = Consumer(settings)
        consumer.subscribe(["letters"])

        def polled(consumer: Any = consumer) -> bool:
            consumer.poll(0.05)
            return len(consumer.assignment()) == 1 and members() == 2

        wait_for("mail-2", polled, PATIENCE)
        consumer.close()
        wait_for("mail-2 to be gone", lambda: members() == 1, PATIENCE)
    stable = mail.wait_stable()
    found = night.read("group", "explain", "mail")
    assert (found["state"], found["generation"]) == ("Stable", stable.generation)
    expect_assigned(found, stable)
    (last,) = found["rebalances"][-1]["changes"]
    assert last["text"].startswith("mail-2/127.0.0.1 left")
    text = night.ask("group", "explain", "mail", screen="explain-left")
    assert f"\n  {last['text']}\n" in text


def a_group_of_kip_848_loses_a_member(night: Night, admin: Admin, search: ConsumerGroup) -> None:
    before = search.wait_stable()
    search.members["search-2"].crash()
    alone = search.wait_stable(expect={"search-1": 4})
    found = night.read("group", "explain", "search", "--check")
    assert (found["type"], found["state"], found["epoch"]) == ("consumer", "Stable", alone.generation)
    assert found["epoch"] > before.generation
    assert [(one["name"], one["epoch"]) for one in found["members"]] == [("search-1", alone.generation)]
    busy = search.members["search-1"]
    with busy.pause_polling():
        search.join("search-3")

        def held_up() -> bool:
            group: Any = describe_consumer(admin, ["search"])["search"]
            return bool(group.state == "Reconciling" and len(group.members) == 2)

        wait_for("a group that is held up", held_up, PATIENCE)
        asked = ("group", "explain", "search", "--check", "--observe", "1")
        text = night.ask(*asked, status=1, screen="explain-held-up")
    assert "2 partitions are to move:\n" in text
    assert "search-1 has partitions that others are to have" in " ".join(text.split())
    assert {len(owned) for owned in search.wait_stable().assignments.values()} == {2}


def lag_grows(night: Night) -> None:
    commit(night.cluster, "reports", "orders", 1)
    limit = ("--max-lag", "500")
    text = night.ask("group", "list", "--check", *limit, status=1, screen="list-lag")
    assert text.splitlines()[0] == "4 groups, 1 with errors, 0 with warnings; lag: 999 records"
    assert text.splitlines()[3].split()[0] == "reports"


def the_cluster_cannot_be_asked(night: Night) -> None:
    # Beside what a command takes that is answered, most of which is its start.
    began = time.monotonic()
    assert night.run("group", "list").returncode == 0
    soon = SOON + time.monotonic() - began

    def refused(name: str, **how: Any) -> str:
        began = time.monotonic()
        text = night.ask("group", "list", status=1, **how)
        assert time.monotonic() - began < soon
        night.keep(name, "group", "list", **how)
        return " ".join(text.split())

    guessed = write_properties(night.cluster, night.folder / "guessed.properties", "guessed")
    user = night.cluster.security.username
    assert f"it refuses the user '{user}' or the password" in refused("wrong-password", config=guessed)
    plain = night.cluster.broker(night.lead).bootstrap
    assert "it wants no user: use security.protocol=PLAINTEXT" in refused("wrong-port", servers=[plain])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
        assert f"no broker answers at {nobody}" in refused("no-broker", servers=[nobody])


def the_broker_is_back(night: Night, admin: Admin) -> None:
    moves = ("placement", "reassign", "--file", str(night.folder / "plan.json"), "--throttle", "20MiB")
    text = night.ask(*moves, "--execute", screen="move-done", once=True)
    assert text.startswith(f"invoices-0: to {night.dead} in place of {night.other}, ")
    assert text.endswith("\npartitions reassigned: 1\n")
    verified = night.ask("placement", "verify", "invoices", screen="move-verified")
    assert verified == "nothing is under way\n"
    wait_for(
        "no throttles",
        lambda: not any(read_throttles(admin, [1, 2, 3], ["invoices"]).rates.values()),
        PATIENCE,
    )
    night.cluster.wait_complete()
    described = night.read("placement", "describe", "invoices")
    assert described["health"]["brokers"] == {"1": "up", "2": "up", "3": "up"}
    assert described["placements"]["invoices"] == {"0": [night.lead, night.dead]}
    assert described["health"]["counts"]["under_replicated"] == 0


def the_night_is_looked_back_on(night: Night, billing: ConsumerGroup) -> None:
    archive, page = str(night.folder / "archive"), str(night.folder / "night.html")
    assert night.read("history", "capture", archive)["read"] > 0
    night.asked.add("history capture archive")
    rows = {one["group"]: one for one in read_command(None, "history", "metrics", archive, status=0)}
    text = night.ask("history", "metrics", archive, live=False, screen="history-metrics")
    night.ask("history", "report", archive, page, "--no-what-if", live=False)
    written = Path(page).read_text(encoding="utf-8")
    assert [name for name in ("billing", "mail", "search") if name not in written] == []
    assert "mail: mail-2 came and went three times within an hour\n" in text
    assert {name: (row["members"], row["seen_members"], row["flapping"]) for name, row in rows.items()} == {
        "billing": (4, 4, []),
        "mail": (1, 4, ["mail-2"]),
        "search": (2, 3, []),
    }
    reasons = {name: dict(row["reasons"]) for name, row in rows.items()}
    assert reasons["billing"] == {"member joined": rows["billing"]["rebalances"]}
    assert reasons["mail"] == {"member joined": 4, "member left": 3, "member restarted": 4}
    assert rows["mail"]["rebalances"] == 7
    # The coordinator also writes a generation that no member takes: another one joined before its answer.
    taken = billing.timeline.rebalances
    assert len(taken) <= rows["billing"]["rebalances"] <= taken[-1].generation


def the_page_asks_no_other(night: Night) -> None:
    shown = re.findall(r"^\$ kafka-assignors (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) > 1
    plain = {re.sub(r" --bootstrap-server \S+", "", command) for command in shown}
    assert plain - night.asked == set()
