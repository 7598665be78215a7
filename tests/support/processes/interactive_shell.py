"""A shell of somebody who types: in a terminal, with a start-up file."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.support.processes.terminal import Terminal

PROMPT: Final = "READY>"
PATH: Final = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""With `odradek` in it."""

START_UP_FILES: Final = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}
"""In the home directory."""

LAST_LINES: Final = {
    "bash": ('odradek() { printf "RAN<%s>\\n" "$*"; }', f"PS1='{PROMPT} '"),
    "zsh": ('odradek() { printf "RAN<%s>\\n" "$*"; }', f"PS1='{PROMPT} '"),
    "fish": ('function odradek; printf "RAN<%s>\\n" "$argv"; end', f"function fish_prompt; printf '{PROMPT} '; end"),
}
"""The command prints its arguments, once the shell has its completion."""


class InteractiveShell:
    """Runs a shell until the end of a `with` block. Its home is `directory`, where it also is."""

    def __init__(self, shell: str, directory: Path, start_up: Sequence[str]) -> None:
        program = shutil.which(shell)
        assert program is not None, f"{shell} is not installed"
        file = directory / START_UP_FILES[shell]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join([*start_up, *LAST_LINES[shell], ""]), encoding="utf-8")
        environment = {"PATH": PATH, "HOME": str(directory), "LANG": "C.UTF-8"}
        command = ["setsid", "--ctty", program, "-i"]  # job control needs a terminal that controls the session
        self._terminal = Terminal(command, environment=environment, directory=directory)
        self._ran = 0

    def __enter__(self) -> Self:
        self._terminal.__enter__()
        self._await_prompt()
        return self

    def __exit__(self, *error: object) -> None:
        self._terminal.__exit__(*error)

    def arguments_of(self, keys: str) -> str:
        """What `odradek` gets when somebody types these keys behind it, and Enter."""
        self._terminal.press(f"odradek {keys}\r".encode())
        self._ran += 1
        lines = self._terminal.await_lines(lambda lines: len(_printed(lines)) == self._ran)
        self._await_prompt()
        return _printed(lines)[-1].rstrip()

    def _await_prompt(self) -> None:
        self._terminal.await_lines(lambda lines: [line for line in lines if line][-1:] == [PROMPT])


def _printed(lines: Sequence[str]) -> list[str]:
    return re.findall(r"^RAN<(.*)>$", "\n".join(lines), re.MULTILINE)
