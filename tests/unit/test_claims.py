"""Each number that the README and the pages claim has a constant, a test or a stored result behind it."""

import re
from typing import NamedTuple

import pytest

from tests.support.pages import ROOT, pages, read
from tests.support.prose import sentences

PERFORMANCE = "docs/performance.md"
LEADER = "benchmarks/results/leader.md"

CHECKED = [
    "README.md",
    "docs/comparison.md",
    "docs/design.md",
    "docs/glossary.md",
    "docs/guarantees.md",
    "docs/limits.md",
    "docs/mixing-clients.md",
    PERFORMANCE,
    "docs/versions.md",
    *(page for page in pages() if page.startswith(("docs/how-to/", "docs/tutorials/"))),
]
"""Pages each of whose numbers is looked at."""

NO_CLAIM = re.compile(
    r"\[\d+\]|KIP-\d+|KAFKA-\d+|[Kk]afka(?:-python)? \d[\d.]*|Python \d[\d.]*|Java \d+|exit status is 0"
    r"|[Ff]rom 1\.0|before 1\.0|joins by version 7|^\d\.( |$)|step \d|3\.0\.12"
    r"|20 numbers as for 200|costs of 0 and 1|k \+ 1|64 bits"
)
"""Names with numbers, and versions; `VERSIONS` has those."""


class Evidence(NamedTuple):
    """What holds a claim: a file, and what stands in it."""

    file: str
    text: str


CLAIMS = {
    "about 20 seconds": Evidence("integration_tests/test_demo.py", "def test_the_demo"),
    "takes 122 ms": Evidence(LEADER, "equal, reassign | sticky | 122 |"),
    "628 ms, of which 122": Evidence(LEADER, "equal, reassign | sticky | 122 | 628 |"),
    "Below about 5,000 partitions or 100 members": Evidence(LEADER, "P2: 20 x 100 partitions, 40 members"),
    "8.09 s when one member was slow to join by 5 s": Evidence(
        "benchmarks/results/pauses.md", "its own cooperative-sticky | 7.01, 8.09, 5.90 |"
    ),
    "a partition that stays waited for 0.09 s": Evidence(
        "benchmarks/results/pauses.md", "kafka-python, our cooperative-sticky | 0.08, 0.07, 0.09 |"
    ),
    "refused 2,630 commits": Evidence("benchmarks/results/pauses.md", "| 0 | 2630 | 1193 |"),
    "groups of 200 members on three brokers": Evidence(
        "benchmarks/results/scale.md", "# A group of 200 members"
    ),
    "leaders for 30 minutes": Evidence("benchmarks/results/soak.md", "# A leader for 30 minutes"),
    "simulated groups of 10,000 members": Evidence(
        "benchmarks/results/simulator.md", "| range | 1,000 | 10,000 |"
    ),
    "500 lives of a group": Evidence("benchmarks/results/steadiness.md", "**500 runs, 0 flakes**"),
    "20 heartbeat intervals": Evidence("tests/unit/coordinator/test_false_claims.py", "BOUND = 20\n"),
    "intervals of 300, 500 and 3000 ms": Evidence(
        "tests/unit/coordinator/test_false_claims.py", '"heartbeat_ms", [300, 500, 3000]'
    ),
    "after 2, 4 and 8 heartbeat intervals": Evidence(
        "tests/unit/assignors/test_hand_over.py", "assert waits == [2.0, 4.0, 8.0]"
    ),
    "one of weight 1; from 1 to 1000": Evidence("kafka_assignors/_model/members.py", "MAX_WEIGHT = 1000\n"),
    "5 s at most": Evidence("kafka_assignors/assignors/_sticky.py", "TIME_LIMIT: Final = 5.0\n"),
    "up to 5 partitions off": Evidence("tests/unit/planners/test_sticky_options.py", "max_skew"),
    "at most 100 partitions move": Evidence("tests/unit/planners/test_sticky_options.py", "max_moves"),
    "m2 works for 400 ms": Evidence("website/drawings.py", "work_ms=400"),
    "no assignment in 10 joins": Evidence(
        "kafka_assignors/assignors/_membership/claims.py", "_UNANSWERED: Final = 10\n"
    ),
    "2,000 members that own 1,000,000 partitions": Evidence(
        LEADER, "reassign | cooperative-sticky | 153 | 6140 *"
    ),
    "after 2 heartbeats, and again after 4 and 8": Evidence(
        "kafka_assignors/assignors/_membership/hand_over.py", "PATIENCE: Final = 3\n"
    ),
    "within 120 s and 25 generations": Evidence("tests/lab/schedules/_run.py", "ROUNDS: Final = 25\n"),
    "then poll for 100 ms without work": Evidence(
        "tests/lab/schedules/_run.py", "poll for 100 ms and do not work"
    ),
    "join again after 100 ms": Evidence(
        "kafka_assignors/assignors/_adapter.py", "METADATA_TRIES: Final = 10\n"
    ),
    "that is 3 numbers": Evidence(LEADER, "2000 members, one odd member, reassign"),
    "5,000 partitions and 500 members then have millions": Evidence(
        "benchmarks/results/worst_structures.md", "5000 topics, 500 racks"
    ),
    "64 arcs at a time": Evidence(
        "kafka_assignors/planners/_exact/_flow.c", "arcs are looked at 64 at a time"
    ),
    "take 0.22 to 0.29 ms": Evidence(
        LEADER, "20 members, equal, reassign | sticky | 0.288 | 0.547 | 37.9 | 37 | 0.472 | 0.0797"
    ),
    "With 5,000 partitions and equal subscriptions": Evidence(LEADER, "equal, reassign | sticky | 0.408"),
    "95 % of the topic": Evidence(
        "benchmarks/results/history_capture.md", "every twentieth, a group's record"
    ),
    "less than 30 partition-seconds, 10 moves": Evidence(
        "kafka_assignors/_groups/saving.py", "WORTH_SECONDS: Final = 30.0\n"
    ),
    "more than 1 GiB is not copied": Evidence(
        "kafka_assignors/_cli/placement.py", "to be said from 1 GiB on"
    ),
    "from that test, on 80 columns": Evidence(
        "integration_tests/test_bad_night.py", "NARROW, WIDE = 80, 200"
    ),
    "after every 1,000 records": Evidence("docs/tutorials/first-test.md", "if billed % 1000 == 0:"),
}
"""Part of a sentence -> its evidence."""

