"""Segments that roll, segments that retention removes, and moves between log directories, while other processes write
to the same disk and wait for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odradek.protocol.api import ApiKey
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.benchmarks.contenders import create_topic
from tests.benchmarks.loop_pauses.fetches import produce
from tests.benchmarks.loop_pauses.watch import WatchedBroker, print_header
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

WRITERS: Final = int(os.environ.get("ODRADEK_BENCH_WRITERS", "4"))
DURATION_S: Final = 30
BATCH_BYTES: Final = 60_000
PAUSE_S: Final = 0.002
PARTITIONS: Final = 4
MOVES: Final = 10
SEGMENT_BYTES: Final = 1 << 20
LOG_DIRS: Final = ("one", "two")

WRITER: Final = """
import itertools, os, sys
data = os.urandom(1 << 20)
for number in itertools.count():
    path = os.path.join(sys.argv[1], f"{os.getpid()}-{number % 4}")
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for _ in range(8):
        os.write(file, data)
    os.fsync(file)
    os.close(file)
    if number % 2:
        os.unlink(path)
"""
"""Files of 8 MB, each synced; half of them are removed, the others written again."""


def settings(directory: Path) -> Mapping[str, str]:
    return {
        "log.dirs": ",".join(str(directory / name) for name in LOG_DIRS),
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "1000",
        "log.segment.delete.delay.ms": "1000",
    }


def run(watched: WatchedBroker, count: int) -> None:
    """Sizes do not depend on `count`: the situations are about the calls, not their number."""
    broker = watched.broker
    print_header(f"a disk with {WRITERS} other processes that write and sync")
    broker.start()
    configs = {"segment.bytes": str(SEGMENT_BYTES), "retention.bytes": str(8 * SEGMENT_BYTES), "retention.ms": "-1"}
    create_topic(broker, "rolled", PARTITIONS, configs)
    create_topic(broker, "moved", 1, {"segment.bytes": str(SEGMENT_BYTES)})
    batch = bytes(build_batch([SimpleRecord(int(time.time() * 1000), None, os.urandom(BATCH_BYTES))]))
    with RawClient(broker.host, broker.port, timeout_s=60) as client, busy_disk():
        seen = len(broker.log_text())
        with watched.situation(f"appends for {DURATION_S} s"):
            give_up_at = time.monotonic() + DURATION_S
            while time.monotonic() < give_up_at:
                produce(client, "rolled", batch)
                time.sleep(PAUSE_S)
        text = broker.log_text()[seen:]
        print(f"  {text.count('Rolled new log segment')} segments rolled")
        for _ in range(8 * SEGMENT_BYTES // BATCH_BYTES):
            produce(client, "moved", batch)
        with watched.situation(f"{MOVES} moves between log directories"):
            for _ in range(MOVES):
                move(client, [broker.log_dir.parent / name for name in LOG_DIRS])


def move(client: RawClient, log_dirs: Sequence[Path]) -> None:
    """Move the partition to the other directory, and wait until it is only there."""
    here, there = sorted((path / "moved-0" for path in log_dirs), key=lambda path: not path.exists())
    dirs = [{"path": str(there.parent), "topics": [{"name": "moved", "partitions": [0]}]}]
    client.call(build(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs), 2)
    eventually(lambda: there.exists() and not here.exists(), timeout_s=60)


@contextmanager
def busy_disk() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as directory:
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, directory]) for _ in range(WRITERS)]
        try:
            yield
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
