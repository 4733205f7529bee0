"""Where a member works: in a process, which can crash and freeze, or in a thread, which starts at once.

Both pass on what the member reports; the last report is `exited`.
"""

import contextlib
import json
import os
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import IO, Any, Literal

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.processes import ForkedProcess, FreshProcess, start_process
from kafka_assignors.testing._groups.worker import Worker

Place = Literal["process", "thread"]
"""What a member runs in."""

_END_SECONDS = 15.0  # for the end of a thread, and for the last events of a process that has ended


class NotInAThreadError(KafkaAssignorsError, RuntimeError):
    """What was asked for can only be done to a process."""


class ProcessRunner:
    """A member in a process of its own.

    Its reports are passed on from a thread.
    """

    def __init__(self, config: WorkerConfig, passed_on: Callable[[Mapping[str, Any]], None]) -> None:
        self.pid = 0
        self._config = config
        self._passed_on = passed_on
        self._sending = threading.Lock()
        # Without a name in any folder, so that nothing is left of it, however this process ends.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the member
        self._whole_log = ""
        self._started: Future[FreshProcess | ForkedProcess] = Future()
        self._over = False
        self._reader = threading.Thread(target=self._read, name=f"events of {config.name}", daemon=True)

    def start(self) -> None:
        """Begin. The receiver of the reports, which is to end the process, must know the member by now."""
        self._reader.start()
        try:
            self.pid = self._started.result().pid
        except Exception as error:
            raise RuntimeError(f"{self._config.name} has no process") from error
        self._write(self._config.to_json())

    def send(self, command: Mapping[str, Any]) -> None:
        """Give the member a command. If it has ended, nothing happens."""
        self._write(json.dumps(command))

    def kill(self) -> None:
        if self._process is not None:
            self._process.signal(signal.SIGKILL)

    def crash(self) -> None:
        """Kill the process and those that it has started; it has ended on return."""
        if self._process is not None:
            self._process.signal(signal.SIGKILL)
            self._process.wait()

    def drain(self) -> None:
        """Wait until all that it reported before it ended is passed on."""
        self._reader.join()

    def freeze(self) -> None:
        """Stop the process; it has stopped on return."""
        if self._process is not None:
            self._process.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._process is not None:
            self._process.signal(signal.SIGCONT)

    def wait(self) -> None:
        """Wait until it has ended and everything is passed on, and release what it held."""
        if self._process is not None:
            self._process.wait()
            self._reader.join()
            # What a dead process did not read is of no use.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._whole_log = self.log()
        self._log.close()

    def log(self) -> str:
        if self._log.closed:
            return self._whole_log
        # The process writes at the end by the same open file: read without moving it.
        text = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return text.decode(errors="replace")

    @property
    def _process(self) -> FreshProcess | ForkedProcess | None:
        """Waited for if a start was interrupted, so that it is not left over; None if there is none."""
        if self._reader.ident is None or self._started.exception() is not None:
            return None
        return self._started.result()

    def _read(self) -> None:
        # Ctrl-C comes to the main thread: in this one, no process is lost to it.
        try:
            process = start_process(self._log)
        except BaseException as error:  # noqa: BLE001 - `start` raises it
            self._started.set_exception(error)
            return
        self._started.set_result(process)
        events = threading.Thread(target=self._read_events, args=[process.stdout], daemon=True)
        events.start()
        status = process.wait()
        ended = time.monotonic()
        # Not for ever: what it started, and what has left its process group, may have its pipe open.
        events.join(None if status is None else _END_SECONDS)
        if status is None:  # nobody else knows when it ended
            ended = time.monotonic()
        self._over = True
        self._passed_on({"event": "exited", "time": ended, "status": status})

    def _read_events(self, stdout: IO[bytes]) -> None:
        with stdout as lines:
            for line in lines:
                # A killed process may leave half a line.
                if line.endswith(b"\n") and not self._over:
                    self._passed_on(json.loads(line))

    def _write(self, line: str) -> None:
        if self._process is None:
            return
        # A process that has ended does not read, but its end is an event of its own.
        with contextlib.suppress(BrokenPipeError, ValueError), self._sending:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()


class ThreadRunner:
    """A member in a thread of this process.

    Its reports are passed on from several threads.
    """

    def __init__(self, config: WorkerConfig, passed_on: Callable[[Mapping[str, Any]], None]) -> None:
        self.pid = os.getpid()
        self._passed_on = passed_on
        self._log = ""
        self._worker = Worker(config, self._report)
        self._thread = threading.Thread(target=self._run, name=f"member {config.name}", daemon=True)

    def start(self) -> None:
        # Not in the member's thread: pytest parses what is imported, and CPython before 3.11.8 may fail with
        # a SystemError where two threads parse at once (gh-106905).
        try:
            self._worker.prepare()
        except (Exception, SystemExit):  # noqa: BLE001 - whatever it was, the group is told
            self._end_with_exception()
        else:
            self._thread.start()

    def send(self, command: Mapping[str, Any]) -> None:
        self._worker.take(command)

    def kill(self) -> None:
        """End it when its poll ends."""
        self._worker.take({"command": "leave"})

    def wait(self) -> None:
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)

    def log(self) -> str:
        """The exception that ended it."""
        return self._log

    def _run(self) -> None:
        try:
            status = self._worker.run()
        except BaseException:  # noqa: BLE001 - whatever it was, the group is told
            self._end_with_exception()
        else:
            self._report("exited", status=status)

    def _end_with_exception(self) -> None:
        self._log = traceback.format_exc()
        self._report("exited", status=1)

    def _report(self, kind: str, **fields: Any) -> None:
        self._passed_on({"event": kind, "time": time.monotonic(), **fields})


def process_of(runner: ProcessRunner | ThreadRunner, refusal: str) -> ProcessRunner:
    """The runner, if it is a process; else raises a NotInAThreadError that begins with the refusal."""
    if isinstance(runner, ThreadRunner):
        raise NotInAThreadError(f"{refusal}: it is a thread; join it with place='process'")
    return runner
