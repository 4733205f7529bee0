"""Records of the offsets topic against Apache Kafka's own Java classes, on random records.

The records are drawn field by field from Kafka's own message schemas, which are in its jar, so nothing here
says what a record consists of.
"""

import base64
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommit,
    RecordError,
    UnknownRecord,
    batch_size,
    decode_record,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors._wire.offsets_topic.record import RECORD_TYPES
from kafka_assignors.testing._brokers.jars import kafka_jars
from tests.support.java.oracle import JavaOracle
from tests.support.scale import few, scaled

READ = [0, 1, 2, 3, 4, 5, 6, 7, 8, 16]
"""The types that are read; all others are unknown records."""

CASES = scaled(400)
"""Of each version of each type."""

NAMES = ("", "t", "orders.v1", "ü", "日本", "\U0001f600" * 40, "n" * 127, "n" * 128, "x" * 32_767)
EDGES = {
    "int8": (0, 1, -1, 127, -128),
    "int16": (0, 1, -1, 2**15 - 1, -(2**15)),
    "int32": (0, 1, -1, 5, 2**31 - 1, -(2**31)),
    "int64": (0, 1, -1, 1_700_000_000_000, 2**63 - 1, -(2**63)),
}

SCALARS = {*EDGES, "string", "bytes", "uuid"}

Fields = dict[str, Any]


@pytest.fixture(scope="module")
def schemas() -> dict[str, Fields]:
    """Kafka's schemas of the messages, by name."""
    (jar,) = (path for path in kafka_jars() if re.match(r"kafka-group-coordinator-\d", path.name))
    found = {}
    with zipfile.ZipFile(jar) as file:
        for name in file.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                schema = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read(name).decode()))
                found[schema["name"]] = schema
    return found


# What a schema says.


def in_versions(version: int, span: str) -> bool:
    """Whether a span such as `2`, `0-4` or `3+` has a version."""
    if span == "none":
        return False
    first, _, last = span.removesuffix("+").partition("-")
    return int(first) <= version <= (10**6 if span.endswith("+") else int(last or first))


def versions_of(schema: Fields) -> range:
    first, _, last = schema["validVersions"].partition("-")
    return range(int(first), int(last or first) + 1)


def json_name(field: Fields) -> str:
    return str(field["name"][0].lower() + field["name"][1:])


class Drawing:
    """Draws what a schema allows, as Kafka's JSON has it; tagged fields are left out at times."""

    def __init__(self, rng: Random, schema: Fields, version: int) -> None:
        self.rng = rng
        self.version = version
        self.structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
        self.schema = schema

    def message(self) -> Fields:
        return self._struct(self.schema["fields"])

    def _struct(self, declared: Sequence[Fields]) -> Fields:
        drawn = {}
        for field in declared:
            if not in_versions(self.version, field.get("versions", "0+")):
                continue
            if "tag" in field and self.rng.random() < 0.4:
                continue
            drawn[json_name(field)] = self._value(field["type"], field)
        return drawn

    def _value(self, kind: str, field: Fields) -> Any:
        rng = self.rng
        if in_versions(self.version, field.get("nullableVersions", "none")) and rng.random() < 0.3:
            return None
        if kind.startswith("[]"):
            size = rng.choice([0, 0, 1, 2, 3, 5] + [130] * (rng.random() < 0.05))
            return [self._value(kind[2:], {**field, "nullableVersions": "none"}) for _ in range(size)]
        return self._scalar(kind) if kind in SCALARS else self._struct(self._fields_of(kind, field))

    def _fields_of(self, kind: str, field: Fields) -> Sequence[Fields]:
        found: Sequence[Fields] = field.get("fields") or self.structs[kind]
        return found

    def _scalar(self, kind: str) -> Any:
        rng = self.rng
        if kind == "string":
            return rng.choices(NAMES, weights=[9] * (len(NAMES) - 1) + [0.05])[0]
        if kind == "bytes":
            size = rng.choice([0, 1, 40, 127, 300] + [70_000] * (rng.random() < 0.01))
            return base64.b64encode(rng.randbytes(size)).decode()
        if kind == "uuid":
            return kafka_text(rng.choice([UUID(int=0), UUID(bytes=rng.randbytes(16))]))
        return rng.choice(EDGES[kind])


NO_UUID = "A" * 22
DEFAULTS: dict[str, Any] = {"uuid": NO_UUID, "int64": 0, "int32": 0}


