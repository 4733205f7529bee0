"""Dumps of the offsets topic, as Kafka's console consumer prints them with the options of docs/history.md."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from kafka_assignors._groups.snapshots import ArchivedRecord
from tests.support.pages import listing


def printed_bytes(data: bytes | None) -> bytes:
    """As `BytesDeserializer` has them, null as the consumer has it."""
    if data is None:
        return b"null"
    plain = {*range(0x20, 0x7F)} - {ord("\\")}
    return "".join(chr(byte) if byte in plain else f"\\x{byte:02X}" for byte in data).encode()


def printed_record(
    key: bytes | None, value: bytes | None, *, partition: int = 0, offset: int, time_ms: int
) -> bytes:
    where = f"CreateTime:{time_ms}\tPartition:{partition}\tOffset:{offset}\t"
    return where.encode() + printed_bytes(key) + b"\t" + printed_bytes(value) + b"\n"


def write_dump(path: Path, records: Iterable[ArchivedRecord], *, later_us: int = 0) -> Path:
    """A dump of some records, each so much later."""
    printed = (
        printed_record(
            one.key,
            one.value,
            partition=one.partition,
            offset=one.offset,
            time_ms=(one.time_us + later_us) // 1000,
        )
        for one in records
    )
    path.write_bytes(b"".join(printed))
    return path


def dump_command() -> list[str]:
    """The words of the command in docs/history.md that makes a dump, but for where its output goes."""
    command = listing("docs/history.md", "bin/kafka-console-consumer.sh", "bash").removesuffix("> dump.txt\n")
    return shlex.split(command.replace("\\\n", " "))
