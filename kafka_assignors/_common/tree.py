"""Files of JSON or YAML from people, read with limits: every value knows where it stands, for errors."""

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from kafka_assignors._common.errors import KafkaAssignorsError

STDIN: Final = "-"
"""The name that stands for the standard input."""

_YAML_NAMES: Final = (".yaml", ".yml")
_TAG: Final = "tag:yaml.org,2002:"

HIGHEST_ID: Final = 2**31 - 1
"""Kafka's ids of brokers and partitions, and its generations, have 32 bits."""

_MOST_BYTES: Final = 256 * 2**20
_TOPIC: Final = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,249}")
_SIMPLE_NAME: Final = re.compile(r"[\w-]+")
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FLAGS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_SHOWN: Final = 60


class FileError(KafkaAssignorsError, ValueError):
    """A file that cannot be used, in words: the file, the place in it, what is there, what is allowed."""


class Pairs(list[tuple[str, Any]]):
    """A mapping as it is written: a name may come twice."""


@dataclass(frozen=True, slots=True)
class Plain:
    """What YAML without quotes takes for something else than text: `no`, `12`, `2024-01-01`.

    Only the reader of the value knows whether it should be text, so it is kept as it is written.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a file, and where it stands: `members.c1.weight`, say. The file's name is for errors."""

    file: str
    path: str
    value: Any

    def fail(self, what: str) -> NoReturn:
        """Give up because of this value."""
        raise FileError(f"{self.file}: {self.path}: {what}" if self.path else f"{self.file}: {what}")

    def expected(self, what: str) -> NoReturn:
        """Give up as the value is something else than what is allowed."""
        self.fail(f"must be {what}, not {describe(self.value)}")

    def child(self, name: str, value: Any) -> "Node":
        """A value in this mapping."""
        step = name if _SIMPLE_NAME.fullmatch(name) else json.dumps(name)
        return Node(self.file, f"{self.path}.{step}" if self.path else step, value)

    def mapping(self, what: str) -> dict[str, "Node"]:
        """The values by name; the names are what the file's author chose."""
        if not isinstance(self.value, Pairs):
            self.expected(what)
        found: dict[str, Node] = {}
        for name, value in self.value:
            node = self.child(name, value)
            if name in found:
                node.fail("is there more than once")
            if not name or not name.isprintable():
                self.fail(f"a name must be text of printable characters, not {json.dumps(name)}")
            found[name] = node
        return found

    def fields(self, what: str, allowed: tuple[str, ...]) -> dict[str, "Node"]:
        """The values by name where only certain names mean something; null is as good as not there."""
        found = self.mapping(what)
        for name, node in found.items():
            if name not in allowed:
                node.fail(
                    f"unknown field, with the value {describe(node.value)}; allowed: {', '.join(allowed)}"
                )
        return {name: node for name, node in found.items() if node.value is not None}

    def items(self, what: str) -> list["Node"]:
        """The values of a list."""
        if not isinstance(self.value, list) or isinstance(self.value, Pairs):
            self.expected(what)
        return [Node(self.file, f"{self.path}[{place}]", value) for place, value in enumerate(self.value)]

    def text(self, what: str) -> str:
        """A text. What YAML takes for something else is text here, as it is written."""
        text = self.value.text if isinstance(self.value, Plain) else self.value
        if not isinstance(text, str) or not text or not text.isprintable():
            self.expected(what)
        return text

    def topic(self) -> str:
        """The name of a topic that Kafka would have."""
        name = self.text("the name of a topic")
        if not _TOPIC.fullmatch(name):
            self.fail(
                f"Kafka has no topic named {describe(name)}: use up to 249 of a-z, A-Z, 0-9, '.', '_' and '-'"
            )
        return name

    def number(self, what: str, lowest: int, highest: int) -> int:
        """A whole number, in YAML too only as decimal digits: 010 is ten to some and eight to YAML."""
        what = f"{what} from {lowest} to {highest}"
        number = self.value
        if isinstance(number, Plain) and _DECIMAL.fullmatch(number.text):
            number = int(number.text)
        if not isinstance(number, int) or isinstance(number, bool) or not lowest <= number <= highest:
            self.expected(what)
        return number

    def flag(self) -> bool:
        """True or false, in YAML also as yes, no, on, off."""
        flag = _FLAGS.get(self.value.text.lower()) if isinstance(self.value, Plain) else self.value
        if not isinstance(flag, bool):
            self.expected("true or false")
        return flag

    def numbers(self, what: str, each: str, lowest: int, highest: int) -> list[int]:
        """A list of different whole numbers."""
        numbers: list[int] = []
        seen: set[int] = set()
        for item in self.items(what):
            numbers.append(number := item.number(each, lowest, highest))
            if number in seen:
                item.fail(f"{number} is in the list more than once")
            seen.add(number)
        return numbers


