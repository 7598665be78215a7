"""New settings while the cleaner runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.disk.ports import WorkerError
from tests.support.compaction.cleaning import keep_last
from tests.unit.storage.cleaning.test_log_cleaner import A0, A1, BACKOFF_MS, World, failing


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.manager.shutdown()


def test_new_settings_restart_the_runs(world: World) -> None:
    world.fill(A0)
    world.fill(A1)
    world.settle()
    world.cleaner.reconfigure(CleanerConfig(threads=2))
    assert world.workers.jobs[0].is_cancelled
    world.settle()
    world.finish()
    world.settle()
    assert not world.workers.jobs or not any(job.is_cancelled for job in world.workers.jobs)
    world.finish()
    assert world.checkpoint() == ["a 0 3", "a 1 3"] or world.checkpoint() == ["a 1 3", "a 0 3"]


def test_new_settings_give_a_log_whose_compaction_failed_another_try(world: World) -> None:
    """They may have been the cause: a key buffer for which there is no memory."""
    world.workers.clean = failing(WorkerError("MemoryError()"))
    world.fill(A0)
    world.settle()
    world.finish()
    assert world.cleaner.uncleanable == {(str(world.path), A0)}
    world.workers.clean = keep_last
    world.cleaner.reconfigure(CleanerConfig())
    world.settle()
    assert world.cleaning == [A0]


@pytest.mark.parametrize("load_factor", [0.0, -1.0, math.nan, 1e-9])
def test_without_room_for_keys_no_run_begins_until_there_is_room(
    world: World, caplog: pytest.LogCaptureFixture, load_factor: float
) -> None:
    world.cleaner.reconfigure(CleanerConfig(dedupe_buffer_load_factor=load_factor, backoff_ms=BACKOFF_MS))
    assert "No log is compacted: offset map is too small" in caplog.text
    log = world.fill(A0)
    log.maybe_increment_log_start_offset(1, "test")
    world.settle()
    world.broker.disk.advance(BACKOFF_MS)
    assert world.cleaning == []
    assert log.segments.base_offsets == [1, 2, 3], "what is deleted is removed"
    world.cleaner.reconfigure(CleanerConfig())
    world.settle()
    assert world.cleaning == [A0]
    assert not world.cleaner.uncleanable
