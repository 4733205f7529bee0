"""Apache Kafka's jars, fetched once and kept in a cache of the user's.

A list beside the code has the SHA-256 of each jar, as `sha256sum` writes it. Jars are compared with it when
they arrive, and whenever they are taken from the cache. The cache holds one folder per set of coordinates. A
fetch that fails, or is killed, leaves at most a ``.partial-`` folder, which the next fetch removes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING

from filelock import FileLock
from platformdirs import user_cache_path

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.progress import Progress

__tracebackhide__ = True

log = get_logger(__name__)

KAFKA_VERSION = "4.3.1"
COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    # By its own name: log4j's dependency management would otherwise drag it down to 3.9.1, and the broker
    # then dies of a NoSuchMethodError.
    f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}",
    # Without it the broker logs nothing.
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)

_HASHES = Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.sha256")
_DOWNLOADS_AT_ONCE = 8


class JarsUnavailableError(KafkaAssignorsError, RuntimeError):
    """The jars are not in the cache and cannot be fetched."""


def cache_folder() -> Path:
    """Where this package keeps what it has fetched; the folder need not exist.

    It is ``$KAFKA_ASSIGNORS_CACHE``, else the user's cache folder of the platform: on Linux
    ``$XDG_CACHE_HOME/kafka-assignors`` or ``~/.cache/kafka-assignors``.
    """
    if own := os.environ.get("KAFKA_ASSIGNORS_CACHE"):
        return Path(own).expanduser().absolute()
    return user_cache_path("kafka-assignors", appauthor=False)


def kafka_jars(*, progress: bool = True) -> list[Path]:
    """Apache Kafka's server with all that it needs to run, from the cache or else from Maven Central.

    The download (about 45 MB) happens once; afterwards no network is needed. Several processes may ask at
    once: one fetches, the others wait for it. Mirrors named in jgo's own settings file are used. Each jar is
    compared with its published SHA-256 whenever it is taken.

    Args:
        progress: While fetching, show a bar on stderr if that is a terminal, else one line. Nothing is
            shown for jars in the cache.

    Returns:
        The jars, sorted by name.

    Raises:
        JarsUnavailableError: They are not in the cache, and jgo is not installed or cannot fetch them, or
            what it fetched is not what was published.
    """
    title = f"Apache Kafka {KAFKA_VERSION}"
    prefix = f"kafka-{KAFKA_VERSION}"
    return _cached(prefix, COORDINATES, _HASHES, title, size="45 MB, ", progress=progress)


def fetch_jars(coordinates: Sequence[str], hashes: Path, *, progress: bool = True) -> list[Path]:
    """Jars of any coordinates with all that they need, sorted by name, kept as `kafka_jars` keeps Kafka's.

    For what cannot stand on one class path with Kafka's server, such as classes of an older release.
    Coordinates are Maven's ("group:artifact:version"), resolved together; `hashes` is the list of their
    SHA-256. Raises JarsUnavailableError as `kafka_jars` does.
    """
    title = ", ".join(sorted(coordinates))
    return _cached("jars", coordinates, hashes, title, size="", progress=progress)


def _cached(
    prefix: str, coordinates: Sequence[str], hashes: Path, title: str, *, size: str, progress: bool
) -> list[Path]:
    """The jars of these coordinates from their entry in the cache, which is fetched if it is not whole."""
    wanted = sorted(set(coordinates))
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    entry = cache_folder() / "jars" / f"{prefix}-{digest}"
    published = {name: sha for sha, name in map(str.split, hashes.read_text(encoding="utf-8").splitlines())}
    jars = [entry / name for name in sorted(published)]
    if _wrong(jars, published):
        with _locked(entry):
            # Another process may have fetched them while this one waited for the lock.
            if wrong := _wrong(jars, published):
                if entry.exists():
                    log.warning("%s is replaced: not as published: %s", entry, ", ".join(wrong))
                display = _Display(sys.stderr, title, size) if progress else None
                _fetch_entry(entry, wanted, published, display)
    return jars


def class_path(jars: Iterable[Path]) -> str:
    """The jars as one value for Java's ``-cp``."""
    return os.pathsep.join(map(str, jars))


