"""Where `kafka-assignors` begins."""

import os
import sys
from collections.abc import Sequence

from kafka_assignors._cli.errors import missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, by default with the process's arguments; these are without the program's name.

    Returns the exit status: 0 if all went well, 1 if not, 2 for a wrong file, 130 after Ctrl-C, 143 after
    SIGTERM. Raises SystemExit(2) for a wrong command line.
    """
    # To multiply matrices, which no command does, numpy would start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from kafka_assignors._cli.command_line import run  # noqa: PLC0415 - click is an extra
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        return missing("", error, "cli")
    return run(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
