"""Folders and small files on any file system that pyarrow knows."""

from __future__ import annotations

import posixpath
from typing import Any, Final
from urllib.parse import quote

from pyarrow import fs

_NEVER_ESCAPED: Final = "/:@?=&"
"""Letters that are something else in a URI: Arrow takes options of a file system behind the path."""


def open_folder(path: str) -> tuple[Any, str]:
    """The file system of a path or URI as Spark takes it, in which nothing is escaped, and the path there."""
    for scheme in ("s3a://", "s3n://"):  # Hadoop's names of what Arrow calls s3
        if path.startswith(scheme):
            path = "s3://" + path.removeprefix(scheme)
    if path.startswith("file:") or "://" not in path:
        inner = path.removeprefix("file:")
        if inner != path and inner.startswith("//"):  # and a host, which local files do not have
            inner = "/" + inner[2:].partition("/")[2]
        return fs.LocalFileSystem(), posixpath.abspath(inner)
    scheme, _, rest = path.partition("://")
    filesystem, inner = fs.FileSystem.from_uri(f"{scheme}://{quote(rest, safe=_NEVER_ESCAPED)}")
    return filesystem, inner


def remove(filesystem: Any, path: str) -> None:
    """Remove a folder, if it is there."""
    if filesystem.get_file_info(path).type == fs.FileType.Directory:
        filesystem.delete_dir(path)


def write_text(folder: str, name: str, text: str) -> None:
    """Write a small file, whole or not at all: under another name first, then moved."""
    filesystem, path = open_folder(folder)
    filesystem.create_dir(path)
    partial = posixpath.join(path, f".{name}.partial")
    with filesystem.open_output_stream(partial) as file:
        file.write(text.encode())
    filesystem.move(partial, posixpath.join(path, name))


def read_text(folder: str, name: str) -> str | None:
    """Read such a file; None if there is none."""
    filesystem, path = open_folder(folder)
    try:
        with filesystem.open_input_stream(posixpath.join(path, name)) as file:
            return str(file.read().decode())
    except FileNotFoundError:
        return None


def remove_file(folder: str, name: str) -> None:
    """Remove a file in a folder."""
    filesystem, path = open_folder(folder)
    filesystem.delete_file(posixpath.join(path, name))


def move_files(folder: str, source: str, target: str) -> None:
    """Move the files of one table to another."""
    filesystem, path = open_folder(folder)
    filesystem.create_dir(posixpath.join(path, target))
    for info in filesystem.get_file_info(fs.FileSelector(posixpath.join(path, source))):
        filesystem.move(info.path, posixpath.join(path, target, info.base_name))
    remove(filesystem, posixpath.join(path, source))


def remove_folder(folder: str, name: str) -> None:
    """Remove a folder in a folder, if it is there."""
    filesystem, path = open_folder(folder)
    remove(filesystem, posixpath.join(path, name))


def folders(folder: str) -> list[str]:
    """The names of the folders in a folder; none if it is not there."""
    filesystem, path = open_folder(folder)
    infos = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(info.base_name for info in infos if info.type == fs.FileType.Directory)
