"""The history of consumer groups, from `__consumer_offsets`, on Spark: captured, read, replayed, shown.

Beside these there are `capture.capture` and `what_if.job.what_if`, whose names are those of their modules.
"""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
    from kafka_assignors.history.archive import Archive, WrongArchiveError
    from kafka_assignors.history.archive_report import report_archive
    from kafka_assignors.history.capture import CaptureError
    from kafka_assignors.history.dump import import_dump
    from kafka_assignors.history.java import JavaMissingError
    from kafka_assignors.history.metrics import write_metrics
    from kafka_assignors.history.rebalances import Rebalance, find_rebalances
    from kafka_assignors.history.session import spark_session
    from kafka_assignors.history.snapshots import Snapshot, read_snapshots
    from kafka_assignors.history.tables.job import make_tables, read_table
    from kafka_assignors.history.watch import watch_group

_HOMES = {
    "Archive": "archive",
    "CaptureError": "capture",
    "JavaMissingError": "java",
    "Rebalance": "rebalances",
    "Snapshot": "snapshots",
    "WrongArchiveError": "archive",
    "find_rebalances": "rebalances",
    "import_dump": "dump",
    "make_tables": "tables.job",
    "read_snapshots": "snapshots",
    "read_table": "tables.job",
    "report_archive": "archive_report",
    "spark_session": "session",
    "watch_group": "watch",
    "write_metrics": "metrics",
}

__all__ = [
    "Archive",
    "CaptureError",
    "JavaMissingError",
    "Rebalance",
    "Snapshot",
    "WrongArchiveError",
    "find_rebalances",
    "import_dump",
    "make_tables",
    "read_snapshots",
    "read_table",
    "report_archive",
    "spark_session",
    "watch_group",
    "write_metrics",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
