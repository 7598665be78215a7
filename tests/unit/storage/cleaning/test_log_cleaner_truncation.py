"""A truncation between the two looks of the cleaner at a log: in its round, and before the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from odradek.storage.log.unified_log import UnifiedLog
from tests.unit.storage.cleaning.test_log_cleaner import A0, BACKOFF_MS, World


def test_a_log_that_is_truncated_at_the_end_of_its_round_keeps_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.fill(A0)
    world.settle()
    world.finish()
    world.fill(A0)
    visit = world.cleaner._visits.visit

    def visit_and_truncate(
        logs: list[UnifiedLog], each: Callable[[UnifiedLog], None], ended: Callable[[], None]
    ) -> None:
        def truncate() -> None:
            world.manager.truncate_to({A0: 3})
            ended()

        visit(logs, each, truncate)

    monkeypatch.setattr(world.cleaner, "_visits", SimpleNamespace(visit=visit_and_truncate))
    world.broker.disk.advance(BACKOFF_MS)
    assert world.log(A0).log_end_offset == 3
    assert world.cleaning == []
    assert world.checkpoint() == ["a 0 3"]
    monkeypatch.undo()
    world.manager.shutdown()
