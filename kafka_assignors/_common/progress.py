"""How far long work is, on a terminal; elsewhere no bar is shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def progress_bar(console: Console | None = None, *, transient: bool = False) -> Progress:
    """A bar for each task: what it is called, how far it is, and since when it runs. A context manager.

    What is printed to the console, stderr by default, appears above the bars, or alone if it is no terminal.

    Raises:
        ImportError: rich is not installed.
    """
    from rich.console import Console  # noqa: PLC0415 - comes with extras
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    # FORCE_COLOR makes rich take a log for a terminal.
    console = console or Console(stderr=True, force_terminal=sys.stderr.isatty())
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=transient,
        disable=not console.is_terminal,
    )
