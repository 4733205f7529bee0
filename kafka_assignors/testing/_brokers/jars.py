"""Apache Kafka's jars, fetched once and kept in a cache of the user's.

The cache holds one folder per set of coordinates. A folder gets its name by a rename, after all of its files
have arrived and been checked. So a folder of that name is whole. A fetch that fails, or is killed, leaves at
most a ``.partial-`` folder, which the next fetch removes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
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

_MANIFEST = "manifest.json"
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


def kafka_jars(*, extra: Sequence[str] = (), progress: bool = True) -> list[Path]:
    """Apache Kafka's server with all that it needs to run, from the cache or else from Maven Central.

    The download (about 45 MB) happens once per set of coordinates; afterwards no network is needed. Several
    processes may ask at once: one fetches, the others wait for it. Mirrors named in jgo's own settings file
    are used.

    Args:
        extra: Further Maven coordinates ("group:artifact:version"), resolved together with Kafka's into a
            cache entry of their own.
        progress: While fetching, show a bar on stderr if that is a terminal, else one line. Nothing is
            shown for jars in the cache.

    Returns:
        The jars, sorted by name.

    Raises:
        JarsUnavailableError: They are not in the cache, and jgo is not installed or cannot fetch them.
    """
    title = f"Apache Kafka {KAFKA_VERSION}"
    return _cached(f"kafka-{KAFKA_VERSION}", [*COORDINATES, *extra], title, size="45 MB, ", progress=progress)


def fetch_jars(coordinates: Sequence[str], *, progress: bool = True) -> list[Path]:
    """Jars of any coordinates with all that they need, sorted by name, kept as `kafka_jars` keeps Kafka's.

    For what cannot stand on one class path with Kafka's server, such as classes of an older release.
    Coordinates are Maven's ("group:artifact:version"), resolved together. Raises JarsUnavailableError if they
    are not in the cache, and jgo is not installed or cannot fetch them.
    """
    return _cached("jars", coordinates, ", ".join(sorted(coordinates)), size="", progress=progress)


def _cached(prefix: str, coordinates: Sequence[str], title: str, *, size: str, progress: bool) -> list[Path]:
    """The jars of these coordinates from their entry in the cache, which is fetched if it is not whole."""
    wanted = sorted(set(coordinates))
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    entry = cache_folder() / "jars" / f"{prefix}-{digest}"
    if (jars := _read_entry(entry)) is not None:
        return jars
    with _locked(entry):
        # Another process may have fetched them while this one waited for the lock.
        if (jars := _read_entry(entry)) is None:
            jars = _fetch_entry(entry, wanted, _Display(sys.stderr, title, size) if progress else None)
    return jars


def class_path(jars: Iterable[Path]) -> str:
    """The jars as one value for Java's ``-cp``."""
    return os.pathsep.join(map(str, jars))


def _read_entry(entry: Path) -> list[Path] | None:
    """The entry's jars, or None if it is missing or any file has not the size it came with."""
    try:
        sizes: dict[str, int] = json.loads((entry / _MANIFEST).read_text())["files"]
        whole = all((entry / name).stat().st_size == size for name, size in sizes.items())
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):  # not the manifest that we wrote
        return None
    return [entry / name for name in sorted(sizes)] if whole else None


def _fetch_entry(entry: Path, coordinates: Sequence[str], display: _Display | None) -> list[Path]:
    """Fetch into a folder beside the entry, and give it the entry's name when it is whole."""
    partial = Path(tempfile.mkdtemp(prefix=f"{entry.name}.partial-", dir=entry.parent))
    try:
        sizes = _fetch(coordinates, partial, display)
        manifest = {"coordinates": coordinates, "files": sizes}
        (partial / _MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True))
        if entry.exists():
            log.warning("%s is damaged and is replaced", entry)
            entry.rename(partial / "damaged")
        partial.rename(entry)
        shutil.rmtree(entry / "damaged", ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    jars = _read_entry(entry)
    if jars is None:
        raise JarsUnavailableError(f"{entry} was changed while it was being fetched; try again")
    return jars


def _fetch(coordinates: Sequence[str], folder: Path, display: _Display | None) -> Mapping[str, int]:
    """Resolve and download into an empty folder; return the size in bytes of each jar by its file name."""
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
    sizes: dict[str, int] = {}
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
            for path in paths:
                _check_jar(path)
        except Exception as error:
            # jgo and requests raise many kinds of error; to the caller all mean the same.
            raise JarsUnavailableError(
                f"cannot fetch Kafka's jars ({', '.join(coordinates)}): {error}. Maven Central must be in "
                "reach, or a mirror named in jgo's settings; or name a running cluster (KAFKA_BOOTSTRAP)."
            ) from error
    for path in paths:
        if path.name in sizes:
            raise JarsUnavailableError(f"two different jars are called {path.name}")
        sizes[path.name] = path.stat().st_size
        path.rename(folder / path.name)
    shutil.rmtree(repository)
    return sizes


def _check_jar(path: Path) -> None:
    """Compare a jar's content with its checksums: jgo only logs that a download is not as published."""
    with zipfile.ZipFile(path) as jar:
        if (damaged := jar.testzip()) is not None:
            raise zipfile.BadZipFile(f"{path.name} arrived damaged ({damaged})")


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
