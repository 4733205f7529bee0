"""Members' processes: on Linux forked from one that has imported what they need, elsewhere started afresh.

Importing kafka-python, numpy and the assignors costs a fresh process half a second of CPU; a fork costs some
milliseconds. `python -m kafka_assignors.testing._groups.processes FD` is the process that forks. It has one
thread, it does as it is asked by the socket FD, and it ends with the holder of the other end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, Final

WARM: Final = (
    "kafka_assignors.testing._groups.worker",
    "kafka_assignors.testing._groups.clients.kafka_python",
    "kafka_assignors._assignors",
)
"""What is imported before the first fork."""

_LENGTH: Final = struct.Struct("!Q")
_FILES: Final = 4  # standard input, output and error, and where the exit status goes


def _receive(connection: socket.socket, size: int) -> bytes:
    """Receive so many bytes; a signal may end a single call before they are all there.

    Raises EOFError if the other end was closed before.
    """
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise EOFError(f"the other end was closed after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


def start_process(log: IO[bytes]) -> FreshProcess | ForkedProcess:
    """Start the process of a member, which reads its `WorkerConfig` from standard input.

    Raises OSError if it cannot.
    """
    return FreshProcess(log) if sys.platform != "linux" else _forking_process().fork(log)


def _environment() -> dict[str, str]:
    """Whatever the parent can import, the member can, tests' own assignors too.

    Without PYTHONWARNINGS: where that is "error", a member would end at the first warning of its client.
    """
    own = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    return {**own, "PYTHONPATH": os.pathsep.join(_path())}


def _path() -> list[str]:
    """Where Python looks for modules: it passes over what is no string, as a `Path`."""
    return [path for path in sys.path if path and isinstance(path, str)]


class FreshProcess:
    """A process that is started afresh."""

    def __init__(self, log: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", WARM[0]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            process_group=0,  # as in `_become_member`
        )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: these are pipes
        assert self._process.stdout is not None  # noqa: S101
        self.pid, self.stdin, self.stdout = self._process.pid, self._process.stdin, self._process.stdout
        self._over = False  # its group, too

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing, if it has ended. If that stops or kills it, it has happened on return.

        SIGKILL goes to its whole process group, others to it alone.
        """
        if not self._over:
            _send(self.pid, number)
        # It may have been waited for already; and macOS has `waitid` since Python 3.13 only.
        with contextlib.suppress(ChildProcessError, AttributeError):
            _await(self.pid, number)

    def wait(self) -> int:
        """Wait until it has ended; what is left of its process group is killed then."""
        status = self._process.wait()
        if not self._over:
            self._over = True
            _kill_group(self.pid)
        return status


def _kill_group(pid: int) -> None:
    """Kill a member and all that it has started, unless that has left its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # PermissionError: of a zombie on macOS
        os.killpg(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    """Send a signal to a member, SIGKILL to its whole process group."""
    if number == signal.SIGKILL:
        _kill_group(pid)
    else:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


# The end of whoever asks


class ForkedProcess:
    """A process that the other one has forked."""

    def __init__(
        self, pid: int, asked: _ForkingProcess, files: tuple[IO[bytes], IO[bytes], IO[bytes]]
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self._ended = files
        self._asked = asked
        self._status: int | None = None
        self._waiting = threading.Lock()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, see `FreshProcess`."""
        if self._asked.ask({"pid": self.pid, "signal": number}) is None:
            _send(self.pid, number)

    def wait(self) -> int | None:
        """Wait until it has ended; returns its exit status, None if nobody knows it."""
        with self._waiting:
            if not self._ended.closed:
                # Not until its end: a member that was frozen right after its fork has all of them open.
                with self._ended:
                    line = self._ended.readline()
                self._status = int(line) if line else None
        return self._status


