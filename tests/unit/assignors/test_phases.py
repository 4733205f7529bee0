"""Each cell of the tables of a member's phases."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from kafka_assignors._assignors._membership.phases import Event, Phase, Sender, Verdict, after, verdict

FOLLOWS = """
            JOIN_SENT  JOIN_ANSWERED SYNC_ANSWERED TAKEN    FAILED   FELL_OUT
OUT         ENTERING   OUT           OUT           OUT      OUT      OUT
ENTERING    ENTERING   SYNCING       ENTERING      ENTERING OUT      OUT
STABLE      JOINING    STABLE        STABLE        STABLE   STABLE   OUT
JOINING     JOINING    SYNCING       JOINING       JOINING  RETRYING OUT
RETRYING    JOINING    RETRYING      RETRYING      RETRYING RETRYING OUT
SYNCING     JOINING    SYNCING       ASSIGNED      SYNCING  RETRYING OUT
ASSIGNED    JOINING    ASSIGNED      ASSIGNED      STABLE   RETRYING OUT
"""

ANSWERS = """
            22/CURRENT 22/OLDER  22/FORMER 25/CURRENT 25/OLDER  25/FORMER 27/CURRENT 27/OLDER  27/FORMER
OUT         VOID       VOID      VOID      VOID       VOID      VOID      VOID       VOID      VOID
ENTERING    VOID       VOID      VOID      VOID       VOID      VOID      VOID       VOID      VOID
STABLE      COUNTS     OVERTAKEN VOID      COUNTS     COUNTS    VOID      COUNTS     OVERTAKEN VOID
JOINING     OVERTAKEN  OVERTAKEN VOID      COUNTS     COUNTS    VOID      OVERTAKEN  OVERTAKEN VOID
RETRYING    VOID       OVERTAKEN VOID      COUNTS     COUNTS    VOID      VOID       OVERTAKEN VOID
SYNCING     OVERTAKEN  OVERTAKEN VOID      COUNTS     COUNTS    VOID      OVERTAKEN  OVERTAKEN VOID
ASSIGNED    COUNTS     OVERTAKEN VOID      COUNTS     COUNTS    VOID      COUNTS     OVERTAKEN VOID
"""


def cells(table: str) -> list[tuple[str, str, str]]:
    head, *rows = table.strip().splitlines()
    return [
        (row.split()[0], column, cell)
        for row in rows
        for column, cell in zip(head.split(), row.split()[1:], strict=True)
    ]


@pytest.mark.parametrize(("phase", "event", "follows"), cells(FOLLOWS))
def test_the_phase_that_follows(phase: str, event: str, follows: str) -> None:
    assert after(Phase[phase], Event[event]) is Phase[follows]


@pytest.mark.parametrize(("phase", "answer", "means"), cells(ANSWERS))
def test_what_an_answer_to_a_commit_or_heartbeat_means(phase: str, answer: str, means: str) -> None:
    code, sender = answer.split("/")
    assert verdict(int(code), Sender[sender], Phase[phase]) is Verdict[means]


def test_the_tables_have_each_cell() -> None:
    assert len(cells(FOLLOWS)) == len(Phase) * len(Event)
    assert len(cells(ANSWERS)) == len(Phase) * len(Sender) * 3


def test_a_fenced_instance_id_counts_as_an_unknown_member() -> None:
    for sender, phase in product(Sender, Phase):
        assert verdict(82, sender, phase) is verdict(25, sender, phase)


@pytest.mark.parametrize("code", [0, 15, 16])
def test_other_answers_count_always(code: int) -> None:
    meant = {verdict(code, sender, phase) for sender, phase in product(Sender, Phase)}
    assert meant == {Verdict.COUNTS}


def test_no_old_answer_ends_a_newer_membership() -> None:
    """A client takes 22 and 25 for the end of its membership, and 27 for a reason to join."""
    of_another_generation = product((22, 27), (Sender.OLDER, Sender.FORMER), Phase)
    as_another_member = product((22, 25, 27), (Sender.FORMER,), Phase)
    for cell in (*of_another_generation, *as_another_member):
        assert verdict(*cell) is not Verdict.COUNTS


def test_a_member_is_in_a_generation_and_commits_wait_for_its_assignment() -> None:
    assert {phase for phase in Phase if not phase.is_member} == {Phase.OUT, Phase.ENTERING}
    assert {phase for phase in Phase if phase.holds_commits} == {Phase.SYNCING}


def test_the_page_on_the_design_has_the_table_of_the_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "design.md").read_text(encoding="utf-8")
    rows = [
        f"| {phase.name} | {phase.value} | "
        + " | ".join(
            following.name if (following := after(phase, event)) is not phase else "" for event in Event
        )
        + " |"
        for phase in Phase
    ]
    assert "\n".join(rows) in page
