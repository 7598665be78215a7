"""Commands, options and files are completed while somebody types in bash. zsh and fish: `tests/soak/consoles/`."""

from __future__ import annotations

from pathlib import Path

from tests.support.completed_words import check_completion


def test_bash(tmp_path: Path) -> None:
    check_completion("bash", tmp_path, "source <(odradek completion bash)")