def completed(drawn: Fields, declared: Sequence[Fields], structs: Mapping[str, Any]) -> Fields:
    """With the schema's default for every field that is not there."""
    made = {}
    for field in declared:
        name = json_name(field)
        kind = field["type"].removeprefix("[]")
        if name not in drawn:
            default = field.get("default", DEFAULTS.get(kind))
            made[name] = None if default == "null" else default
            continue
        inner = field.get("fields") or structs.get(kind)
        value = drawn[name]
        if inner and value is not None:
            many = value if isinstance(value, list) else [value]
            each = [completed(one, inner, structs) for one in many]
            value = each if isinstance(value, list) else each[0]
        made[name] = value
    return made


def complete(drawn: Fields, schemas: Mapping[str, Fields], name: str) -> Fields:
    """The value of a record of that name, with all fields."""
    schema = schemas["OffsetCommitValue" if name == "LegacyOffsetCommit" else f"{name}Value"]
    structs = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", ())}
    made: Fields = settled(completed(drawn, schema["fields"], structs))
    return made


# What was decoded, as Kafka's JSON has it.


def kafka_text(uuid: UUID) -> str:
    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            re.sub(r"_(.)", lambda match: match[1].upper(), field.name): plain(getattr(value, field.name))
            for field in fields(value)
        }
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, UUID):
        return kafka_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def told(record: Any) -> tuple[Fields, int | None, Fields | None]:
    """The key's fields, the version and the value's fields of what was decoded."""
    key = plain(record)
    value = key.pop("value")
    version = None if value is None else 0
    if isinstance(record, OffsetCommit | GroupMetadata):
        key["group"] = key.pop("groupId")  # Kafka's name of before KIP-848
        version = value and value.pop("version")
    if isinstance(record, OffsetCommit) and value:
        value["topicId"] = value["topicId"] or NO_UUID
    return key, version, settled(value)


