"""Runs of the simulation do not influence each other: each has a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.support.simulation.__main__ import run_seed
from tests.support.simulation.cluster import Simulation

KEPT: list[object] = []


class Leftover:
    """Stands for a coroutine of a killed broker: its end is seen."""

    def __init__(self, seen: Path) -> None:
        self._seen = seen

    def __del__(self) -> None:
        self._seen.touch()


class Run:
    """Stands for Simulation."""

    seen = Path()

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.trace: list[str] = []
        self.outcome = "done"
        self.left = Leftover(self.seen)

    def run(self) -> None:
        if self.seed < 0:
            raise ValueError("a seed that fails")
        assert KEPT == [], "the run before left something"
        KEPT.append(self.seed)

    def story(self) -> str:
        return "a story"


def run(seed: int) -> bool:
    return run_seed(cast("type[Simulation]", Run), seed, prints_trace=False)


def test_a_run_finds_nothing_of_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "seen", tmp_path / "freed")
    assert run(1)
    assert run(2)
    assert not Run.seen.exists()


def test_a_run_that_fails_is_told_with_its_story(capfd: pytest.CaptureFixture[str]) -> None:
    assert not run(-1)
    output = capfd.readouterr().out
    assert "a story" in output
    assert "seed -1: FAILED ValueError: a seed that fails" in output
