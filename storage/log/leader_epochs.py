"""The leader epochs of a log and the start offset of each. Replicas compare them to find where their logs diverge
(KIP-101).

    epoch 0 from offset 0, epoch 2 from 40, epoch 5 from 70, log end 90:
    end_offset_for(0) = (0, 40)   (1) = (0, 40)   (2) = (2, 70)   (5) = (5, 90)   (6) = undefined   (-1) = undefined

Invariants: epochs and start offsets both strictly increase; a new entry removes the entries that would break this,
because the new leader is right. Every change calls `on_change` before the method returns. Message formats v0 and v1
carry no epochs: such a log has no entries, and its replicas truncate to the high watermark.

Kafka: LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.storage.offsets import UNKNOWN_OFFSET, EpochEndOffset, EpochEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


UNDEFINED = EpochEndOffset(NO_PARTITION_LEADER_EPOCH, UNKNOWN_OFFSET)


class LeaderEpochs:
    """The ordered entries of one log."""

    __slots__ = ("_entries", "_is_kept", "latest_epoch", "on_change")

    def __init__(
        self, entries: Sequence[EpochEntry] = (), on_change: Callable[[Sequence[EpochEntry]], None] | None = None
    ) -> None:
        self._entries: list[EpochEntry] = []
        self.latest_epoch = NO_PARTITION_LEADER_EPOCH
        """-1 without entries."""
        self._is_kept = True
        self.on_change: Callable[[Sequence[EpochEntry]], None] | None = None
        for entry in entries:
            self._assign(entry)
        self.on_change = on_change

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def is_empty(self) -> bool:
        return not self._entries

    @property
    def earliest_entry(self) -> EpochEntry | None:
        return self._entries[0] if self._entries else None

    def keep(self, is_kept: bool) -> None:
        """Enable or disable entries. Disabling removes them."""
        self._is_kept = is_kept
        if not is_kept:
            self.clear()

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record the start offset of an epoch. Returns whether anything changed."""
        if not self._is_kept:
            return False
        if epoch == self.latest_epoch and self._entries and start_offset >= self._entries[-1].start_offset:
            return False
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"Received invalid partition leader epoch entry ({epoch}, {start_offset})")
        self._assign(EpochEntry(epoch, start_offset))
        self._changed()
        return True

    def continues(self, epoch: int, offset: int, log_end_offset: int) -> bool:
        """Whether the log goes on from one that ends at `offset` with a record of `epoch`, by the latest epoch alone.
        So it is with readers that were at the end before.
        """
        return epoch == self.latest_epoch and offset <= log_end_offset

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch at or below the given one, and the start offset of the epoch after it."""
        if epoch == NO_PARTITION_LEADER_EPOCH:
            return UNDEFINED
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(self._entries, epoch, key=_epoch)
        if higher == len(self._entries):
            return UNDEFINED
        found = self._entries[higher - 1].epoch if higher else epoch
        return EpochEndOffset(found, self._entries[higher].start_offset)

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that begin at or above the offset.

        Kafka: LeaderEpochFileCache.truncateFromEndAsyncFlush.
        """
        keep = bisect_left(self._entries, end_offset, key=_start)
        if end_offset >= 0 and keep < len(self._entries):
            del self._entries[keep:]
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove what lies below the new log start: the epoch that contains the offset begins there.

        Kafka: LeaderEpochFileCache.truncateFromStartAsyncFlush.
        """
        index = bisect_right(self._entries, start_offset, key=_start)
        if (index and self._entries[index - 1].start_offset != start_offset) or index > 1:
            self._entries[:index] = [EpochEntry(self._entries[index - 1].epoch, start_offset)]
            self._changed()

    def clear(self) -> None:
        """Kafka: LeaderEpochFileCache.clearAndFlush."""
        if self._entries:
            self._entries.clear()
            self._changed()

    def _assign(self, entry: EpochEntry) -> None:
        """Kafka: LeaderEpochFileCache.maybeTruncateNonMonotonicEntries."""
        while self._entries and (
            self._entries[-1].epoch >= entry.epoch or self._entries[-1].start_offset >= entry.start_offset
        ):
            self._entries.pop()
        self._entries.append(entry)
        self.latest_epoch = entry.epoch

    def _changed(self) -> None:
        self.latest_epoch = self._entries[-1].epoch if self._entries else NO_PARTITION_LEADER_EPOCH
        if self.on_change is not None:
            self.on_change(self._entries)


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start(entry: EpochEntry) -> int:
    return entry.start_offset
