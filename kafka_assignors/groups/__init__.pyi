from kafka_assignors._cluster.admin import ClusterError as ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError as CommandConfigError
from kafka_assignors._cluster.handle import Cluster as Cluster
from kafka_assignors._groups.account import (
    GroupAccount as GroupAccount,
    MemberAccount as MemberAccount,
    PlannedMove as PlannedMove,
)
from kafka_assignors._groups.election import (
    Election as Election,
    NoCommonStrategyError as NoCommonStrategyError,
    elect_leader as elect_leader,
    elect_strategy as elect_strategy,
)
from kafka_assignors._groups.finding import partition_for_group as partition_for_group
from kafka_assignors._groups.lag import GroupLag as GroupLag, PartitionLag as PartitionLag
from kafka_assignors._groups.problems import Problem as Problem
from kafka_assignors.groups._coordinator import (
    GroupCoordinator as GroupCoordinator,
    find_coordinator as find_coordinator,
)
from kafka_assignors.groups._explain import (
    ExplainedClassicGroup as ExplainedClassicGroup,
    ExplainedConsumerGroup as ExplainedConsumerGroup,
    explain as explain,
)
from kafka_assignors.groups._file import GroupFile as GroupFile, read_group as read_group
from kafka_assignors.groups._live import (
    NoSuchGroupError as NoSuchGroupError,
    OtherProtocolError as OtherProtocolError,
)
from kafka_assignors.groups._metrics import export_metrics as export_metrics, serve_metrics as serve_metrics
from kafka_assignors.groups._plan import (
    NoPlannerError as NoPlannerError,
    PlannedGroup as PlannedGroup,
    plan as plan,
)
from kafka_assignors.groups._status import GroupStatus as GroupStatus, list_groups as list_groups
from kafka_assignors.groups._tree import FileError as FileError
from kafka_assignors.groups._what_if import (
    RestartCost as RestartCost,
    RollingRestarts as RollingRestarts,
    WhatIfError as WhatIfError,
    what_if as what_if,
    what_if_described as what_if_described,
)
