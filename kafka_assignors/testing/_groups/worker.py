"""One member of a consumer group at work, in a process or a thread of its own, driven and observed.

`python -m kafka_assignors.testing._groups.worker` reads its `WorkerConfig` as the first line of its standard
input, then commands. It writes what happens to it as events to its standard output, a JSON object a line.
`kafka_assignors.testing._groups.member` is the other end; it runs the same in a thread.

The types of `kafka_assignors._timelines.events` say what is in an event, and `read_event` decodes it there.
Each has `event` (its kind) and `time`: `time.monotonic()`. On Linux and macOS that is one clock for all
processes of a machine, so the events of several members can be put in order.

Partitions are [topic, partition] pairs, records [topic, partition, first offset, last offset], and positions
[topic, partition, offset]. Commands are objects with `command`: `release`, `leave`, `subscribe`
(with topics), `unsubscribe`, `pause`, `resume`, `commit` and `state`. The member carries them out between two
polls, but answers `state` at once. An application of the user's own obeys `leave`, `pause` and `resume`, and
answers `state`.

Records are reported before their offsets are committed: a member that is killed never committed what it did
not report.
"""

import contextlib
import functools
import io
import json
import logging
import os
import queue
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.clients import Client, ClientName, Report
from kafka_assignors.testing._groups.config import WorkerConfig
from kafka_assignors.testing._groups.imports import imported
from kafka_assignors.testing._groups.seat import Seat, called

_EXIT_TOO_MANY_ERRORS: Final = 3
_EXIT_PARENT_GONE: Final = 4
_MOST_ERRORS_IN_A_ROW: Final = 100
_COMMIT_MS: Final = 30_000
_REBALANCE: Final = re.compile(r"rebalance_?in_?progress", re.IGNORECASE)  # as each client calls it
_SECONDS_AFTER_ERROR: Final = 0.2
_OF_CLIENTS: Final = frozenset({"kafka", "aiokafka"})  # their loggers
_OF_APPLICATIONS: Final = frozenset({"leave", "pause", "resume"})  # which they obey, too


class _LeaveError(SystemExit):
    """An application is to end that does not look at `Seat.leaving`."""


def _end_application(*_: object) -> None:
    raise _LeaveError(0)


