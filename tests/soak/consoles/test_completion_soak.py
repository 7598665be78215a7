"""Completion in zsh and fish, which `make test` does without: `apt-get install zsh fish`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from odradek.broker import cli
from odradek.broker.tools.completion import script
from tests.support.completed_words import check_completion
from tests.unit.broker.tools.test_completion import hostile_parser

pytestmark = pytest.mark.soak

COMPINIT = "autoload -U compinit; compinit -u -D"


def test_zsh(tmp_path: Path) -> None:
    check_completion("zsh", tmp_path, COMPINIT, "source <(odradek completion zsh)")


def test_zsh_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "_odradek").write_text(script("zsh", cli._full_parser()), encoding="utf-8")
    check_completion("zsh", tmp_path, f"fpath=({tmp_path} $fpath); {COMPINIT}")


def test_fish(tmp_path: Path) -> None:
    check_completion("fish", tmp_path, "odradek completion fish | source")


def test_fish_from_a_file(tmp_path: Path) -> None:
    completions = tmp_path / ".config" / "fish" / "completions"
    completions.mkdir(parents=True)
    (completions / "odradek.fish").write_text(script("fish", cli._full_parser()), encoding="utf-8")
    check_completion("fish", tmp_path)


@pytest.mark.parametrize(("shell", "option"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_help_texts_with_quotes_do_not_break_a_script(shell: str, option: str, tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text(script(shell, hostile_parser()))
    done = subprocess.run([shell, option, file], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
