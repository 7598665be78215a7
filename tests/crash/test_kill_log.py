"""A process that appends is killed at random moments: each record it acknowledged is there, once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.disks.logs import TP, Disk, read_all
from tests.support.processes.python_path import python_path

ROUNDS = 8
OVERRIDES = {"segment.bytes": "20000", "index.interval.bytes": "200"}

WRITER = """
import sys
from pathlib import Path
from tests.support.disks.logs import Disk, append
path, overrides = Path(sys.argv[1]), eval(sys.argv[2])
log = Disk(path).log(overrides)
print("ready", log.log_end_offset, flush=True)
number = log.log_end_offset
while True:
    append(log, b"%d" % number, b"x" * (number % 300), producer_id=1, producer_epoch=0, base_sequence=number)
    number += 2
    print(number, flush=True)
"""


def run_and_kill(path: Path, delay: float) -> int:
    """Let the writer append for a while and kill it. Returns the log end that it had acknowledged."""
    root = Path(__file__).resolve().parents[2]
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), repr(OVERRIDES)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": python_path(root / "src", root), "PATH": "/usr/bin"},
    )
    assert writer.stdout is not None
    assert writer.stdout.readline().startswith("ready")
    time.sleep(delay)
    writer.send_signal(signal.SIGKILL)
    lines = [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    writer.stdout.close()
    writer.wait()
    return int(lines[-1]) if lines else 0


def test_acknowledged_records_survive_kill_9(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    acknowledged = 0
    for _ in range(ROUNDS):
        acknowledged = max(acknowledged, run_and_kill(tmp_path, rng.uniform(0, 0.1)))
        log = Disk(tmp_path).log(OVERRIDES)
        assert log.topic_partition == TP
        assert log.log_end_offset >= acknowledged
        records = read_all(log)
        assert [record.offset for record in records] == list(range(log.log_end_offset))
        assert [record.value for record in records[::2]] == [b"%d" % n for n in range(0, log.log_end_offset, 2)]
        last_offsets = {producer: entry.last_data_offset for producer, entry in log.active_producers().items()}
        # The kill may come before the first append.
        assert last_offsets == ({1: log.log_end_offset - 1} if log.log_end_offset else {})
        log.discard()
    assert acknowledged > 100
