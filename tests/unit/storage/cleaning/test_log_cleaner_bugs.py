"""A bug ends the compaction of one log; the rounds and the other logs continue."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.storage.cleaning import clean_run
from odradek.storage.cleaning import log_cleaner as cleaner_module
from odradek.storage.cleaning.clean_job import CleanJob
from odradek.storage.cleaning.log_cleaner import LogCleaner
from odradek.storage.cleaning.log_to_clean import LogToClean
from odradek.storage.log.unified_log import UnifiedLog
from tests.unit.storage.cleaning.test_log_cleaner import A0, A1, BACKOFF_MS, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.manager.shutdown()


def settle_despite_errors(world: World) -> None:
    for _ in range(20):
        with contextlib.suppress(ExceptionGroup):
            world.broker.disk.advance(0)


def test_a_run_that_cannot_begin_is_the_end_of_that_log_and_not_of_the_rounds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_of = LogCleaner.job_of

    def fail(cleaner: LogCleaner, found: LogToClean) -> CleanJob:
        if found.log.topic_partition == A0:
            raise ValueError("a bug")
        return job_of(cleaner, found)

    monkeypatch.setattr(LogCleaner, "job_of", fail)
    world.fill(A0)
    settle_despite_errors(world)
    assert world.cleaning == []
    world.fill(A1)
    world.broker.disk.advance(BACKOFF_MS)
    world.settle()
    assert world.cleaning == [A1]


@pytest.mark.parametrize("name", ["_compare", "_examine"])
def test_a_log_that_cannot_be_examined_does_not_stop_others(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    look = getattr(LogCleaner, name)

    def fail(cleaner: LogCleaner, log: UnifiedLog) -> object:
        if log.topic_partition == A0:
            raise ValueError("a bug")
        return look(cleaner, log)

    monkeypatch.setattr(LogCleaner, name, fail)
    world.fill(A0)
    world.fill(A1)
    with contextlib.suppress(ExceptionGroup):
        world.broker.disk.advance(BACKOFF_MS)
    settle_despite_errors(world)
    assert world.cleaning == [A1]


@pytest.mark.parametrize("name", ["rename_to_swap", "replace_segments"])
def test_a_run_that_meets_a_bug_ends(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(clean_run, name, fail)
    world.fill(A0)
    world.settle()
    world.finish()
    assert not world.cleaner.is_cleaning(A0)
    world.fill(A1)
    world.broker.disk.advance(BACKOFF_MS)
    world.settle()
    assert world.cleaning == [A1]


def test_a_result_that_cannot_be_noted_is_followed_by_another_round(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(cleaner_module, "_log_result", fail)
    world.fill(A0)
    world.settle()
    world.finish()
    world.fill(A1)
    world.broker.disk.advance(BACKOFF_MS)
    world.settle()
    assert A1 in world.cleaning
