"""The four offsets that bound what readers see.

    log start offset <= last stable offset <= high watermark <= log end offset

The replica manager advances the high watermark. The first unstable offset is the start of the earliest transaction that
is open or whose marker is not yet below the high watermark. The last stable offset is the smaller of the two. Each
offset is kept with its file position where that is known, so that a fetch needs no lookup for its upper bound.

`on_change` is called after each change of these offsets, for a new segment, and for every other change of the log that
a read depends on: a cached read stays valid until then.

Invariants: the order above, at every return; a kept position is that of the batch which contains the offset, or the
log end.

Kafka: UnifiedLog.updateHighWatermark, UnifiedLog.maybeIncrementHighWatermark, UnifiedLog.lastStableOffset,
UnifiedLog.maybeIncrementFirstUnstableOffset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.fetch_data import FetchIsolation

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from odradek.storage.log.local_log import LocalLog
    from odradek.storage.producers.producer_state_manager import ProducerStateManager


class Watermarks:
    """The reader bounds of one log."""

    __slots__ = ("_first_unstable", "_high_watermark", "_local", "_producers", "log_start_offset", "on_change")

    def __init__(self, local_log: LocalLog, producers: ProducerStateManager, log_start_offset: int) -> None:
        self._local = local_log
        self._producers = producers
        self.log_start_offset = log_start_offset
        self.on_change: Callable[[], None] = _ignore_change
        self._high_watermark = LogOffsetMetadata(log_start_offset)
        self._first_unstable: LogOffsetMetadata | None = None
        self.update_first_unstable()

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.message_offset

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        """The high watermark with its position, looked up once. Kafka: UnifiedLog.fetchHighWatermarkMetadata."""
        metadata = self._high_watermark
        if metadata.segment_base_offset < 0:
            metadata = self._high_watermark = self._local.locate(metadata.message_offset)
        return metadata

    @property
    def first_unstable(self) -> LogOffsetMetadata | None:
        return self._first_unstable

    @property
    def last_stable_offset(self) -> int:
        unstable, high_watermark = self._first_unstable, self._high_watermark.message_offset
        if unstable is not None and unstable.message_offset < high_watermark:
            return unstable.message_offset
        return high_watermark

    @property
    def readable(self) -> tuple[int, int]:
        """The high watermark and the last stable offset: in one call, because each read of a partition needs both."""
        unstable, high_watermark = self._first_unstable, self._high_watermark.message_offset
        if unstable is not None and unstable.message_offset < high_watermark:
            return high_watermark, unstable.message_offset
        return high_watermark, high_watermark

    @property
    def last_stable_metadata(self) -> LogOffsetMetadata:
        """Kafka: UnifiedLog.fetchLastStableOffsetMetadata."""
        unstable = self._first_unstable
        if unstable is None or unstable.message_offset >= self._high_watermark.message_offset:
            return self.high_watermark_metadata
        if unstable.segment_base_offset < 0:
            unstable = self._first_unstable = self._local.locate(unstable.message_offset)
        return unstable

    def limit(self, isolation: FetchIsolation) -> int:
        """The first offset a reader may not see."""
        if isolation is FetchIsolation.LOG_END:
            return self._local.log_end_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self._high_watermark.message_offset
        return self.last_stable_offset

    def limit_metadata(self, isolation: FetchIsolation) -> LogOffsetMetadata:
        """The same with its position."""
        if isolation is FetchIsolation.LOG_END:
            return self._local.end_offset_metadata
        if isolation is FetchIsolation.HIGH_WATERMARK:
            metadata = self._high_watermark
            return metadata if metadata.segment_base_offset >= 0 else self.high_watermark_metadata
        return self.last_stable_metadata

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, limited to [log start, log end]; returns the result."""
        if high_watermark >= self._local.log_end_offset:
            self._set(self._local.end_offset_metadata)
        else:
            self._set(LogOffsetMetadata(max(high_watermark, self.log_start_offset)))
        return self._high_watermark.message_offset

    def maybe_increment_high_watermark(self, new: int | LogOffsetMetadata) -> bool:
        """Advance the high watermark; False when it is there already.

        The same offset on a newer segment counts as an advance, because the position changes.

        Raises: ValueError above the log end.
        """
        metadata = LogOffsetMetadata(new) if isinstance(new, int) else new
        offset, end = metadata.message_offset, self._local.log_end_offset
        if offset > end:
            raise ValueError(
                f"High watermark {offset} update exceeds current log end offset {end} of {self._local.topic_partition}"
            )
        old = self._high_watermark
        if offset < old.message_offset or (offset == old.message_offset and not old.on_older_segment(metadata)):
            return False
        self._set(self._local.end_offset_metadata if offset == end else metadata)
        return True

    def appended(self, *, is_alone: bool) -> None:
        """Call after each append. `is_alone`: no other replica has to have the records, so the high watermark is at the
        log end. Short: it runs per append.
        """
        self.on_change()
        if is_alone:
            self._high_watermark = self._local.end_offset_metadata
        if self._first_unstable is not None or self._producers.ongoing_txns or self._producers.unreplicated_txns:
            if is_alone:
                self._make_transactions_stable()
            else:
                self._find_first_unstable()

    def raise_high_watermark_to_end(self) -> bool:
        """Advance the high watermark to the log end, for a partition without followers."""
        end = self._local.end_offset_metadata
        old = self._high_watermark
        if end.message_offset == old.message_offset and not old.on_older_segment(end):
            return False
        self._high_watermark = end
        self.on_change()
        if self._first_unstable is not None or self._producers.ongoing_txns or self._producers.unreplicated_txns:
            self._make_transactions_stable()
        return True

    def on_rolled(self) -> None:
        """Call after a roll: the log end, and a high watermark at the log end, move to the new segment."""
        self.on_change()
        if self.high_watermark >= self._local.log_end_offset:
            self._high_watermark = self._local.end_offset_metadata

    def on_segments_replaced(self, base_offsets: Container[int]) -> None:
        """Forget positions in these segments. They lie below the last stable offset, so that only the position of a
        high watermark at the end of one of them is affected; the next use looks it up again.
        """
        if self._high_watermark.segment_base_offset in base_offsets:
            self.on_change()
            self._high_watermark = LogOffsetMetadata(self.high_watermark)

    def update_first_unstable(self) -> None:
        """Call after every other change of the log end, the log start, or the producers' transactions."""
        self.on_change()
        if self._first_unstable is not None or self._producers.ongoing_txns or self._producers.unreplicated_txns:
            self._find_first_unstable()

    def _find_first_unstable(self) -> None:
        unstable = self._producers.first_unstable_offset
        if unstable is not None and unstable.message_offset < self.log_start_offset:
            unstable = LogOffsetMetadata(self.log_start_offset)
        self._first_unstable = unstable

    def _set(self, metadata: LogOffsetMetadata) -> None:
        self._high_watermark = metadata
        self.on_change()
        if self._first_unstable is not None or self._producers.ongoing_txns or self._producers.unreplicated_txns:
            self._make_transactions_stable()

    def _make_transactions_stable(self) -> None:
        """Those whose marker is below the high watermark."""
        self._producers.on_high_watermark_updated(self._high_watermark.message_offset)
        self._find_first_unstable()


def _ignore_change() -> None:
    """The default `on_change`: no read of this log is cached."""
