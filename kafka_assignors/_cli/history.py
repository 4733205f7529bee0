"""`kafka-assignors history`: the history of groups, captured and kept in an archive, and analysed."""
# Functions import what takes time themselves: help and completion do not need it, and each command its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafka_assignors import history as library
from kafka_assignors._cli.arguments import moment, span
from kafka_assignors._cli.errors import WrongError
from kafka_assignors._cli.options import (
    FILE,
    PATH,
    Command,
    Group,
    as_json,
    flag,
    number,
    option,
    path,
    refuse,
    running_cluster,
    value,
)
from kafka_assignors._cli.output import show_result
from kafka_assignors._common.properties import parse_properties
from kafka_assignors._common.strategies import REPLAYED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from kafka_assignors.groups import Cluster
    from kafka_assignors.history._capture import Captured

    Function = Callable[..., None]

_EPILOG: Final = """\
exit status: 0 done; 1 it could not be done; 2 a wrong command line, file or archive; 130 after Ctrl-C,
143 after SIGTERM.
More: docs/history.md"""

_WHEN: Final = "2026-03-01, 2026-03-01T12:30+01:00, or 24h, 7d ago; UTC unless it says otherwise"


class _HistoryCommand(Command):
    foreseen = (*Command.foreseen, ValueError, OSError)  # a wrong archive, or a disk that is full


class _HistoryGroup(Group):
    command_class = _HistoryCommand


def read_store_config(path: Path) -> dict[str, str]:
    """Options of a store from a file, by the rules of Java's properties."""
    try:
        options = parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongError(f"cannot read {path}: {error}") from error
    if empty := sorted(name for name, value in options.items() if not value.strip()):
        raise WrongError(f"{path}: {', '.join(empty)} has no value")
    return {name: value.strip() for name, value in options.items()}


class Store(NamedTuple):
    """The archive that options name, how to reach its store, and the master of the Spark to work on it."""

    archive: str
    store_config: Path | None
    master: str | None
    skip_bad: bool

    @property
    def options(self) -> dict[str, str]:
        return {} if self.store_config is None else read_store_config(self.store_config)

    def open(self) -> library.Archive:
        return library.Archive(self.archive, self.options, skip_bad=self.skip_bad)

    def create(self) -> library.Archive:
        return library.Archive.create(self.archive, self.options)

    def engine(self, *, replaying: bool = False) -> library.Engine:
        """What works on the archive: Spark, if it is large."""
        return library.Engine.fitting(self.master, replaying=replaying)


def _on_archive(function: Function) -> Function:
    """Options that name an archive: the function gets what they name as `store`."""

    @wraps(function)
    def run(
        *, archive: str, store_config: Path | None, master: str | None, skip_bad: bool = False, **others: Any
    ) -> None:
        function(store=Store(archive, store_config, master, skip_bad), **others)

    name = click.argument(
        "archive", type=FILE, help="the archive's folder, or its URI: s3://, gs://, abfss://"
    )
    config = path(
        "--store-config",
        help="properties of the store, such as AWS_ENDPOINT_URL=...; they come before the environment's",
    )
    master = option(
        "--master",
        metavar="URL",
        help="Spark's master (default: spark-submit's, else local[*], all cores of this machine; small"
        " archives are read without Spark)",
    )
    return name(config(master(as_json()(run))))


def _selection(function: Function) -> Function:
    """Which records are meant: the function gets `since`, `until` and `groups` as `selection`."""

    @wraps(function)
    def run(*, since: Any, until: Any, groups: Sequence[str], **others: Any) -> None:
        if since is not None and until is not None and since >= until:
            refuse(f"--since {since.isoformat()} is not before --until {until.isoformat()}")
        function(selection={"since": since, "until": until, "groups": groups}, **others)

    begin = value("--since", f"only records from then on: {_WHEN}", read=moment, metavar="TIME")
    end = value("--until", "only records before then", read=moment, metavar="TIME")
    groups = option(
        "--group",
        "groups",
        multiple=True,
        metavar="PATTERN",
        help="only groups of such names: 'orders-*'; repeatable",
    )
    bad = flag("--skip-bad", "pass over files of the archive that are damaged or gone")
    return begin(end(groups(bad(run))))


