"""How much is done at once, how long is waited, and how long files stay."""

from datetime import timedelta
from typing import Final

# Capture

MAX_RECORDS: Final = 2_000_000
"""How many offsets a batch has by default: some seconds of work on one machine."""
INTERVAL_SECONDS: Final = 60.0  # between batches of a continuous capture, by default
TOPICS_SECONDS: Final = 600.0  # after which a continuous capture looks for new topics
OFFSETS_A_TASK: Final = 100_000  # that are worth a task
CONSUMED_AT_ONCE: Final = 10_000
CONSUME_SECONDS: Final = 0.1
LOOK_SECONDS: Final = 0.5  # between two looks for the leaders of partitions that had none
PATIENCE_SECONDS: Final = 60.0  # for which a partition may give nothing

# Reading and writing files

TASKS_A_CORE: Final = 2
"""Tasks one after another, so that one that takes longer than others is made up for."""
LARGEST_SHARE: Final = 128 * 2**20
SMALLEST_SHARE: Final = 2 * 2**20
"""Bytes of files that a task reads, what opening them costs among it."""
OPENING: Final = 2**20
"""What it costs to open a file, in bytes that could be read: as with Spark, which counts more."""
LARGEST_GROUP: Final = 2**30
"""Bytes of a row group without compression; of more, which no engine writes, a small file could be made."""
ROWS_AT_ONCE: Final = 64
"""A batch of them takes no more than 64 times the largest record, which brokers hold below 1 MB or so."""
ROW_GROUP: Final = 8 * 2**20
"""Bytes of a row group before compression, which leaves a tenth or so. A file is shared out among tasks by
its row groups: were they larger, a day of one restless group would be one task's."""
LARGE_BATCH: Final = 2**20  # bytes of rows that are a row group of a table
MOST_WAITING: Final = 16 * 2**20  # bytes of smaller batches that wait until they are one

# Maintenance

RETENTION: Final = timedelta(days=7)
"""How long files stay by default that no version needs which is newer."""
LEAST_RETENTION: Final = timedelta(hours=1)
"""A batch that is being written has files that no version names yet: they must not be taken for left ones."""
TABLES_KEPT_HOURS: Final = 24
"""How long files of tables stay that were replaced, for who reads them; tables can be made again."""
LARGE_FILE: Final = 128 * 2**20  # bytes of a file that is left as it is
NEWEST_AT_ONCE: Final = 64 * 2**20  # bytes of rows that the newest of each key are sought in, beside those
COMPACTED_AT_ONCE: Final = 2 * 2**30  # bytes of files that are made few in one commit

# Reports: what is left out they say

GROUPS_DRAWN: Final = 200  # groups with a part of their own, the most restless
GROUPS_LISTED: Final = 2000  # groups in the overview, the most restless
COLUMNS: Final = 64  # states of a group that a timeline distinguishes
CONSUMERS: Final = 16  # that a timeline gives a row and a colour of their own; at most 20
LANES: Final = 20
"""Up to how many partitions each has a lane; of more, a timeline shows how many each consumer had."""
REBALANCES_LISTED: Final = 30  # of a group: half of them the latest, half those that cost most
