"""The data source `kafka_log`: records per second from the file to the Arrow batch, with one core.

Uncompressed batches of about 16 KB, as a producer with default settings makes them, then the codecs. The file is in the
page cache. Processor time of this process, so that other load on the machine does not count.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import HIGH_WATERMARK_FILE, encode_offsets
from spark_jobs.kafka_log.options import parse_options
from spark_jobs.kafka_log.planning import plan
from spark_jobs.kafka_log.segment_reader import read_task

NOW = 1_700_000_000_000
BATCH_BYTES = 16_384
KEY_BYTES = 8
OVERHEAD_BYTES = 10
"""Of one record, about: lengths, deltas, attributes."""
SIZES = ((100, 1_000_000), (1_000, 1_000_000))
COMPRESSED = 200_000
ROUNDS = 3
WORDS = (b"order ", b"click ", b"customer ", b"payment ", b"refund ")


def write_segment(directory: Path, size: int, count: int, codec: int) -> None:
    """A log directory with one segment of `count` records of `size` bytes, key and value together."""
    partition = directory / "topic-0"
    partition.mkdir()
    in_batch = max(1, BATCH_BYTES // (size + OVERHEAD_BYTES))
    filler = b"".join(WORDS) * (size // 30 + 1)
    with open(partition / f"{0:020d}.log", "wb") as file:
        for first in range(0, count, in_batch):
            numbers = range(first, min(first + in_batch, count))
            records = [
                SimpleRecord(NOW + number, b"%08d" % number, filler[number % 26 :][: size - KEY_BYTES])
                for number in numbers
            ]
            file.write(build_batch(records, base_offset=first, compression_type=codec))
    checkpoint = encode_offsets({TopicPartition("topic", 0): count})
    (directory / HIGH_WATERMARK_FILE).write_bytes(checkpoint)


def read(directory: Path) -> tuple[int, int, float]:
    """Rows, bytes of the columns, and seconds of processor time."""
    options = parse_options({"path": str(directory)})
    rows = size = 0
    started = time.process_time()
    for task in plan(options):
        for batch in read_task(task, options):
            rows += batch.num_rows
            size += batch.nbytes
    return rows, size, time.process_time() - started


def measure(size: int, count: int, codec: CompressionType) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write_segment(directory, size, count, codec)
        best = min((read(directory) for _ in range(ROUNDS)), key=lambda found: found[2])
    rows, columns, seconds = best
    assert rows == count
    print(
        f"{size:>5} B  {codec.name.lower():<7}{count / seconds:>12,.0f} records/s{columns / seconds / 1e6:>8,.0f} MB/s"
    )


def main() -> None:
    print("file to Arrow batches, in processor time of one core; MB of the columns")
    for size, count in SIZES:
        measure(size, count, CompressionType.NONE)
    for codec in CompressionType:
        if codec:
            measure(100, COMPRESSED, codec)


if __name__ == "__main__":
    main()
