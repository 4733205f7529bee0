"""Fuzz a decoder or the flow: `python -m tests.fuzz TARGET --seconds N`, from the root of a checkout.

Inputs are led by what they reach of the Python sources (atheris, libFuzzer), and each goes through the
compiled code as well. With `--sanitize` that is compiled with AddressSanitizer and
UndefinedBehaviorSanitizer, and inputs are changed at random; give both runs one `--corpus`, and the second
begins where the first has got to.

    pip install -e . --group fuzz

What fails is printed as hex, with the command that does it again.
"""

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.fuzz import sanitized

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

NAMES: Final = (
    "partition-lists",
    "subscriptions",
    "user-data",
    "measured",
    "read-assignments",
    "assignments",
    "leader",
    "group-file",
    "offsets-topic",
    "history-tables",
    "flow",
)
MOST_BYTES: Final = 4_096
"""Of an input that libFuzzer makes."""


def main() -> int:
    """Run until the time is up or something fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=60, help="how long (60)")
    parser.add_argument("--corpus", type=Path, help="folder of inputs to begin with and to add to")
    parser.add_argument("--sanitize", action="store_true", help="the compiled code, with sanitizers")
    parser.add_argument("--reproduce", metavar="HEX", type=bytes.fromhex, help="this input, once")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or Path(folder)
        corpus.mkdir(exist_ok=True)
        if options.sanitize:
            return sanitized.run(options.target, options.seconds, corpus, options.reproduce)
        if options.reproduce is not None:
            _target(options.target).check(options.reproduce)
            return 0
        _fuzz(options.target, options.seconds, corpus)
    return 0


def _target(name: str) -> "Target":
    # Not before the sources are to be instrumented.
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415

    return TARGETS[name]


def _fuzz(name: str, seconds: int, corpus: Path) -> None:
    import atheris  # noqa: PLC0415 - an extra, and not for --sanitize

    with atheris.instrument_imports(include=["kafka_assignors"]):
        target = _target(name)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)

    def check(data: bytes) -> None:
        try:
            target.check(data)
        except BaseException:
            sys.stderr.write(f"\nagain: python -m tests.fuzz {name} --reproduce '{data.hex()}'\n")
            raise

    settings = [
        f"-max_total_time={seconds}",
        f"-max_len={MOST_BYTES}",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={corpus}/",
    ]
    atheris.Setup([sys.argv[0], *settings, str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
