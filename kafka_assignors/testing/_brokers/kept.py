"""An embedded cluster that stays when a run of tests is over, so that the next run need not start one.

A keeper, a process of its own, starts the brokers, and ends them when nobody has used them for a time. A
process that uses them holds a shared lock on a file. The kernel releases it however the process ends. So
neither a crash nor a `kill -9` leaves brokers behind for good. The keeper holds the same lock alone while it
ends them, so that nobody finds brokers that are about to go.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from kafka_assignors._common.files import write_whole
from kafka_assignors.testing._brokers.broker import known_by
from kafka_assignors.testing._brokers.cluster import Cluster, common_settings, kafka_cluster
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError
from kafka_assignors.testing._brokers.jars import KAFKA_VERSION, cache_folder
from kafka_assignors.testing._brokers.waiting import MEND_TIMEOUT

if sys.platform != "win32":
    import fcntl

_LOOK_SECONDS: Final = 0.5
_LOG_LINES: Final = 30


@contextlib.contextmanager
def kept_cluster(
    nodes: int = 1,
    *,
    seconds: float,
    settings: Mapping[str, str | int] | None = None,
    folder: Path | None = None,
) -> Iterator[Cluster]:
    """Use the kept cluster of these nodes and settings, which is started if there is none.

    The cluster is as a given one: several may use it, so its brokers are nobody's to kill. Topics and groups
    of earlier users may be there. It stays for some seconds after the last one who used it. The folder is for
    what users and keeper have in common, by default in the user's cache. Raises ClusterUnavailableError if
    the cluster cannot be started here.
    """
    if sys.platform == "win32":
        raise ClusterUnavailableError("keeping a cluster needs a POSIX system: start one each time")
    wanted = {"kafka": KAFKA_VERSION, "nodes": nodes, "settings": dict(settings or {})}
    # With the built-in settings, too: another release of the kit may have others.
    whole = json.dumps([wanted, common_settings(nodes)], sort_keys=True)
    digest = hashlib.sha256(whole.encode()).hexdigest()[:12]
    place = _Place((folder or cache_folder() / "kept") / digest)
    with place.locked("in_use", fcntl.LOCK_SH):
        with place.locked("starting", fcntl.LOCK_EX):
            write_whole(place.wanted, json.dumps({**wanted, "seconds": seconds}))
            servers = _running(place, nodes) or _started(place)
        yield _KeptCluster(servers, nodes, "given")


class _KeptCluster(Cluster):
    """A cluster that is kept: others use it, too, and its brokers are the keeper's, not ours to start."""

    @property
    def version(self) -> str:
        return KAFKA_VERSION

    def wrong(self) -> list[str]:
        """Which brokers do not answer: who finds one has another cluster started, and so has its keeper."""
        silent = [server for server in self.bootstrap_servers if not known_by(server)]
        return [f"{server} of the kept cluster does not answer" for server in silent]

    def mend(self, timeout: float = MEND_TIMEOUT) -> list[str]:  # noqa: ARG002 - there is nothing to wait for
        """Raise ClusterUnavailableError if some do not answer: the next user will have another cluster."""
        if wrong := self.wrong():
            raise ClusterUnavailableError(f"not ours to mend: {', '.join(wrong)}")
        return []


class _Place:
    """The folder by which users and keeper know of each other.

    Its files are what is wanted, what is kept, and what the keeper writes to its standard error.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.wanted, self.kept, self.log = folder / "wanted.json", folder / "kept.json", folder / "log"

    def locked(self, name: str, how: int) -> IO[str]:
        """A lock, held until it is closed. It is waited for; with LOCK_NB that is a BlockingIOError instead.

        filelock's is held alone only; the one of its that readers share is a database.
        """
        with contextlib.ExitStack() as stack:
            lock = stack.enter_context((self.folder / f"{name}.lock").open("w"))
            fcntl.flock(lock, how)
            stack.pop_all()
            return lock


def _read(path: Path) -> Any:
    """What was written; None if nothing was."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _running(place: _Place, nodes: int) -> list[str] | None:
    """The servers of the cluster that is kept; None if there is none, or not any more."""
    kept = _read(place.kept)
    if kept is None:
        return None
    servers: list[str] = kept["servers"]
    if all(len(known_by(server)) == nodes for server in servers):
        return servers
    # Its keeper was killed, and another process may have the ports by now.
    place.kept.unlink(missing_ok=True)
    return None


def _started(place: _Place) -> list[str]:
    """The servers of a cluster that a new keeper has started."""
    command = [sys.executable, "-m", __name__, str(place.folder)]
    with place.log.open("wb") as log:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    kept = _read(place.kept)
    if run.returncode != 0 or kept is None:
        end = "\n".join(place.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])
        raise ClusterUnavailableError(f"the cluster to be kept did not start:\n{end}")
    servers: list[str] = kept["servers"]
    return servers


def _keep(place: _Place) -> None:
    """Start the cluster that is wanted, and end it when it was unused for as long as its last user said."""
    wanted = _read(place.wanted)
    with kafka_cluster(wanted["nodes"], how="embedded", settings=wanted["settings"]) as cluster:
        write_whole(place.kept, json.dumps({"pid": os.getpid(), "servers": cluster.bootstrap_servers}))
        lock = _until_unused(place, cluster)
        place.kept.unlink(missing_ok=True)
    # Not before: who comes now waits until the brokers have gone, and starts others.
    if lock is not None:
        lock.close()


def _until_unused(place: _Place, cluster: Cluster) -> IO[str] | None:
    """Wait until nobody has used a cluster for long enough, and take its lock; None if a broker has died."""
    used = time.monotonic()
    while cluster.death() is None:
        time.sleep(_LOOK_SECONDS)
        try:
            lock = place.locked("in_use", fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            used = time.monotonic()
            continue
        if time.monotonic() - used > _read(place.wanted)["seconds"]:
            return lock
        lock.close()
    return None


def main(folder: str) -> int:
    """Start a keeper that outlives this process; 0 when its cluster can be used, 1 if it cannot."""
    place = _Place(Path(folder))
    place.kept.unlink(missing_ok=True)
    keeper = os.fork()
    if keeper == 0:
        # Ctrl-C of the test run, and the end of its terminal, are not the keeper's.
        os.setsid()
        _keep(place)
        return 0
    while not place.kept.exists():
        if os.waitpid(keeper, os.WNOHANG) != (0, 0):
            return 1
        time.sleep(_LOOK_SECONDS / 10)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
