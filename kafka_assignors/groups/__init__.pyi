from kafka_assignors._cluster.admin import ClusterError as ClusterError
from kafka_assignors._cluster.handle import Cluster as Cluster
from kafka_assignors._groups.election import elect_strategy as elect_strategy
from kafka_assignors._groups.finding import partition_for_group as partition_for_group
from kafka_assignors.groups._coordinator import find_coordinator as find_coordinator
from kafka_assignors.groups._explain import ExplainedGroup as ExplainedGroup, explain as explain
from kafka_assignors.groups._file import read_group as read_group
from kafka_assignors.groups._live import NoSuchGroupError as NoSuchGroupError
from kafka_assignors.groups._metrics import export_metrics as export_metrics, serve_metrics as serve_metrics
from kafka_assignors.groups._plan import plan as plan
from kafka_assignors.groups._status import list_groups as list_groups
from kafka_assignors.groups._what_if import what_if as what_if
