"""Child processes that do not outlive the Python that started them, however that ends.

Each has a watchdog: a shell that reads from a socket whose other end Python holds. When Python has stopped
the process in an orderly way, it writes a line and the watchdog leaves. If the socket closes without one,
Python is gone (a crash, SIGKILL, SIGTERM without a handler). Then the watchdog kills the process and removes
its folder.
"""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kafka_assignors._common.escaping import get_logger
from kafka_assignors.testing._brokers.waiting import STOP_TIMEOUT

log = get_logger(__name__)

# $1: the folder to remove if Python is gone; then the command. The shell becomes the command, so the process
# that Python knows is Java itself. Its id cannot have come to mean another process when the watchdog uses it
# as $$: it is also the id of the process group, in which the watchdog still is. Removing may take a second
# try, if a broker whose own watchdog is slower writes meanwhile.
_WATCHED = """
folder=$1; shift
exec 3<&0 </dev/null
(
  read -r _ <&3 && exit
  kill -KILL $$
  rm -rf -- "$folder" || { sleep 1; rm -rf -- "$folder"; }
) >/dev/null 2>&1 &
exec "$@" 3<&-
"""


class WatchedProcess:
    """A child process that ends when this Python does, and that a Ctrl-C in the terminal does not reach.

    Its folder is removed if this Python ends without having called `end`.
    """

    def __init__(self, command: Sequence[str], output: Path, folder: Path) -> None:
        self._leash, theirs = socket.socketpair()
        with theirs, output.open("wb") as stream:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WATCHED, "sh", str(folder), *command],
                stdin=theirs.fileno(),
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its id, and that of its process group."""
        return self._process.pid

    def status(self) -> int | None:
        """The exit status, or None while it lives."""
        return self._process.poll()

    def suspend(self) -> None:
        """Stop all of its threads; they have stopped on return."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it, wait until it and its watchdog have ended, and return its exit status."""
        self._process.send_signal(how)  # nothing, if it has ended
        try:
            status = self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            log.warning(
                "process %d is still there after %.0f s and is killed", self._process.pid, STOP_TIMEOUT
            )
            self._process.kill()
            status = self._process.wait()
        with self._leash, contextlib.suppress(OSError):  # if somebody has killed the watchdog
            self._leash.sendall(b"\n")
            self._leash.settimeout(STOP_TIMEOUT)
            self._leash.recv(1)  # the end of the stream: the watchdog held the other end
        return status

    def wait(self) -> int:
        """Wait until it ends by itself; return its exit status."""
        self._process.wait()
        return self.end()
