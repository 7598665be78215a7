"""Apache Kafka's own record classes read our bytes, and accept or refuse unusual bytes as we do."""

from __future__ import annotations

import gzip
import struct
import subprocess
import zlib
from pathlib import Path

import cramjam

from odradek.protocol.codec.varint import write_varint
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import batches as scan
from odradek.protocol.records.builder import assemble_batch, build_batch
from odradek.protocol.records.compression import CompressionType, compress
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.legacy import build_message, build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.processes.apache.jvm import java_command

READER = Path(__file__).resolve().parents[2] / "golden" / "records" / "ReadRecords.java"
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
                f"{sample}/v2/{codec.name.lower()}",
                build_batch(records, base_offset=base_offset, compression_type=codec),
                records,
            )
            if codec == CompressionType.ZSTD:
                continue
            for magic in (0, 1):
                seen = [r._replace(headers=(), timestamp=-1 if magic == 0 else r.timestamp) for r in records]
                built = build_messages(records, magic, base_offset=base_offset, compression_type=codec)
                add(f"{sample}/v{magic}/{codec.name.lower()}", built, seen)

    appended = [record._replace(timestamp=T + 1000) for record in MIXED]
    add("append-time", build_batch(MIXED, base_offset=50, timestamp_type=1, log_append_time=T + 1000), appended)
    sequenced = [Record(n, T, b"k", b"v", (), (2**31 - 1 + n) & 0x7FFFFFFF) for n in range(3)]
    idempotent = build_batch(
        [SimpleRecord(T, b"k", b"v")] * 3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 1
    )
    add("sequences-wrap", idempotent, sequenced)
    add("delete-horizon", build_batch(MIXED, base_offset=50, delete_horizon_ms=T + 10**8), MIXED)

    assert read_by_kafka(batches) == expected


