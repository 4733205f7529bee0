"""The C parts under AddressSanitizer and UndefinedBehaviorSanitizer, on inputs that are changed at random.

A process of its own: the sanitizer's library must be loaded before anything else, and what it finds ends
the process. Python takes every object from malloc there, so that reading past an input is found, but for the
one byte that Python puts behind it.
"""

import importlib.util
import logging
import mmap
import os
import resource
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any, Final

FOLDERS: Final = {"_codec": Path("kafka_assignors/_wire"), "_flow": Path("kafka_assignors/planners/_exact")}
_ROOM: Final = 2**20
_FEW: Final = (
    b"",
    b"\0",
    b"\1",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    bytes(4),
)


def run(name: str, seconds: int, corpus: Path, reproduce: bytes | None) -> int:
    """Build the extensions, run a target on them in a child, and say on which input that died, if it did."""
    with tempfile.TemporaryDirectory() as folder:
        last = Path(folder) / "last"
        for module, sources in FOLDERS.items():
            _build(sorted(sources.glob("*.c")), Path(folder) / f"{module}.so")
        given = reproduce or b""
        last.write_bytes((struct.pack(">i", len(given)) + given).ljust(_ROOM, b"\0"))
        preload = subprocess.run(
            [_compiler(), "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
        )
        seconds = seconds if reproduce is None else 0
        child = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.sanitized", name, str(seconds), corpus, folder, last],
            check=False,
            env={
                **os.environ,
                "LD_PRELOAD": preload.stdout.strip(),
                "PYTHONMALLOC": "malloc",
                "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16",  # the interpreter keeps what it has
                "UBSAN_OPTIONS": "print_stacktrace=1",
            },
        )
        if child.returncode:
            data = _last(last.read_bytes())
            sys.stderr.write(f"\nagain: python -m tests.fuzz {name} --sanitize --reproduce '{data.hex()}'\n")
        return child.returncode


def _compiler() -> str:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise SystemExit("--sanitize needs gcc with its libasan and libubsan")
    return compiler


def _build(sources: list[Path], library: Path) -> None:
    subprocess.run(
        [
            _compiler(),
            *("-shared", "-fPIC", "-std=c11", "-O1", "-g", "-DPy_LIMITED_API=0x030B0000"),
            *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
            f"-I{sysconfig.get_paths()['include']}",
            *sources,
            *("-o", library),
        ],
        check=True,
    )


def _last(raw: bytes) -> bytes:
    (size,) = struct.unpack_from(">i", raw)
    return raw[4 : 4 + size]


def _mutated(rng: Random, inputs: list[bytes]) -> bytes:
    """An input with some of its bytes changed, left out or put in, or replaced by some of another's."""
    raw = bytearray(rng.choice(inputs))
    for _ in range(rng.randint(1, 6)):
        start = rng.randint(0, len(raw))
        stop = min(len(raw), start + rng.choice([0, 0, 1, 1, 2, 4, 4, 8, 64]))
        other = rng.choice(inputs)
        place = rng.randint(0, len(other))
        raw[start:stop] = rng.choice(
            [rng.choice(_FEW), rng.randbytes(stop - start), other[place : place + rng.choice([2, 4, 16, 64])]]
        )
    return bytes(raw[: _ROOM - 4])


def _noted(note: mmap.mmap, data: bytes) -> None:
    """Leave the input where the parent finds it if this process dies of it."""
    note[: 4 + len(data)] = struct.pack(">i", len(data)) + data


def _sanitized(module: str, folder: str) -> Any:
    spec = importlib.util.spec_from_file_location(module, Path(folder) / f"{module}.so")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _child(name: str, seconds: int, corpus: str, folder: str, last: str) -> None:
    from kafka_assignors._wire import codec  # noqa: PLC0415
    from kafka_assignors.planners._exact import flow  # noqa: PLC0415
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415

    logging.disable(logging.WARNING)
    codec._compiled = _sanitized("_codec", folder)
    flow._compiled = _sanitized("_flow", folder)
    target = TARGETS[name]
    inputs = [*target.seeds(), *(path.read_bytes() for path in sorted(Path(corpus).iterdir()))]
    with Path(last).open("r+b") as file, mmap.mmap(file.fileno(), 0) as note:
        if seconds == 0:
            inputs = [_last(note[:])]
        for data in inputs:
            _noted(note, data)
            target.check(data)
        rng, executions, began = Random(0), len(inputs), time.monotonic()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        while time.monotonic() - began < seconds:
            data = _mutated(rng, inputs)
            _noted(note, data)
            target.check(data)
            executions += 1
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(
        f"{name}: {len(inputs)} inputs to begin with, {executions} executions in {seconds} s, "
        f"most memory {before / 1024:.0f} MiB at the start, {after / 1024:.0f} MiB in the end\n"
    )


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