class _ForkingProcess:
    """The process that forks."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                process_group=0,
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Let it end. Its members go on until their own pipes close."""
        self._socket.close()
        self._process.wait()

    def fork(self, log: IO[bytes]) -> ForkedProcess:
        with contextlib.ExitStack() as theirs:
            reads, stdin = os.pipe()
            stdout, writes = os.pipe()
            ended, tells = os.pipe()
            for one in (reads, writes, tells):
                theirs.callback(os.close, one)
            ours = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb"), os.fdopen(ended, "rb")
            try:
                request = {"environment": _environment(), "path": _path(), "folder": str(Path.cwd())}
                pid = self.ask(request, [reads, writes, log.fileno(), tells])
            except BaseException:
                for file in ours:
                    file.close()
                raise
        if pid is None:
            raise ProcessLookupError("the process that members are forked from has ended")
        return ForkedProcess(pid, self, ours)

    def ask(self, request: dict[str, Any], files: list[int] | None = None) -> int | None:
        """Have it do something; return the process's id, or None if it has ended itself."""
        body = json.dumps(request).encode()
        with self._asking, contextlib.suppress(OSError, EOFError):
            socket.send_fds(self._socket, [_LENGTH.pack(len(body))], files or [])
            self._socket.sendall(body)
            return int(_LENGTH.unpack(_receive(self._socket, _LENGTH.size))[0])
        return None


_forking: dict[tuple[int, str, str], _ForkingProcess] = {}
_choosing = threading.Lock()


def _forking_process() -> _ForkingProcess:
    # What a fork takes over from the process that forks and cannot change.
    python = sorted(item for item in os.environ.items() if item[0].startswith("PYTHON"))
    settings = os.getpid(), sys.executable, str(python)
    with _choosing:
        found = _forking.get(settings)
        if found is None or not found.alive:
            found = _forking[settings] = _ForkingProcess()
        return found


@atexit.register
def _close_all() -> None:
    for (pid, *_), one in _forking.items():
        if pid == os.getpid():
            one.close()


# The end of the process that forks


def serve(asks: socket.socket) -> bool:
    """Fork and signal as asked, and report the ends of processes.

    Returns True in each process that was forked, and False when nobody asks any more.
    """
    alive: dict[int, int] = {}
    woken, wakes = socket.socketpair()
    woken.setblocking(False)
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as either, woken, wakes, asks:
        either.register(asks, selectors.EVENT_READ)
        either.register(woken, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in either.select()]
            if woken in ready:
                woken.recv(4096)
            _reap(alive)
            if asks not in ready:
                continue
            header, files, *_ = socket.recv_fds(asks, _LENGTH.size, _FILES)
            try:
                header += _receive(asks, _LENGTH.size - len(header))
                request = json.loads(_receive(asks, _LENGTH.unpack(header)[0]))
            except EOFError:
                return False
            if files:
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for tells in alive.values():
                        os.close(tells)
                    _become_member(request, files)
                    return True
                # The member does so, too, but may not have come to it when it is to be killed.
                with contextlib.suppress(ProcessLookupError):
                    os.setpgid(pid, pid)
                for file in files[:-1]:
                    os.close(file)
                alive[pid] = files[-1]
            elif (pid := request["pid"]) in alive:
                _send(pid, request["signal"])
                _await(pid, request["signal"])
            asks.sendall(_LENGTH.pack(pid))


def _reap(alive: dict[int, int]) -> None:
    """Pass on the exit statuses of those that have ended, and kill what is left of their process groups."""
    for pid, tells in [*alive.items()]:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            _kill_group(pid)  # before it is waited for: then its id may be another's
            _, status = os.waitpid(pid, 0)
            del alive[pid]
            with contextlib.suppress(BrokenPipeError):  # nobody may want to know
                os.write(tells, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(tells)


def _await(pid: int, number: int) -> None:
    """Wait until a signal that stops or kills a child has done so; it stays there to be waited for."""
    if number in {signal.SIGSTOP, signal.SIGKILL}:
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def _become_member(request: dict[str, Any], files: list[int]) -> None:
    """In a process that was forked: take over what a fresh process gets from who starts it."""
    # A process group of its own: Ctrl-C in a terminal does not reach it, and should the parent die while the
    # member is frozen, the system wakes it and hangs up on it.
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, file in enumerate(files[:3]):
        os.dup2(file, target)
    for file in files:
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[:] = [request["folder"], *request["path"]]
    importlib.invalidate_caches()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # unlike `random`, it would draw the same in all


def main() -> int:
    """Fork members until nobody asks any more; in those, be a member. Returns the exit status."""
    for module in WARM:
        with contextlib.suppress(ImportError):  # whoever needs it will say so
            importlib.import_module(module)
    gc.freeze()
    if not serve(socket.socket(fileno=int(sys.argv[1]))):
        return 0
    from kafka_assignors.testing._groups import worker  # noqa: PLC0415 - imported above, or to fail here

    return worker.main()


if __name__ == "__main__":
    sys.exit(main())
