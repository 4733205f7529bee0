"""What an engine has Spark's tasks do, and how far they are."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka_assignors._common.progress import progress_bar
from kafka_assignors.history._capture import reason
from kafka_assignors.history._records import ORDER, SELECTED, SparkError
from kafka_assignors.history._session import spark_session
from kafka_assignors.history._store.reading import spark_schema
from kafka_assignors.history._store.writing import TaskFiles, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from rich.console import Console

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._capture import Captured
    from kafka_assignors.history._records import Selection
    from kafka_assignors.history._store.location import Location
    from kafka_assignors.history._store.reading import Read
    from kafka_assignors.history._store.writing import Outcome, Task

_LOOK_SECONDS: Final = 0.3
_TASKS_A_CORE: Final = 4


def map_sorted(
    spark: SparkSession,
    archive: Archive,
    selection: Selection,
    task: Task,
    *,
    where: Location | None,
) -> Outcome:
    """See `Engine.map_sorted`."""
    source = archive.source(spark, files=archive.files_of(selection))
    select = partial(_selected, read=source.read, selection=selection)
    selected = source.rows.mapInArrow(select, spark_schema(SELECTED))
    # Left to itself, Spark goes by bytes, and makes fewer tasks than there is work for.
    tasks = _TASKS_A_CORE * spark.sparkContext.defaultParallelism
    ordered = selected.repartition(tasks, "group").sortWithinPartitions(*ORDER)
    return run_tasks(ordered, task, None if where is None else partial(TaskFiles, where))


def map_rows(spark: SparkSession, archive: Archive, columns: Sequence[str], task: Task) -> Outcome:
    """See `Engine.map_rows`."""
    source = archive.source(spark, columns)
    return run_tasks(source.rows, partial(_of_rows, read=source.read, task=task), None)


def _selected(batches: Iterator[Any], *, read: Read, selection: Selection) -> Iterator[Any]:
    return selection.of(read(batches))


def _of_rows(batches: Iterator[Any], files: TaskFiles | None, *, read: Read, task: Task) -> Iterable[Any]:
    return task(read(batches), files)


@contextmanager
def running_spark(master: str | None, doing: str | None) -> Iterator[SparkSession]:
    """A session of Spark, and the progress of what it does, if that is named.

    Raises:
        SparkError: Spark failed.
        JavaMissingError: There is no Java to start it with.
    """
    try:
        spark = spark_session(master)
        with nullcontext() if doing is None else show_jobs(spark, doing):
            yield spark
    except (PySparkException, Py4JError) as error:
        raise SparkError(f"{reason(str(error))} (in Spark)") from error


@contextmanager
def show_jobs(spark: SparkSession, what: str, console: Console | None = None) -> Iterator[None]:
    """A bar for all that Spark does meanwhile: how many tasks of the running stages are done."""
    with progress_bar(console, transient=True) as bar:
        if bar.disable:
            yield
            return
        task = bar.add_task(what, total=None)
        done = threading.Event()

        def look() -> None:
            tracker = spark.sparkContext.statusTracker()
            while not done.wait(_LOOK_SECONDS):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                running: list[Any] = [stage for stage in stages if stage is not None]
                if running:
                    bar.update(
                        task,
                        description=f"{what}: {running[0].name.split(' at ')[0]}, tasks",
                        completed=sum(stage.numCompletedTasks for stage in running),
                        total=sum(stage.numTasks for stage in running),
                    )

        thread = threading.Thread(target=look, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@contextmanager
def show_capture(console: Console | None = None) -> Iterator[Callable[[Captured], None]]:
    """A bar for a capture, on stderr by default; gives what `capture` takes as `watch`."""
    with progress_bar(console, transient=True) as bar:
        task = bar.add_task("reading __consumer_offsets", total=None)

        def watch(captured: Captured) -> None:
            counts = captured.counts
            text = f"{counts.kept.total():,} records kept, {counts.counted.total():,} counted; offsets"
            # Groups write while they are captured: there may be more than there were.
            total = max(captured.total, captured.offsets)
            bar.update(task, description=text, completed=captured.offsets, total=total)

        yield watch
