"""Arguments that have one of a few values: a misspelled one would pass for another of them."""

from typing import Any, get_args


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise ValueError for what is no value of a `Literal`; the message has its values."""
    if value not in (allowed := get_args(choices)):
        raise ValueError(f"{name}={value!r}: must be one of {', '.join(allowed)}")
