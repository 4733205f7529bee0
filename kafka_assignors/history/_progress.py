"""How far a capture is, on a terminal; elsewhere nothing is shown."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from kafka_assignors.history._capture import Captured


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