def read_by_kafka(batches: dict[str, bytes]) -> list[str]:
    answer = subprocess.run(
        java_command(str(READER)),
        input="".join(f"{name} {data.hex()}\n" for name, data in batches.items()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def read_by_us(batches: dict[str, bytes]) -> list[str]:
    lines = []
    for name, data in batches.items():
        try:
            for batch in scan(memoryview(data)):
                batch.ensure_valid()
                lines += [f"{name} {text(record)}" for record in batch.records()]
        except CorruptRecordError as error:
            kind = "CorruptRecordException" if error.code == ErrorCode.CORRUPT_MESSAGE else "InvalidRecordException"
            lines.append(f"{name} refused: {kind}")
    return lines


# What is odd. Known differences, not listed: header keys that are not UTF-8 (kept here, replaced there), timestamps
# beyond 64 bits (refused here, wrapped there), the limits on output, headers and gzip members.

BODY = bytes(build_batch([SimpleRecord(T, b"k", b"v" * n) for n in range(3)])[61:])
HALF = len(BODY) // 2
HEAD, TAIL = BODY[:HALF], BODY[HALF:]


def batch(codec: int, payload: bytes, count: int = 3) -> bytes:
    data = assemble_batch(
        payload,
        record_count=count,
        base_offset=0,
        last_offset_delta=2,
        base_timestamp=T,
        max_timestamp=T + 2,
        attributes=codec,
    )
    return bytes(data)


def snappy(data: bytes) -> bytes:
    return compress(CompressionType.SNAPPY, data)


def lz4(data: bytes) -> bytes:
    return compress(CompressionType.LZ4, data)


def native_lz4(**options: bool) -> bytes:
    packer = cramjam.lz4.Compressor(level=1, **options)
    packer.compress(BODY)
    return bytes(packer.finish())


def zstd(data: bytes) -> bytes:
    return compress(CompressionType.ZSTD, data)


SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"12345"
ODD_STREAMS = {
    CompressionType.GZIP: {
        "members": gzip.compress(HEAD) + gzip.compress(TAIL),
        "garbage": gzip.compress(BODY) + b"rest",
        "partial-header": gzip.compress(BODY) + b"\x1f\x8b\x08",
        "zeros": gzip.compress(BODY) + bytes(8),
        "truncated": gzip.compress(BODY)[:-1],
        "without-trailer": gzip.compress(BODY)[:-8],
        "wrong-trailer": gzip.compress(BODY)[:-8] + bytes(8),
        "empty": b"",
        "zlib": zlib.compress(BODY),
    },
    CompressionType.SNAPPY: {
        "raw": bytes(cramjam.snappy.compress_raw(BODY)),
        "streams": snappy(HEAD) + snappy(TAIL),
        "three-bytes": snappy(BODY) + b"abc",
        "empty-block": snappy(BODY) + bytes(4),
        "like-a-header": snappy(BODY) + b"\x82SNAPPZ\x00" + bytes(8),
        "partial-header": snappy(BODY) + b"\x82SNA",
        "negative-size": snappy(BODY) + struct.pack(">i", -1),
        "size-beyond-end": snappy(BODY) + struct.pack(">i", 100) + b"abc",
        "version-0": b"\x82SNAPPY\x00" + bytes(8) + snappy(BODY)[16:],
        "version-little-endian": b"\x82SNAPPY\x00" + struct.pack("<ii", 1, 1) + snappy(BODY)[16:],
        "empty": b"",
        "only-header": snappy(b""),
    },
    CompressionType.LZ4: {
        "dependent-blocks": native_lz4(block_linked=True),
        "content-checksum": native_lz4(block_linked=False, content_checksum=True),
        "tail": lz4(BODY) + b"rest",
        "frames": lz4(HEAD) + lz4(TAIL),
        "no-end-mark": lz4(BODY)[:-4],
        "partial-end-mark": lz4(BODY)[:-1],
        "wrong-header-checksum": lz4(BODY)[:6] + b"\x00" + lz4(BODY)[7:],
        "empty": b"",
    },
    CompressionType.ZSTD: {
        "frames": zstd(HEAD) + zstd(TAIL),
        "skippable": zstd(HEAD) + SKIPPABLE + zstd(TAIL),
        "skippable-last": zstd(BODY) + SKIPPABLE,
        "tail": zstd(BODY) + b"rest",
        "one-byte-tail": zstd(BODY) + b"r",
        "truncated": zstd(BODY)[:-1],
        "empty": b"",
    },
}


def sized(body: bytes, size: int | None = None) -> bytes:
    return write_varint(len(body) if size is None else size) + body


DELTAS = b"\x00\x00\x00"
NULLS = b"\x01\x01\x00"
ODD_RECORDS = {
    "negative-lengths": sized(DELTAS + write_varint(-2) + write_varint(-7) + b"\x00"),
    "negative-header-count": sized(DELTAS + b"\x01\x01" + write_varint(-1)),
    "null-header-key": sized(DELTAS + b"\x01\x01\x02\x01\x00"),
    "attributes": sized(b"\x07\x00\x00" + NULLS),
    "longer-than-content": sized(DELTAS + NULLS + b"?"),
    "size-too-small": sized(DELTAS + NULLS, 5),
    "size-too-large": sized(DELTAS + NULLS, 7),
    "negative-size": sized(DELTAS + NULLS, -1),
    "key-beyond-record": sized(DELTAS + write_varint(1000) + b"k\x01\x00"),
    "six-byte-varint": b"\xff\xff\xff\xff\xff\x7f" + DELTAS + NULLS,
    "five-byte-offset": sized(b"\x00\x00\xfe\xff\xff\xff\x7f" + NULLS),
    "negative-offset": sized(b"\x00\x00" + write_varint(-5) + NULLS),
    "two-records": sized(DELTAS + NULLS) * 2,
}


def wrapper(offset: int, inner: bytes, magic: int = 1) -> bytes:
    return build_message(magic, offset, T + 50, None, gzip.compress(inner), compression_type=CompressionType.GZIP)


PLAIN = build_message(1, 0, T, b"k", b"v")
ODD_MESSAGES = {
    "wrapper-offset-0": wrapper(0, PLAIN + build_message(1, 1, T, b"k", b"v")),
    "wrapper-offset-too-small": wrapper(1, build_message(1, 2, T, b"k", b"v")),
    "gaps": wrapper(104, build_message(1, 1, T, b"a", b"") + build_message(1, 4, T, b"b", b"")),
    "descending": wrapper(9, build_message(1, 3, T, b"a", b"") + build_message(1, -4, T, b"b", b"")),
    "beyond-64-bits": wrapper(5, build_message(1, 0, T, b"a", b"") + build_message(1, -(2**63) + 2, T, b"b", b"")),
    "older-magic-inside": wrapper(7, build_message(0, 0, T, b"k", b"v")),
    "nothing-inside": wrapper(0, b""),
    "partial-inside": wrapper(0, PLAIN + PLAIN[:20]),
    "size-too-small-inside": wrapper(0, struct.pack(">qi", 0, 13) + bytes(13)),
    "compressed-inside": wrapper(0, wrapper(0, PLAIN)),
    "null-value": build_message(1, 0, T, None, None, compression_type=CompressionType.GZIP),
    "zstd": build_message(1, 0, T, None, zstd(PLAIN), compression_type=CompressionType.ZSTD),
    "partial-last": PLAIN + PLAIN[:-1],
    "magic-3": PLAIN[:16] + b"\x03" + PLAIN[17:],
    "magic-negative": PLAIN[:16] + b"\xff" + PLAIN[17:],
    "size-13": struct.pack(">qi", 0, 13) + PLAIN[12:],
}


def test_odd_bytes_are_taken_or_refused_as_by_kafka() -> None:
    batches = {
        f"{codec.name.lower()}/{name}": batch(codec, payload)
        for codec, streams in ODD_STREAMS.items()
        for name, payload in streams.items()
    }
    for count in (-1, 0, 2, 4):
        batches[f"count/{count}"] = batch(CompressionType.NONE, BODY, count)
        batches[f"count/{count}/gzip"] = batch(CompressionType.GZIP, gzip.compress(BODY), count)
    batches["codec/5"] = batch(5, BODY)
    for name, record in ODD_RECORDS.items():
        batches[f"record/{name}"] = batch(CompressionType.NONE, record, 1)
        batches[f"record/{name}/zstd"] = batch(CompressionType.ZSTD, zstd(record), 1)
    batches |= {f"message/{name}": data for name, data in ODD_MESSAGES.items()}

    kafka, ours = outcomes(read_by_kafka(batches)), outcomes(read_by_us(batches))
    assert ours == kafka
    assert sum(outcome[0].startswith("refused") for outcome in ours.values()) > 40


def outcomes(lines: list[str]) -> dict[str, list[str]]:
    """What came of each batch. How many records come before a refusal depends on how much is opened at once.

    What Kafka's codecs throw reaches its client as UNKNOWN_SERVER_ERROR; here it is as invalid as the rest.
    """
    found: dict[str, list[str]] = {}
    for line in lines:
        name, outcome = line.split(" ", 1)
        if outcome.startswith("refused"):
            is_corrupt = outcome == "refused: CorruptRecordException"
            found[name] = ["refused: corrupt" if is_corrupt else "refused: invalid"]
        else:
            found.setdefault(name, []).append(outcome)
    return found