def settled(value: Any) -> Any:
    """With null for what is empty where a schema's default is null.

    Kafka takes such a default for an empty struct or array. So it leaves out those that are empty and writes
    those that are null, and that a field is not there can mean either.
    """
    if isinstance(value, list):
        return [settled(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value == {"sessionTimeoutMs": 0, "supportedProtocols": []}:
        return None
    return {
        name: None if name == "assignmentEpochs" and one == [] else settled(one)
        for name, one in value.items()
    }


def as_record(answer: Mapping[str, str | None]) -> tuple[bytes, bytes | None]:
    key, value = answer["key"], answer["value"]
    assert key is not None
    return bytes.fromhex(key), None if value is None else bytes.fromhex(value)


def draw(rng: Random, schemas: Mapping[str, Fields], number: int, version: int) -> Fields:
    name = RECORD_TYPES[number]
    flexible = in_versions(version, schemas[f"{name}Value"]["flexibleVersions"])
    tags = rng.random() < 0.3 and flexible
    value = None if rng.random() < 0.05 else Drawing(rng, schemas[f"{name}Value"], version).message()
    return {
        "type": number,
        "name": name,
        "key": Drawing(rng, schemas[f"{name}Key"], 0).message(),
        "version": version,
        "value": value,
        "tags": [[rng.choice([9, 200]), rng.randbytes(rng.choice([0, 3, 200])).hex()]] if tags else [],
    }


def every_version(schemas: Mapping[str, Fields]) -> list[tuple[int, int]]:
    return [
        (number, version)
        for number in READ
        for version in versions_of(schemas[f"{RECORD_TYPES[number]}Value"])
    ]


def test_the_types_are_kafkas(schemas: dict[str, Fields]) -> None:
    keys = {
        schema["apiKey"]: name.removesuffix("Key")
        for name, schema in schemas.items()
        if schema["type"] == "coordinator-key"
    }
    assert keys == RECORD_TYPES


def test_what_kafka_writes_is_read_field_by_field(java: JavaOracle, schemas: dict[str, Fields]) -> None:
    seen: Counter[tuple[int, int]] = Counter()
    for number, version in every_version(schemas):
        rng, name = Random(f"{number} {version}"), RECORD_TYPES[number]
        drawn = [draw(rng, schemas, number, version) for _ in range(CASES)]
        for record, answer in zip(drawn, java.ask("write_records", drawn), strict=True):
            key, found_version, value = told(decode_record(*as_record(answer)))
            assert key == record["key"], f"type {number}, version {version}"
            if record["value"] is None:
                assert (value, found_version) == (None, None)
                continue
            assert found_version == version
            assert value is not None
            assert value == complete(record["value"], schemas, name), f"type {number}, version {version}"
            seen[number, version] += 1
    assert len(seen) == 18
    assert few() or min(seen.values()) > CASES * 0.8


def test_records_of_other_types_are_left_as_they_are(java: JavaOracle, schemas: dict[str, Fields]) -> None:
    rng = Random(1)
    for number, name in RECORD_TYPES.items():
        if number not in READ:
            drawn = draw(rng, schemas, number, 0)
            (answer,) = java.ask("write_records", [drawn])
            key, value = as_record(answer)
            assert decode_record(key, value) == UnknownRecord(type=number, name=name, key=key, value=value)


STRICTER = re.compile(
    r"left over|is not UTF-8|is negative|is not known|does not have its \d+ bytes|takes more than 32 bits"
)
"""Why bytes are refused here that Java reads: it replaces what is no UTF-8, takes any negative length for
null, cuts off what a varint has too many, and looks neither at the version, nor at the end, nor at the sizes
of tagged fields."""


def test_of_damaged_bytes_nothing_is_read_that_kafka_does_not_read(
    java: JavaOracle, schemas: dict[str, Fields]
) -> None:
    outcomes: Counter[str] = Counter()
    for number, version in every_version(schemas):
        rng = Random(f"damaged {number} {version}")
        written = java.ask("write_records", [draw(rng, schemas, number, version) for _ in range(scaled(100))])
        damaged = [
            {"key": key.hex(), "value": damage(rng, value).hex()}
            for key, value in map(as_record, written)
            if value is not None and len(value) < 4000
            for _ in range(3)
        ]
        for record, theirs in zip(damaged, java.ask("read_records", damaged), strict=True):
            key, raw = as_record(record)
            refusal, ours = refusal_or_fields(key, raw)
            if refusal is not None:
                known = "exception" in theirs or STRICTER.search(refusal)
                assert known, f"{refusal}, and Java reads {theirs}: {record}"
                outcomes["refused by both" if "exception" in theirs else "refused here"] += 1
            elif number == 0 and raw is not None and raw[:2] != b"\0\0":
                pass  # an OffsetCommitValue under an old key, as brokers before 4.0 wrote them
            else:
                assert "exception" not in theirs, f"{theirs}: {record}"
                value = complete(theirs["value"], schemas, RECORD_TYPES[number])
                assert ours == (theirs["key"], theirs["version"], value), record
                outcomes["read by both"] += 1
    assert few() or len(outcomes) == 3, outcomes
    assert few() or min(outcomes.values()) > scaled(100), outcomes


def refusal_or_fields(key: bytes, value: bytes | None) -> tuple[str | None, Any]:
    try:
        return None, told(decode_record(key, value))
    except RecordError as error:
        return str(error), None


def damage(rng: Random, value: bytes) -> bytes:
    raw = bytearray(value)
    for _ in range(rng.randint(1, 2)):
        start = rng.randint(0, len(raw))
        stop = min(len(raw), start + rng.choice([0, 1, 1, 1, 2, 4]))
        raw[start:stop] = rng.choice(
            [b"", b"\0", b"\1", b"\x7f", b"\xff", b"\xff\xff", rng.randbytes(stop - start)]
        )
    return bytes(raw)


def test_kafka_reads_the_group_records_that_are_written_here(
    java: JavaOracle, schemas: dict[str, Fields]
) -> None:
    rng = Random(2)
    written = java.ask(
        "write_records", [draw(rng, schemas, 2, version) for version in range(5) for _ in range(CASES)]
    )
    sent = []
    for key, value in map(as_record, written):
        if value is not None:
            read = decode_record(key, value)
            assert isinstance(read, GroupMetadata)
            assert read.value is not None
            again = encode_group_metadata(read.value)
            assert group_metadata_key(read.group_id) == key
            # The same bytes, but for tagged fields that are not known.
            assert value.startswith(again[:-1]) if read.value.version == 4 else again == value
            sent.append({"key": key.hex(), "value": again.hex()})
    for record, theirs in zip(sent, java.ask("read_records", sent), strict=True):
        expected = complete(theirs["value"], schemas, "GroupMetadata")
        assert told(decode_record(*as_record(record))) == (theirs["key"], theirs["version"], expected)


@pytest.mark.parametrize(
    "sizes", [range(200), range(8_080, 8_220, 3), [2**20 - 66, 2**20 - 65], [0, 1_048_588]]
)
def test_the_batch_of_a_record_has_the_size_that_kafka_gives_it(
    java: JavaOracle, sizes: Sequence[int]
) -> None:
    member = MemberMetadata(
        member_id="m-1", client_id="m", client_host="/1", session_timeout=1, subscription=b"", assignment=b""
    )
    head = GroupMetadataValue(
        version=3, protocol_type="consumer", generation=1, protocol="range", leader="m-1", members=(member,)
    )
    key, value = group_metadata_key("g"), encode_group_metadata(head)
    records = [(key, value + bytes(size)) for size in sizes] + [(key + bytes(size), value) for size in sizes]
    theirs = java.ask("batch_sizes", [{"key": key.hex(), "value": value.hex()} for key, value in records])
    assert [batch_size(key, value) for key, value in records] == theirs
