"""How far long work is, on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from rich.console import Console

    from kafka_assignors.history._capture import Captured

_LOOK_SECONDS: Final = 0.3


@contextmanager
def show_capture(console: Console | None = None) -> Iterator[Callable[[Captured], None]]:
    """A bar for a capture: how many offsets are gone over, and what was kept.

    Args:
        console: Where to; stderr by default.

    Yields:
        What to give `capture` as `watch`.
    """
    with progress_bar(console, transient=True) as bar:
        task = bar.add_task("reading __consumer_offsets", total=None)

        def watch(captured: Captured) -> None:
            counts = captured.counts
            text = f"{counts.kept.total():,} records kept, {counts.counted.total():,} counted; offsets"
            # Groups write while they are captured: there may be more than there were.
            total = max(captured.total, captured.offsets)
            bar.update(task, description=text, completed=captured.offsets, total=total)

        yield watch


@contextmanager
def show_jobs(spark: SparkSession, what: str, console: Console | None = None) -> Iterator[None]:
    """A bar for all that Spark does meanwhile: how many tasks of the running stages are done.

    Args:
        spark: The session.
        what: What it is called.
        console: Where to; stderr by default.
    """
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
