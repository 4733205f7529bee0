"""What Kafka's own console consumer prints of records, against what an import reads."""

from pathlib import Path

from kafka_assignors.history import import_dump
from kafka_assignors.history._archive import Archive
from tests.support.dumps import dump_command, printed_record
from tests.support.java.oracle import JavaOracle

NOON_MS = 1_772_366_400_000
EVERY_BYTE = bytes(range(256))


def test_an_import_reads_every_byte_that_the_console_consumer_prints(
    kafka_3_9: JavaOracle, tmp_path: Path
) -> None:
    records = [
        (0, 5, NOON_MS, b"\0\2" + EVERY_BYTE, EVERY_BYTE),
        (49, 2**63 - 1, NOON_MS, b"\0\3\0\1g", None),
        (1, 0, 0, None, b""),
        (2, 0, 0, b"", b"\\x00"),
    ]
    words = dump_command()
    given = [words[number + 1] for number, word in enumerate(words) if word == "--property"]
    printed = kafka_3_9.ask(
        "print_records",
        {
            "properties": dict(one.split("=") for one in given),
            "records": [
                (*where, *(None if one is None else one.hex() for one in (key, value)))
                for *where, key, value in records
            ],
        },
    ).encode()
    assert printed == b"".join(
        printed_record(key, value, partition=partition, offset=offset, time_ms=time_ms)
        for partition, offset, time_ms, key, value in records
    )
    dump = tmp_path / "dump"
    dump.write_bytes(printed)
    archive = Archive.create(tmp_path / "archive")
    assert import_dump(dump, archive).counts.kept.total() == len(records)
    read = {
        (
            row["partition"],
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
        )
        for batch in archive.split(archive.files())(1).batches()
        for row in batch.to_pylist()
    }
    assert read == {*records}