VERSIONS = {
    "| kafka-python | 3.0.12 |": Evidence("pyproject.toml", '"kafka-python>=3.0.12,<4"'),
    "| aiokafka | 0.13, 0.14 |": Evidence(
        "kafka_assignors/aio/_relied_on.py", 'TRIED: Final = ("0.13", "0.14")'
    ),
    "| confluent-kafka | 2.16 and newer |": Evidence("pyproject.toml", '"confluent-kafka>=2.16"'),
    "| brokers | Apache Kafka 4.3.1 |": Evidence(
        "kafka_assignors/testing/_brokers/jars.py", 'KAFKA_VERSION = "4.3.1"'
    ),
    "Apache Kafka 4.3.1; 3.9": Evidence("tests/support/sessions.py", ":3.9.1"),
    "| Python | 3.11 |": Evidence("pyproject.toml", 'requires-python = ">=3.11"'),
    "| Python | 3.12, 3.13 |": Evidence("pyproject.toml", '"Programming Language :: Python :: 3.13"'),
    "glibc 2.17": Evidence(".ci/wheel.sh", "glibc 2.17"),
}
"""What the table of support says -> its evidence."""

CASES = {
    "1,000,000, 2,000, equal subscriptions": "K2",
    "1,000,000, 2,000, one member's differs": "K4",
    "500,000, 10,000, in 50 services": "X1, join",
    "50,000, 5,000, two topics each": "J8",
    "10,000, 1,000, 20 topics of its own each": "D3, join",
    "10,000, 100, equal subscriptions": "P4, reassign",
    "5,000, 50, two topics each": "P7",
    "1,000, 20, equal subscriptions": "P1, reassign",
}
"""A row of the page on performance -> its case in the stored results, and its event if there are several."""


