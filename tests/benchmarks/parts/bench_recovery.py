"""The cost of a start: seconds for each GB of unflushed log, and for ten thousand partitions that were stopped cleanly.

    python -m tests.benchmarks.parts.bench_recovery

The scan is measured in this process, as a worker does it, with the files in the page cache.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.config.log_config import LogConfig
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.disk.environment import Environment
from odradek.storage.manager.log_manager import LogManager
from odradek.storage.producers.producer_state_manager import ProducerMemory
from odradek.storage.recovery.recovery_job import RecoveryJob, recover_log

GB = 10**9
CASES = (
    # name, bytes of a value, records in a batch, bytes in all, idempotent
    ("1 KB records in batches of 16 KB", 1000, 16, GB, False),
    ("the same of an idempotent producer", 1000, 16, GB, True),
    ("one record of 1 KB in a batch", 1000, 1, GB // 4, False),
    ("one record of 100 B in a batch", 100, 1, GB // 8, False),
)
PARTITIONS = 10_000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as path:
        for name, value_bytes, records, total_bytes, is_idempotent in CASES:
            directory = Path(path) / "topic-0"
            batches = write_log(directory, value_bytes, records, total_bytes, is_idempotent=is_idempotent)
            started = time.perf_counter()
            recover(directory)
            elapsed = time.perf_counter() - started
            print(f"{name:<40}{elapsed / total_bytes * GB:>8.2f} s/GB{elapsed / batches * 1e6:>8.2f} us/batch")
            for file in directory.iterdir():
                file.unlink()
        load_many(Path(path) / "many")


def write_log(directory: Path, value_bytes: int, records: int, total_bytes: int, *, is_idempotent: bool) -> int:
    """Write the one file a killed broker leaves without an index; how many batches it has."""
    directory.mkdir(exist_ok=True)
    first = [SimpleRecord(1_700_000_000_000, b"key", bytes(value_bytes))] * records
    size = count = offset = 0
    template = bytearray(build_batch(first))
    with (directory / f"{0:020d}.log").open("wb", buffering=1 << 20) as file:
        while size < total_bytes:
            if is_idempotent:
                template = bytearray(build_batch(first, producer_id=1, producer_epoch=0, base_sequence=offset))
            template[:8] = offset.to_bytes(8, "big")
            file.write(template)
            size += len(template)
            offset += records
            count += 1
    (directory / f"{0:020d}.index").touch()
    return count


def recover(directory: Path) -> None:
    job = RecoveryJob(
        path=str(directory),
        topic_partition=TopicPartition("topic", 0),
        config=LogConfig.from_props({}, {}),
        log_start_offset=0,
        recovery_point=0,
        first_dirty_offset=0,
        had_clean_shutdown=False,
        producer_id_expiration_ms=2**62,
    )
    assert isinstance(recover_log(job, lambda _: None), ProducerMemory)


def load_many(path: Path) -> None:
    """Start with many partitions, ticking the timer as the broker does; prints the longest pause of the loop."""
    make_many(path)
    for is_clean in (True, False):
        if not is_clean:
            (path / ".kafka_cleanshutdown").unlink()
        environment = Environment.of_worker()
        manager = LogManager([str(path)], {}, environment)
        manager.lock_dirs()
        outcome: list[BaseException | None] = []
        started = time.perf_counter()
        manager.begin_startup({}, outcome.append)
        longest = time.perf_counter() - started
        while not outcome:
            slice_started = time.perf_counter()
            environment.timer.advance()
            longest = max(longest, time.perf_counter() - slice_started)
        elapsed = time.perf_counter() - started
        assert (outcome, len(manager.all_logs())) == ([None], PARTITIONS)
        name = f"{PARTITIONS} partitions, {'stopped cleanly' if is_clean else 'killed'}"
        print(f"{name:<40}{elapsed:>8.2f} s, the loop held for at most {longest * 1000:.0f} ms")
        for log_dir in manager.log_dirs:
            log_dir.unlock()
        log_dir.mark_clean_shutdown()


def make_many(path: Path) -> None:
    """The directory of a broker with many partitions of one record each, after a clean stop."""
    manager = LogManager([str(path)], {}, Environment.of_worker())
    manager.startup()
    log = manager.get_or_create_log(TopicPartition("topic", 0), bytes(15) + b"\7", is_new=True)
    log.append_as_leader(memoryview(build_batch([SimpleRecord(1_700_000_000_000, b"k", b"v")])), 0)
    manager.shutdown()
    for number in range(1, PARTITIONS):
        shutil.copytree(path / "topic-0", path / f"topic-{number}")
    offsets = {TopicPartition("topic", number): 1 for number in range(PARTITIONS)}
    (path / checkpoints.RECOVERY_POINT_FILE).write_bytes(checkpoints.encode_offsets(offsets))


if __name__ == "__main__":
    main()