class Worker:
    """A member at work."""

    def __init__(self, config: WorkerConfig, report: Report) -> None:
        self._config = config
        self._report = report
        self._make: Callable[[], Client] | None = None
        self._function: Callable[[Seat], Any] | None = None
        self._commands: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self._client: Client | None = None
        self._seat: Seat | None = None
        self._handing = threading.Lock()  # held while who obeys commands changes
        self._running = threading.Event()  # clear while an application is not to poll
        self._running.set()
        self._released = threading.Event()
        self._called_off = False
        self._main_thread: int | None = None  # if the member runs in it, and so gets signals
        self._paused = False
        self._subscribed = True

    def take(self, command: Mapping[str, Any]) -> None:
        """Take a command, from any thread."""
        if command["command"] == "state":
            self._report_state()
        elif command["command"] == "release":
            self._released.set()
        elif command["command"] == "leave" and self._config.held and not self._released.is_set():
            self._called_off = True
            self._released.set()
        else:
            with self._handing:
                if self._seat is not None and self._client is None:
                    self._tell_application(command["command"], self._seat)
                else:
                    self._commands.put(command)

    def prepare(self) -> None:
        """Import what the member needs: before `run`, as it takes time that a member that is held has."""
        config = self._config
        if config.client in clients.MODULES:
            library = clients.load(cast("ClientName", config.client))
            self._make = functools.partial(library.make, config, library.settings(config), self._report)
        else:
            self._function = functools.partial(imported(config.client), **config.arguments)

    def run(self) -> int:
        """Consume and obey until asked to leave; returns the exit status of a process."""
        config = self._config
        if threading.current_thread() is threading.main_thread():
            self._main_thread = threading.get_ident()
        self._report("started", pid=os.getpid(), instance_id=config.instance_id, client=config.client)
        if config.held:
            self._released.wait()
        if self._called_off:
            self._report("closed", reason="left")
            return 0
        if self._make is not None:
            made = self._make()
            made.subscribe(config.topics, config.pattern)
        else:
            seat = self._seated()
            try:
                consumer, loop = called(cast("Any", self._function), seat)
            except _LeaveError:
                consumer = None
                with contextlib.suppress(Exception):  # most often it is closed, or on a loop that has ended
                    cast("Any", seat.observed).close()
            if consumer is None:
                self._report("closed", reason="left" if seat.leaving else "returned")
                return 0
            made = self._adopted(seat, consumer, loop)
        self._take_over(made)
        return self._loop(made)

    def _seated(self) -> Seat:
        """The seat of the user's function, which knows what came while the function was imported."""
        seat = Seat(self._config, self._report, self._wait_to_poll)
        with self._handing:
            self._seat = seat
            for _ in range(self._commands.qsize()):
                command = self._commands.get_nowait()
                if command["command"] in _OF_APPLICATIONS:
                    self._tell_application(command["command"], seat)
                else:
                    self._commands.put(command)  # for our loop, if it is to poll
        return seat

    def _take_over(self, client: Client) -> None:
        """Have our loop obey from now on, and first what the user's function was told and did not see to."""
        with self._handing:
            self._client = client
            if not self._running.is_set():
                self._running.set()
                self._commands.put({"command": "pause"})
            if self._seat is not None and self._seat.leaving:
                self._commands.put({"command": "leave"})

    def _adopted(self, seat: Seat, consumer: Any, loop: Any) -> Client:
        """The consumer that the user's function returned, in the way that our loop uses it."""
        if seat.observed is None or cast("Any", seat.observed).consumer is not consumer:
            seat.observe(consumer)
        observed = cast("Any", seat.observed)
        if loop is not None:
            observed.loop = loop
        if not observed.subscribed:
            observed.subscribe(self._config.topics, self._config.pattern)
        return cast("Client", observed)

    # The loop over a consumer

    def _loop(self, client: Client) -> int:
        errors = 0
        while True:
            command = self._next_command(wait=_SECONDS_AFTER_ERROR if errors else 0)
            if command is not None and command["command"] == "leave":
                break
            try:
                if command is not None:
                    self._obey(client, command)
                    continue
                delivered = client.poll(self._config.poll_ms / 1000)
                time.sleep(self._config.work_ms / 1000)
                if delivered and self._config.commit == "each poll":
                    # What is refused was reported, and is not tried again.
                    with contextlib.suppress(clients.CommitError):
                        client.commit()
                errors = 0
            except Exception as error:  # noqa: BLE001 - an application may well go on, and so does this one
                errors += 1
                if command is not None or clients.described(error) != client.absences.failed:
                    self._report(
                        "error", command=command and command["command"], **clients.type_and_text(error)
                    )
                if errors == _MOST_ERRORS_IN_A_ROW:
                    break
        client.close()
        failed = errors == _MOST_ERRORS_IN_A_ROW
        self._report("closed", reason="errors" if failed else "left")
        return _EXIT_TOO_MANY_ERRORS if failed else 0

    def _next_command(self, wait: float) -> Mapping[str, Any] | None:
        idle = self._paused or not self._subscribed
        try:
            if idle or wait:
                return self._commands.get(timeout=None if idle else wait)
            return self._commands.get_nowait()
        except queue.Empty:
            return None

    def _obey(self, client: Client, command: Mapping[str, Any]) -> None:
        match command["command"]:
            case "subscribe":
                client.subscribe(command["topics"], None)
                self._subscribed = True
            case "unsubscribe":
                client.unsubscribe()
                self._subscribed = False
                self._report("unsubscribed")
            case "pause":
                self._paused = True
                self._report("paused")
            case "resume":
                self._paused = False
                self._report("resumed")
            case "commit":
                self._commit_on_command(client)
                self._report("obeyed", command="commit")
            case other:
                raise ValueError(f"unknown command {other!r}")

    def _commit_on_command(self, client: Client) -> None:
        """Commit. If a rebalance is on, polling completes it, as clients say; for half a minute."""
        polls = 0 if self._paused else round(_COMMIT_MS / self._config.poll_ms)
        for _ in range(polls):
            try:
                client.commit()
            except clients.CommitError as error:
                if _REBALANCE.search(str(error)) is None:
                    raise
            else:
                return
            client.poll(self._config.poll_ms / 1000)
        client.commit()

    # An application that polls by itself

    def _tell_application(self, command: str, seat: Seat) -> None:
        match command:
            case "leave":
                seat.leave()
                self._running.set()
                if self._main_thread is not None and not seat.is_looked_at:
                    signal.pthread_kill(self._main_thread, signal.SIGTERM)
            case "pause":
                self._running.clear()
            case "resume":
                self._running.set()
                self._report("resumed")
            case _:
                text = f"an application of the user's own decides by itself when to {command}"
                self._report("error", command=command, type="ValueError", text=text)

    def _wait_to_poll(self) -> None:
        if not self._running.is_set():
            self._report("paused")
            self._running.wait()

    # What it says of itself

    def _report_state(self) -> None:
        client = self._client
        if client is None and self._seat is not None:
            client = self._seat.observed
        if client is None:
            self._report("state", member_id="", coordinator="starting", subscription=[])
            return
        generation, member_id, state = client.membership()
        self._report(
            "state",
            generation=generation,
            member_id=member_id,
            coordinator=state,
            partitions=sorted(client.assignment()),
            subscription=sorted(client.subscription()),
            silent=client.absences.silent(),
        )


