"""Results as plain JSON types."""

from collections.abc import Collection, Mapping, Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def to_json(value: Any) -> Any:
    """A result in the types that JSON has: what a command prints with `--json`.

    A dataclass or named tuple becomes an object of its fields, a set a sorted list. What JSON lacks becomes
    its text: a time, a path. A class whose JSON has more than its fields has a method `to_json`.
    """
    match value:
        case Enum():
            plain = value.value
        case None | bool() | int() | float() | str():
            plain = value
        case object(to_json=own):
            plain = to_json(own())
        case object(_asdict=as_dict):
            plain = to_json(as_dict())
        case Mapping():
            plain = {str(key): to_json(one) for key, one in value.items()}
        case AbstractSet():
            plain = [to_json(one) for one in sorted(value)]
        case list() | tuple():
            plain = [to_json(one) for one in value]
        case _ if is_dataclass(value):
            plain = {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            plain = str(value)
    return plain


def fields_of(value: Any, *more: str, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass but for some, and these properties: for a `to_json` of its own."""
    names = [field.name for field in fields(value) if field.name not in without]
    return {name: getattr(value, name) for name in (*names, *more)}