def describe(value: object) -> str:
    """A value in an error, short."""
    match value:
        case Pairs():
            return "a mapping" if value else "an empty mapping"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case Plain():
            text = f"{value.text} (as YAML reads it without quotes)"
        case _:
            text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def read(name: str) -> Node:
    """Read a file, or the standard input for `-`; raises FileError if it cannot be, or is no JSON or YAML.

    A name that ends in .json, .yaml or .yml says what it is; anything else is JSON if it begins with `{`.
    """
    file = "standard input" if name == STDIN else name
    text = read_text(name)
    suffix = Path(name).suffix.lower()
    is_yaml = suffix in _YAML_NAMES or (suffix != ".json" and not text.lstrip().startswith("{"))
    return _parse_yaml(file, text) if is_yaml else parse_json(file, text)


def read_text(name: str) -> str:
    """The text of a file, or of the standard input for `-`; raises FileError."""
    file = "standard input" if name == STDIN else name
    try:
        with nullcontext(sys.stdin.buffer) if name == STDIN else Path(name).open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:  # and maybe cut within a character
            raise FileError(f"{file}: larger than {_MOST_BYTES // 2**20} MiB")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: byte {error.start} is not UTF-8") from error


def parse_json(file: str, text: str) -> Node:
    """The value of a text; `file` is where it is from. Raises FileError if it is no JSON."""
    try:
        return Node(file, "", json.loads(text, object_pairs_hook=Pairs))
    except json.JSONDecodeError as why:
        raise FileError(f"{file}: not JSON: line {why.lineno}, column {why.colno}: {why.msg}") from why
    except ValueError as error:  # a number of thousands of digits
        raise FileError(f"{file}: not JSON: {error}") from error
    except RecursionError:
        raise FileError(f"{file}: nested too deeply") from None


def _parse_yaml(file: str, text: str) -> Node:
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise FileError(
            f"{file}: YAML needs PyYAML: pip install 'kafka-assignors[cli]'; JSON needs nothing"
        ) from None

    wrong = yaml.constructor.ConstructorError

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Keeps names that come twice, and as text what only the reader of a value can read."""

    def pairs(loader: Any, node: Any) -> Pairs:
        if not isinstance(node, yaml.MappingNode):
            raise wrong(problem="expected a mapping", problem_mark=node.start_mark)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise wrong(problem="a name must be text", problem_mark=key.start_mark)
        found = loader.construct_pairs(node, deep=True)
        # A name is text, also if YAML takes it for something else: a topic may be called 2024, or no.
        return Pairs((key.value, value) for (key, _), (_, value) in zip(node.value, found, strict=True))

    def plain(loader: Any, node: Any) -> Plain:
        return Plain(loader.construct_scalar(node))

    known = yaml.SafeLoader.yaml_constructors
    kinds = {kind: known[f"{_TAG}{kind}"] for kind in ("seq", "str", "null")} | {"map": pairs}
    kinds |= dict.fromkeys(("bool", "int", "float", "timestamp", "value"), plain)
    Loader.yaml_constructors = {None: known[None], **{f"{_TAG}{kind}": made for kind, made in kinds.items()}}
    try:
        return Node(file, "", yaml.load(text, Loader=Loader))  # noqa: S506 - it is a safe one
    except RecursionError:
        raise FileError(f"{file}: nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise FileError(f"{file}: not YAML: {where}{error.problem}") from error
    except yaml.YAMLError as error:
        raise FileError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
