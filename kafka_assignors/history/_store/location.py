"""A folder of this machine, or one of an object store.

Small files, Parquet and Delta logs all go by the same options and the same client, delta-rs's. Folders and S3
are tested; whatever else delta-rs can reach gets the options as they are.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from kafka_assignors._common.errors import KafkaAssignorsError

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|([A-Za-z][A-Za-z0-9+.-]+):/")
_SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfss": "abfss", "abfs": "abfss"}
"""Of stores, those of Hadoop among them, and what delta-rs calls them."""
_ENVIRONMENT: Final = {"s3": "AWS_", "gs": "GOOGLE_", "abfss": "AZURE_"}  # what their variables begin with
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL", "AZURE_STORAGE_ENDPOINT")

_RETRIES: Final = {"max_retries": "1000", "retry_timeout": "60s"}
"""A store that throttles or does not answer is asked again for a minute. The client's own ten times are over
after 2 to 6 s (measured), and S3 takes longer to make room."""
_SMALL: Final = 2**20  # bytes that are read of a small file
_MISREAD: Final = re.compile(r"%[0-9A-Fa-f]{2}|\\")
"""What delta-rs takes for another letter in the names of folders."""


class WrongPlaceError(KafkaAssignorsError, ValueError):
    """A path or URI names no place that can be used; the message says what can."""


class StoreError(KafkaAssignorsError, OSError):
    """A store refused something, or did not answer; the message says what was tried, and why it failed."""


@dataclass(frozen=True)
class Location:
    """A folder here, by its absolute path, or in a store, by its URI and options, as variables spell them."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, name: str) -> "Location":
        return Location(f"{self.uri.rstrip('/')}/{name}", self.options)

    @property
    def local(self) -> Path | None:
        """The folder, if it is one of this machine."""
        return None if "://" in self.uri else Path(self.uri)

    @property
    def around(self) -> list["Location"]:
        """The folders that it is in, the nearest first."""
        if self.local is not None:
            return [Location(str(folder)) for folder in self.local.resolve().parents]
        parts = self.uri.split("/")
        return [Location("/".join(parts[:end]), self.options) for end in range(len(parts) - 1, 2, -1)]

    @property
    def escaped(self) -> str:
        """As a URI, in which letters of a folder's name are escaped."""
        return self.uri if self.local is None else self.local.as_uri()

    def files(self) -> Any:
        """Arrow's file system of what is in it; paths are relative to it."""
        return _file_system(self.uri, tuple(sorted(self.options.items())))

    def read_text(self, name: str) -> str | None:
        """A small file; None if there is none."""
        missing = suppress(FileNotFoundError)
        with asking(f"read {self / name}"), missing, self.files().open_input_stream(name) as file:
            return str(file.read(_SMALL).decode(errors="replace"))
        return None

    def write_text(self, name: str, text: str) -> None:
        """Write a small file, whole or not at all."""
        written = name if self.local is None else f".{name}.{uuid4().hex}"  # a store's files are whole
        with asking(f"write {self / name}"):
            if self.local is not None:
                self.local.mkdir(parents=True, exist_ok=True)
            with self.files().open_output_stream(written) as file:
                file.write(text.encode())
            if self.local is not None:
                (self.local / written).replace(self.local / name)

    def names(self) -> list[str]:
        """What lies in it, in order; nothing if it is not there."""
        with asking(f"list {self}"):
            found = self.files().get_file_info(fs.FileSelector("", allow_not_found=True))
        return sorted(info.base_name for info in found)

    def remove(self, names: list[str]) -> None:
        """Remove files, as far as they can be: what is left is nobody's, and is cleaned up later."""
        with suppress(OSError, DeltaError):  # a store that does not answer is not asked for each file
            for name in names:
                with suppress(FileNotFoundError):
                    self.files().delete_file(name)


