"""What signals do to a command."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminations() -> Iterator[threading.Event]:
    """Whether there was a SIGTERM, which does what Ctrl-C would do at that moment.

    Only the first does: `timeout` sends two, and the second must not interrupt the clean-up.
    """
    seen = threading.Event()

    def terminate(number: int, frame: FrameType | None) -> None:
        if seen.is_set():
            return
        seen.set()
        interrupt = signal.getsignal(signal.SIGINT)  # a command may have a handler of its own, and Spark has
        if not callable(interrupt):  # Ctrl-C is ignored, as in the background of a script
            raise KeyboardInterrupt
        interrupt(number, frame)

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield seen  # what SIGTERM does here is for others to say
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)
