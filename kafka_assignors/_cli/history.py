"""What writes archives, from the command line; what takes long to import comes last."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaError

from kafka_assignors._cli import history_text as text
from kafka_assignors._cli.client import client_settings, open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.output import Answer
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import to_json

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from pathlib import Path

    from kafka_assignors._cli.arguments import ClusterClient, Store
    from kafka_assignors.history._archive import Archive

ERRORS: Final = Errors(
    wrong=(ValueError,),  # a wrong archive, dump or properties file
    failed=(KafkaAssignorsError, KafkaError, OSError),
)


def _spark(store: Store, doing: str | None = None) -> AbstractContextManager[Any]:
    from kafka_assignors.history._spark import running_spark  # noqa: PLC0415 - see the module

    return running_spark(store.master, doing)


def _created(store: Store) -> Archive:
    """The archive that is meant; a new one if there is none."""
    from kafka_assignors._cli.history_read import store_options  # noqa: PLC0415 - see the module
    from kafka_assignors.history._archive import Archive  # noqa: PLC0415

    return Archive.create(store.archive, store_options(store))


def capture(
    *, client: ClusterClient, store: Store, continuous: bool, interval: int | None, max_records: int
) -> Answer:
    """Read what is new in a running cluster into an archive; see `capture` of `history`.

    Raises:
        ClusterError: No broker answers; there is no archive then that was not there before.
    """
    with open_admin(client):
        pass
    from kafka_assignors.history import _capture  # noqa: PLC0415 - see the module
    from kafka_assignors.history._progress import show_capture  # noqa: PLC0415

    settings = client_settings(client)
    into = _created(store)
    so_far = _capture.Captured()

    def note(captured: _capture.Captured) -> None:
        nonlocal so_far
        so_far = captured
        watch(captured)

    try:
        with _spark(store) as spark, show_capture() as watch:
            done = _capture.capture(
                spark,
                client.bootstrap_servers or [],
                into,
                once=not continuous,
                interval=interval or _capture.INTERVAL_SECONDS,
                settings=settings,
                max_records=max_records,
                watch=note,
            )
    except KeyboardInterrupt:
        print("\n".join(text.captured_lines(so_far)), file=sys.stderr)
        raise
    return Answer(
        lambda: {
            "offsets": done.offsets,
            "batches": done.batches,
            "lost": done.lost,
            **done.counts.to_json(),
        },
        text.captured_lines(done),
    )


def import_records(*, store: Store, dump: Path) -> Answer:
    """Add the records of a dump to an archive."""
    into = _created(store)
    from kafka_assignors.history._dump import import_dump  # noqa: PLC0415 - see the module

    with _spark(store, "importing") as spark:
        done = import_dump(spark, dump, into)
    return Answer(
        lambda: {"source": done.source, "known": done.known, **done.counts.to_json()},
        text.imported_lines(done),
    )


def maintain(
    *, store: Store, keep: timedelta | None, retention: timedelta, execute: bool, skip_bad: bool
) -> Answer:
    """Make many files few, remove old days, delete files that nobody needs."""
    from kafka_assignors._cli.history_read import opened  # noqa: PLC0415 - see the module
    from kafka_assignors.history import _maintenance  # noqa: PLC0415

    there = opened(store, skip_bad=skip_bad)
    plan = _maintenance.plan_maintenance(there, keep=None if keep is None else keep.days, retention=retention)
    bad = []
    if execute:
        with _spark(store, "maintaining") as spark:
            bad = _maintenance.maintain(spark, there, plan)
    return Answer(
        lambda: {
            "executed": execute,
            "compacted": [[file.path for file in day] for day in plan.compacted],
            "removed": [file.path for file in plan.removed],
            "deleted": to_json(plan.deleted),
            "bad": [file.path for file in bad],
        },
        text.maintenance_lines(there, plan, bad, executed=execute),
    )