class _Reporter:
    """Writes events as lines, from any thread."""

    def __init__(self, file_descriptor: int) -> None:
        self._file = os.fdopen(file_descriptor, "w", encoding="utf-8")
        self._lock = threading.Lock()

    def __call__(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"event": kind, "time": time.monotonic(), **fields})
        with self._lock:
            try:
                self._file.write(line + "\n")
                self._file.flush()
            except BrokenPipeError:
                os._exit(_EXIT_PARENT_GONE)


def _report_logged(report: Report) -> None:
    """Report each exception that the application logs: by most it swallows them. Clients' own are left out.

    Not by a handler, which an application takes away when it configures its logging.
    """
    make = logging.getLogRecordFactory()

    def made(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if record.exc_info and (error := record.exc_info[1]) and record.name.split(".")[0] not in _OF_CLIENTS:
            report("raised", where="log", text=clients.first_line(error))
        return record

    logging.setLogRecordFactory(made)


def _read_commands(commands: io.RawIOBase, worker: Worker) -> None:
    try:
        while line := commands.readline():
            worker.take(json.loads(line))
    except Exception:
        logging.getLogger(__name__).exception("the member cannot take commands any more")
    # The parent is gone, and nobody else would end this process.
    os._exit(_EXIT_PARENT_GONE)


def main() -> int:
    """Be a member until asked to leave; returns the exit status."""
    # What an assignor prints must not end up between the events.
    report = _Reporter(os.dup(sys.stdout.fileno()))
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    _report_logged(report)
    # Unbuffered, because a buffered reader that a thread waits in is in the way when the interpreter ends.
    commands = io.FileIO(sys.stdin.fileno(), closefd=False)
    worker = Worker(WorkerConfig.from_json(commands.readline()), report)
    signal.signal(signal.SIGTERM, _end_application)
    # Before the consumer, which may take long to find its brokers.
    threading.Thread(target=_read_commands, args=(commands, worker), name="commands", daemon=True).start()
    worker.prepare()
    return worker.run()


if __name__ == "__main__":
    sys.exit(main())
