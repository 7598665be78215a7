"""What somebody types behind `odradek`, with the key Tab, and what the command then gets."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.processes.interactive_shell import InteractiveShell

DIRECTORY: Final = "data-of-a-broker"
"""The only file that begins with `data`."""

TYPED: Final = {
    "gr\t": "groups",
    "groups --des\t": "groups --describe",
    "groups --bootstrap-server h:1 --to-o\t3": "groups --bootstrap-server h:1 --to-offset 3",
    "transactions find\t--max\t5": "transactions find-hanging --max-transaction-timeout 5",
    "transactions --json find\t": "transactions --json find-hanging",
    "elect-leaders --election-type pre\t": "elect-leaders --election-type preferred",
    "completion fi\t": "completion fish",
    "metadata c\t--over\t": "metadata copy --overwrite",
    "perf produce --num\t3": "perf produce --num-records 3",
    "perf end-to-end --j\t": "perf end-to-end --json",
    "verify data\t": f"verify {DIRECTORY}",
    "produce --command-config data\t": f"produce --command-config {DIRECTORY}",
}
"""A word that is complete gets a space."""


def check_completion(shell: str, home: Path, *start_up: str) -> None:
    """Type everything in a shell whose start-up file has these lines."""
    (home / DIRECTORY).mkdir()
    with InteractiveShell(shell, home, start_up) as typing:
        found = {keys: typing.arguments_of(keys).rstrip("/") for keys in TYPED}
    assert found == TYPED
