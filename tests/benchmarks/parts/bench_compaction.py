"""The cost of compaction for each record: the offset map at several fill levels, and both passes for each codec.

In processor time, because in a broker it does not run alone on the machine.

python -m tests.benchmarks.parts.bench_compaction
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import psutil

from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record_walks import KeyedSpan
from odradek.storage.cleaning.offset_map import OffsetMap
from odradek.storage.config.cleaner_config import BYTES_PER_ENTRY
from tests.support.compaction.compaction import BareLog

DEDUPE_BUFFER_BYTES = 128 * 1024 * 1024
LOAD_FACTOR = 0.9
MAP_KEYS = 1_000_000
NEARLY_FULL_BYTES = int(MAP_KEYS * BYTES_PER_ENTRY / LOAD_FACTOR) + BYTES_PER_ENTRY
SEGMENT_BYTES = 1 << 30
BATCH_RECORDS = 100
VALUE = b"v" * 100
CODEC_RECORDS = 200_000


def fill(log: BareLog, records: int, *, compression: int = 0) -> None:
    """Write records with half as many keys, in batches of a hundred and a segment for each quarter of a million."""
    rng = random.Random(records)
    for start in range(0, records, BATCH_RECORDS):
        pairs = [(b"key-%012d" % rng.randrange(records // 2), VALUE) for _ in range(BATCH_RECORDS)]
        log.write(*pairs, compression=compression)
        if start % 250_000 == 250_000 - BATCH_RECORDS:
            log.roll()
    log.roll()


def new_log(path: Path) -> BareLog:
    return BareLog(path, {"segment.bytes": str(SEGMENT_BYTES)})


def bench_map(keys: int, memory_bytes: int) -> None:
    batches: list[list[KeyedSpan]] = [
        [(offset, 0, b"key-%012d" % offset, True, 0, 0) for offset in range(start, start + 1000)]
        for start in range(0, 100_000, 1000)
    ]
    before = psutil.Process().memory_info().rss
    offset_map = OffsetMap(memory_bytes, LOAD_FACTOR)
    put_s = get_s = 0.0
    for base in range(0, keys, 100_000):
        for spans in batches:
            named = [(offset, 0, b"%d%b" % (base, key or b""), True, 0, 0) for offset, _, key, _, _, _ in spans]
            started = time.process_time()
            assert offset_map.put_keys(named, base, 0)
            put_s += time.process_time() - started
            asked = [key for _, _, key, _, _, _ in named]
            started = time.process_time()
            offset_map.get_all(asked)
            get_s += time.process_time() - started
    used = psutil.Process().memory_info().rss - before
    print(
        f"map of {memory_bytes / 1e6:.0f} MB, {keys:,} keys ({offset_map.utilization:.0%}): "
        f"put {put_s / keys * 1e6:.2f} us, get {get_s / keys * 1e6:.2f} us, {used / keys:.0f} MB per million keys"
    )


def bench_codec(directory: Path, codec: CompressionType) -> None:
    log = new_log(directory / codec.name)
    fill(log, CODEC_RECORDS, compression=codec)
    started = time.process_time()
    stats = log.run(log.job(map_slots=DEDUPE_BUFFER_BYTES // BYTES_PER_ENTRY)).stats
    elapsed_s = time.process_time() - started
    print(
        f"both passes, {codec.name.lower()}: {CODEC_RECORDS / elapsed_s:,.0f} records per CPU s, "
        f"{stats.bytes_read / elapsed_s / 1e6:.0f} MB per CPU s, "
        f"{stats.messages_written / stats.messages_read:.0%} left"
    )


def main() -> None:
    for memory_bytes in (DEDUPE_BUFFER_BYTES, DEDUPE_BUFFER_BYTES // 2, NEARLY_FULL_BYTES):
        bench_map(MAP_KEYS, memory_bytes)
    with tempfile.TemporaryDirectory() as directory:
        for codec in CompressionType:
            bench_codec(Path(directory), codec)


if __name__ == "__main__":
    main()
