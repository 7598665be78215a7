"""Apache Kafka's own record classes read what we write: every magic and codec, in one JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.jvm import java_command

READER = Path(__file__).resolve().parents[1] / "golden" / "records" / "ReadRecords.java"
T = 1_700_000_000_000
MIXED = [
    Record(50, T, b"key1", b"value1", (("h", b"\x01\x02"), ("ü", None))),
    Record(51, T + 7, None, b""),
    Record(58, T - 3, b"k" * 70, None),
]
LONG = [Record(n, T + n, b"key-%d" % n, bytes(n * k % 251 for k in range(700))) for n in range(300)]
ONE_LONG = [Record(0, -1, None, b"x" * 300_000)]


def text(record: Record) -> str:
    """A record as `ReadRecords` prints it."""
    parts = [str(record.offset), str(record.timestamp), str(record.sequence)]
    parts += ["-" if part is None else part.hex() for part in (record.key, record.value)]
    parts += [f"{key.encode().hex()}={'-' if value is None else value.hex()}" for key, value in record.headers]
    return " ".join(parts)


def test_kafka_reads_our_batches() -> None:
    batches: dict[str, bytes] = {}
    expected: list[str] = []

    def add(name: str, data: bytes | bytearray, records: list[Record]) -> None:
        batches[name] = bytes(data)
        expected.extend(f"{name} {text(record)}" for record in records)

    for sample, records in {"mixed": MIXED, "long": LONG, "one-long": ONE_LONG}.items():
        base_offset = 50 if sample == "mixed" else 0
        for codec in CompressionType:
            add(
                f"{sample}/v2/{codec.config_name}",
                build_batch(records, base_offset=base_offset, compression_type=codec),
                records,
            )
            if codec == CompressionType.ZSTD:
                continue
            for magic in (0, 1):
                seen = [r._replace(headers=(), timestamp=-1 if magic == 0 else r.timestamp) for r in records]
                built = build_messages(records, magic, base_offset=base_offset, compression_type=codec)
                add(f"{sample}/v{magic}/{codec.config_name}", built, seen)

    appended = [record._replace(timestamp=T + 1000) for record in MIXED]
    add("append-time", build_batch(MIXED, base_offset=50, timestamp_type=1, log_append_time=T + 1000), appended)
    sequenced = [Record(n, T, b"k", b"v", (), (2**31 - 1 + n) & 0x7FFFFFFF) for n in range(3)]
    idempotent = build_batch(
        [SimpleRecord(T, b"k", b"v")] * 3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 1
    )
    add("sequences-wrap", idempotent, sequenced)
    add("delete-horizon", build_batch(MIXED, base_offset=50, delete_horizon_ms=T + 10**8), MIXED)

    answer = subprocess.run(
        java_command(str(READER)),
        input="".join(f"{name} {data.hex()}\n" for name, data in batches.items()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == expected
