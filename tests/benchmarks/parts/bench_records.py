"""What record batches cost: header, checksum, walks over the records, codecs, building.

    python -m tests.benchmarks.parts.bench_records

Each figure is the best of several rounds; compare figures of one run only.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

from odradek.protocol.records.batch import RecordBatch, batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.checksum import crc32c
from odradek.protocol.records.compression import CompressionType, compress, decompress
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.records.record_walks import read_keys, read_records, summarize

T = 1_700_000_000_000
ROUNDS = 5


def best(work: Callable[[], object], seconds: float = 0.1) -> float:
    """Seconds for one call."""
    timer = timeit.Timer(work)
    number = 1
    while timer.timeit(number) < seconds / 4:
        number *= 2
    return min(timer.repeat(ROUNDS, number)) / number


def report(name: str, figure: float, unit: str) -> None:
    print(f"{name:<58} {figure:>10.3f} {unit}")


def sample(count: int, value_size: int) -> list[SimpleRecord]:
    """Records that compress about fourfold, a millisecond apart."""
    digits = "".join(f"{n * n * 2654435761 % 4294967296:x}" for n in range(1 + count * value_size // 28))
    text = " ".join(f'user:"{digits[n * 7 : n * 7 + 7]}", clicked=true;' for n in range(len(digits) // 7))
    return [
        SimpleRecord(T + n, b"key-%06d" % n, text[n * value_size : (n + 1) * value_size].encode().ljust(value_size))
        for n in range(count)
    ]


def drain(iterator: object) -> None:
    for _ in iterator:  # type: ignore[attr-defined]
        pass


def bench_header() -> None:
    batch = memoryview(build_batch(sample(1, 100)))
    many = memoryview(b"".join([batch] * 1000))
    report("header: view of a batch", best(lambda: RecordBatch(batch)) * 1e6, "µs")
    view = RecordBatch(batch)
    report(
        "header: all 61 bytes, LogAppendTime", best(lambda: view.header(timestamp_type=1, max_timestamp=T)) * 1e6, "µs"
    )
    report("scan: batches of a buffer, each", best(lambda: drain(batches(many))) / 1000 * 1e6, "µs")


def bench_checksum() -> None:
    for size in (100, 16 * 1024, 128 * 1024, 1024 * 1024):
        batch = RecordBatch(memoryview(build_batch([SimpleRecord(T, None, bytes(size))])))
        seconds = best(batch.ensure_valid)
        report(f"ensure_valid: {size} B", seconds * 1e6, f"µs  ({size / seconds / 1e9:.1f} GB/s)")
    data = memoryview(bytes(16 * 1024))
    report("crc32c alone: 16384 B", best(lambda: crc32c(data, 0, 0)) * 1e6, "µs")


def bench_walks() -> None:
    for value_size in (10, 100, 1000):
        walks(f"{value_size} B values", sample(1000, value_size))
    headers = tuple((f"header-{n}", b"value") for n in range(3))
    walks("100 B values and 3 headers", [record._replace(headers=headers) for record in sample(1000, 100)])


def walks(name: str, records: list[SimpleRecord]) -> None:
    data = RecordBatch(memoryview(build_batch(records))).record_bytes()
    count = len(records)
    report(
        f"read_records: {name}, each",
        best(lambda: drain(read_records(data, count, 0, T, -1, None))) / count * 1e6,
        "µs",
    )
    report(f"read_keys: {name}, each", best(lambda: read_keys(data, count)) / count * 1e6, "µs")
    report(f"summarize: {name}, each", best(lambda: summarize(data, count, T)) / count * 1e6, "µs")


def bench_building() -> None:
    records = sample(1000, 100)
    report("build_batch: 100 B values, each record", best(lambda: build_batch(records)) / 1000 * 1e6, "µs")
    one = records[:1]
    report("build_batch: one record", best(lambda: build_batch(one)) * 1e6, "µs")


def bench_codecs() -> None:
    data = b"".join(record.value or b"" for record in sample(10_000, 100))
    for codec in CompressionType:
        if codec == CompressionType.NONE:
            continue
        packed = compress(codec, data)
        name = f"{codec.name.lower()} ({len(data) / len(packed):.1f}:1)"
        report(f"decompress: {name}", len(data) / best(lambda p=packed, c=codec: decompress(c, p)) / 1e6, "MB/s")
        report(f"compress: {name}", len(data) / best(lambda c=codec: compress(c, data)) / 1e6, "MB/s")


def main() -> None:
    bench_header()
    bench_checksum()
    bench_walks()
    bench_building()
    bench_codecs()


if __name__ == "__main__":
    main()