@pytest.mark.parametrize("page", CHECKED)
def test_every_number_of_a_page_has_evidence(page: str) -> None:
    known = {*CLAIMS, *CASES, *(row.strip("| ").split(" | ")[-1] for row in VERSIONS)}
    found = [one for one in sentences(read(page)) if re.search(r"(?<![\w.-])\d", NO_CLAIM.sub("", one))]
    in_tables = {cell for row in (*rows(), *pauses()) for cell in row} | {*SCENARIOS}
    assert [one for one in found if one not in in_tables and not any(claim in one for claim in known)] == []


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_evidence_of_a_claim_is_there(claim: str) -> None:
    evidence = CLAIMS[claim]
    assert evidence.text in (ROOT / evidence.file).read_text(encoding="utf-8")
    assert any(claim in one for page in CHECKED for one in sentences(read(page))), "nothing claims it"


@pytest.mark.parametrize("claim", VERSIONS)
def test_what_is_supported_is_what_is_tried(claim: str) -> None:
    evidence = VERSIONS[claim]
    assert evidence.text in (ROOT / evidence.file).read_text(encoding="utf-8")
    assert claim in read("docs/versions.md")


def rows() -> list[list[str]]:
    """The rows of the table of performance."""
    lines = read(PERFORMANCE).split("| partitions, members | event |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


SCENARIOS = {
    "a member joins": "A member joins",
    "one is slow to join by 5 s": "A member is slow to join",
    "a member leaves": "A member leaves",
    "the coordinator moves": "The coordinator moves",
}
"""The columns of the table of pauses, and the stored run's sections."""


def pauses() -> list[list[str]]:
    lines = read(PERFORMANCE).split("| members | a member joins |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("row", pauses(), ids=lambda row: row[0])
def test_a_row_of_pauses_is_the_worst_of_the_stored_runs(row: list[str]) -> None:
    client = row[0].replace("`CooperativeStickyAssignor`", "our cooperative-sticky")
    client = client.replace("`CooperativeConsumer`", "our CooperativeConsumer")
    for cell, section in zip(row[1:], SCENARIOS.values(), strict=True):
        stored = read("benchmarks/results/pauses.md").split(f"## {section}\n")[1].split("##")[0]
        (line,) = [line for line in stored.splitlines() if line.startswith(f"| {client} |")]
        waits = [float(wait) for wait in line.split("|")[2].split(",")]
        assert float(cell) == max(waits)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_row_of_performance_is_that_of_the_stored_run(row: list[str]) -> None:
    case, _, *shown = row
    stored = read(LEADER)
    name, _, event = CASES[case].partition(", ")
    (line,) = re.findall(rf"^\| {name}: .*{event} \| sticky \| .*$", stored, re.MULTILINE)
    _, _, ours, _, stock, _, java, franz, *_ = [cell.strip() for cell in line.strip("|").split(" | ")]
    for cell, measured in zip(shown, (ours, franz, java, stock), strict=True):
        number = re.match(r"[\d.]+", measured)
        if cell == "not tried":
            assert measured.startswith("not tried")
        elif cell == "> 20,000":
            assert measured == "> 20 s" or measured.startswith("not tried")
        else:
            assert number is not None
            assert float(cell.replace(",", "")) == pytest.approx(float(number[0]), rel=0.05)


def test_every_case_is_in_the_table() -> None:
    assert [row[0] for row in rows()] == [*CASES]


def test_the_readmes_rows_are_those_of_the_full_comparison() -> None:
    scenarios = re.findall(r"^\| ([^|]+) \| .* \[\d+\] .*\|$", read("docs/comparison.md"), re.MULTILINE)
    table = read("README.md").split("| scenario |")[1].split("\n\n")[0].splitlines()[2:]
    assert len(scenarios) == 23
    assert 0 < len(table) < len(scenarios)
