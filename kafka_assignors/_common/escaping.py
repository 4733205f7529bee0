"""Names that others chose, as they leave the process: into terminals, logs, pages and metrics."""

import logging
import traceback
import unicodedata
from typing import Final

_UNSHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that a terminal obeys, hides or cannot print."""


def escaped(text: str) -> str:
    r"""Text with its control and format characters as Python writes them: `\x1b`, `\n`, `\u202e`.

    Any member chooses its names, and a terminal would obey what is in them. What is escaped already stays.
    """
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSHOWN else char
        for char in text
    )


def block(text: str) -> str:
    """Text of several lines, escaped; the later ones are indented, so that no name begins a line."""
    return "\n  ".join(map(escaped, text.split("\n")))


def get_logger(name: str) -> logging.Logger:
    """A logger whose messages are one line each, whatever names are in them."""
    logger = logging.getLogger(name)
    logger.addFilter(_escape)
    return logger


def _escape(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if not message.isprintable():
        record.msg, record.args = escaped(message), ()
    if record.exc_info and record.exc_info[0]:
        record.exc_text = block("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
    return True
