"""Checks leader-epoch-checkpoint: the order of its entries, and the epochs of the batches against it.

Epochs and their start offsets increase. A batch has the epoch of the last entry that starts at or below the batch's
last offset. Entries without batches are normal: a leader that appended nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from odradek.storage.verification.findings import Finding, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.storage.offsets import EpochEntry


def check_order(path: str, entries: Sequence[EpochEntry], report: Report) -> bool:
    """Whether the entries are in order; reports the first one that is not."""
    for previous, entry in pairwise(entries):
        if entry.epoch <= previous.epoch or entry.start_offset <= previous.start_offset:
            report(
                Finding(
                    path,
                    None,
                    f"epoch {entry.epoch} from offset {entry.start_offset} on does not follow epoch {previous.epoch} "
                    f"from offset {previous.start_offset} on",
                )
            )
            return False
    return True


class EpochCheck:
    """Call `see` for each batch that has an epoch, in order. Ignores batches outside of [start, end)."""

    def __init__(self, entries: Sequence[EpochEntry], start: int, end: int, report: Report) -> None:
        self._entries = entries
        self._slot = -1
        self._start = start
        self._end = end
        self._report = report
        self._last_found = (-1, -1)
        """(epoch of the batch, epoch in the file) of the last finding: batches in a row are reported once."""

    def see(self, log_path: str, position: int, epoch: int, last_offset: int) -> None:
        if not self._start <= last_offset < self._end:
            return
        while self._slot + 1 < len(self._entries) and self._entries[self._slot + 1].start_offset <= last_offset:
            self._slot += 1
        expected = self._entries[self._slot].epoch if self._slot >= 0 else -1
        if epoch != expected and self._last_found != (epoch, expected):
            self._last_found = (epoch, expected)
            said = "none" if expected < 0 else str(expected)
            self._report(
                Finding(
                    log_path,
                    position,
                    f"the batch that ends at offset {last_offset} has leader epoch {epoch}, leader-epoch-checkpoint "
                    f"says {said}",
                )
            )