def locate(text: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Location:
    """The location that a path or URI names; options come before those of the environment."""
    given = os.fspath(text)
    if not given:
        raise WrongPlaceError("'' names no folder: write . for the one that you are in")
    found = _URI.match(given)
    if found is None:
        return _folder(given)
    scheme = (found[1] or found[2]).lower()
    rest = given[found.end() :]
    if "?" in given or "#" in given:
        raise WrongPlaceError(f"{given} has a ? or # in it, which URIs end with: name another folder")
    if scheme == "file":
        split = urlsplit(given)
        if split.netloc not in {"", "localhost"}:
            raise WrongPlaceError(f"{given} is of the machine {split.netloc}: write file:///folder")
        return _folder(unquote(split.path))
    if found[2]:
        raise WrongPlaceError(
            f"{given} cannot be used: a URI has two slashes, which pathlib makes one. Write"
            f" {found[2]}://{rest} as text, or ./{given} if it is a folder"
        )
    kind = _SCHEMES.get(scheme)
    if kind is None:
        raise WrongPlaceError(
            f"{given} cannot be used: known are paths, file://, s3:// (s3a://), gs:// and abfss://"
        )
    bucket, _, path = rest.partition("/")
    if not bucket:
        raise WrongPlaceError(f"{given} names no bucket: write {kind}://bucket/folder")
    return Location(f"{kind}://{bucket}/{path.strip('/')}".rstrip("/"), _options(kind, options or {}))


def _folder(given: str) -> Location:
    path = os.path.abspath(given)  # noqa: PTH100 - links stay as they are named
    for name in (path, os.path.realpath(path)):  # delta-rs follows links
        if misread := _MISREAD.search(name):
            raise WrongPlaceError(
                f"{name} cannot be used: delta-rs takes the {misread[0]} in it for another letter; name"
                " another folder"
            )
    return Location(path)


def _options(kind: str, given: Mapping[str, str]) -> dict[str, str]:
    begin = _ENVIRONMENT[kind]
    options = _RETRIES | {name: value for name, value in os.environ.items() if name.startswith(begin)}
    # What has no variable, such as retry_timeout, is known in small letters alone.
    options.update(
        (name.upper() if name.upper().startswith(begin) else name.lower(), value)
        for name, value in given.items()
    )
    # As the store's own tools have it: whoever writes http:// means it.
    if any(options.get(endpoint, "").startswith("http://") for endpoint in _ENDPOINTS):
        options.setdefault(f"{begin}ALLOW_HTTP", "true")
    return options


@lru_cache(maxsize=64)
def _file_system(uri: str, options: tuple[tuple[str, str], ...]) -> Any:
    if "://" not in uri:
        return fs.SubTreeFileSystem(uri, fs.LocalFileSystem())
    return fs.PyFileSystem(_StoreFiles(uri, dict(options)))


class _StoreFiles(DeltaStorageHandler):
    """delta-rs's files of a store, which say what it refuses: Arrow raises the same for damaged files."""

    def __init__(self, uri: str, options: dict[str, str]) -> None:
        super().__init__(uri, options)
        self._uri = uri

    def open_input_file(self, path: str) -> Any:
        doing = f"read {self._uri}/{path}"
        return pa.PythonFile(_File(_asked(self._handler.open_input_file, path, doing=doing), doing), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: Any = None) -> Any:
        doing = f"write {self._uri}/{path}"
        opened = _asked(self._handler.open_output_stream, path, metadata, doing=doing)
        return pa.PythonFile(_File(opened, doing), mode="w")


class _File:
    def __init__(self, file: Any, doing: str) -> None:
        self._file = file
        self._doing = doing

    def write(self, data: Any) -> None:
        """Arrow hands on buffers of its own, and delta-rs takes bytes."""
        _asked(self._file.write, bytes(data), doing=self._doing)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        return partial(_asked, found, doing=self._doing) if callable(found) else found


def _asked(ask: Callable[..., Any], *arguments: Any, doing: str) -> Any:
    """What a store answers; that there is no such file is no refusal."""
    with asking(doing, (FileNotFoundError,)):
        return ask(*arguments)


@contextmanager
def asking(what: str, known: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Say what was tried, in words, if a store does not do it; errors that are known come as they are."""
    try:
        yield
    except (OSError, ValueError, DeltaError) as error:
        if isinstance(error, (KafkaAssignorsError, CommitFailedError, TableNotFoundError, *known)):
            raise
        raise StoreError(f"cannot {what}: {reason_of(error)}") from error


_STATUS: Final = re.compile(r"\b([45]\d\d) [A-Z][A-Za-z ]+")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE: Final = re.compile(r"\n +0: ")
_HINTS: Final = {
    "ExpiredToken": "the credentials have expired: renew them",
    "400": "the store does not take it: check the region, and whether the credentials have expired",
    "401": "the store does not know these credentials: check them, and whether they have expired",
    "403": "the store does not allow it: check the credentials and what they may do",
    "404": "there is no such bucket or container",
    "503": "the store is busy or not available",
    "507": "the store is full",
}
"""By the store's name of the error, or by its status."""
_METADATA: Final = ("169.254.169.254", "/latest/api/token", "metadata.google.internal")
"""Where a client asks for credentials that finds none: the machine's, of AWS and Azure, and of Google."""


def reason_of(error: Exception) -> str:
    """What a store's client says in many lines, in one: the deepest cause, and what the status means."""
    text = _BACKTRACE.split(_COLOURS.sub("", str(error)))[0]
    if any(asked in text for asked in _METADATA):
        return (
            "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your store"
            " wants in their place"
        )
    lines = [line.strip(" ↳") for line in text.splitlines() if line.strip(" ↳")]
    reason = lines[-1] if lines else type(error).__name__
    if status := _STATUS.search(text):
        code = _CODE.search(text)
        hint = _HINTS.get(code[1] if code else "", _HINTS.get(status[1]))
        reason = f"{status[0].strip()}{f' ({code[1]})' if code else ''}{f': {hint}' if hint else ''}"
    return reason
