"""Each cell of the tables of a member's phases; that of what follows stands in docs/design.md."""

from itertools import product
from pathlib import Path

import pytest

from kafka_assignors._assignors._membership.phases import Event, Phase, Sender, Verdict, after, verdict

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


@pytest.mark.parametrize(("phase", "answer", "means"), cells(ANSWERS))
def test_what_an_answer_to_a_commit_or_heartbeat_means(phase: str, answer: str, means: str) -> None:
    code, sender = answer.split("/")
    assert verdict(int(code), Sender[sender], Phase[phase]) is Verdict[means]


def test_the_table_has_each_cell() -> None:
    assert len(cells(ANSWERS)) == len(Phase) * len(Sender) * 3


def test_a_fenced_instance_id_counts_as_an_unknown_member() -> None:
    for sender, phase in product(Sender, Phase):
        assert verdict(82, sender, phase) is verdict(25, sender, phase)


@pytest.mark.parametrize("code", [0, 15, 16])
def test_other_answers_count_always(code: int) -> None:
    meant = {verdict(code, sender, phase) for sender, phase in product(Sender, Phase)}
    assert meant == {Verdict.COUNTS}


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
