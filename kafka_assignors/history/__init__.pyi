from kafka_assignors._groups.rebalances import Rebalance as Rebalance
from kafka_assignors.history._archive import Archive as Archive
from kafka_assignors.history._capture import capture as capture
from kafka_assignors.history._dump import import_dump as import_dump
from kafka_assignors.history._engine import Engine as Engine
from kafka_assignors.history._info import info as info
from kafka_assignors.history._maintenance import maintain as maintain, plan_maintenance as plan_maintenance
from kafka_assignors.history._metrics import metrics as metrics
from kafka_assignors.history._report.job import report_archive as report_archive
from kafka_assignors.history._spark import spark_session as spark_session
from kafka_assignors.history._store.location import StoreError as StoreError
from kafka_assignors.history._tables.job import make_tables as make_tables, read_table as read_table
from kafka_assignors.history._watch import watch_group as watch_group
from kafka_assignors.history._what_if.job import what_if as what_if
