"""The same directory compacted by Apache Kafka's own Cleaner and by ours: the files are the same, byte for byte.

Both get the time from the test, so that delete horizons are the same too. Rewritten compressed batches are compared
after decompression, because the codecs are different programs.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from odradek.protocol.records.batch import RecordBatch, batches
from odradek.protocol.records.layout import BATCH_OVERHEAD
from odradek.storage.cleaning.clean_job import CleanJob, CleanResult
from tests.support.compaction.apache_cleaner import ApacheCleaned, apache_clean
from tests.support.compaction.compaction import BareLog, KeyValue
from tests.support.disks.logs import NOW

pytestmark = pytest.mark.oracle

LOGS = 30
ROUNDS = 4
ROUND_MS = 700
OVERRIDES = {"cleanup.policy": "compact", "delete.retention.ms": "1000", "segment.bytes": "3000"}
PRODUCERS = (10, 11, 12)
KEYS = [b"", *(b"key-%d" % number for number in range(12)), b"k" * 100]


def write_some(log: BareLog, rng: random.Random, now_ms: int) -> None:
    """Random batches of every kind."""
    for _ in range(rng.randrange(5, 30)):
        kind = rng.random()
        if kind < 0.15 and log.next_offset > log.bases[-1]:
            log.roll()
        elif kind < 0.35:
            log.end_transaction(rng.choice(PRODUCERS), commit=rng.random() < 0.5, timestamp=now_ms)
        elif kind < 0.45:
            codec = rng.choice([0, 0, 1, 2, 3])
            count = rng.randrange(1, 6) if codec else 1
            log.write_legacy(
                *(pair(rng) for _ in range(count)),
                magic=rng.randrange(2),
                compression=codec,
                timestamp=now_ms,
                timestamp_type=rng.randrange(2),
            )
        else:
            producer_id = rng.choice([-1, 20, 21, *PRODUCERS, *PRODUCERS])
            log.write(
                *(pair(rng) for _ in range(rng.randrange(1, 7))),
                producer_id=producer_id,
                transactional=producer_id in PRODUCERS,
                compression=rng.choice([0, 0, 0, 1, 2, 3, 4]),
                timestamp=now_ms + rng.randrange(1000),
                timestamp_type=int(rng.random() < 0.2),
            )
    if log.next_offset > log.bases[-1]:
        log.roll()


def pair(rng: random.Random) -> KeyValue:
    key = None if rng.random() < 0.05 else rng.choice(KEYS)
    return key, None if rng.random() < 0.2 else rng.randbytes(rng.randrange(60))


def both_clean(
    logs: list[tuple[BareLog, Path]], jobs: list[CleanJob], overrides: dict[str, str]
) -> list[tuple[CleanResult, ApacheCleaned]]:
    """Clean each log in place, and a copy of it at the path beside it with Apache's cleaner."""
    for log, copy in logs:
        shutil.copytree(log.path, copy)
    theirs = apache_clean(overrides, [(copy, job) for (_, copy), job in zip(logs, jobs, strict=True)])
    return [(log.clean(job), their) for (log, _), job, their in zip(logs, jobs, theirs, strict=True)]


def assert_same_files(log: BareLog, copy: Path, *, below: int) -> None:
    """Every file of the cleaned segments, in both directories."""
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        ours, theirs = ({p.name: p for p in d.glob(f"*{suffix}")} for d in (log.path, copy))
        names = sorted(name for name in ours if int(name[:20]) < below)
        assert names == sorted(name for name in theirs if int(name[:20]) < below), suffix
        for name in names:
            our_bytes, their_bytes = ours[name].read_bytes(), theirs[name].read_bytes()
            if suffix == ".log":
                assert_same_batches(our_bytes, their_bytes)
            else:
                assert our_bytes.hex(" ", -8) == their_bytes.hex(" ", -8), name


def assert_same_batches(ours: bytes, theirs: bytes) -> None:
    if ours == theirs:
        return
    pairs = list(zip(batches(memoryview(ours)), batches(memoryview(theirs)), strict=True))
    for our, their in pairs:
        if our.compression_type and isinstance(our, RecordBatch) and isinstance(their, RecordBatch):
            assert uncompressed(our) == uncompressed(their)
        elif our.compression_type:
            assert (our.magic, our.attributes, our.last_offset, our.max_timestamp) == (
                their.magic,
                their.attributes,
                their.last_offset,
                their.max_timestamp,
            )
            assert list(our.records()) == list(their.records())
        else:
            assert bytes(our.buffer) == bytes(their.buffer)


def uncompressed(batch: RecordBatch) -> bytes:
    header = bytearray(batch.buffer[:BATCH_OVERHEAD])
    header[8:12] = header[17:21] = bytes(4)  # size and checksum
    return bytes(header) + (batch.record_bytes() if batch.record_count else b"")


def test_what_is_left_is_what_apache_leaves(tmp_path: Path) -> None:
    rng = random.Random(20)
    logs = [BareLog(tmp_path / "ours" / f"topic-{number}", OVERRIDES) for number in range(LOGS)]
    dropped = 0
    for round_number in range(ROUNDS):
        now_ms = NOW + round_number * ROUND_MS
        for log in logs:
            write_some(log, rng, now_ms)
        jobs = [log.job(now_ms=now_ms, map_slots=rng.choice([3, 6, 10, 1000])) for log in logs]
        due = [number for number, job in enumerate(jobs) if job.first_dirty_offset < job.first_uncleanable_offset]
        copies = [(logs[n], tmp_path / f"apache-{round_number}" / logs[n].path.name) for n in due]
        results = both_clean(copies, [jobs[n] for n in due], OVERRIDES)
        for (ours, theirs), (log, copy), number in zip(results, copies, due, strict=True):
            assert ours.next_dirty_offset == theirs.next_dirty_offset
            assert ours.stats.messages_written == theirs.messages_written
            assert ours.stats.invalid_messages_read == theirs.invalid_messages_read
            assert_same_files(log, copy, below=jobs[number].first_uncleanable_offset)
            dropped += theirs.messages_read - theirs.messages_written
    assert dropped > 500, "the logs were not worth a compaction"


def test_indexes_are_apaches_where_it_makes_an_entry_for_each_batch(tmp_path: Path) -> None:
    """Apache's entries are per buffer; here one batch fills a buffer. The last record of each batch stays."""
    overrides = {"cleanup.policy": "compact", "segment.bytes": "500000"}
    log = BareLog(tmp_path / "ours" / "topic-0", overrides)
    for number in range(100):
        log.write((b"again", bytes(1000)), (b"stays-%d" % number, bytes(4500)), timestamp=NOW + number % 37)
        if number % 30 == 29:
            log.roll()
    job = log.job(io_buffer_bytes=8192)
    copy = tmp_path / "apache" / "topic-0"
    both_clean([(log, copy)], [job], overrides)
    assert len((log.path / f"{0:020d}.index").read_bytes()) > 8 * 40
    assert_same_files(log, copy, below=job.first_uncleanable_offset)
