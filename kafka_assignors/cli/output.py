"""Printing what a command found."""

import os
import sys


def show(text: str) -> None:
    """Print, also into a pipe that somebody like `head` closes early."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
