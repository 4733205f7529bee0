"""Files of `name=value` lines, as Java's tools have them."""

from __future__ import annotations

import re


def parse_properties(text: str) -> dict[str, str]:
    """The values by name; `#` and `!` begin comments, a backslash at a line's end joins the next to it.

    Raises:
        ValueError: A line is something else; the message has its number. The line can be a secret.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(re.sub(r"\\\r?\n[ \t]*", "", text).splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, separator, value = stripped.partition("=")
        if not separator:
            raise ValueError(f"line {number} is not name=value")
        found[name.strip()] = value.strip()
    return found
