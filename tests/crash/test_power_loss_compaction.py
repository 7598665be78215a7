"""Loss of power during a compaction: no key's last value is lost, and deleted keys stay deleted.

The disk keeps only some of the renames in a directory that is not synced: the new segments must
have their names before the old ones lose them, and the cleaner checkpoint must come after both.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from odradek.storage.cleaning.log_cleaning import LogCleaning
from tests.crash.test_compaction_crashes import Run, append, entries, fill, state_of
from tests.support.disks.simulated_disk import PowerCutError, SimulatedDisk

SEEDS = 50
CHANGES_MAX = 220
"""Of files, from the first round of the cleaner on: more than most runs make."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_compaction_survives_the_loss_of_power(memory_path: Path, seed: int) -> None:
    rng = Random(seed)
    fs = SimulatedDisk(memory_path / "live", 10**9)
    run = Run(fs.root / "logs", fs)
    run.workers.clean = lambda job, _: LogCleaning(job, run.disk.environment, lambda _: None).run()
    log = run.open()
    fill(log)
    log.flush()
    run.step()
    assert log.recovery_point == log.log_end_offset
    expected = state_of(entries(log))
    fs.cut_at = fs.count + rng.randrange(1, CHANGES_MAX)
    try:
        run.manager.start_background_tasks()
        for _ in range(3):
            for _ in range(40):
                run.disk.advance(1)
                for _ in range(min(len(run.io_pool.pending), rng.choice((0, 1, 1000)))):
                    run.io_pool.run_one()
                run.workers.go_on()
            run.disk.advance(2_000)
            append(log, b"more" * 60, key=b"filler")
            append(log, b"more" * 60, key=b"filler")
            log.update_high_watermark(log.log_end_offset)
            run.manager.checkpoint_recovery_points()
    except PowerCutError:
        pass
    fs.cut_power(rng, memory_path / "after")
    run.die()
    run.manager.cleaner.shutdown()
    after = Run(memory_path / "after" / "logs")
    for is_first in (True, False):
        log = after.open() if is_first else log
        found = state_of(entries(log))
        found.pop(b"filler", None)
        assert found == {key: value for key, value in expected.items() if key != b"filler"}
        after.clean()
    after.manager.shutdown()
