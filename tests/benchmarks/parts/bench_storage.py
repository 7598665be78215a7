"""The cost of each operation of a log.

    python -m tests.benchmarks.parts.bench_storage [--profile]

Prints microseconds per operation as the best of several rounds; system calls are counted separately where they matter,
because the speed of the disk is not the subject.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.environment import Environment
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.manager.log_manager import LogManager
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

NOW = 1_700_000_000_000


def best_of(rounds: int, count: int, operation: Callable[[int], object]) -> float:
    """Microseconds per call, the best round."""
    best = float("inf")
    for round_ in range(rounds):
        start = time.perf_counter()
        for index in range(count):
            operation(round_ * count + index)
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def new_log(directory: str, overrides: dict[str, str] | None = None) -> UnifiedLog:
    clock = ManualClock(NOW)
    environment = Environment(clock=clock, timer=SystemTimer(clock), new_uuid_hex=lambda: uuid.uuid4().hex)
    manager = LogManager([directory], {}, environment)
    manager.startup({"bench": overrides or {}})
    return manager.get_or_create_log(TopicPartition("bench", 0), uuid.uuid4().bytes, is_new=True)


def batch_of(records: int, size: int, **producer: int) -> memoryview:
    return memoryview(build_batch([SimpleRecord(NOW, b"key", b"v" * size) for _ in range(records)], **producer))


def bench_pwritev(directory: str) -> float:
    """The system call alone, for comparison."""
    fd = os.open(os.path.join(directory, "plain"), os.O_RDWR | os.O_CREAT)
    prefix, rest = b"p" * 16, memoryview(b"r" * 158)
    try:
        return best_of(5, 20_000, lambda index: os.pwritev(fd, [prefix, rest], index * 174))
    finally:
        os.close(fd)


def bench_all(directory: str) -> list[tuple[str, float]]:
    log = new_log(directory)
    small, large = batch_of(1, 100), batch_of(16, 1000)
    results = [
        ("pwritev of 174 bytes, the system call alone", bench_pwritev(directory)),
        ("append, 1 record of 100 bytes", best_of(5, 20_000, lambda _: log.append_as_leader(small, 0))),
        ("append, 16 records of 1000 bytes", best_of(5, 5_000, lambda _: log.append_as_leader(large, 0))),
    ]
    sequences = {"next": 0}

    def append_idempotent(_: int) -> None:
        sequence = sequences["next"]
        sequences["next"] = sequence + 1
        log.append_as_leader(batch_of(1, 100, producer_id=7, producer_epoch=0, base_sequence=sequence), 0)

    building = best_of(3, 5_000, lambda i: batch_of(1, 100, producer_id=7, producer_epoch=0, base_sequence=i))
    results.append(("append, idempotent, 1 record", best_of(3, 5_000, append_idempotent) - building))
    end = log.log_end_offset
    log.update_high_watermark(end)
    committed, uncommitted = FetchIsolation.TXN_COMMITTED, FetchIsolation.HIGH_WATERMARK
    results += [
        ("read at a known place (tail)", best_of(5, 5_000, lambda _: log.read(end - 2, 1 << 20, uncommitted, True))),
        ("read, spread", best_of(5, 5_000, lambda i: log.read(i * 7919 % end, 1 << 20, uncommitted, True))),
        ("read committed, spread", best_of(5, 5_000, lambda i: log.read(i * 7919 % end, 1 << 20, committed, True))),
        ("offset by timestamp", best_of(3, 200, lambda _: log.fetch_offset_by_timestamp(NOW))),
    ]
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile", action="store_true", help="show where an append spends its time")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="odradek-bench-")
    try:
        if arguments.profile:
            log, batch = new_log(directory), batch_of(1, 100)
            profile = cProfile.Profile()
            profile.runcall(best_of, 1, 50_000, lambda _: log.append_as_leader(batch, 0))
            pstats.Stats(profile).sort_stats("tottime").print_stats(18)
            return
        for name, microseconds in bench_all(directory):
            print(f"{microseconds:9.2f} us  {name}")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
