"""Apache Kafka's jars, fetched once and kept in a cache of the user's.

A list beside the code has the SHA-256 of each jar, as `sha256sum` writes it. Jars are compared with it when
they arrive, and whenever they are taken from the cache. The cache holds one folder per set of coordinates. A
fetch that fails, or is killed, leaves at most a ``.partial-`` folder, which the next fetch removes.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.progress import progress_bar

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


def kafka_jars() -> list[Path]:
    """Apache Kafka's server with all that it needs to run, from the cache or else from Maven Central.

    Several processes may ask at once: one fetches, the others wait for it. Mirrors named in jgo's own
    settings file are used. Raises JarsUnavailableError if jgo is not installed or cannot fetch them, or if
    what it fetched is not what was published.
    """
    prefix, title = f"kafka-{KAFKA_VERSION}", f"Apache Kafka {KAFKA_VERSION}"
    return fetch_jars(COORDINATES, _HASHES, prefix=prefix, title=title, size="45 MB, ")


def fetch_jars(
    coordinates: Sequence[str], hashes: Path, *, prefix: str = "jars", title: str = "", size: str = ""
) -> list[Path]:
    """Jars of any coordinates with all that they need, sorted by name, kept as `kafka_jars` keeps Kafka's.

    For what cannot stand on one class path with Kafka's server, such as classes of an older release.
    Coordinates are Maven's ("group:artifact:version"), resolved together; `hashes` is the list of their
    SHA-256. Raises JarsUnavailableError as `kafka_jars` does.
    """
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
                _fetch_entry(entry, wanted, published, title or ", ".join(wanted), size)
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
    entry: Path, coordinates: Sequence[str], published: Mapping[str, str], title: str, size: str
) -> None:
    """Fetch into a folder beside the entry, and give it the entry's name when all is as published."""
    partial = Path(tempfile.mkdtemp(prefix=f"{entry.name}.partial-", dir=entry.parent))
    try:
        _fetch(coordinates, partial, title, size)
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


def _fetch(coordinates: Sequence[str], folder: Path, title: str, size: str) -> None:
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
    resolver = PythonResolver()
    context = MavenContext(repo_cache=repository, resolver=resolver, timeout=30)
    with progress_bar(transient=True) as bar:
        if not bar.console.is_terminal:
            sys.stderr.write(f"Fetching {title} ({size}once) into {cache_folder()}\n")
        task = bar.add_task(f"{title}: resolving", total=None)
        try:
            context.remote_repos.update(GlobalSettings.load().repositories)
            inputs, others = resolver.resolve([context.create_dependency(name) for name in coordinates])
            artifacts = [dependency.artifact for dependency in [*inputs, *others]]
            bar.update(task, description=f"{title}: {len(artifacts)} jars")
            with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
                fetched = pool.map(lambda artifact: artifact.resolve(), artifacts)
                paths: list[Path] = [*bar.track(fetched, len(artifacts), task_id=task)]
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
