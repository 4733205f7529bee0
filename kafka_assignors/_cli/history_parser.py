"""What `kafka-assignors history` can be told, and its help; imports nothing that takes time."""

import argparse
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kafka_assignors._cli.arguments import Check, add_client, add_command, add_commands, add_json, positive

_EPILOG: Final = """\
exit status: 0 done; 1 it could not be done; 2 a wrong command line, file or archive; 130 after Ctrl-C,
143 after SIGTERM.
More: docs/history.md"""

_AGO: Final = re.compile(r"(\d+)([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def add_history(commands: Any) -> None:
    """Add the command and its own commands."""
    add_commands(
        commands,
        "history",
        "the history of all groups: captured from __consumer_offsets, kept, analysed",
        description=(
            "The history of consumer groups, from __consumer_offsets. Kafka's compaction destroys it within"
            " hours or days; an archive keeps it."
        ),
        epilog=_EPILOG,
        verbs=(
            _add_capture,
            _add_import,
            _add_info,
            _add_maintain,
            _add_tables,
            _add_metrics,
            _add_what_if,
            _add_report,
            _add_watch,
        ),
    )


def add_verb(
    verbs: Any, name: str, text: str, run: str, *, check: Check | None = None
) -> argparse.ArgumentParser:
    """A command that works on an archive."""
    parser = add_command(verbs, name, text, run, check=check)
    parser.add_argument(
        "archive", metavar="ARCHIVE", help="the archive's folder, or its URI: s3://, gs://, abfss://"
    )
    parser.add_argument(
        "--store-config",
        type=Path,
        metavar="FILE",
        help="properties of the store, such as AWS_ENDPOINT_URL=...; they come before the environment's",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help=(
            "Spark's master (default: spark-submit's, else local[*], all cores of this machine; info, metrics"
            " and report read a small archive without Spark)"
        ),
    )
    add_json(parser)
    return parser


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Options that say which records are meant: `since`, `until` and `groups`, as for `Archive.read`."""
    when = "2026-03-01, 2026-03-01T12:30+01:00, or 24h, 7d ago; UTC unless it says otherwise"
    parser.add_argument("--since", type=moment, metavar="TIME", help=f"only records from then on: {when}")
    parser.add_argument("--until", type=moment, metavar="TIME", help="only records before then")
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        dest="groups",
        metavar="PATTERN",
        help="only groups of such names: 'orders-*'; repeatable",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="pass over files of the archive that are damaged or gone"
    )


def span(text: str) -> timedelta:
    """How long: 30m, 24h, 7d, 2w."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not how long: write 24h, 7d or 2w")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is too long") from error


def moment(text: str) -> datetime:
    """A date or time in ISO 8601, or how long ago: 90s, 30m, 24h, 7d, 2w."""
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        read = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a date or time nor how long ago") from error
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _add_capture(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "capture",
        "read what is new in a running cluster's __consumer_offsets into an archive",
        "history:capture",
        check=_check_capture,
    )
    add_client(parser, required=True)
    parser.add_argument("--continuous", action="store_true", help="go on until Ctrl-C")
    parser.add_argument(
        "--interval", type=positive, metavar="SECONDS", help="how often, with --continuous (default: 60)"
    )
    parser.add_argument(
        "--max-records",
        type=positive,
        default=2_000_000,
        metavar="N",
        help="how many offsets to read at a time, each time a batch of files (default: 2000000)",
    )


def _add_import(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "import",
        "add the records of a dump of __consumer_offsets to an archive",
        "history:import_records",
    )
    parser.add_argument(
        "dump",
        type=Path,
        metavar="DUMP",
        help="a file or folder of Parquet or JSON lines: key, value (in JSON base64), partition, offset,"
        " timestamp (ms)",
    )


def _add_info(verbs: Any) -> None:
    parser = add_verb(verbs, "info", "show what an archive has", "history_read:info", check=_check_selection)
    add_selection(parser)


def _add_maintain(verbs: Any) -> None:
    text = "make an archive's many files few, remove old days, and delete files that nobody needs"
    parser = add_verb(verbs, "maintain", text, "history:maintain", check=_check_maintain)
    parser.add_argument(
        "--keep", type=span, metavar="DAYS", help="how many days to keep: 90d, 12w (default: all)"
    )
    parser.add_argument(
        "--retention",
        type=span,
        default=timedelta(days=7),
        metavar="TIME",
        help="how long files stay that were replaced, for who reads them: 24h, 7d (default: 7d)",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave files that are damaged or gone as they are, and do the rest",
    )
    parser.add_argument("--execute", action="store_true", help="do it; else it is only shown")


def _add_tables(verbs: Any) -> None:
    parser = add_verb(
        verbs, "tables", "decode an archive into tables", "history:tables", check=_check_selection
    )
    parser.add_argument("out", metavar="OUT", help="their folder or URI; tables that are there are replaced")
    parser.add_argument(
        "--decoder",
        choices=("auto", "plain", "fast"),
        default="auto",
        help="the compiled decoder where there is one (auto), or one or the other; they agree",
    )
    add_selection(parser)


def _add_metrics(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "metrics",
        "say how restless groups were: their rebalances, why, and what moved",
        "history_read:metrics",
        check=_check_selection,
    )
    parser.add_argument(
        "--out", metavar="FOLDER", help="write the tables rebalances and groups there, too; or to a URI"
    )
    add_selection(parser)


def _add_what_if(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "what-if",
        "replay groups' histories with other assignors and settings",
        "history:what_if",
        check=_check_selection,
    )
    _add_replay(parser)
    add_selection(parser)


def _add_report(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "report",
        "write a page on groups' histories, to be opened in a browser",
        "history_read:report",
        check=_check_report,
    )
    parser.add_argument("page", type=Path, metavar="PAGE", help="the HTML file")
    parser.add_argument("--no-what-if", action="store_true", help="replay nothing, which is faster")
    _add_replay(parser)
    add_selection(parser)


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--assignor",
        action="append",
        default=[],
        dest="assignors",
        metavar="NAME",
        help="range, sticky, kafka-python:range, kip848:uniform, your.module:Class ...; repeatable",
    )
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        dest="scenarios",
        metavar="NAME",
        help="'as it was', 'static members', 'session.timeout.ms=N'; repeatable",
    )


def _add_watch(verbs: Any) -> None:
    parser = add_command(
        verbs,
        "watch",
        "show the rebalances of a running group as they happen",
        "history_watch:watch",
        more=". Needs neither Spark nor an archive.",
    )
    parser.add_argument("group", metavar="GROUP")
    add_client(parser, required=True)
    add_json(parser, "print each as a line of JSON", itself=True)


def _check_capture(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.interval is not None and not options.continuous:
        parser.error("--interval is how often to capture with --continuous, which is not there")


def _check_maintain(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.keep is not None and (options.keep % timedelta(days=1) or not options.keep):
        parser.error(f"--keep {options.keep} is not whole days")


def _check_report(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.no_what_if and (options.assignors or options.scenarios):
        parser.error("--no-what-if replays nothing: leave it out, or --assignor and --scenario")
    _check_selection(parser, options)


def _check_selection(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    since, until = options.since, options.until
    if since is not None and until is not None and since >= until:
        parser.error(f"--since {since.isoformat()} is not before --until {until.isoformat()}")
