"""What `kafka-assignors history` takes, and its help; imports nothing that takes time."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Final

import click

from kafka_assignors._cli.commands import (
    FILE,
    FILE_NAME,
    Check,
    Command,
    Group,
    Option,
    Read,
    as_json,
    client,
    flag,
    number,
    refuse,
)
from kafka_assignors._common.times import in_utc

_EPILOG: Final = """\
exit status: 0 done; 1 it could not be done; 2 a wrong command line, file or archive; 130 after Ctrl-C,
143 after SIGTERM.
More: docs/history.md"""

_AGO: Final = re.compile(r"(\d+)([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def span(text: str) -> timedelta:
    """How long: 30m, 24h, 7d, 2w."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not how long: write 24h, 7d or 2w")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long") from error


def moment(text: str) -> datetime:
    """A date or time in ISO 8601, or how long ago: 90s, 30m, 24h, 7d, 2w."""
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is neither a date or time nor how long ago") from error


def _complete_assignors(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click passes all three
    from kafka_assignors.history._what_if.assignors import NAMES  # noqa: PLC0415 - slow to import

    return [name for name in NAMES if name.startswith(incomplete)]


def _check_capture(options: SimpleNamespace) -> None:
    if options.interval is not None and not options.continuous:
        refuse("--interval requires --continuous")


def _check_maintain(options: SimpleNamespace) -> None:
    if options.keep is not None and (options.keep % timedelta(days=1) or not options.keep):
        refuse(f"--keep {options.keep} is not whole days")


def _check_report(options: SimpleNamespace) -> None:
    if options.no_what_if and (options.assignors or options.scenarios):
        refuse("--no-what-if replays nothing: leave it out, or --assignor and --scenario")
    _check_selection(options)


def _check_selection(options: SimpleNamespace) -> None:
    since, until = options.since, options.until
    if since is not None and until is not None and since >= until:
        refuse(f"--since {since.isoformat()} is not before --until {until.isoformat()}")


def _on_archive(
    name: str, text: str, run: str, params: Sequence[click.Parameter] = (), *, check: Check | None = None
) -> Command:
    """A command that works on an archive."""
    archive = [
        click.Argument(
            ["archive"], type=FILE_NAME, help="the archive's folder, or its URI: s3://, gs://, abfss://"
        ),
        Option(
            ["--store-config"],
            type=FILE,
            metavar="FILE",
            help="properties of the store, such as AWS_ENDPOINT_URL=...; they come before the environment's",
        ),
        Option(
            ["--master"],
            metavar="URL",
            help="Spark's master (default: spark-submit's, else local[*], all cores of this machine; small"
            " archives are read without Spark)",
        ),
        as_json(),
    ]
    return Command(name, run, [*archive, *params], text=text, check=check)


_WHEN: Final = "2026-03-01, 2026-03-01T12:30+01:00, or 24h, 7d ago; UTC unless it says otherwise"

_SELECTION: Final = (
    Option(["--since"], type=Read(moment), metavar="TIME", help=f"only records from then on: {_WHEN}"),
    Option(["--until"], type=Read(moment), metavar="TIME", help="only records before then"),
    Option(
        ["--group", "groups"],
        multiple=True,
        metavar="PATTERN",
        help="only groups of such names: 'orders-*'; repeatable",
    ),
    flag("--skip-bad", "pass over files of the archive that are damaged or gone"),
)
"""Which records are meant: `since`, `until` and `groups`, as for `Archive.read`."""

_REPLAY: Final = (
    Option(
        ["--assignor", "assignors"],
        multiple=True,
        metavar="NAME",
        help="range, sticky, kafka-python:range, kip848:uniform, your.module:Class ...; repeatable",
        shell_complete=_complete_assignors,
    ),
    Option(
        ["--scenario", "scenarios"],
        multiple=True,
        metavar="NAME",
        help="'as it was' or 'static members'; repeatable",
    ),
)

_CAPTURE: Final = _on_archive(
    "capture",
    "read what is new in a running cluster's __consumer_offsets into an archive",
    "history:capture",
    [
        *client(required=True),
        flag("--continuous", "capture again and again until Ctrl-C"),
        number("--interval", "how often, with --continuous (default: 60)", metavar="SECONDS"),
        number(
            "--max-records",
            "how many offsets to read at a time, each time a batch of files (default: 2000000)",
            default=2_000_000,
        ),
    ],
    check=_check_capture,
)

_IMPORT: Final = _on_archive(
    "import",
    "add the records of a dump of __consumer_offsets to an archive",
    "history:import_records",
    [
        click.Argument(
            ["dump"],
            type=FILE,
            help="a file or folder of Parquet or JSON lines: key, value (in JSON base64), partition, offset,"
            " timestamp (ms)",
        )
    ],
)

_INFO: Final = _on_archive(
    "info", "show what an archive has", "history_read:info", _SELECTION, check=_check_selection
)

_MAINTAIN: Final = _on_archive(
    "maintain",
    "make an archive's many files few, remove old days, and delete files that nobody needs",
    "history:maintain",
    [
        Option(
            ["--keep"], type=Read(span), metavar="DAYS", help="how many days to keep: 90d, 12w (default: all)"
        ),
        Option(
            ["--retention"],
            type=Read(span),
            default=timedelta(days=7),
            metavar="TIME",
            help="how long files stay that were replaced, for who reads them: 24h, 7d (default: 7d)",
        ),
        flag("--skip-bad", "leave files that are damaged or gone as they are, and do the rest"),
        flag("--execute", "do it; else it is only shown"),
    ],
    check=_check_maintain,
)

_TABLES: Final = _on_archive(
    "tables",
    "decode an archive into tables",
    "history_read:tables",
    [
        click.Argument(
            ["out"], type=FILE_NAME, help="their folder or URI; tables that are there are replaced"
        ),
        Option(
            ["--decoder"],
            type=click.Choice(("auto", "plain", "fast")),
            default="auto",
            help="the compiled decoder where there is one (auto), or one or the other; they agree",
        ),
        *_SELECTION,
    ],
    check=_check_selection,
)

_METRICS: Final = _on_archive(
    "metrics",
    "say how restless groups were: their rebalances, why, and what moved",
    "history_read:metrics",
    [
        Option(
            ["--out"],
            type=FILE_NAME,
            metavar="FOLDER",
            help="write the tables rebalances and groups there, too; or to a URI",
        ),
        *_SELECTION,
    ],
    check=_check_selection,
)

_WHAT_IF: Final = _on_archive(
    "what-if",
    "replay groups' histories with other assignors and settings",
    "history_read:what_if",
    [*_REPLAY, *_SELECTION],
    check=_check_selection,
)

_REPORT: Final = _on_archive(
    "report",
    "write a page on groups' histories, to be opened in a browser",
    "history_read:report",
    [
        click.Argument(["page"], type=FILE, help="the HTML file"),
        flag("--no-what-if", "replay nothing, which is faster"),
        *_REPLAY,
        *_SELECTION,
    ],
    check=_check_report,
)

_WATCH: Final = Command(
    "watch",
    "history_watch:watch",
    [
        click.Argument(["group"]),
        *client(required=True),
        as_json("print each as a line of JSON", itself=True),
    ],
    text="show the rebalances of a running group as they happen",
    more=". Needs neither Spark nor an archive.",
)

HISTORY: Final = Group(
    "history",
    description=(
        "The history of consumer groups, from __consumer_offsets. Kafka's compaction destroys it within"
        " hours or days; an archive keeps it."
    ),
    epilog=_EPILOG,
    commands=[
        _CAPTURE,
        _IMPORT,
        _INFO,
        _MAINTAIN,
        _TABLES,
        _METRICS,
        _WHAT_IF,
        _REPORT,
        _WATCH,
    ],
)
