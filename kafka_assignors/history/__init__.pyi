from kafka_assignors._groups.rebalances import Rebalance as Rebalance, find_rebalances as find_rebalances
from kafka_assignors._groups.snapshots import Snapshot as Snapshot
from kafka_assignors.history._archive import Archive as Archive
from kafka_assignors.history._archive_format import (
    ArchiveBusyError as ArchiveBusyError,
    WrongArchiveError as WrongArchiveError,
)
from kafka_assignors.history._capture import CaptureError as CaptureError, capture as capture
from kafka_assignors.history._dump import import_dump as import_dump
from kafka_assignors.history._engine import (
    Engine as Engine,
    TooLargeError as TooLargeError,
)
from kafka_assignors.history._info import ArchiveInfo as ArchiveInfo, info as info
from kafka_assignors.history._java import JavaMissingError as JavaMissingError
from kafka_assignors.history._maintenance import (
    Maintenance as Maintenance,
    maintain as maintain,
    plan_maintenance as plan_maintenance,
)
from kafka_assignors.history._metrics import metrics as metrics
from kafka_assignors.history._records import SparkError as SparkError
from kafka_assignors.history._report import ReportPage as ReportPage, report_archive as report_archive
from kafka_assignors.history._session import spark_session as spark_session
from kafka_assignors.history._snapshots import read_snapshots as read_snapshots
from kafka_assignors.history._store.location import (
    StoreError as StoreError,
    WrongPlaceError as WrongPlaceError,
)
from kafka_assignors.history._tables.job import (
    TableCounts as TableCounts,
    make_tables as make_tables,
    read_table as read_table,
)
from kafka_assignors.history._watch import watch_group as watch_group
from kafka_assignors.history._what_if.job import what_if as what_if