def _complete_assignors(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click passes all three
    return [name for name in REPLAYED if name.startswith(incomplete)]


def _replayed(function: Function) -> Function:
    """What to replay histories with: the function gets what is not the default as `replayed`."""

    @wraps(function)
    def run(*, assignors: Sequence[str], scenarios: Sequence[str], **others: Any) -> None:
        given = {"assignors": assignors, "scenarios": scenarios}
        function(replayed={name: names for name, names in given.items() if names}, **others)

    assignors = option(
        "--assignor",
        "assignors",
        multiple=True,
        metavar="NAME",
        help="range, sticky, kafka-python:range, kip848:uniform, your.module:Class ...; repeatable",
        shell_complete=_complete_assignors,
    )
    scenarios = option(
        "--scenario",
        "scenarios",
        multiple=True,
        metavar="NAME",
        help="'as it was' or 'static members'; repeatable",
    )
    return assignors(scenarios(run))


@click.group(
    "history",
    cls=_HistoryGroup,
    help=(
        "The history of consumer groups, from __consumer_offsets. Kafka's compaction destroys it within"
        " hours or days; an archive keeps it."
    ),
    short_help="the history of all groups: captured from __consumer_offsets, kept, analysed",
    epilog=_EPILOG,
)
def history() -> None:
    pass


@history.command("capture")
@_on_archive
@running_cluster()
@flag("--continuous", "capture again and again until Ctrl-C")
@number("--interval", "how often, with --continuous (default: 60)", metavar="SECONDS")
@number(
    "--max-records",
    "how many offsets to read at a time, each time a batch of files (default: 2000000)",
    default=2_000_000,
)
@flag("--commits", "keep committed offsets, too, about one a minute: what-if tells load by them")
def capture(
    *,
    store: Store,
    cluster: Cluster,
    continuous: bool,
    interval: int | None,
    max_records: int,
    commits: bool,
    as_json: bool,
) -> None:
    """Read what is new in a running cluster's __consumer_offsets into an archive."""
    if interval is not None and not continuous:
        refuse("--interval requires --continuous")
    so_far: Captured | None = None

    def note(captured: Captured) -> None:
        nonlocal so_far
        so_far = captured
        show(captured)

    with cluster:  # if no broker answers, no archive is made, and nothing slow is imported
        from kafka_assignors._cli.history_text import captured_lines, show_capture

        given = {} if interval is None else {"interval": interval}
        try:
            with show_capture(continuous=continuous) as show:
                done = library.capture(
                    cluster,
                    store.create(),
                    once=not continuous,
                    max_records=max_records,
                    commits=commits,
                    watch=note,
                    engine=library.Engine.spark(store.master, progress=False),
                    **given,
                )
        except KeyboardInterrupt:
            if so_far is not None:
                print("\n".join(captured_lines(so_far)), file=sys.stderr)
            raise
    show_result(done, captured_lines(done), as_json=as_json)


@history.command("import")
@_on_archive
@click.argument("dump", type=PATH, help="a file that kafka-console-consumer has printed; also .gz")
def import_records(*, store: Store, dump: Path, as_json: bool) -> None:
    """Add the records of a dump of __consumer_offsets to an archive.

    docs/history.md has the command that makes a dump. Needs no Spark.
    """
    if store.master is not None:
        refuse("--master: import needs no Spark")
    from kafka_assignors._cli.history_text import imported_lines

    done = library.import_dump(dump, store.create())
    show_result(done, imported_lines(done), as_json=as_json)


@history.command("info")
@_on_archive
@_selection
def info(*, store: Store, selection: Mapping[str, Any], as_json: bool) -> None:
    """Show what an archive has."""
    from kafka_assignors._cli.history_text import info_lines

    there = store.open()
    found = library.info(there, **selection, engine=store.engine())
    show_result(found, info_lines(str(there.where), found), as_json=as_json)


@history.command("maintain")
@_on_archive
@value("--keep", "how many days to keep: 90d, 12w (default: all)", read=span, metavar="DAYS")
@value(
    "--retention",
    "how long files stay that were replaced, for who reads them: 24h, 7d (default: 7d)",
    read=span,
    metavar="TIME",
    default=timedelta(days=7),
)
@flag("--skip-bad", "leave files that are damaged or gone as they are, and do the rest")
@flag("--execute", "do it; else it is only shown")
def maintain(
    *,
    store: Store,
    keep: timedelta | None,
    retention: timedelta,
    execute: bool,
    as_json: bool,
) -> None:
    """Make an archive's many files few, remove old days, and delete files that nobody needs."""
    if keep is not None and (keep % timedelta(days=1) or not keep):
        refuse(f"--keep {keep} is not whole days")
    from kafka_assignors._cli.history_text import maintenance_lines

    there = store.open()
    plan = library.plan_maintenance(there, keep=None if keep is None else keep.days, retention=retention)
    bad = library.maintain(there, plan, engine=store.engine()) if execute else []
    result = {"executed": execute, **plan.to_json(), "bad": [file.path for file in bad]}
    show_result(result, maintenance_lines(there, plan, bad, executed=execute), as_json=as_json)


@history.command("tables")
@_on_archive
@click.argument("out", type=FILE, help="their folder or URI; tables that are there are replaced")
@_selection
def tables(*, store: Store, out: str, selection: Mapping[str, Any], as_json: bool) -> None:
    """Decode an archive into tables."""
    from kafka_assignors._cli.history_text import tables_lines

    counts = library.make_tables(store.open(), out, **selection, options=store.options, engine=store.engine())
    show_result(counts, tables_lines(out, counts), as_json=as_json)


@history.command("metrics")
@_on_archive
@option(
    "--out",
    type=FILE,
    metavar="FOLDER",
    help="write the tables rebalances and groups there, too; or to a URI",
)
@_selection
def metrics(*, store: Store, out: str | None, selection: Mapping[str, Any], as_json: bool) -> None:
    """Say how restless groups were: their rebalances, why, and what moved."""
    from kafka_assignors._cli.history_text import metrics_lines

    found = library.metrics(store.open(), out, **selection, options=store.options, engine=store.engine())
    show_result(found, metrics_lines(found, selection["since"]), as_json=as_json)


@history.command("what-if")
@_on_archive
@_replayed
@_selection
def what_if(
    *,
    store: Store,
    replayed: Mapping[str, Any],
    selection: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Replay groups' histories with other assignors and settings."""
    from kafka_assignors._cli.history_text import what_if_lines

    there = store.open()
    rows = library.what_if(there, **replayed, **selection, engine=store.engine(replaying=True))
    show_result(rows, what_if_lines(rows, selection["since"]), as_json=as_json)


@history.command("report")
@_on_archive
@click.argument("page", type=PATH, help="the HTML file")
@flag("--no-what-if", "replay nothing, which is faster")
@_replayed
@_selection
def report(
    *,
    store: Store,
    page: Path,
    no_what_if: bool,
    replayed: Mapping[str, Any],
    selection: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Write a page on groups' histories, to be opened in a browser."""
    if no_what_if and replayed:
        refuse("--no-what-if replays nothing: leave it out, or --assignor and --scenario")
    there = store.open()
    wanted: Mapping[str, Any] = {"assignors": ()} if no_what_if else replayed
    engine = store.engine(replaying=not no_what_if)
    done = library.report_archive(there, page, **wanted, **selection, engine=engine)
    lines = [f"{done.page}: {done.bytes:,} bytes, to be opened in a browser"]
    show_result(done, lines, as_json=as_json)


@history.command("watch")
@click.argument("group")
@running_cluster()
@as_json("print each as a line of JSON")
def watch(*, group: str, cluster: Cluster, as_json: bool) -> None:
    """Show the rebalances of a running group as they happen.

    Needs neither Spark nor an archive.
    """
    from kafka_assignors._cli.history_watch import watch

    watch(cluster, group, as_json=as_json)
