"""Files that commands write: whole and new, or as they were."""

import shutil
from pathlib import Path
from uuid import uuid4

from kafka_assignors._common.errors import KafkaAssignorsError


class OutputError(KafkaAssignorsError, OSError):
    """A file that could not be written; the message names it and the reason. It is as it was."""


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file in one step; raises OutputError if it cannot be written."""
    file = Path(path).resolve()  # a link stays one
    data = content.encode() if isinstance(content, str) else content
    new = file.with_name(f".{uuid4().hex}.new")
    try:
        if file.exists() and not file.is_file():  # a pipe, or a device
            file.write_bytes(data)
            return
        try:
            new.write_bytes(data)
            if file.exists():
                shutil.copymode(file, new)
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
