"""Archives that another process writes."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_assignors.history._archive import Archive, ArchiveBusyError


def test_one_process_writes_at_a_time_until_it_ends(tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    script = (
        "import sys; from kafka_assignors.history._archive import Archive\n"
        f"with Archive({str(tmp_path)!r}).writing(): print('writing', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        with pytest.raises(ArchiveBusyError, match="wait for it, or end it"), archive.writing():
            pass
        other.kill()
        other.wait()
        with archive.writing():
            pass