def _wrong(jars: Iterable[Path], published: Mapping[str, str]) -> list[str]:
    """The names of jars that are missing, or not as published."""
    return [jar.name for jar in jars if not jar.is_file() or _sha256(jar) != published.get(jar.name)]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_entry(
    entry: Path, coordinates: Sequence[str], published: Mapping[str, str], display: _Display | None
) -> None:
    """Fetch into a folder beside the entry, and give it the entry's name when all is as published."""
    partial = Path(tempfile.mkdtemp(prefix=f"{entry.name}.partial-", dir=entry.parent))
    try:
        _fetch(coordinates, partial, display)
        if wrong := _wrong(sorted({*partial.iterdir(), *map(partial.joinpath, published)}), published):
            raise JarsUnavailableError(
                f"not as published, by SHA-256: {', '.join(wrong)}, fetched for {', '.join(coordinates)}."
                " Name Maven Central or a true mirror of it in jgo's settings; or name a running cluster"
                " (KAFKA_BOOTSTRAP)."
            )
        if entry.exists():
            entry.rename(partial / "damaged")
        partial.rename(entry)
        shutil.rmtree(entry / "damaged", ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(coordinates: Sequence[str], folder: Path, display: _Display | None) -> None:
    """Resolve and download into an empty folder."""
    try:
        # An optional extra, and needed only here: with the jars in the cache, it is never imported.
        from jgo.config import GlobalSettings  # noqa: PLC0415
        from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415
    except ImportError as error:
        raise JarsUnavailableError(
            "Kafka's jars are not in the cache, and jgo, which fetches them, is not installed: "
            "pip install 'kafka-assignors[broker]'"
        ) from error
    repository = folder / "repository"
    with contextlib.ExitStack() as stack:
        if display is not None:
            stack.enter_context(display)
        resolver = PythonResolver(progress_callback=None if display is None else display.download)
        context = MavenContext(repo_cache=repository, resolver=resolver, timeout=30)
        try:
            context.remote_repos.update(GlobalSettings.load().repositories)
            inputs, others = resolver.resolve([context.create_dependency(name) for name in coordinates])
            artifacts = [dependency.artifact for dependency in [*inputs, *others]]
            if display is not None:
                display.expect(len(artifacts))
            with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
                paths: list[Path] = list(pool.map(lambda artifact: artifact.resolve(), artifacts))
        except Exception as error:
            # jgo and requests raise many kinds of error; to the caller all mean the same.
            raise JarsUnavailableError(
                f"cannot fetch Kafka's jars ({', '.join(coordinates)}): {error}. Maven Central must be in "
                "reach, or a mirror named in jgo's settings; or name a running cluster (KAFKA_BOOTSTRAP)."
            ) from error
    for path in paths:
        path.rename(folder / path.name)
    shutil.rmtree(repository)


@contextlib.contextmanager
def _locked(entry: Path) -> Iterator[None]:
    """Hold the entry's lock, for which others wait; the holder may remove what killed fetches left behind."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(entry.with_name(f"{entry.name}.lock")):
        for partial in entry.parent.glob(f"{entry.name}.partial-*"):
            shutil.rmtree(partial, ignore_errors=True)
        yield


class _Display:
    """Tells on stderr that jars are being fetched: a bar on a terminal, else one line."""

    def __init__(self, stream: IO[str], title: str, size: str) -> None:
        self._stream = stream
        self._title = title
        self._size = size
        self._bar: Progress | None = None

    def __enter__(self) -> None:
        if not self._stream.isatty():
            self._stream.write(f"Fetching {self._title} ({self._size}once) into {cache_folder()}\n")
            self._stream.flush()
            return
        from rich.console import Console  # noqa: PLC0415 - as jgo above

        self._bar = progress_bar(
            Console(file=self._stream), count="{task.fields[megabytes]:.0f} MB", transient=True
        )
        self._bar.start()
        self._task = self._bar.add_task(f"{self._title}: resolving", total=None, megabytes=0.0)
        self._bytes = 0

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def expect(self, jars: int) -> None:
        """The resolution is done: so many jars are to come."""
        if self._bar is not None:
            self._bar.update(self._task, description=f"{self._title}: {jars} jars", total=jars)

    @contextlib.contextmanager
    def download(self, filename: str, _size: int) -> Iterator[Callable[[int], None]]:
        """One file's download, in the way that jgo wants it: yields what to call with each chunk's length."""
        yield self._received
        if self._bar is not None and filename.endswith(".jar"):
            self._bar.advance(self._task)

    def _received(self, length: int) -> None:
        if self._bar is not None:
            self._bytes += length
            self._bar.update(self._task, megabytes=self._bytes / 1e6)
