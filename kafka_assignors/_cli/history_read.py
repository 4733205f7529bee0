"""What archives say, from the command line: without Spark if they are small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_assignors import history  # imports what is asked of it
from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import to_json
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


def opened(store: Store, *, skip_bad: bool = False) -> history.Archive:
    """The archive that is meant."""
    return history.Archive(store.archive, store_options(store), skip_bad=skip_bad)


def _on(store: Store, selection: Selection, doing: str, *, replaying: bool = False) -> dict[str, Any]:
    """Which records are meant, and what does the work."""
    engine = history.Engine.fitting(store.master, doing=doing, replaying=replaying)
    return {**selection._asdict(), "engine": engine}


def _given(replayed: Replayed) -> dict[str, Any]:
    return {name: names for name, names in replayed._asdict().items() if names}


def info(*, store: Store, selection: Selection, skip_bad: bool) -> Answer:
    """What an archive has."""
    there = opened(store, skip_bad=skip_bad)
    found = history.info(there, **_on(store, selection, "counting"))
    return Answer(lambda: to_json(found), text.info_lines(str(there.where), found))


def metrics(*, store: Store, out: str | None, selection: Selection, skip_bad: bool) -> Answer:
    """How restless groups were."""
    options = store_options(store)
    if out is not None:
        place(out, options)  # a wrong one is refused before the archive is opened
    there = opened(store, skip_bad=skip_bad)
    found = history.metrics(there, out, options=options, **_on(store, selection, "measuring"))
    return Answer(lambda: to_json(found), text.metrics_lines(found))


def tables(*, store: Store, out: str, decoder: str, selection: Selection, skip_bad: bool) -> Answer:
    """Decode an archive into tables."""
    options = store_options(store)
    place(out, options)  # as above
    there = opened(store, skip_bad=skip_bad)
    on = _on(store, selection, "decoding")
    counts = history.make_tables(there, out, decoder=decoder, options=options, **on)
    return Answer(lambda: to_json(counts), text.tables_lines(out, counts))


def what_if(*, store: Store, replayed: Replayed, selection: Selection, skip_bad: bool) -> Answer:
    """What groups' histories would have been with other assignors and settings."""
    there = opened(store, skip_bad=skip_bad)
    rows = history.what_if(there, **_given(replayed), **_on(store, selection, "replaying", replaying=True))
    return Answer(lambda: to_json(rows), text.what_if_lines(rows))


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
    there = opened(store, skip_bad=skip_bad)
    wanted = {"assignors": ()} if no_what_if else _given(replayed)
    on = _on(store, selection, "reporting", replaying=not no_what_if)
    done = history.report_archive(there, page, **wanted, **on)
    return Answer(lambda: to_json(done), [f"{done.page}: {done.bytes:,} bytes, to be opened in a browser"])
