"""The tables against kafka-python's schema machinery over Kafka's own message schemas, field by field."""

import json
import re
import types
import zipfile
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kafka.protocol.api_data import ApiData
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.testing._brokers.jars import kafka_jars
from tests.support.archives import archived, random_value, time_of
from tests.support.decoded_tables import each_decoder
from tests.support.offsets_topic import WRITTEN

KEY = group_metadata_key("g")
NAMES = (
    "GroupMetadataValue",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupMemberMetadataValue",
    "ConsumerGroupTargetAssignmentMetadataValue",
    "ConsumerGroupTargetAssignmentMemberValue",
    "ConsumerGroupCurrentMemberAssignmentValue",
)
PACKAGE = "kafka_message_schemas"

NO_TAGS = b"\0"
NO_CLASSIC_MEMBER = b"\1\0\1\0"
"""Tagged fields: one, its tag, its size, and that it is null."""

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """kafka-python's classes of the messages, made of the schemas in Kafka's jar."""
    folder = tmp_path_factory.mktemp("schemas")
    _write_package(folder / PACKAGE)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        return {name: types.new_class(name, (ApiData,), {"load_json": PACKAGE}) for name in NAMES}


def _write_package(folder: Path) -> None:
    folder.mkdir()
    (folder / "__init__.py").touch()
    (jar,) = (path for path in kafka_jars() if re.match(r"kafka-group-coordinator-\d", path.name))
    with zipfile.ZipFile(jar) as file:
        for name in NAMES:
            text = file.read(f"common/message/{name}.json").decode()
            schema = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
            # The only type that kafka-python's classes take.
            (folder / f"{name}.json").write_text(json.dumps(schema | {"type": "data"}))


def rows(decoded: dict[str, Any], name: str, *columns: str) -> Rows:
    found: Rows = decoded[name].select([*columns]).to_pylist()
    return found


def taken(value: Any, names: str) -> dict[str, Any]:
    """Fields that tables call as Kafka does."""
    return {name: getattr(value, name) for name in names.split()}


def by_topic(entries: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in entries:
        found.setdefault(one.topic, []).extend(one.partitions)
    return found


def readable(value: Any) -> bool:
    """Whether kafka-python can read what the members say and get."""
    try:
        for member in value.members:
            ConsumerProtocolSubscription.decode(bytes(member.subscription))
            ConsumerProtocolAssignment.decode(bytes(member.assignment) or b"\0\0\0\0\0\0\xff\xff\xff\xff")
    except Exception:  # noqa: BLE001 - of many kinds, for bytes that are something else
        return False
    return True


@each_decoder
def test_classic_groups_in_every_version(classes: dict[str, Any], decode: Any) -> None:
    rng = Random(7)
    written = [bytes.fromhex(value) for key, value, _ in WRITTEN if key == "0002000167"]
    values = [random_value(rng, generation) for generation in range(1, 400)]
    pairs = []
    for raw in (*written, *values):
        value = classes["GroupMetadataValue"].decode(raw)
        if value.protocol_type == "consumer" and readable(value):
            pairs.append((raw, value))
    assert len(pairs) > 250
    assert {value.version for _, value in pairs} == {0, 1, 2, 3, 4}
    decoded = decode(archived([(KEY, raw) for raw, _ in pairs]), {})
    expected: dict[str, Rows] = {"generations": [], "members": [], "assignments": [], "claims": []}
    for offset, (raw, value) in enumerate(pairs):
        version = value.version
        is_told = version >= 2 and value.current_state_timestamp >= 0
        expected["generations"].append(
            {
                **taken(value, "generation protocol_type protocol leader version"),
                "offset": offset,
                "members": len(value.members),
                "size": len(KEY) + len(raw),
                "state_time": value.current_state_timestamp if is_told else None,
            }
        )
        for member in value.members:
            said = ConsumerProtocolSubscription.decode(bytes(member.subscription))
            one = {"offset": offset, "member_id": member.member_id}
            expected["members"].append(
                {
                    **one,
                    **taken(member, "client_id"),
                    **taken(said, "user_data"),
                    "instance_id": (member.group_instance_id or None) if version >= 3 else None,
                    "host": member.client_host,
                    "rack": (said.rack_id or None) if said.version >= 3 else None,
                    "topics": list(said.topics),
                    "session_timeout_ms": member.session_timeout,
                    "rebalance_timeout_ms": member.rebalance_timeout if version >= 1 else None,
                    "subscription_version": int.from_bytes(bytes(member.subscription)[:2]),
                }
            )
            generation = said.generation_id if said.version >= 2 else -1
            owned = by_topic(said.owned_partitions) if said.version >= 1 else {}
            expected["claims"] += [
                one | {"claimed_generation": generation, "topic": topic, "partitions": partitions}
                for topic, partitions in owned.items() or ([(None, [])] if generation != -1 else [])
            ]
            if member.assignment:
                given = ConsumerProtocolAssignment.decode(bytes(member.assignment))
                expected["assignments"] += [
                    one | {"stage": "assigned", "topic": topic, "topic_id": None, "partitions": partitions}
                    for topic, partitions in by_topic(given.assigned_partitions).items()
                ]
    for name, wanted in expected.items():
        assert len(wanted) > 200
        found = rows(decoded, name, *({"source"} if name == "claims" else ()), *wanted[0])
        if name == "claims":
            found = [one for one in found if one.pop("source") == "owned"]
        elif name == "generations":
            found = [one | {"state_time": milliseconds(one["state_time"])} for one in found]
        assert found == wanted


def milliseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1000)


@each_decoder
def test_records_of_kip_848(classes: dict[str, Any], decode: Any) -> None:
    by_type = dict(zip((3, 5, 6, 7, 8), NAMES[1:], strict=True))
    # kafka-python takes a tagged struct that can be null for one that cannot, and stumbles over it: without.
    ours = [
        (
            bytes.fromhex(key),
            bytes.fromhex(value).removesuffix(NO_CLASSIC_MEMBER) + NO_TAGS * (key[:4] == "0005"),
        )
        for key, value, record in WRITTEN
        if int(key[:4], 16) in by_type and getattr(record.value, "classic_member_metadata", None) is None
    ]
    decoded = decode(archived(ours), {})
    expected: dict[str, Rows] = {"generations": [], "members": [], "assignments": []}
    for offset, (key, raw) in enumerate(ours):
        value = classes[by_type[key[1]]].decode(raw)
        if key[1] in (3, 6):
            epoch = value.epoch if key[1] == 3 else value.assignment_epoch
            one = {"offset": offset, "generation": epoch, "first_time": time_of(offset)}
            expected["generations"].append(one)
        elif key[1] == 5:
            expected["members"].append(
                {
                    **taken(value, "instance_id client_id rebalance_timeout_ms"),
                    "offset": offset,
                    "rack": value.rack_id,
                    "host": value.client_host,
                    "topics": list(value.subscribed_topic_names),
                }
            )
        else:
            stages = (
                {"target": value.topic_partitions}
                if key[1] == 7
                else {"current": value.assigned_partitions, "revoking": value.partitions_pending_revocation}
            )
            expected["assignments"] += [
                {"offset": offset, "stage": stage, "topic": None, "partitions": list(one.partitions)}
                for stage, listed in stages.items()
                for one in listed
            ]
    for name, wanted in expected.items():
        assert wanted
        assert rows(decoded, name, *wanted[0]) == wanted
