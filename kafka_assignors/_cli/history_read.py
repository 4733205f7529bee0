"""What archives say, from the command line: without Spark if they are small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import to_json
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._store.places import place, read_store_config

if TYPE_CHECKING:
    from pathlib import Path

    from kafka_assignors._cli.arguments import Replayed, Selection, Store


ERRORS: Final = Errors(
    wrong=(ValueError,),  # a wrong archive, properties file, assignor or scenario
    failed=(KafkaAssignorsError, OSError),
)


def store_options(store: Store) -> dict[str, str]:
    """The options of a store."""
    return {} if store.store_config is None else read_store_config(store.store_config)


def opened(store: Store, *, skip_bad: bool = False) -> Archive:
    """The archive that is meant."""
    return Archive(store.archive, store_options(store), skip_bad=skip_bad)


def info(*, store: Store, selection: Selection, skip_bad: bool) -> Answer:
    """What an archive has."""
    from kafka_assignors.history._info import info as count  # noqa: PLC0415 - each command imports its own

    there = opened(store, skip_bad=skip_bad)
    engine = Engine.fitting(store.master, doing="counting")
    found = count(there, **selection._asdict(), engine=engine)
    return Answer(lambda: to_json(found), text.info_lines(str(there.where), found))


def metrics(*, store: Store, out: str | None, selection: Selection, skip_bad: bool) -> Answer:
    """How restless groups were."""
    from kafka_assignors.history._metrics import metrics as measure  # noqa: PLC0415 - as above

    options = store_options(store)
    if out is not None:
        place(out, options)  # a wrong one is refused before the archive is opened
    there = opened(store, skip_bad=skip_bad)
    engine = Engine.fitting(store.master, doing="measuring")
    found = measure(there, out, **selection._asdict(), options=options, engine=engine)
    return Answer(lambda: to_json(found), text.metrics_lines(found))


def tables(*, store: Store, out: str, decoder: str, selection: Selection, skip_bad: bool) -> Answer:
    """Decode an archive into tables."""
    from kafka_assignors.history._tables.job import make_tables  # noqa: PLC0415 - as above

    options = store_options(store)
    place(out, options)  # as above
    there = opened(store, skip_bad=skip_bad)
    engine = Engine.fitting(store.master, doing="decoding")
    counts = make_tables(there, out, **selection._asdict(), decoder=decoder, options=options, engine=engine)
    return Answer(lambda: to_json(counts), text.tables_lines(out, counts))


def what_if(*, store: Store, replayed: Replayed, selection: Selection, skip_bad: bool) -> Answer:
    """What groups' histories would have been with other assignors and settings."""
    from kafka_assignors._cli.history_what_if_text import what_if_lines  # noqa: PLC0415 - as above
    from kafka_assignors.history._what_if import job  # noqa: PLC0415

    there = opened(store, skip_bad=skip_bad)
    rows = job.what_if(
        there,
        assignors=replayed.assignors or job.ASSIGNORS,
        scenarios=replayed.scenarios or job.SCENARIOS,
        **selection._asdict(),
        engine=Engine.fitting(store.master, doing="replaying", replaying=True),
    )
    return Answer(lambda: to_json(rows), what_if_lines(rows))


def report(
    *,
    store: Store,
    page: Path,
    no_what_if: bool,
    replayed: Replayed,
    selection: Selection,
    skip_bad: bool,
) -> Answer:
    """Write the page on groups' histories."""
    from kafka_assignors.history._report import report_archive  # noqa: PLC0415 - as above
    from kafka_assignors.history._what_if import job  # noqa: PLC0415

    done = report_archive(
        opened(store, skip_bad=skip_bad),
        page,
        assignors=() if no_what_if else replayed.assignors or job.ASSIGNORS,
        scenarios=replayed.scenarios or job.SCENARIOS,
        **selection._asdict(),
        engine=Engine.fitting(store.master, doing="reporting", replaying=not no_what_if),
    )
    return Answer(lambda: to_json(done), [f"{done.page}: {done.bytes:,} bytes, to be opened in a browser"])
